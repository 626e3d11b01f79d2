// functors.h: each scalar formula once, for every device. Results are NumPy's, overflow and division by zero
// included.
#pragma once

#include <math.h>
#include <stdint.h>

#include "kernels/numeric.h"

namespace thalweg::functors {
// Unnamed for the same reason as THALWEG_HD: one copy per object file.
namespace {

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
/// possible. With an infinity or 0 the quotient itself, as the array API standard has it.
struct FloorDivide {
  template <class T>
  THALWEG_HD T operator()(T a, T b) const {
    if constexpr (kIsFloating<T>) {
      constexpr T kInfinity = static_cast<T>(INFINITY);
      const bool infinite = a == kInfinity || a == -kInfinity || b == kInfinity || b == -kInfinity;
      if (b == T(0) || infinite) return a / b;
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
/// NaN stays.
struct Relu {
  template <class T>
  THALWEG_HD T operator()(T x) const {
    return x <= T(0) ? T(0) : x;
  }
};
/// The gradient g of a function's result y or input x to that of its input.
struct ReluGradient {
  template <class T>
  THALWEG_HD T operator()(T g, T y) const {
    return y <= T(0) ? T(0) : g;
  }
};
struct TanhGradient {
  template <class T>
  THALWEG_HD T operator()(T g, T y) const {
    return g * (T(1) - y * y);
  }
};
struct SigmoidGradient {
  template <class T>
  THALWEG_HD T operator()(T g, T y) const {
    return g * (y * (T(1) - y));
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
struct NextAfter {
  THALWEG_HD float operator()(float from, float to) const { return nextafterf(from, to); }
  THALWEG_HD double operator()(double from, double to) const { return nextafter(from, to); }
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
    if constexpr (kIsFloating<T> || kIsComplex<T>) return -x;
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
struct Cube {
  template <class T>
  THALWEG_HD T operator()(T x) const {
    return x * x * x;
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
