// complex_number.h: complex numbers as kernels compute with them. Sums, products and quotients are NumPy's
// plain formulas, without the recovery of infinities that compilers add to C's and C++'s own complex types:
// every build gives the same bits, whatever its flags.
#pragma once

#include "kernels/numeric.h"

namespace thalweg::functors {

/// A product that is rounded before it enters a sum. GCC 12 turns the pairs of a difference and a sum in
/// complex products into fused instructions where it vectorises, in spite of -ffp-contract=off.
template <class T>
THALWEG_HD T rounded(T product) {
#if defined(__has_builtin)
#if __has_builtin(__builtin_assoc_barrier)
  return __builtin_assoc_barrier(product);
#endif
#endif
  return product;
}

/// The bytes of std::complex<T>. Files that are compiled for several instruction sets must not include
/// <complex>, whose functions the linker would merge.
template <class T>
struct Complex {
  T real, imag;

  Complex() = default;
  THALWEG_HD constexpr Complex(T re, T im = T(0)) : real(re), imag(im) {}

  friend THALWEG_HD Complex operator-(Complex x) { return {-x.real, -x.imag}; }
  friend THALWEG_HD Complex operator+(Complex a, Complex b) { return {a.real + b.real, a.imag + b.imag}; }
  friend THALWEG_HD Complex operator-(Complex a, Complex b) { return {a.real - b.real, a.imag - b.imag}; }
  friend THALWEG_HD Complex operator*(Complex a, Complex b) {
    return {rounded(a.real * b.real) - rounded(a.imag * b.imag),
            rounded(a.real * b.imag) + rounded(a.imag * b.real)};
  }
  /// Smith's method (Communications of the ACM 5, 1962, algorithm 116): divides by the larger part first, so
  /// that squares do not overflow. Written as choices of inputs, so that it vectorises.
  friend THALWEG_HD Complex operator/(Complex a, Complex b) {
    T real_size = b.real < 0 ? -b.real : b.real;
    T imag_size = b.imag < 0 ? -b.imag : b.imag;
    bool by_real = real_size >= imag_size;
    T large = by_real ? b.real : b.imag;
    T small = by_real ? b.imag : b.real;
    T ratio = small / large;
    T scale = T(1) / (large + rounded(small * ratio));
    T along = by_real ? a.real : a.imag;
    T across = by_real ? a.imag : a.real;
    T part = rounded(along * ratio);
    T rest = by_real ? across - part : part - across;
    bool by_zero = real_size == T(0) && imag_size == T(0);
    return {by_zero ? a.real / T(0) : (along + rounded(across * ratio)) * scale,
            by_zero ? a.imag / T(0) : rest * scale};
  }
  friend THALWEG_HD bool operator==(Complex a, Complex b) { return (a.real == b.real) & (a.imag == b.imag); }
  friend THALWEG_HD bool operator!=(Complex a, Complex b) { return (a.real != b.real) | (a.imag != b.imag); }
};
static_assert(sizeof(Complex<float>) == 8 && sizeof(Complex<double>) == 16);

namespace {

template <class T>
struct Properties<Complex<T>> {
  using Wrapping = Complex<T>;
  static constexpr bool is_floating = false;
  static constexpr bool is_complex = true;
  static constexpr bool is_signed = true;
  static constexpr int bits = 16 * sizeof(T);
};

template <class To, class From>
struct Convert<Complex<To>, From> {
  THALWEG_HD Complex<To> operator()(From x) const { return Convert<To, From>{}(x); }
};
template <class To, class From>
struct Convert<Complex<To>, Complex<From>> {
  THALWEG_HD Complex<To> operator()(Complex<From> x) const {
    return {static_cast<To>(x.real), static_cast<To>(x.imag)};
  }
};
template <class From>
struct Convert<bool, Complex<From>> {
  THALWEG_HD bool operator()(Complex<From> x) const { return x != Complex<From>(0); }
};

}  // namespace
}  // namespace thalweg::functors
