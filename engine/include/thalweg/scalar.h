// scalar.h: one number with its kind, as a Python scalar or a 0-d value carries it.
#pragma once

#include <cstdint>

#include <thalweg/dtype.h>

namespace thalweg {

/// A bool, a signed or unsigned 64-bit integer or a double.
class Scalar {
 public:
  constexpr Scalar() noexcept : kind_(DTypeKind::signed_integer), int_(0) {}
  constexpr Scalar(bool value) noexcept : kind_(DTypeKind::boolean), int_(value) {}
  constexpr Scalar(int value) noexcept : kind_(DTypeKind::signed_integer), int_(value) {}
  constexpr Scalar(std::int64_t value) noexcept : kind_(DTypeKind::signed_integer), int_(value) {}
  constexpr Scalar(std::uint64_t value) noexcept : kind_(DTypeKind::unsigned_integer), uint_(value) {}
  constexpr Scalar(double value) noexcept : kind_(DTypeKind::floating), double_(value) {}

  constexpr DTypeKind kind() const noexcept { return kind_; }

  /// The value as `T`, with C++'s conversions.
  template <class T>
  constexpr T to() const noexcept {
    switch (kind_) {
      case DTypeKind::floating: return static_cast<T>(double_);
      case DTypeKind::unsigned_integer: return static_cast<T>(uint_);
      default: return static_cast<T>(int_);
    }
  }

  friend constexpr bool operator==(const Scalar& a, const Scalar& b) noexcept {
    return a.kind_ == b.kind_ &&
           (a.kind_ == DTypeKind::floating ? a.double_ == b.double_ : a.uint_ == b.uint_);
  }

 private:
  DTypeKind kind_;
  union {
    std::int64_t int_;
    std::uint64_t uint_;
    double double_;
  };
};

/// The dtype of a Python scalar of `scalar`'s kind next to a tensor of dtype `other` (array API: the tensor's
/// dtype wins within a kind; a float next to an integer tensor gives float64, an int next to bool gives
/// int64).
DType promote_scalar(DType other, const Scalar& scalar) noexcept;

/// The dtype that a lone scalar gets: bool, int64 (uint64 above 2^63-1), float64.
DType default_dtype(const Scalar& scalar) noexcept;

}  // namespace thalweg
