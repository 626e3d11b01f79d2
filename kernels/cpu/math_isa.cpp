// math_isa.cpp: inner loops of roots, roundings and transcendental functions, compiled once per instruction
// set. Errors are at most one unit in the last place (SLEEF's u10 functions), two of tanh and erf.
#include "kernels/cpu/float32_functions.h"

namespace thalweg::cpu::THALWEG_ISA {
namespace {

/// Calls SLEEF for both dtypes: `Exp::F32::apply(vector)`.
#define THALWEG_SLEEF_UNARY(Name, function, accuracy)          \
  struct Name {                                                \
    struct F32 {                                               \
      using Lanes = Float32Lanes;                              \
      static THALWEG_HD Lanes::Vector apply(Lanes::Vector x) { \
        return THALWEG_SLEEF_F32(function, accuracy)(x);       \
      }                                                        \
    };                                                         \
    struct F64 {                                               \
      using Lanes = Float64Lanes;                              \
      static THALWEG_HD Lanes::Vector apply(Lanes::Vector x) { \
        return THALWEG_SLEEF_F64(function, accuracy)(x);       \
      }                                                        \
    };                                                         \
  };
#define THALWEG_SLEEF_BINARY(Name, function, accuracy)                          \
  struct Name {                                                                 \
    struct F32 {                                                                \
      using Lanes = Float32Lanes;                                               \
      static THALWEG_HD Lanes::Vector apply(Lanes::Vector a, Lanes::Vector b) { \
        return THALWEG_SLEEF_F32(function, accuracy)(a, b);                     \
      }                                                                         \
    };                                                                          \
    struct F64 {                                                                \
      using Lanes = Float64Lanes;                                               \
      static THALWEG_HD Lanes::Vector apply(Lanes::Vector a, Lanes::Vector b) { \
        return THALWEG_SLEEF_F64(function, accuracy)(a, b);                     \
      }                                                                         \
    };                                                                          \
  };

THALWEG_SLEEF_UNARY(RawExp, exp, u10)
THALWEG_SLEEF_UNARY(Expm1, expm1, u10)
THALWEG_SLEEF_UNARY(SleefLog, log, u10)
THALWEG_SLEEF_UNARY(RawLog1p, log1p, u10)
THALWEG_SLEEF_UNARY(Log2, log2, u10)
THALWEG_SLEEF_UNARY(Log10, log10, u10)
THALWEG_SLEEF_UNARY(SleefSin, sin, u10)
THALWEG_SLEEF_UNARY(SleefCos, cos, u10)
THALWEG_SLEEF_UNARY(Tan, tan, u10)
THALWEG_SLEEF_UNARY(Asin, asin, u10)
THALWEG_SLEEF_UNARY(Acos, acos, u10)
THALWEG_SLEEF_UNARY(Atan, atan, u10)
THALWEG_SLEEF_UNARY(RawSinh, sinh, u10)
THALWEG_SLEEF_UNARY(RawCosh, cosh, u10)
THALWEG_SLEEF_UNARY(RawAsinh, asinh, u10)
THALWEG_SLEEF_UNARY(RawAcosh, acosh, u10)
THALWEG_SLEEF_UNARY(RawAtanh, atanh, u10)
THALWEG_SLEEF_UNARY(SleefErf, erf, u10)
THALWEG_SLEEF_UNARY(SleefErfc, erfc, u15)
THALWEG_SLEEF_BINARY(RawPow, pow, u10)
THALWEG_SLEEF_BINARY(Atan2, atan2, u10)
THALWEG_SLEEF_BINARY(Hypot, hypot, u05)

// SLEEF overflows a little early, or at the root of the largest number: exp, pow and sinh near the largest
// number, log1p, asinh and acosh of very large ones give infinity. Such lanes are rare and are computed one
// by one.

/// Applies `libm` to the lanes of `result` that are infinite although their operands are finite.
template <class Lanes, class Fn, class... Operands>
THALWEG_HD typename Lanes::Vector repair_infinite(typename Lanes::Vector result, Fn libm,
                                                  Operands... operands) {
  using Element = typename Lanes::Element;
  constexpr Element largest =
      sizeof(Element) == 4 ? static_cast<Element>(__FLT_MAX__) : static_cast<Element>(__DBL_MAX__);
  if (__builtin_expect(!Lanes::any_beyond(result, largest), 1)) return result;
  struct Values {
    Element at[Lanes::width];
  };
  auto unpack = [](typename Lanes::Vector vector) {
    Values values;
    store<Lanes>(values.at, vector);
    return values;
  };
  Values out = unpack(result);
  [&](const auto&... in) {
    for (int i = 0; i < Lanes::width; ++i) {
      bool finite = ((in.at[i] >= -largest && in.at[i] <= largest) && ...);
      if (finite && (out.at[i] > largest || out.at[i] < -largest))
        out.at[i] = static_cast<Element>(libm(in.at[i]...));
    }
  }(unpack(operands)...);
  return load<Lanes>(out.at);
}

template <class Raw, class Libm>
struct RepairedLanes {
  using Lanes = typename Raw::Lanes;
  template <class... Operands>
  static THALWEG_HD typename Lanes::Vector apply(Operands... operands) {
    return repair_infinite<Lanes>(Raw::apply(operands...), Libm{}, operands...);
  }
};
template <class Raw, class Libm>
struct Repaired {
  using F32 = RepairedLanes<typename Raw::F32, Libm>;
  using F64 = RepairedLanes<typename Raw::F64, Libm>;
};

struct LibmExp {
  double operator()(double x) const { return exp(x); }
};
struct LibmLog1p {
  double operator()(double x) const { return log1p(x); }
};
struct LibmAsinh {
  double operator()(double x) const { return asinh(x); }
};
struct LibmAcosh {
  double operator()(double x) const { return acosh(x); }
};
struct LibmPow {
  double operator()(double x, double y) const { return pow(x, y); }
};
struct Exp {
  using F32 = FloatExp;
  using F64 = Repaired<RawExp, LibmExp>::F64;
};
using Log1p = Repaired<RawLog1p, LibmLog1p>;
using RepairedAsinh = Repaired<RawAsinh, LibmAsinh>;
using Acosh = Repaired<RawAcosh, LibmAcosh>;
using RepairedPow = Repaired<RawPow, LibmPow>;

struct Pow {
  using F32 = FloatPow<RepairedPow::F32>;
  using F64 = RepairedPow::F64;
};
struct Log {
  using F32 = FloatLog<SleefLog::F32>;
  using F64 = SleefLog::F64;
};
struct Sin {
  using F32 = FloatSine<0, SleefSin::F32>;
  using F64 = SleefSin::F64;
};
struct Cos {
  using F32 = FloatSine<1, SleefCos::F32>;
  using F64 = SleefCos::F64;
};
struct Erf {
  using F32 = FloatErf;
  using F64 = SleefErf::F64;
};
struct Erfc {
  using F32 = FloatErfc;
  using F64 = SleefErfc::F64;
};

/// sinh and cosh, which lose accuracy before they overflow: lanes beyond a limit are computed one by one.
template <class Raw, class Libm>
struct LargeOneByOne {
  using Lanes = typename Raw::Lanes;
  using Element = typename Lanes::Element;
  static THALWEG_HD typename Lanes::Vector apply(typename Lanes::Vector x) {
    constexpr Element limit = sizeof(Element) == 4 ? 88 : 709;
    auto result = Raw::apply(x);
    if (__builtin_expect(!Lanes::any_beyond(x, limit), 1)) return result;
    Element in[Lanes::width];
    Element out[Lanes::width];
    store<Lanes>(in, x);
    store<Lanes>(out, result);
    for (int i = 0; i < Lanes::width; ++i) {
      if (in[i] > limit || in[i] < -limit) out[i] = static_cast<Element>(Libm{}(in[i]));
    }
    return load<Lanes>(out);
  }
};
// The long forms: glibc's sinh and cosh are off by up to two units there.
struct LibmSinh {
  long double operator()(long double x) const { return sinhl(x); }
};
struct LibmCosh {
  long double operator()(long double x) const { return coshl(x); }
};
struct Sinh {
  using F32 = LargeOneByOne<RawSinh::F32, LibmSinh>;
  using F64 = LargeOneByOne<RawSinh::F64, LibmSinh>;
};
struct Cosh {
  using F32 = LargeOneByOne<RawCosh::F32, LibmCosh>;
  using F64 = LargeOneByOne<RawCosh::F64, LibmCosh>;
};

/// 1 - 2 / (exp(2 |x|) + 1) with the sign of x; below 0.625, where that loses digits, x + x^3 P(x^2). P is
/// the interpolation of (tanh x - x) / x^3 at Chebyshev's nodes in x^2. SLEEF's own takes five times as long.
/// Errors are at most 2 units in the last place.
struct DoubleTanh {
  using Lanes = Float64Lanes;
  using Vector = Lanes::Vector;
  static THALWEG_HD Vector apply(Vector x) {
    const Vector zero = Lanes::splat(0);
    const Vector one = Lanes::splat(1);
    const Vector size = x < zero ? -x : x;
    const Vector large = one - Lanes::splat(2) / (RawExp::F64::apply(size + size) + one);
    const Vector square = x * x;
    const Vector slope =
        polynomial<Lanes>(square, {-0.3333333333333333, 0.13333333333333042, -0.05396825396789699,
                                   0.021869488519008305, -0.008863235103240878, 0.0035921217511549622,
                                   -0.0014557754120478055, 0.0005896606577757043, -0.0002375906496055562,
                                   9.257116129556769e-05, -3.12011014257974e-05, 6.485163482793113e-06});
    const Vector small = x + x * (square * slope);
    const Vector signed_large = x < zero ? -large : large;
    return size < Lanes::splat(0.625) ? small : signed_large;
  }
};

/// tanh in double precision, asinh and atanh: for tiny x the nearest number to the result is x, which SLEEF
/// misses by a little more than a unit. Below the limit x^3 / 3, the first term left out, is under a third of
/// a unit.
template <class Raw>
struct TinyAsIs {
  using Lanes = typename Raw::Lanes;
  using Element = typename Lanes::Element;
  static THALWEG_HD typename Lanes::Vector apply(typename Lanes::Vector x) {
    constexpr Element limit = static_cast<Element>(sizeof(Element) == 4 ? 0x1p-24 : 0x1p-54);
    auto result = Raw::apply(x);
    return x * x < Lanes::splat(limit) ? x : result;
  }
};
template <class Raw>
struct WithTiny {
  using F32 = TinyAsIs<typename Raw::F32>;
  using F64 = TinyAsIs<typename Raw::F64>;
};
struct Tanh {
  using F32 = FloatTanh;
  using F64 = TinyAsIs<DoubleTanh>;
};
using Asinh = WithTiny<RepairedAsinh>;
using Atanh = WithTiny<RawAtanh>;

/// 1 / (1 + exp(-x)) without overflow and with all its digits for both signs.
template <class Raw>
struct SigmoidOf {
  using Lanes = typename Raw::Lanes;
  using Vector = typename Lanes::Vector;
  static THALWEG_HD Vector apply(Vector x) {
    const Vector zero = Lanes::splat(0);
    const Vector one = Lanes::splat(1);
    const Vector small = Raw::apply(x < zero ? x : -x);
    return (x < zero ? small : one) / (one + small);
  }
};
struct Sigmoid {
  using F32 = SigmoidOf<FloatExp>;
  using F64 = SigmoidOf<RawExp::F64>;
};

/// x * sigmoid(x); at minus infinity its limit. Where sigmoid gets close to the smallest numbers it is
/// exp(x + kShift) exp(-kShift), of which the second factor comes last.
template <class Raw>
struct SiluOf {
  using Lanes = typename Raw::Lanes;
  using Vector = typename Lanes::Vector;
  using Element = typename Lanes::Element;
  static constexpr bool kSingle = sizeof(Element) == 4;
  static constexpr Element kLow = kSingle ? -64 : -600;
  static constexpr Element kShift = kSingle ? 45 : 300;
  static constexpr Element kExpOfMinusShift =
      static_cast<Element>(kSingle ? 0x1.0e5b73d1ff53dp-65 : 0x1.245639c3a49f7p-433);
  static THALWEG_HD Vector apply(Vector x) {
    const Vector zero = Lanes::splat(0);
    const Vector one = Lanes::splat(1);
    const Vector low = Lanes::splat(kLow);
    const Vector lowest = Lanes::splat(-1e4f);  // infinity times 0 would be nan
    const Vector size = x < zero ? x : -x;
    const Vector small = Raw::apply(x < low ? x + Lanes::splat(kShift) : size);
    const Vector bounded = x < lowest ? lowest : x;
    const Vector usual = bounded * ((x < zero ? small : one) / (one + small));
    return x < low ? bounded * small * Lanes::splat(kExpOfMinusShift) : usual;
  }
};
struct Silu {
  using F32 = SiluOf<FloatExp>;
  using F64 = SiluOf<RawExp::F64>;
};

/// x times half of erfc(-x / sqrt(2)).
struct Gelu {
  using F32 = FloatGelu;
  struct F64 {
    using Lanes = Float64Lanes;
    using Vector = Lanes::Vector;
    static THALWEG_HD Vector apply(Vector x) {
      // Below it that half is 0, and infinity times 0 would be nan.
      const Vector lowest = Lanes::splat(-60);
      const Vector bounded = x < lowest ? lowest : x;
      return bounded * Lanes::splat(0.5) * Erfc::F64::apply(x * Lanes::splat(-0.70710678118654752));
    }
  };
};

/// log(exp(a) + exp(b)) without overflow: the larger plus log1p(exp(-distance)).
template <class Which>
struct LogAddExpOf {
  using Lanes = typename Which::Lanes;
  static THALWEG_HD typename Lanes::Vector apply(typename Lanes::Vector a, typename Lanes::Vector b) {
    const auto zero = Lanes::splat(0);
    auto larger = a >= b ? a : b;
    auto distance = a >= b ? b - a : a - b;
    // Equal infinities have no distance; NaN in either makes the distance NaN and so the result.
    distance = a == b ? zero : distance;
    return larger + Which::log1p_of(Which::exp_of(distance));
  }
};
struct LogAddExp {
  struct Parts32 {
    using Lanes = Float32Lanes;
    static THALWEG_HD Lanes::Vector exp_of(Lanes::Vector x) { return FloatExp::apply(x); }
    static THALWEG_HD Lanes::Vector log1p_of(Lanes::Vector x) { return RawLog1p::F32::apply(x); }
  };
  struct Parts64 {
    using Lanes = Float64Lanes;
    static THALWEG_HD Lanes::Vector exp_of(Lanes::Vector x) { return RawExp::F64::apply(x); }
    static THALWEG_HD Lanes::Vector log1p_of(Lanes::Vector x) { return RawLog1p::F64::apply(x); }
  };
  using F32 = LogAddExpOf<Parts32>;
  using F64 = LogAddExpOf<Parts64>;
};

// The processor rounds and takes roots itself (masked forms because GCC 12 warns about the others); SSE2 has
// no rounding instruction, there SLEEF's exact functions do.
#if defined(__AVX512F__)
#define THALWEG_ROUNDING(Name, mode, sleef)                                     \
  struct Name {                                                                 \
    struct F32 {                                                                \
      using Lanes = Float32Lanes;                                               \
      static THALWEG_HD __m512 apply(__m512 x) {                                \
        return _mm512_maskz_roundscale_ps(0xffff, x, mode | _MM_FROUND_NO_EXC); \
      }                                                                         \
    };                                                                          \
    struct F64 {                                                                \
      using Lanes = Float64Lanes;                                               \
      static THALWEG_HD __m512d apply(__m512d x) {                              \
        return _mm512_maskz_roundscale_pd(0xff, x, mode | _MM_FROUND_NO_EXC);   \
      }                                                                         \
    };                                                                          \
  };
#elif defined(__AVX2__)
#define THALWEG_ROUNDING(Name, mode, sleef)                                                               \
  struct Name {                                                                                           \
    struct F32 {                                                                                          \
      using Lanes = Float32Lanes;                                                                         \
      static THALWEG_HD __m256 apply(__m256 x) { return _mm256_round_ps(x, mode | _MM_FROUND_NO_EXC); }   \
    };                                                                                                    \
    struct F64 {                                                                                          \
      using Lanes = Float64Lanes;                                                                         \
      static THALWEG_HD __m256d apply(__m256d x) { return _mm256_round_pd(x, mode | _MM_FROUND_NO_EXC); } \
    };                                                                                                    \
  };
#else
#define THALWEG_ROUNDING(Name, mode, sleef) THALWEG_SLEEF_UNARY(Name, sleef, )
#endif

THALWEG_ROUNDING(Floor, _MM_FROUND_TO_NEG_INF, floor)
THALWEG_ROUNDING(Ceil, _MM_FROUND_TO_POS_INF, ceil)
THALWEG_ROUNDING(Trunc, _MM_FROUND_TO_ZERO, trunc)
THALWEG_ROUNDING(Round, _MM_FROUND_TO_NEAREST_INT, rint)

struct Sqrt {
  struct F32 {
    using Lanes = Float32Lanes;
#if defined(__AVX512F__)
    /// In half the time of the processor's own root and with the same bits, which was tried for every number
    /// from 2^-96 on: Goldschmidt's iteration for x y and y / 2, of y near 1 / sqrt(x), and a last correction
    /// (Markstein, Software division and square root using Goldschmidt's algorithms, 2004).
    static THALWEG_HD __m512 root(__m512 x) {
      const auto least = static_cast<int>((127u - 96u) << 23);
      const auto infinity = static_cast<int>(0x7f800000u);
      const __m512i above = bits_as<__m512i>(bits_as<Lanes::Bits>(x) - static_cast<uint32_t>(least));
      if (_mm512_cmpge_epu32_mask(above, _mm512_set1_epi32(infinity - least)) != 0) [[unlikely]]
        return _mm512_maskz_sqrt_ps(0xffff, x);
      const __m512 half = Lanes::splat(0.5f);
      const __m512 near = _mm512_maskz_rsqrt14_ps(0xffff, x);
      const __m512 first = x * near;
      const __m512 error = _mm512_fnmadd_ps(first, half * near, half);
      const __m512 second = _mm512_fmadd_ps(first, error, first);
      const __m512 slope = _mm512_fmadd_ps(half * near, error, half * near);
      return _mm512_fmadd_ps(_mm512_fnmadd_ps(second, second, x), slope, second);
    }
#endif
    static THALWEG_HD Lanes::Vector apply(Lanes::Vector x) {
#if defined(__AVX512F__)
      return root(x);
#elif defined(__AVX2__)
      return _mm256_sqrt_ps(x);
#elif defined(__SSE2__)
      return _mm_sqrt_ps(x);
#else
      return sqrtf(x);
#endif
    }
  };
  struct F64 {
    using Lanes = Float64Lanes;
    static THALWEG_HD Lanes::Vector apply(Lanes::Vector x) {
#if defined(__AVX512F__)
      return _mm512_maskz_sqrt_pd(0xff, x);
#elif defined(__AVX2__)
      return _mm256_sqrt_pd(x);
#elif defined(__SSE2__)
      return _mm_sqrt_pd(x);
#else
      return sqrt(x);
#endif
    }
  };
};

/// x^0.5: unlike the square root, 0 for -0 and infinity for minus infinity.
template <class Root>
struct HalfPowerOf {
  using Lanes = typename Root::Lanes;
  static THALWEG_HD typename Lanes::Vector apply(typename Lanes::Vector x) {
    const auto infinity = Lanes::splat(static_cast<typename Lanes::Element>(__builtin_inff()));
    return Root::apply(x == -infinity ? infinity : x + Lanes::splat(0));
  }
};

template <class F>
void fill(ElementwiseTable& table, UnaryFn fn) {
  Loop* row = table.unary[static_cast<int>(fn)];
  row[kLoopIndex<float>] = vector_unary_loop<typename F::F32>;
  row[kLoopIndex<double>] = vector_unary_loop<typename F::F64>;
}
template <class F>
void fill(ElementwiseTable& table, BinaryFn fn) {
  Loop* row = table.binary[static_cast<int>(fn)];
  row[kLoopIndex<float>] = vector_binary_loop<typename F::F32>;
  row[kLoopIndex<double>] = vector_binary_loop<typename F::F64>;
}

}  // namespace

void fill_math(ElementwiseTable& table) {
  fill<Sqrt>(table, UnaryFn::sqrt);
  fill<Floor>(table, UnaryFn::floor);
  fill<Ceil>(table, UnaryFn::ceil);
  fill<Trunc>(table, UnaryFn::trunc);
  fill<Round>(table, UnaryFn::round);
  fill<Exp>(table, UnaryFn::exp);
  fill<Expm1>(table, UnaryFn::expm1);
  fill<Log>(table, UnaryFn::log);
  fill<Log1p>(table, UnaryFn::log1p);
  fill<Log2>(table, UnaryFn::log2);
  fill<Log10>(table, UnaryFn::log10);
  fill<Sin>(table, UnaryFn::sin);
  fill<Cos>(table, UnaryFn::cos);
  fill<Tan>(table, UnaryFn::tan);
  fill<Asin>(table, UnaryFn::asin);
  fill<Acos>(table, UnaryFn::acos);
  fill<Atan>(table, UnaryFn::atan);
  fill<Sinh>(table, UnaryFn::sinh);
  fill<Cosh>(table, UnaryFn::cosh);
  fill<Tanh>(table, UnaryFn::tanh);
  fill<Asinh>(table, UnaryFn::asinh);
  fill<Acosh>(table, UnaryFn::acosh);
  fill<Atanh>(table, UnaryFn::atanh);
  fill<Erf>(table, UnaryFn::erf);
  fill<Erfc>(table, UnaryFn::erfc);
  fill<Sigmoid>(table, UnaryFn::sigmoid);
  fill<Silu>(table, UnaryFn::silu);
  fill<Gelu>(table, UnaryFn::gelu);
  fill<Pow>(table, BinaryFn::pow);
  fill<Atan2>(table, BinaryFn::atan2);
  fill<Hypot>(table, BinaryFn::hypot);
  fill<LogAddExp>(table, BinaryFn::logaddexp);
  table.half_power[kLoopIndex<float>] = vector_unary_loop<HalfPowerOf<Sqrt::F32>>;
  table.half_power[kLoopIndex<double>] = vector_unary_loop<HalfPowerOf<Sqrt::F64>>;
}

}  // namespace thalweg::cpu::THALWEG_ISA
