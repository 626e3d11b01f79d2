// half.h: conversions between the half-precision formats, kept as 16 bits, and float and double. Roundings
// are to nearest, ties to even; NaNs keep their sign and the upper bits of their payload and become quiet.
#pragma once

#include <stdint.h>
#include <string.h>

// Always inlined and without standard C++ headers: files compiled for several instruction sets share these,
// and an out-of-line copy that the linker merged would hand AVX code to a processor without it. Written as
// choices between values, so that loops over them vectorise.
#define THALWEG_HALF_INLINE static inline __attribute__((always_inline))

namespace thalweg {

THALWEG_HALF_INLINE uint32_t bits_of(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}
THALWEG_HALF_INLINE float float_of_bits(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

/// The value of a bfloat16: the upper half of a float's bits.
THALWEG_HALF_INLINE float widen_bfloat16(uint16_t bits) {
  const uint32_t wide = static_cast<uint32_t>(bits) << 16;
  return float_of_bits((wide & 0x7fffffffu) > 0x7f800000u ? wide | 0x00400000u : wide);
}

THALWEG_HALF_INLINE uint16_t narrow_bfloat16(float x) {
  const uint32_t bits = bits_of(x);
  // Half of the last place that stays, less one where that place is even: a tie then does not carry.
  const uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
  const uint32_t quiet = bits >> 16 | 0x40u;
  return static_cast<uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? quiet : rounded);
}

/// The value of an IEEE 754 binary16: 1 sign bit, 5 of the exponent, 10 of the fraction.
THALWEG_HALF_INLINE float widen_float16(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t magnitude = bits & 0x7fffu;
  const uint32_t normal = (magnitude << 13) + ((127u - 15u) << 23);
  const uint32_t special = magnitude << 13 | 0x7f800000u | (magnitude > 0x7c00u ? 0x00400000u : 0u);
  // 2^-14 and the fraction, less 2^-14: exact, whatever happens to subnormal floats.
  const uint32_t subnormal = bits_of(float_of_bits((magnitude << 13) + (113u << 23)) - 0x1p-14f);
  return float_of_bits(sign | (magnitude >= 0x7c00u ? special : magnitude < 0x0400u ? subnormal : normal));
}

THALWEG_HALF_INLINE uint16_t narrow_float16(float x) {
  const uint32_t bits = bits_of(x);
  const uint32_t sign = bits >> 16 & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  const uint32_t normal = (magnitude - ((127u - 15u) << 23) + 0x0fffu + (magnitude >> 13 & 1)) >> 13;
  // Below 2^-14 the sum's last place is 2^-24, that of the result: the addition rounds. Larger values are
  // kept out, for which it could overflow.
  const uint32_t small = magnitude < 0x38800000u ? magnitude : 0u;
  const uint32_t subnormal = bits_of(float_of_bits(small) + 0.5f) - 0x3f000000u;
  const uint32_t special = magnitude > 0x7f800000u ? 0x7e00u | (magnitude >> 13 & 0x03ffu) : 0x7c00u;
  // From 65520 on, halfway to 2^16, all is infinite.
  const uint32_t finite = magnitude < 0x38800000u ? subnormal : normal;
  return static_cast<uint16_t>(sign | (magnitude >= 0x477ff000u ? special : finite));
}

/// `x` as a float whose last bit says whether anything was cut off ("round to odd"): rounding that to 16 bits
/// gives what rounding `x` itself would (Boldo and Melquiond, IEEE Transactions on Computers 57, 2008).
THALWEG_HALF_INLINE float round_to_odd(double x) {
  const float nearest = static_cast<float>(x);
  const double back = static_cast<double>(nearest);
  const double size = x < 0 ? -x : x;
  const uint32_t bits = bits_of(nearest);
  const uint32_t towards_zero = bits - ((back < 0 ? -back : back) > size ? 1u : 0u);
  return float_of_bits(back == x || x != x ? bits : towards_zero | 1u);
}

/// As round_to_odd(double), of an integer.
THALWEG_HALF_INLINE float round_to_odd(uint64_t x) {
  // 53 bits pass a double unchanged; below its last place one bit says whether there is more.
  const uint64_t cut = x & 0xfffu;
  const uint64_t marked = (x & ~uint64_t{0xfff}) | (cut != 0 ? uint64_t{0x800} : uint64_t{0});
  return round_to_odd(static_cast<double>(x < (uint64_t{1} << 53) ? x : marked));
}
THALWEG_HALF_INLINE float round_to_odd(int64_t x) {
  const uint64_t bits = static_cast<uint64_t>(x);
  const float size = round_to_odd(x < 0 ? 0 - bits : bits);
  return x < 0 ? -size : size;
}

#undef THALWEG_HALF_INLINE

}  // namespace thalweg
