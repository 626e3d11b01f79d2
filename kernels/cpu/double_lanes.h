// double_lanes.h: float32 vectors computed in double. Base-2 exponentials and logarithms are right to 2^-34
// of their value: 0.501 units in the last place once they are rounded to float32, at a fraction of the cost
// of functions that are right to the last bit of a double.
#pragma once

#include "kernels/cpu/vector_math.h"

namespace thalweg::cpu {
// Unnamed, so that each instruction set keeps its own copy.
namespace {

using Doubles = Float64Lanes::Vector;

/// The lanes of a float32 vector in double, in order.
struct Widened {
  Doubles low;
  Doubles high;
};

THALWEG_HD Widened widen(Float32Lanes::Vector x) {
#if defined(__AVX512F__)
  // Masked forms, as GCC 12 warns about the others.
  return {_mm512_maskz_cvtps_pd(0xff, _mm512_maskz_extractf32x8_ps(0xff, x, 0)),
          _mm512_maskz_cvtps_pd(0xff, _mm512_maskz_extractf32x8_ps(0xff, x, 1))};
#elif defined(__AVX2__)
  return {_mm256_cvtps_pd(_mm256_castps256_ps128(x)), _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1))};
#elif defined(__SSE2__)
  return {_mm_cvtps_pd(x), _mm_cvtps_pd(_mm_movehl_ps(x, x))};
#else
  return {x, 0};
#endif
}

THALWEG_HD Float32Lanes::Vector narrow(Widened x) {
#if defined(__AVX512F__)
  return _mm512_maskz_insertf32x8(0xffff, _mm512_castps256_ps512(_mm512_maskz_cvtpd_ps(0xff, x.low)),
                                  _mm512_maskz_cvtpd_ps(0xff, x.high), 1);
#elif defined(__AVX2__)
  return _mm256_set_m128(_mm256_cvtpd_ps(x.high), _mm256_cvtpd_ps(x.low));
#elif defined(__SSE2__)
  return _mm_movelh_ps(_mm_cvtpd_ps(x.low), _mm_cvtpd_ps(x.high));
#else
  return static_cast<float>(x.low);
#endif
}

// Coefficients here interpolate at Chebyshev's nodes.

/// 2^x for |x| up to 1000.
THALWEG_HD Doubles exp2_in_double(Doubles x) {
  using Bits = Float64Lanes::Bits;
  // Added, it leaves no place for digits behind the point: x is rounded, and its bits count up from this
  // one's.
  const Doubles shift = Float64Lanes::splat(0x1.8p52);
  const Doubles shifted = x + shift;
  const Doubles fraction = x - (shifted - shift);
  const Doubles power =
      polynomial<Float64Lanes>(fraction, {0.9999999999595618, 0.6931471805568324, 0.24022651213498092,
                                          0.055504109063258665, 0.009618025613318034, 0.0013333478473685416,
                                          0.00015469729214118296, 1.5303700711365693e-05});
  // The whole part joins the exponent; what else the bits held is shifted out.
  return bits_as<Doubles>(bits_as<Bits>(power) + (bits_as<Bits>(shifted) << 52));
}

/// The base-2 logarithm of a normal number above 0.
THALWEG_HD Doubles log2_in_double(Doubles x) {
  using Bits = Float64Lanes::Bits;
  // The mantissa is taken from sqrt(1/2) to sqrt(2), so that the logarithm of numbers near 1 is no
  // difference: the exponent then changes where the bits of sqrt(1/2) end.
  const uint64_t root = 0x3fe6a09e667f3bcd;
  const uint64_t one = 0x3ff0000000000000;
  const Bits moved = bits_as<Bits>(x) + (one - root);
  const Doubles mantissa = bits_as<Doubles>((moved & 0x000fffffffffffff) + root);
  // An integer in the low bits of 2^52 is added to it.
  const uint64_t shift = 0x4330000000000000;
  const Doubles exponent = bits_as<Doubles>((moved >> 52) + shift) - Float64Lanes::splat(0x1p52 + 1023);
  const Doubles rest = mantissa - Float64Lanes::splat(1);
  const Doubles slope = polynomial<Float64Lanes>(
      rest,
      {1.4426950408708794, -0.7213475209631551, 0.4808983601762459, -0.3606736553159396, 0.28853739437873954,
       -0.24045433696411997, 0.20617283226751987, -0.1802710257711494, 0.15878356832510718,
       -0.14349039375280995, 0.14495052999815844, -0.1414478821058739, 0.07553790398013412});
  return Float64Lanes::multiply_add(rest, slope, exponent);
}

}  // namespace
}  // namespace thalweg::cpu
