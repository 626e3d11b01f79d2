// complex_functors.h: scalar formulas of complex numbers that differ from those of real ones in functors.h.
#pragma once

#include "kernels/complex_number.h"
#include "kernels/functors.h"

namespace thalweg::functors {
// Unnamed for the same reason as THALWEG_HD: one copy per object file.
namespace {

/// The size of a complex number; infinite if either part is, even beside a NaN.
struct ComplexAbsolute {
  /// Squares of float32 do not overflow in float64, and the root rounds once.
  THALWEG_HD float operator()(Complex<float> x) const {
    double real = x.real;
    double imag = x.imag;
    auto size = static_cast<float>(sqrt(rounded(real * real) + rounded(imag * imag)));
    return fabsf(x.real) == INFINITY || fabsf(x.imag) == INFINITY ? INFINITY : size;
  }
  /// Where squares neither overflow nor vanish, the formula is as accurate as hypot and several times faster.
  THALWEG_HD double operator()(Complex<double> x) const {
    double real = fabs(x.real);
    double imag = fabs(x.imag);
    bool plain = (real > 1e-140 || imag > 1e-140) && real < 1e150 && imag < 1e150;
    return plain ? sqrt(rounded(real * real) + rounded(imag * imag)) : hypot(real, imag);
  }
};

/// x / abs(x), 0 for 0. A NaN in either part gives NaN in both, as the array API standard says (NumPy looks
/// at an infinity in the other part first). One infinite part gives its direction, two give NaN, as in NumPy.
struct ComplexSign {
  template <class T>
  THALWEG_HD Complex<T> operator()(Complex<T> x) const {
    constexpr T infinity = static_cast<T>(INFINITY);
    T size = ComplexAbsolute{}(x);
    bool real_is_infinite = Absolute{}(x.real) == infinity;
    bool imag_is_infinite = Absolute{}(x.imag) == infinity;
    if (x.real != x.real || x.imag != x.imag || (real_is_infinite && imag_is_infinite)) {
      return {static_cast<T>(NAN), static_cast<T>(NAN)};
    }
    if (real_is_infinite) return {with_sign(T(1), x.real), T(0)};
    if (imag_is_infinite) return {T(0), with_sign(T(1), x.imag)};
    if (size == T(0)) return {T(0), T(0)};
    if (size == infinity) {
      // Finite parts whose size is above the largest number.
      x = {x.real / T(4), x.imag / T(4)};
      size = ComplexAbsolute{}(x);
    }
    return {x.real / size, x.imag / size};
  }
};

/// 1 / x by Smith's method; 0 gives NaN, as in NumPy.
struct ComplexReciprocal {
  template <class T>
  THALWEG_HD Complex<T> operator()(Complex<T> x) const {
    bool by_real = Absolute{}(x.imag) <= Absolute{}(x.real);
    T ratio = by_real ? x.imag / x.real : x.real / x.imag;
    T divisor = by_real ? x.real + rounded(x.imag * ratio) : rounded(x.real * ratio) + x.imag;
    return {(by_real ? T(1) : ratio) / divisor, -(by_real ? ratio : T(1)) / divisor};
  }
};

struct Conjugate {
  template <class T>
  THALWEG_HD T operator()(T x) const {
    return x;
  }
  template <class T>
  THALWEG_HD Complex<T> operator()(Complex<T> x) const {
    return {x.real, -x.imag};
  }
};

/// Each part to its nearest integer, the even one of two equally near.
struct ComplexRound {
  THALWEG_HD Complex<float> operator()(Complex<float> x) const { return {rintf(x.real), rintf(x.imag)}; }
  THALWEG_HD Complex<double> operator()(Complex<double> x) const { return {rint(x.real), rint(x.imag)}; }
};

struct ComplexIsInf {
  template <class T>
  THALWEG_HD bool operator()(Complex<T> x) const {
    return IsInf{}(x.real) | IsInf{}(x.imag);
  }
};
struct ComplexIsFinite {
  template <class T>
  THALWEG_HD bool operator()(Complex<T> x) const {
    return IsFinite{}(x.real) & IsFinite{}(x.imag);
  }
};

}  // namespace
}  // namespace thalweg::functors
