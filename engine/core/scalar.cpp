// scalar.cpp: dtypes of scalars, alone and next to a tensor.
#include <thalweg/half.h>
#include <thalweg/scalar.h>

namespace thalweg {

std::uint16_t to_half(const Scalar& scalar, DType dtype) noexcept {
  float value = 0;
  switch (scalar.kind()) {
    case DTypeKind::unsigned_integer: value = round_to_odd(scalar.to<std::uint64_t>()); break;
    case DTypeKind::boolean:
    case DTypeKind::signed_integer: value = round_to_odd(scalar.to<std::int64_t>()); break;
    default: value = round_to_odd(scalar.to<double>());
  }
  return dtype == DType::float16 ? narrow_float16(value) : narrow_bfloat16(value);
}

float from_half(std::uint16_t bits, DType dtype) noexcept {
  return dtype == DType::float16 ? widen_float16(bits) : widen_bfloat16(bits);
}

DType default_dtype(const Scalar& scalar) noexcept {
  switch (scalar.kind()) {
    case DTypeKind::boolean: return DType::bool_;
    case DTypeKind::signed_integer: return DType::int64;
    case DTypeKind::unsigned_integer:
      return scalar.to<std::uint64_t>() > std::uint64_t{INT64_MAX} ? DType::uint64 : DType::int64;
    case DTypeKind::floating: return DType::float64;
    case DTypeKind::complex_floating: break;
  }
  return DType::complex128;
}

DType promote_scalar(DType other, const Scalar& scalar) noexcept {
  switch (scalar.kind()) {
    case DTypeKind::boolean: return other;
    case DTypeKind::floating: return is_inexact(other) ? other : DType::float64;
    case DTypeKind::complex_floating: return complex_dtype(other);
    default: return other == DType::bool_ ? default_dtype(scalar) : other;
  }
}

}  // namespace thalweg
