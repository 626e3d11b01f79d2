// scalar.h: one number with its kind, as a Python scalar or a 0-d value carries it.
#pragma once

#include <complex>
#include <cstdint>
#include <type_traits>

#include <thalweg/dtype.h>

namespace thalweg {

/// A bool, a signed or unsigned 64-bit integer, a double or two doubles as a complex number.
class Scalar {
 public:
  constexpr Scalar() noexcept : kind_(DTypeKind::signed_integer), int_(0) {}
  constexpr Scalar(bool value) noexcept : kind_(DTypeKind::boolean), int_(value) {}
  constexpr Scalar(int value) noexcept : kind_(DTypeKind::signed_integer), int_(value) {}
  constexpr Scalar(std::int64_t value) noexcept : kind_(DTypeKind::signed_integer), int_(value) {}
  constexpr Scalar(std::uint64_t value) noexcept : kind_(DTypeKind::unsigned_integer), uint_(value) {}
  constexpr Scalar(double value) noexcept : kind_(DTypeKind::floating), double_(value) {}
  constexpr Scalar(std::complex<double> value) noexcept
      : kind_(DTypeKind::complex_floating), double_(value.real()), imaginary_(value.imag()) {}

  constexpr DTypeKind kind() const noexcept { return kind_; }

  /// The value as `T`, with C++'s conversions; of a complex value as a real `T` the real part, as bool
  /// whether it is not 0.
  template <class T>
  constexpr T to() const noexcept {
    if constexpr (kIsStdComplex<T>) {
      using Part = typename T::value_type;
      return T(to<Part>(), static_cast<Part>(imaginary_));
    } else {
      return to_real<T>();
    }
  }

  friend constexpr bool operator==(const Scalar& a, const Scalar& b) noexcept {
    if (a.kind_ != b.kind_) return false;
    if (a.kind_ < DTypeKind::floating) return a.uint_ == b.uint_;
    return a.double_ == b.double_ && a.imaginary_ == b.imaginary_;
  }

 private:
  template <class T>
  constexpr T to_real() const noexcept {
    switch (kind_) {
      case DTypeKind::complex_floating:
        if constexpr (std::is_same_v<T, bool>) return double_ != 0 || imaginary_ != 0;
        return static_cast<T>(double_);
      case DTypeKind::floating: return static_cast<T>(double_);
      case DTypeKind::unsigned_integer: return static_cast<T>(uint_);
      default: return static_cast<T>(int_);
    }
  }

  DTypeKind kind_;
  union {
    std::int64_t int_;
    std::uint64_t uint_;
    double double_;
  };
  double imaginary_ = 0;
};

/// The bits of `scalar`, rounded once, as `dtype`, which is float16 or bfloat16. Of a complex one the real
/// part.
std::uint16_t to_half(const Scalar& scalar, DType dtype) noexcept;

/// The value of an element of `dtype`, which is float16 or bfloat16.
float from_half(std::uint16_t bits, DType dtype) noexcept;

/// The dtype of a Python scalar of `scalar`'s kind next to a tensor of dtype `other` (array API: the tensor's
/// dtype wins within a kind; a float next to an integer tensor gives float64, an int next to bool gives
/// int64; a complex number next to a real tensor gives the complex dtype of its precision).
DType promote_scalar(DType other, const Scalar& scalar) noexcept;

/// The dtype that a lone scalar gets: bool, int64 (uint64 above 2^63-1), float64, complex128.
DType default_dtype(const Scalar& scalar) noexcept;

}  // namespace thalweg
