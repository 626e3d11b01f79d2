// scalar.cpp: dtypes of scalars, alone and next to a tensor.
#include <thalweg/scalar.h>

namespace thalweg {

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
