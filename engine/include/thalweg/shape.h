// shape.h: shapes, strides and the arithmetic on them. Strides count elements, not bytes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <thalweg/small_vector.h>

namespace thalweg {

using Dims = SmallVector<std::int64_t, 4>;
using Shape = Dims;
using Strides = Dims;

/// The largest number of dimensions a tensor may have (NumPy's limit).
inline constexpr int kMaxRank = 64;

/// Product of the dimensions; 1 for a 0-d shape. Callers have checked for overflow with `checked_numel`.
inline std::int64_t numel(const Shape& shape) noexcept {
  std::int64_t count = 1;
  for (std::int64_t dim : shape) count *= dim;
  return count;
}

/// Product of the dimensions; throws ShapeError led by `op` for a negative dimension, more than kMaxRank
/// dimensions or more than 2^63-1 bytes of `item_bytes` each.
std::int64_t checked_numel(std::string_view op, const Shape& shape, std::int64_t item_bytes);

/// Row-major (C order) strides of `shape`, in elements.
Strides contiguous_strides(const Shape& shape);

/// True if `strides` lay `shape` out in C order without gaps (dimensions of size 1 may have any stride).
bool is_contiguous(const Shape& shape, const Strides& strides) noexcept;

/// "(2, 3)", "(4,)", "()": as Python prints a tuple.
std::string to_string(const Dims& dims);

/// NumPy's broadcast of two shapes; throws ShapeError: `add: shapes (2, 3) and (4,) do not broadcast at axis
/// -1 …`.
Shape broadcast_shapes(std::string_view op, const Shape& a, const Shape& b);

/// Strides that make a tensor of `from`/`strides` read as `to` (stride 0 along broadcast axes). `to` must be
/// a broadcast of `from`.
Strides broadcast_strides(const Shape& from, const Strides& strides, const Shape& to);

/// `axis` counted from the front; throws IndexError led by `op` when it is outside [-rank, rank).
int normalize_axis(std::string_view op, std::int64_t axis, int rank);

/// Axes counted from the front, in the given order; throws IndexError for a bad axis and ShapeError for a
/// repeated one.
SmallVector<int, 4> normalize_axes(std::string_view op, std::span<const std::int64_t> axes, int rank);

}  // namespace thalweg
