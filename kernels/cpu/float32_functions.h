// float32_functions.h: functions of float32 vectors for which SLEEF's are too slow: exp, log, pow, sin, cos,
// tanh, erf, erfc and gelu. Polynomials interpolate at Chebyshev's nodes.
#pragma once

#include "kernels/cpu/double_lanes.h"

namespace thalweg::cpu {
// Unnamed, so that each instruction set keeps its own copy.
namespace {

using Floats = Float32Lanes::Vector;

THALWEG_HD Floats floats(float x) { return Float32Lanes::splat(x); }
/// |x|, of -0 too.
THALWEG_HD Floats size_of(Floats x) { return bits_as<Floats>(bits_as<Float32Lanes::Bits>(x) & 0x7fffffffu); }
/// `result`, or NaN with the bits of x where that is NaN: of two NaNs the processor takes whichever comes
/// first in an instruction, which need not be the same in two copies of a loop.
THALWEG_HD Floats unless_nan(Floats x, Floats result) { return x == x ? result : x + x; }

/// x^y = 2^(y log2 x), for x above 0 and a finite y. Other lanes are `Other`'s.
template <class Other>
struct FloatPow {
  using Lanes = Float32Lanes;
  static THALWEG_HD Doubles of(Doubles x, Doubles y) {
    const Doubles limit = Float64Lanes::splat(200);  // beyond it the result is 0 or infinite
    Doubles exponent = y * log2_in_double(x);
    exponent = exponent > limit ? limit : exponent;
    return exp2_in_double(exponent < -limit ? -limit : exponent);
  }
  static THALWEG_HD Floats apply(Floats x, Floats y) {
    const Widened base = widen(x);
    const Widened exponent = widen(y);
    const Floats power = narrow({of(base.low, exponent.low), of(base.high, exponent.high)});
    const Floats largest = floats(__FLT_MAX__);
    const Floats zero = floats(0);
    const Floats one = floats(1);
    // 1 where a lane is not to be computed here; NaN is not.
    const Floats others = x > zero && x <= largest && size_of(y) <= largest ? zero : one;
    if (__builtin_expect(!Lanes::any_beyond(others, 0), 1)) return power;
    return others == zero ? power : Other::apply(x, y);
  }
};

/// Added, it leaves no place for digits behind the point: a number is rounded, and its bits count up from
/// this one's.
constexpr float kRoundingShift = 0x1.8p23f;

/// x times 2 to the integer of which `shifted` is the sum with kRoundingShift, from -252 to 254: in two
/// factors, as one would leave the range of exponents. A subnormal result is rounded once.
THALWEG_HD Floats times_power_of_two(Floats x, Floats shifted) {
#if defined(__AVX512F__)
  return _mm512_maskz_scalef_ps(0xffff, x, shifted - floats(kRoundingShift));
#else
  using Bits = Float32Lanes::Bits;
  const Floats shift = floats(kRoundingShift);
  const Floats half = floats(0.5f) * (shifted - shift) + shift;
  const Floats first = bits_as<Floats>((bits_as<Bits>(half) << 23) + 0x3f800000u);
  const Floats second = bits_as<Floats>(((bits_as<Bits>(shifted) - bits_as<Bits>(half)) << 23) + 0x3f800000u);
  return x * first * second;
#endif
}

/// e log(2) + log(1 + r) for x = 2^e (1 + r), of normal numbers above 0. Other lanes are `Other`'s.
template <class Other>
struct FloatLog {
  using Lanes = Float32Lanes;
  using Bits = Lanes::Bits;
  static THALWEG_HD Floats of(Floats x) {
    // As in log2_in_double.
    const uint32_t root = 0x3f3504f3;
    const Bits moved = bits_as<Bits>(x) + (0x3f800000u - root);
    const Floats rest = bits_as<Floats>((moved & 0x007fffffu) + root) - floats(1);
    const Floats exponent = bits_as<Floats>((moved >> 23) + 0x4b000000u) - floats(0x1p23f + 127);
    const Floats slope =
        polynomial<Lanes>(rest, {0.3333333134651184f, -0.2499999701976776f, 0.20000715553760529f,
                                 -0.1666780263185501f, 0.14249058067798615f, -0.12425687164068222f,
                                 0.11685419827699661f, -0.11479733884334564f, 0.06971611827611923f});
    const Floats curve = rest * rest * Lanes::multiply_add(rest, slope, floats(-0.5f));
    const Floats low = Lanes::multiply_add(exponent, floats(-2.12194440e-4f), curve);
    return Lanes::multiply_add(exponent, floats(0.693359375f), rest + low);
  }
  static THALWEG_HD Floats apply(Floats x) {
    const Floats zero = floats(0);
    const Floats one = floats(1);
    const Floats others = x >= floats(__FLT_MIN__) && x <= floats(__FLT_MAX__) ? zero : one;
    if (__builtin_expect(!Lanes::any_beyond(others, 0), 1)) return of(x);
    return others == zero ? of(x) : Other::apply(x);
  }
};

/// 2^f, to 1.2 units in the last place, for f from -1/2 to 1/2.
THALWEG_HD Floats exp2_of_fraction(Floats f) {
  return polynomial<Float32Lanes>(
      f, {1.0f, 0.6931471824645996f, 0.24022650718688965f, 0.05550327152013779f, 0.009618056938052177f,
          0.0013400427997112274f, 0.00015461444854736328f});
}

/// 2^x times `factor` for x from -250 to 127; a subnormal result is rounded once.
THALWEG_HD Floats times_exp2(Floats factor, Floats x) {
  const Floats shift = floats(kRoundingShift);
  const Floats shifted = x + shift;
  return times_power_of_two(factor * exp2_of_fraction(x - (shifted - shift)), shifted);
}

/// 2^n e^r for x = n log(2) + r. A subnormal result is rounded once.
struct FloatExp {
  using Lanes = Float32Lanes;
  static THALWEG_HD Floats apply(Floats x) {
    const Floats least = floats(-104);  // 0 from here on
    const Floats largest = floats(90);  // infinity from here on
    const Floats shift = floats(kRoundingShift);
    const Floats bounded = Lanes::at_most(largest, x);
    const Floats shifted = Lanes::multiply_add(bounded, floats(1.44269504f), shift);
    const Floats whole = shifted - shift;
    // The first part of log(2) times a small integer is exact.
    const Floats near = Lanes::multiply_add(whole, floats(-0.693359375f), bounded);
    const Floats rest = Lanes::multiply_add(whole, floats(2.12194440e-4f), near);
    const Floats curve = polynomial<Lanes>(rest, {0.5f, 0.16666576266288757f, 0.041666556149721146f,
                                                  0.008363178931176662f, 0.0013926184037700295f});
    const Floats power = Lanes::multiply_add(rest * rest, curve, rest) + floats(1);
#if defined(__AVX512F__)
    // Of lanes that are masked out no time goes into a result too small for the dtype.
    const __mmask16 above = _mm512_cmp_ps_mask(x, least, _CMP_NLT_UQ);
    return _mm512_maskz_scalef_ps(above, power, whole);
#else
    return x < least ? floats(0) : times_power_of_two(power, shifted);
#endif
  }
};

#if defined(__FMA__)
/// The sine of x + quarter pi / 2, of |x| up to 1e5: from x the nearest multiple of pi / 2 is taken in three
/// steps, the first of them exact. Other lanes are `Other`'s.
template <int quarter, class Other>
struct FloatSine {
  using Lanes = Float32Lanes;
  using Bits = Lanes::Bits;
  static THALWEG_HD Floats of(Floats x) {
    const Floats shift = floats(kRoundingShift);
    const Floats shifted = Lanes::multiply_add(x, floats(0.63661975f), shift);
    // Negated, and parts of pi / 2 that are all positive: so `rest` of -0 is -0.
    const Floats whole = -(shifted - shift);
    Floats rest = Lanes::multiply_add(whole, floats(0x1.921fb4p+0f), x);
    rest = Lanes::multiply_add(whole, floats(0x1.4442dp-24f), rest);
    rest = Lanes::multiply_add(whole, floats(0x1.846988p-48f), rest);
    const Floats square = rest * rest;
    const Floats slope =
        polynomial<Lanes>(square, {-0.16666655242443085f, 0.008332173340022564f, -0.00019516656175255775f});
    const Floats curve =
        polynomial<Lanes>(square, {0.04166664555668831f, -0.001388736185617745f, 2.4437729734927416e-05f});
    const Bits sign = bits_as<Bits>(rest) & 0x80000000u;  // of zero, which the sum may lose
    const Floats sine =
        bits_as<Floats>(bits_as<Bits>(Lanes::multiply_add(rest * square, slope, rest)) | sign);
    const Floats cosine =
        Lanes::multiply_add(Lanes::multiply_add(curve, square, floats(-0.5f)), square, floats(1));
    const Bits quarters = bits_as<Bits>(shifted) + static_cast<uint32_t>(quarter);
    const Floats value = (quarters & 1u) != 0 ? cosine : sine;
    return bits_as<Floats>(bits_as<Bits>(value) ^ (quarters & 2u) << 30);
  }
  static THALWEG_HD Floats apply(Floats x) {
    const Floats zero = floats(0);
    const Floats one = floats(1);
    const Floats others = size_of(x) <= floats(1e5f) ? zero : one;
    if (__builtin_expect(!Lanes::any_beyond(others, 0), 1)) return of(x);
    return others == zero ? of(x) : Other::apply(x);
  }
};
#else
// Without fused multiply-add the first step is not exact.
template <int, class Other>
using FloatSine = Other;
#endif

/// Below 0.625 x + x^3 P(x^2), from there on 1 - 2 / (exp(2 |x|) + 1) with the sign of x.
struct FloatTanh {
  using Lanes = Float32Lanes;
  using Bits = Lanes::Bits;
  static THALWEG_HD Floats apply(Floats x) {
    const Floats size = size_of(x);
    const Floats bounded = Lanes::at_most(floats(10), size);  // 1 from there on
    const Floats square = size * size;
    const Floats slope = polynomial<Lanes>(
        square, {-0x1.555552p-2f, 0x1.110e1cp-3f, -0x1.b9258ap-5f, 0x1.58048ep-6f, -0x1.8f8de4p-8f});
    const Floats small = Lanes::multiply_add(size, square * slope, size);
    const Floats shift = floats(kRoundingShift - 1);  // for half the power
    const Floats twice_log2_e = floats(2.88539008f);
    const Floats shifted = Lanes::multiply_add(bounded, twice_log2_e, shift);
    const Floats fraction = Lanes::multiply_add(bounded, twice_log2_e, shift - shifted);
    // At most 2^28: the whole part joins the exponent.
    const Floats half_power =
        bits_as<Floats>(bits_as<Bits>(exp2_of_fraction(fraction)) + (bits_as<Bits>(shifted) << 23));
    const Floats large = floats(1) - Lanes::reciprocal(half_power + floats(0.5f));
    const Floats result = size >= floats(0.625f) ? large : small;  // NaN is small
    const Bits sign = bits_as<Bits>(x) & 0x80000000u;
    return bits_as<Floats>(bits_as<Bits>(result) | sign);
  }
};

/// Up to 0.875 x + x P(x^2), from there on 1 - 2^Q(|x|).
struct FloatErf {
  using Lanes = Float32Lanes;
  static THALWEG_HD Floats apply(Floats x) {
    const Floats largest = floats(4);  // 1 from here on
    const Floats size = size_of(x);
    const Floats bounded = size > largest ? largest : size;
    const Floats square = x * x;
    const Floats slope =
        polynomial<Lanes>(square, {0.12837915122509003f, -0.3761255443096161f, 0.11282496899366379f,
                                   -0.026792947202920914f, 0.005034370813518763f, -0.0006214585155248642f});
    const Floats inner = Lanes::multiply_add(x, slope, x);
    const Floats exponent =
        polynomial<Lanes>(bounded, {0.00045467133168131113f, -1.630561113357544f, -0.9115559458732605f,
                                    -0.15880011022090912f, 0.03811602666974068f, -0.0068676406517624855f,
                                    0.0008615075494162738f, -6.653598393313587e-05f, 2.367627530475147e-06f});
    const Floats outer = floats(1) - times_exp2(floats(1), exponent);
    const Floats signed_outer = x < floats(0) ? -outer : outer;
    return unless_nan(x, size < floats(0.875f) ? inner : signed_outer);
  }
};

/// exp(-x^2) P((|x| - 4) / (|x| + 4)), and 2 less that for negative x.
struct FloatErfc {
  using Lanes = Float32Lanes;
  static THALWEG_HD Doubles of(Doubles size) {
    const Doubles four = Float64Lanes::splat(4);
    const Doubles scaled = polynomial<Float64Lanes>(
        (size - four) / (size + four),
        {0.13699945761997312, -0.25906804949431506, 0.21871968118828022, -0.16425777723372464,
         0.10896310243022009, -0.06310845842415198, 0.03129969310736315, -0.012839209975561034,
         0.004059387200668877, -0.0008157492223062699, -2.9617792302550497e-05, 0.00010094824503250691});
    const Doubles log2_e = Float64Lanes::splat(1.4426950408889634);
    return scaled * exp2_in_double(-(size * size * log2_e));
  }
  static THALWEG_HD Floats apply(Floats x) {
    const Floats largest = floats(11);  // 0 from here on
    const Floats size = size_of(x);
    const Widened wide = widen(size > largest ? largest : size);
    const Widened sign = widen(x < floats(0) ? floats(1) : floats(0));
    const Doubles two = Float64Lanes::splat(2);
    const auto signed_of = [&](Doubles value, Doubles negative) {
      return negative > Float64Lanes::splat(0) ? two - of(value) : of(value);
    };
    return unless_nan(x, narrow({signed_of(wide.low, sign.low), signed_of(wide.high, sign.high)}));
  }
};

/// x times the normal distribution function, which is exp(-x^2 / 2) P((|x| - 3) / (|x| + 3)) for negative x
/// and 1 less that of -x for others.
struct FloatGelu {
  using Lanes = Float32Lanes;
  /// P, for sizes up to 18.
  static THALWEG_HD Floats tail_factor(Floats size) {
    const Floats three = floats(3);
    return polynomial<Lanes>(
        (size - three) / (size + three),
        {0.12151394784450531f, -0.20640261471271515f, 0.12322501838207245f, -0.04621325433254242f,
         0.0061322362162172794f, 0.0029044789262115955f, -0.00098437222186476f, -0.000339674559654668f,
         0.0001162496191682294f, 5.415194027591497e-05f});
  }
  static THALWEG_HD Floats apply(Floats x) {
    const Floats zero = floats(0);
    const Floats largest = floats(18);  // the product is 0 from here on
    const Floats size = size_of(x);
    const Floats bounded = size > largest ? largest : size;
    const Floats half_log2_e = floats(0.72134752f);
    const Floats part = times_exp2(bounded * tail_factor(bounded), -(bounded * bounded * half_log2_e));
    return unless_nan(x, x < zero ? -part : x - part);
  }
};

}  // namespace
}  // namespace thalweg::cpu
