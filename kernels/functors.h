// functors.h: each scalar formula once, for every device. Results are NumPy's, overflow and division by zero
// included.
#pragma once

#include <math.h>
#include <stdint.h>

// Always inlined: files compiled for several instruction sets share these, and an out-of-line copy that the
// linker merged would hand AVX code to a processor without it.
#if defined(__CUDACC__)
#define THALWEG_HD __host__ __device__ __forceinline__
#else
#define THALWEG_HD inline __attribute__((always_inline))
#endif

namespace thalweg::functors {
// Unnamed for the same reason as THALWEG_HD: one copy per object file.
namespace {

template <class T>
struct Properties {
  using Wrapping = uint32_t;  // the unsigned type in which arithmetic wraps without undefined behaviour
  static constexpr bool is_floating = false;
  static constexpr bool is_signed = static_cast<T>(-1) < static_cast<T>(0);
  static constexpr int bits = 8 * sizeof(T);
};
template <>
struct Properties<int64_t> {
  using Wrapping = uint64_t;
  static constexpr bool is_floating = false;
  static constexpr bool is_signed = true;
  static constexpr int bits = 64;
};
template <>
struct Properties<uint64_t> {
  using Wrapping = uint64_t;
  static constexpr bool is_floating = false;
  static constexpr bool is_signed = false;
  static constexpr int bits = 64;
};
template <>
struct Properties<float> {
  using Wrapping = float;
  static constexpr bool is_floating = true;
  static constexpr bool is_signed = true;
  static constexpr int bits = 32;
};
template <>
struct Properties<double> {
  using Wrapping = double;
  static constexpr bool is_floating = true;
  static constexpr bool is_signed = true;
  static constexpr int bits = 64;
};
template <class T>
using Wrapping = typename Properties<T>::Wrapping;
template <class T>
inline constexpr bool kIsFloating = Properties<T>::is_floating;

THALWEG_HD float modulo(float a, float b) { return fmodf(a, b); }
THALWEG_HD double modulo(double a, double b) { return fmod(a, b); }
THALWEG_HD float with_sign(float size, float sign) { return copysignf(size, sign); }
THALWEG_HD double with_sign(double size, double sign) { return copysign(size, sign); }
THALWEG_HD float round_down(float x) { return floorf(x); }
THALWEG_HD double round_down(double x) { return floor(x); }

/// A floating value as an integer, as NumPy gets it on x86: out of range, infinite and NaN give the smallest
/// int32 or int64, and narrower types the low bits of that. Written as a choice of inputs, so that it
/// vectorises.
THALWEG_HD int32_t to_int32(float x) {
  return static_cast<int32_t>(x >= -2147483648.0f && x < 2147483648.0f ? x : -2147483648.0f);
}
THALWEG_HD int32_t to_int32(double x) {
  return static_cast<int32_t>(x > -2147483649.0 && x < 2147483648.0 ? x : -2147483648.0);
}
template <class T>
THALWEG_HD int64_t to_int64(T x) {
  constexpr T limit = static_cast<T>(9223372036854775808.0);
  return static_cast<int64_t>(x >= -limit && x < limit ? x : -limit);
}
template <class T>
THALWEG_HD uint64_t to_uint64(T x) {
  constexpr T limit = static_cast<T>(9223372036854775808.0);
  uint64_t upper = static_cast<uint64_t>(to_int64(x - limit)) ^ (uint64_t{1} << 63);
  return x >= limit ? upper : static_cast<uint64_t>(to_int64(x));
}

template <class To, class From>
struct Convert {
  THALWEG_HD To operator()(From x) const {
    if constexpr (!kIsFloating<From> || kIsFloating<To>) {
      return static_cast<To>(x);
    } else if constexpr (sizeof(To) < 4 || (sizeof(To) == 4 && Properties<To>::is_signed)) {
      return static_cast<To>(to_int32(x));
    } else if constexpr (sizeof(To) == 4 || Properties<To>::is_signed) {
      return static_cast<To>(to_int64(x));
    } else {
      return static_cast<To>(to_uint64(x));
    }
  }
};
template <class From>
struct Convert<bool, From> {
  THALWEG_HD bool operator()(From x) const { return x != From(0); }
};

struct Add {
  THALWEG_HD bool operator()(bool a, bool b) const { return a | b; }
  template <class T>
  THALWEG_HD T operator()(T a, T b) const {
    return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
  }
};
struct Subtract {
  template <class T>
  THALWEG_HD T operator()(T a, T b) const {
    return static_cast<T>(static_cast<Wrapping<T>>(a) - static_cast<Wrapping<T>>(b));
  }
};
struct Multiply {
  THALWEG_HD bool operator()(bool a, bool b) const { return a & b; }
  template <class T>
  THALWEG_HD T operator()(T a, T b) const {
    return static_cast<T>(static_cast<Wrapping<T>>(a) * static_cast<Wrapping<T>>(b));
  }
};
struct Divide {
  template <class T>
  THALWEG_HD T operator()(T a, T b) const {
    return a / b;
  }
};

/// Rounds towards minus infinity. Integers: x // 0 is 0, the smallest // -1 wraps. Floating: NumPy's and
/// Python's rule, which starts from the exact remainder, so that a == b * (a // b) + a % b as nearly as
/// possible.
struct FloorDivide {
  template <class T>
  THALWEG_HD T operator()(T a, T b) const {
    if constexpr (kIsFloating<T>) {
      if (b == T(0)) return a / b;
      T rest = modulo(a, b);
      T quotient = (a - rest) / b;
      if (rest != T(0) && (b < T(0)) != (rest < T(0))) quotient -= T(1);
      if (quotient == T(0)) return with_sign(T(0), a / b);
      T whole = round_down(quotient);
      return quotient - whole > T(0.5) ? whole + T(1) : whole;
    } else {
      if (b == T(0)) return T(0);
      if constexpr (Properties<T>::is_signed) {
        if (b == T(-1)) return static_cast<T>(Wrapping<T>(0) - static_cast<Wrapping<T>>(a));
        bool inexact_negative = a % b != 0 && (a < 0) != (b < 0);
        return static_cast<T>(a / b - inexact_negative);
      } else {
        return static_cast<T>(a / b);
      }
    }
  }
};

/// Has the divisor's sign. Integers: x % 0 is 0. Floating: fmod's exact rest, a zero gets the divisor's sign.
struct Remainder {
  template <class T>
  THALWEG_HD T operator()(T a, T b) const {
    if constexpr (kIsFloating<T>) {
      T rest = modulo(a, b);
      if (b == T(0)) return rest;
      if (rest == T(0)) return with_sign(T(0), b);
      return (b < T(0)) != (rest < T(0)) ? rest + b : rest;
    } else {
      if (b == T(0)) return T(0);
      if constexpr (Properties<T>::is_signed) {
        if (b == T(-1)) return T(0);
        T rest = static_cast<T>(a % b);
        return rest != 0 && (rest < 0) != (b < 0) ? static_cast<T>(rest + b) : rest;
      } else {
        return static_cast<T>(a % b);
      }
    }
  }
};

/// Integers only; the exponent is not negative (the kernel has checked). Wraps as repeated multiplication
/// does.
struct IntegerPower {
  template <class T>
  THALWEG_HD T operator()(T base, T exponent) const {
    auto square = static_cast<Wrapping<T>>(base);
    Wrapping<T> result = 1;
    for (auto left = static_cast<Wrapping<T>>(exponent); left != 0; left >>= 1) {
      if (left & 1) result *= square;
      square *= square;
    }
    return static_cast<T>(result);
  }
};

/// NaN if either is NaN.
struct Minimum {
  template <class T>
  THALWEG_HD T operator()(T a, T b) const {
    if constexpr (kIsFloating<T>) return (a <= b || a != a) ? a : b;
    return a <= b ? a : b;
  }
};
struct Maximum {
  template <class T>
  THALWEG_HD T operator()(T a, T b) const {
    if constexpr (kIsFloating<T>) return (a >= b || a != a) ? a : b;
    return a >= b ? a : b;
  }
};
struct Clip {
  template <class T>
  THALWEG_HD T operator()(T x, T low, T high) const {
    return Minimum{}(Maximum{}(x, low), high);
  }
};
struct CopySign {
  template <class T>
  THALWEG_HD T operator()(T size, T sign) const {
    return with_sign(size, sign);
  }
};

struct Equal {
  template <class T>
  THALWEG_HD bool operator()(T a, T b) const {
    return a == b;
  }
};
struct NotEqual {
  template <class T>
  THALWEG_HD bool operator()(T a, T b) const {
    return a != b;
  }
};
struct Less {
  template <class T>
  THALWEG_HD bool operator()(T a, T b) const {
    return a < b;
  }
};
struct LessEqual {
  template <class T>
  THALWEG_HD bool operator()(T a, T b) const {
    return a <= b;
  }
};
struct Greater {
  template <class T>
  THALWEG_HD bool operator()(T a, T b) const {
    return a > b;
  }
};
struct GreaterEqual {
  template <class T>
  THALWEG_HD bool operator()(T a, T b) const {
    return a >= b;
  }
};

/// A comparison of uint64 with int64 by value, which no common dtype holds.
template <class Compare>
struct CompareMixed {
  THALWEG_HD bool operator()(uint64_t a, int64_t b) const {
    return b < 0 ? Compare{}(1, 0) : Compare{}(a, static_cast<uint64_t>(b));
  }
  THALWEG_HD bool operator()(int64_t a, uint64_t b) const {
    return a < 0 ? Compare{}(0, 1) : Compare{}(static_cast<uint64_t>(a), b);
  }
};

struct LogicalAnd {
  template <class T>
  THALWEG_HD bool operator()(T a, T b) const {
    return (a != T(0)) & (b != T(0));
  }
};
struct LogicalOr {
  template <class T>
  THALWEG_HD bool operator()(T a, T b) const {
    return (a != T(0)) | (b != T(0));
  }
};
struct LogicalXor {
  template <class T>
  THALWEG_HD bool operator()(T a, T b) const {
    return (a != T(0)) != (b != T(0));
  }
};
struct LogicalNot {
  template <class T>
  THALWEG_HD bool operator()(T x) const {
    return x == T(0);
  }
};

struct BitwiseAnd {
  template <class T>
  THALWEG_HD T operator()(T a, T b) const {
    return static_cast<T>(a & b);
  }
};
struct BitwiseOr {
  template <class T>
  THALWEG_HD T operator()(T a, T b) const {
    return static_cast<T>(a | b);
  }
};
struct BitwiseXor {
  template <class T>
  THALWEG_HD T operator()(T a, T b) const {
    return static_cast<T>(a ^ b);
  }
};
struct BitwiseInvert {
  THALWEG_HD bool operator()(bool x) const { return !x; }
  template <class T>
  THALWEG_HD T operator()(T x) const {
    return static_cast<T>(~x);
  }
};

/// Counts outside [0, bits) shift everything out: 0, or the sign for a right shift of a negative number.
struct LeftShift {
  template <class T>
  THALWEG_HD T operator()(T x, T count) const {
    auto bits = static_cast<Wrapping<T>>(count);
    bool inside = bits < Properties<T>::bits;
    auto shifted = static_cast<Wrapping<T>>(x) << (inside ? bits : 0);
    return inside ? static_cast<T>(shifted) : T(0);
  }
};
struct RightShift {
  template <class T>
  THALWEG_HD T operator()(T x, T count) const {
    auto bits = static_cast<Wrapping<T>>(count);
    constexpr Wrapping<T> most = Properties<T>::bits - 1;
    if constexpr (Properties<T>::is_signed) return static_cast<T>(x >> (bits < most ? bits : most));
    return bits <= most ? static_cast<T>(x >> (bits <= most ? bits : 0)) : T(0);
  }
};

struct Positive {
  template <class T>
  THALWEG_HD T operator()(T x) const {
    return x;
  }
};
struct Negative {
  template <class T>
  THALWEG_HD T operator()(T x) const {
    if constexpr (kIsFloating<T>) return -x;
    return static_cast<T>(Wrapping<T>(0) - static_cast<Wrapping<T>>(x));
  }
};
struct Absolute {
  THALWEG_HD bool operator()(bool x) const { return x; }
  THALWEG_HD float operator()(float x) const { return fabsf(x); }
  THALWEG_HD double operator()(double x) const { return fabs(x); }
  template <class T>
  THALWEG_HD T operator()(T x) const {
    return x < T(0) ? Negative{}(x) : x;
  }
};
struct Sign {
  template <class T>
  THALWEG_HD T operator()(T x) const {
    T unit = static_cast<T>((x > T(0)) - (x < T(0)));
    if constexpr (kIsFloating<T>) return x != x ? x : unit;
    return unit;
  }
};
struct Square {
  template <class T>
  THALWEG_HD T operator()(T x) const {
    return Multiply{}(x, x);
  }
};
/// Integers: 1 / x rounded towards zero; 0 gives what the infinite quotient converts to.
struct Reciprocal {
  template <class T>
  THALWEG_HD T operator()(T x) const {
    if constexpr (kIsFloating<T>) return T(1) / x;
    return Convert<T, double>{}(1.0 / static_cast<double>(x));
  }
};
struct IsNan {
  template <class T>
  THALWEG_HD bool operator()(T x) const {
    return x != x;
  }
};
struct IsInf {
  template <class T>
  THALWEG_HD bool operator()(T x) const {
    if constexpr (kIsFloating<T>) return Absolute{}(x) == static_cast<T>(INFINITY);
    return false;
  }
};
struct IsFinite {
  template <class T>
  THALWEG_HD bool operator()(T x) const {
    if constexpr (kIsFloating<T>) return Absolute{}(x) < static_cast<T>(INFINITY);
    return true;
  }
};
struct SignBit {
  template <class T>
  THALWEG_HD bool operator()(T x) const {
    if constexpr (kIsFloating<T>) return with_sign(T(1), x) < T(0);
    return x < T(0);
  }
};

}  // namespace
}  // namespace thalweg::functors
