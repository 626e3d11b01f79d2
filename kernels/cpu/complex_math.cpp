// complex_math.cpp: inner loops of roots, powers and transcendental functions of complex numbers. They rest
// on the C library's, whose special cases are those of C99's Annex G and so of the array API standard.
// complex64 is computed in complex128 and rounded once.
#include <math.h>

#include "kernels/complex_functors.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/loops.h"

namespace thalweg::cpu {
namespace {

using functors::Complex;
using Number = Complex<double>;

// C's own complex type serves to call C's functions only; it computes nothing here.
__extension__ typedef _Complex double CNumber;

CNumber to_c(Number x) {
  CNumber result;
  __real__ result = x.real;
  __imag__ result = x.imag;
  return result;
}
Number from_c(CNumber x) { return {__real__ x, __imag__ x}; }

/// Calls a function of C: `Exp{}(x)`.
#define THALWEG_COMPLEX_UNARY(Name, function)                                           \
  struct Name {                                                                         \
    Number operator()(Number x) const { return from_c(__builtin_##function(to_c(x))); } \
  };

THALWEG_COMPLEX_UNARY(Sqrt, csqrt)
THALWEG_COMPLEX_UNARY(Exp, cexp)
THALWEG_COMPLEX_UNARY(Log, clog)
THALWEG_COMPLEX_UNARY(Sin, csin)
THALWEG_COMPLEX_UNARY(Cos, ccos)
THALWEG_COMPLEX_UNARY(Tan, ctan)
THALWEG_COMPLEX_UNARY(Asin, casin)
THALWEG_COMPLEX_UNARY(Acos, cacos)
THALWEG_COMPLEX_UNARY(Atan, catan)
THALWEG_COMPLEX_UNARY(Sinh, csinh)
THALWEG_COMPLEX_UNARY(Cosh, ccosh)
THALWEG_COMPLEX_UNARY(Asinh, casinh)
THALWEG_COMPLEX_UNARY(Acosh, cacosh)
THALWEG_COMPLEX_UNARY(Atanh, catanh)
#undef THALWEG_COMPLEX_UNARY

/// At an infinite real part C gives the zero the sign of sin(2 y), the array API standard that of y.
struct Tanh {
  Number operator()(Number x) const {
    if (!isinf(x.real) || !isfinite(x.imag)) return from_c(__builtin_ctanh(to_c(x)));
    return {copysign(1.0, x.real), copysign(0.0, x.imag)};
  }
};

/// exp(x) - 1. Near 0 by parts that do not cancel; elsewhere, overflow and special cases included, from exp.
struct Expm1 {
  Number operator()(Number x) const {
    if (!(fabs(x.real) < 700) || !(fabs(x.imag) <= __DBL_MAX__)) {
      const Number power = Exp{}(x);
      return {power.real - 1, power.imag};
    }
    const double half = sin(x.imag / 2);
    // + 0: of -0 too the standard makes 0.
    return {::expm1(x.real) * cos(x.imag) - 2 * half * half + 0.0, exp(x.real) * sin(x.imag)};
  }
};

/// log(1 + x). Near 0 the size 1 + 2 Re(x) + |x|^2 of 1 + x, squared, loses nothing.
struct Log1p {
  Number operator()(Number x) const {
    if (fabs(x.real) < 0.5 && fabs(x.imag) < 0.5) {
      const double beyond = x.real * (2 + x.real) + x.imag * x.imag;
      return {::log1p(beyond) / 2, ::atan2(x.imag, 1 + x.real)};
    }
    return Log{}({1 + x.real, x.imag});
  }
};

/// The logarithm to another base. Divided by rather than multiplied with the reciprocal: powers of the base
/// come out exact.
struct Log2 {
  Number operator()(Number x) const {
    constexpr double ln2 = 0.693147180559945309417232121458176568;
    const Number natural = Log{}(x);
    return {natural.real / ln2, natural.imag / ln2};
  }
};
struct Log10 {
  Number operator()(Number x) const {
    constexpr double ln10 = 2.302585092994045684017991454684364208;
    const Number natural = Log{}(x);
    return {natural.real / ln10, natural.imag / ln10};
  }
};

/// base * base * … by repeated squaring; `exponent` is not negative.
Number whole_power(Number base, int exponent) {
  Number result = 1;
  bool first = true;
  for (; exponent > 0; exponent >>= 1) {
    if ((exponent & 1) != 0) {
      // Not multiplied with 1, which would turn an infinite part into NaN.
      result = first ? base : result * base;
      first = false;
    }
    if (exponent > 1) base = base * base;
  }
  return result;
}

/// NumPy's and Python's cases: x**0 is 1, 0**x is 0 for a positive real part of x and else NaN, small whole
/// real exponents multiply, so that they are exact where multiplication is.
struct Power {
  Number operator()(Number base, Number exponent) const {
    if (exponent == Number(0)) return {1, 0};
    if (base == Number(0)) return exponent.real > 0 ? Number(0, 0) : Number(NAN, NAN);
    constexpr double limit = 100;
    if (exponent.imag == 0 && fabs(exponent.real) < limit && trunc(exponent.real) == exponent.real) {
      const Number power = whole_power(base, static_cast<int>(fabs(exponent.real)));
      return exponent.real < 0 ? Number(1) / power : power;
    }
    return from_c(__builtin_cpow(to_c(base), to_c(exponent)));
  }
};

/// `F` of numbers stored as complex64 or complex128.
template <class F>
struct Stored {
  template <class T, class... More>
  Complex<T> operator()(Complex<T> x, More... more) const {
    const Number result = F{}(wide(x), wide(more)...);
    return {static_cast<T>(result.real), static_cast<T>(result.imag)};
  }
  template <class T>
  static Number wide(Complex<T> x) {
    return {static_cast<double>(x.real), static_cast<double>(x.imag)};
  }
};

using ComplexTypes = Types<Complex<float>, Complex<double>>;

template <class F>
void fill(ElementwiseTable& table, UnaryFn fn) {
  fill_unary<Stored<F>>(table.unary[static_cast<int>(fn)], ComplexTypes{});
}

}  // namespace

void fill_complex_math(ElementwiseTable& table) {
  fill<Sqrt>(table, UnaryFn::sqrt);
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
  fill_binary<Stored<Power>>(table.binary[static_cast<int>(BinaryFn::pow)], ComplexTypes{});
}

}  // namespace thalweg::cpu
