// shape.cpp: broadcasting, contiguity and axis arithmetic.
#include <algorithm>

#include <thalweg/errors.h>
#include <thalweg/shape.h>

namespace thalweg {
namespace {

[[noreturn]] void throw_no_broadcast(std::string_view op, const Shape& a, const Shape& b,
                                     std::size_t from_back) {
  std::string dims =
      std::to_string(a[a.size() - from_back]) + " against " + std::to_string(b[b.size() - from_back]);
  throw ShapeError(std::string(op) + ": shapes " + to_string(a) + " and " + to_string(b) +
                   " do not broadcast at axis -" + std::to_string(from_back) + " (" + dims +
                   "; they must be equal or one of them 1)");
}

}  // namespace

std::int64_t checked_numel(std::string_view op, const Shape& shape, std::int64_t item_bytes) {
  if (shape.size() > kMaxRank) {
    throw ShapeError(std::string(op) + ": " + std::to_string(shape.size()) +
                     " dimensions are too many, the most are " + std::to_string(kMaxRank));
  }
  // Zeros are left out of the limit's product, so that strides of empty tensors do not overflow either.
  std::int64_t bytes = item_bytes;
  bool empty = false;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis] < 0) {
      throw ShapeError(std::string(op) + ": shape " + to_string(shape) + " has the negative dimension " +
                       std::to_string(shape[axis]) + " at axis " + std::to_string(axis));
    }
    empty |= shape[axis] == 0;
    if (__builtin_mul_overflow(bytes, std::max<std::int64_t>(shape[axis], 1), &bytes)) {
      throw ShapeError(std::string(op) + ": shape " + to_string(shape) + " of " + std::to_string(item_bytes) +
                       "-byte elements is more than 2^63-1 bytes");
    }
  }
  return empty ? 0 : bytes / item_bytes;
}

Strides contiguous_strides(const Shape& shape) {
  Strides strides(shape.size(), 1);
  std::int64_t step = 1;
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    strides[axis] = step;
    step *= std::max<std::int64_t>(shape[axis], 1);
  }
  return strides;
}

bool is_contiguous(const Shape& shape, const Strides& strides) noexcept {
  std::int64_t step = 1;
  bool in_order = true;
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    if (shape[axis] == 0) return true;
    if (shape[axis] != 1) in_order &= strides[axis] == step;
    step *= shape[axis];
  }
  return in_order;
}

std::string to_string(const Dims& dims) {
  std::string text = "(";
  for (std::size_t i = 0; i < dims.size(); ++i)
    text.append(i == 0 ? "" : ", ").append(std::to_string(dims[i]));
  return text + (dims.size() == 1 ? ",)" : ")");
}

Shape broadcast_shapes(std::string_view op, const Shape& a, const Shape& b) {
  if (a == b) return a;
  const Shape& longer = a.size() >= b.size() ? a : b;
  Shape result = longer;
  std::size_t common = std::min(a.size(), b.size());
  for (std::size_t from_back = 1; from_back <= common; ++from_back) {
    std::int64_t dim_a = a[a.size() - from_back];
    std::int64_t dim_b = b[b.size() - from_back];
    if (dim_a != dim_b && dim_a != 1 && dim_b != 1) throw_no_broadcast(op, a, b, from_back);
    result[result.size() - from_back] = dim_a == 1 ? dim_b : dim_a;
  }
  return result;
}

Strides broadcast_strides(const Shape& from, const Strides& strides, const Shape& to) {
  Strides result(to.size(), 0);
  std::size_t added = to.size() - from.size();
  for (std::size_t axis = 0; axis < from.size(); ++axis) {
    bool kept = from[axis] == to[axis + added];
    result[axis + added] = kept ? strides[axis] : 0;
  }
  return result;
}

int normalize_axis(std::string_view op, std::int64_t axis, int rank) {
  if (axis >= -rank && axis < rank) return static_cast<int>(axis < 0 ? axis + rank : axis);
  std::string text = std::string(op) + ": axis " + std::to_string(axis) + " is out of bounds for ";
  if (rank == 0) throw IndexError(text + "a 0-d tensor, which has no axes");
  throw IndexError(text + std::to_string(rank) + (rank == 1 ? " dimension" : " dimensions") + " (use -" +
                   std::to_string(rank) + " to " + std::to_string(rank - 1) + ")");
}

SmallVector<int, 4> normalize_axes(std::string_view op, std::span<const std::int64_t> axes, int rank) {
  SmallVector<int, 4> result;
  for (std::int64_t axis : axes) {
    int normal = normalize_axis(op, axis, rank);
    if (std::find(result.begin(), result.end(), normal) != result.end()) {
      throw ShapeError(std::string(op) + ": axis " + std::to_string(normal) + " is given twice in " +
                       to_string(Dims(axes)));
    }
    result.push_back(normal);
  }
  return result;
}

}  // namespace thalweg
