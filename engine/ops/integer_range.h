// integer_range.h: integer scalars and dtype ranges in 128 bits, where those of int64 and uint64 both fit.
#pragma once

#include <thalweg/dtype.h>
#include <thalweg/scalar.h>

namespace thalweg {

__extension__ typedef __int128 Int128;

/// The value of a scalar that is neither floating nor complex.
inline Int128 to_int128(const Scalar& value) noexcept {
  if (value.kind() == DTypeKind::unsigned_integer) return value.to<std::uint64_t>();
  return value.to<std::int64_t>();
}

struct IntegerRange {
  Int128 lowest;
  Int128 highest;
};

/// What an integer dtype holds.
inline IntegerRange range_of(DType dtype) noexcept {
  bool is_unsigned = kind(dtype) == DTypeKind::unsigned_integer;
  Int128 highest = (Int128{1} << (8 * item_size(dtype) - (is_unsigned ? 0 : 1))) - 1;
  return {is_unsigned ? Int128{0} : -highest - 1, highest};
}

}  // namespace thalweg
