// indexing.cpp: Ops that read or replace elements chosen by index arrays or slices.
#include <algorithm>
#include <string>
#include <utility>

#include <thalweg/errors.h>
#include <thalweg/op.h>

#include "ops/builtin.h"
#include "ops/derivative.h"
#include "ops/region.h"

namespace thalweg {
namespace {

/// Throws `Error` unless input `i` can index.
template <class Error>
void require_integer(const InferContext& ctx, std::size_t i) {
  const DType dtype = ctx.input(i).dtype;
  if (is_integer(dtype)) return;
  throw Error(std::string(ctx.name()) + ": indices must have an integer dtype, got " +
              std::string(name(dtype)));
}

void append(Shape& shape, const Shape& source, std::size_t begin, std::size_t end) {
  for (std::size_t axis = begin; axis < end; ++axis) shape.push_back(source[axis]);
}

/// Zero indices into an axis of no elements are fine, anything else is not: said before the kernel runs.
void require_elements(const InferContext& ctx, std::int64_t indices, int axis, std::int64_t dim) {
  if (dim != 0 || indices == 0) return;
  throw IndexError(std::string(ctx.name()) + ": axis " + std::to_string(axis) + " of shape " +
                   to_string(ctx.input(0).shape) + " has no element to index");
}

void infer_take(InferContext& ctx) {
  require_integer<DTypeError>(ctx, 1);
  const TensorMeta& x = ctx.input(0);
  const TensorMeta& indices = ctx.input(1);
  if (!ctx.attributes().has(0)) {
    // Positions count in C order over all axes.
    ctx.require_contiguous(0);
    require_elements(ctx, indices.numel(), 0, x.numel());
    return ctx.set_contiguous(0, indices.shape, x.dtype);
  }
  const int axis = normalize_axis(ctx.name(), ctx.attributes().get<std::int64_t>(0), x.rank());
  require_elements(ctx, indices.numel(), axis, x.shape[axis]);
  Shape shape;
  append(shape, x.shape, 0, axis);
  append(shape, indices.shape, 0, indices.shape.size());
  append(shape, x.shape, axis + 1, x.shape.size());
  ctx.set_contiguous(0, shape, x.dtype);
}

/// The shape of x with its `axis` as long as that of the indices, both broadcast along the others.
Shape along_axis_shape(const InferContext& ctx, int axis) {
  Shape x = ctx.input(0).shape;
  const Shape& indices = ctx.input(1).shape;
  x[axis] = indices[axis];
  return broadcast_shapes(ctx.name(), x, indices);
}

void infer_take_along_axis(InferContext& ctx) {
  require_integer<DTypeError>(ctx, 1);
  const TensorMeta& x = ctx.input(0);
  const TensorMeta& indices = ctx.input(1);
  if (x.rank() != indices.rank()) {
    throw ShapeError(std::string(ctx.name()) + ": indices of shape " + to_string(indices.shape) +
                     " must have as many dimensions as x of shape " + to_string(x.shape));
  }
  const int axis = normalize_axis(ctx.name(), ctx.attributes().get<std::int64_t>(0), x.rank());
  const Shape shape = along_axis_shape(ctx, axis);
  require_elements(ctx, numel(shape), axis, x.shape[axis]);
  ctx.set_contiguous(0, shape, x.dtype);
}

/// The shape that x[indices] has, for index arrays from input `first` on.
Shape indexed_shape(const InferContext& ctx, std::size_t first) {
  const TensorMeta& x = ctx.input(0);
  const Dims& given = ctx.attributes().get<Dims>(0);
  if (ctx.input_count() - first != given.size() || given.empty()) {
    throw IndexError(std::string(ctx.name()) + ": " + std::to_string(ctx.input_count() - first) +
                     " index arrays for axes " + to_string(given) +
                     "; one per axis, and at least one, is needed");
  }
  const auto axes = normalize_axes(ctx.name(), given, x.rank());
  Shape common = ctx.input(first).shape;
  for (std::size_t i = first; i < ctx.input_count(); ++i) {
    require_integer<IndexError>(ctx, i);
    common = broadcast_shapes(ctx.name(), common, ctx.input(i).shape);
  }
  bool indexed[kMaxRank] = {};
  for (int axis : axes) {
    require_elements(ctx, numel(common), axis, x.shape[axis]);
    indexed[axis] = true;
  }
  const int place = ctx.attributes().get_or<bool>(1, false) ? 0 : *std::min_element(axes.begin(), axes.end());
  Shape shape;
  for (int axis = 0; axis <= x.rank(); ++axis) {
    if (axis == place) append(shape, common, 0, common.size());
    if (axis < x.rank() && !indexed[axis]) shape.push_back(x.shape[axis]);
  }
  return shape;
}

void infer_index(InferContext& ctx) { ctx.set_contiguous(0, indexed_shape(ctx, 1), ctx.input(0).dtype); }

/// Checks that the value (input 1) broadcasts to the selected region; leading axes of size 1 too many are no
/// harm.
void check_value(InferContext& ctx, const Shape& region) {
  const Shape& value = ctx.input(1).shape;
  const std::size_t extra = value.size() > region.size() ? value.size() - region.size() : 0;
  bool fits = true;
  for (std::size_t axis = 0; axis < extra; ++axis) fits &= value[axis] == 1;
  for (std::size_t axis = extra; axis < value.size(); ++axis) {
    const std::int64_t wanted = region[region.size() - (value.size() - axis)];
    fits &= value[axis] == 1 || value[axis] == wanted;
  }
  if (!fits) {
    throw ShapeError(std::string(ctx.name()) + ": value of shape " + to_string(value) +
                     " does not broadcast to the selected shape " + to_string(region));
  }
  ctx.cast_input(1, ctx.input(0).dtype);
  ctx.set_contiguous(0, ctx.input(0).shape, ctx.input(0).dtype);
}

void infer_slice_assign(InferContext& ctx) { check_value(ctx, resolve_region(ctx, 0).shape); }

void infer_index_assign(InferContext& ctx) { check_value(ctx, indexed_shape(ctx, 2)); }

void infer_index_add(InferContext& ctx) {
  const DType dtype = ctx.input(0).dtype;
  if (dtype == DType::bool_ || is_half(dtype)) {
    throw DTypeError(std::string(ctx.name()) + ": not defined for " + std::string(name(dtype)) +
                     "; cast to an integer dtype or float32 with astype first");
  }
  check_value(ctx, indexed_shape(ctx, 2));
}

void add_reads(OpRegistry& registry) {
  Op take;
  take.name = "take";
  take.inputs = {"x", "indices"};
  take.attributes = {{"axis", AttrKind::integer}};
  take.infer = infer_take;
  take.ns_per_element = 1.0f;
  take.doc =
      "The elements of x at the given positions of one axis, or in C order over all axes (None).\n\nThe axis "
      "is "
      "replaced by the shape of indices. Negative indices count from the end. Raises DTypeError for indices "
      "that are "
      "no integers; an index out of range fails the result with IndexError.\n\nArray API standard, indexing "
      "functions.";
  set_indexing_derivative(take);
  registry.add(std::move(take));
  Op along;
  along.name = "take_along_axis";
  along.inputs = {"x", "indices"};
  along.attributes = {{"axis", AttrKind::integer, std::int64_t{-1}}};
  along.infer = infer_take_along_axis;
  along.ns_per_element = 1.5f;
  along.doc =
      "The elements of x at the positions that indices names along an axis, each for its own place on the "
      "other "
      "axes.\n\nx and indices have as many dimensions and broadcast along the other axes. Negative indices "
      "count "
      "from the end. Raises DTypeError for indices that are no integers and ShapeError for shapes that do "
      "not fit; "
      "an index out of range fails the result with IndexError.\n\nArray API standard, indexing functions.";
  set_indexing_derivative(along);
  registry.add(std::move(along));
  Op index;
  index.name = "index";
  index.inputs = {"x", "indices"};
  index.variadic = true;
  index.attributes = {{"axes", AttrKind::dims, {}, true}, {"front", AttrKind::boolean, false}};
  index.infer = infer_index;
  index.ns_per_element = 1.0f;
  index.doc =
      "The elements of x at the positions that the index arrays, broadcast together, name on the given "
      "axes.\n\nWhat "
      "indexing with integer arrays becomes. The arrays' common shape stands where the first indexed axis "
      "was, or in "
      "front. Negative indices count from the end; an index out of range fails the result with "
      "IndexError.\n\nNumPy, "
      "advanced indexing.";
  set_indexing_derivative(index);
  registry.add(std::move(index));
}

void add_writes(OpRegistry& registry) {
  Op slice_assign;
  slice_assign.name = "slice_assign";
  slice_assign.inputs = {"x", "value"};
  slice_assign.attributes = {{"starts", AttrKind::dims, {}, true},
                             {"steps", AttrKind::dims, {}, true},
                             {"sizes", AttrKind::dims, {}, true},
                             {"drop", AttrKind::dims, Dims{}},
                             {"insert", AttrKind::dims, Dims{}}};
  slice_assign.infer = infer_slice_assign;
  slice_assign.alias_mask = 1;
  slice_assign.doc =
      "x with the region that slice would select replaced by value.\n\nvalue broadcasts to the region and is "
      "cast to "
      "x's dtype. Written over x's bytes when nothing else needs them. Raises IndexError for a region that "
      "leaves x "
      "and ShapeError for a value that does not broadcast.\n\nWhat `x[i] = v` becomes.";
  set_indexing_derivative(slice_assign);
  registry.add(std::move(slice_assign));
  Op index_assign;
  index_assign.name = "index_assign";
  index_assign.inputs = {"x", "value", "indices"};
  index_assign.variadic = true;
  index_assign.attributes = {{"axes", AttrKind::dims, {}, true}, {"front", AttrKind::boolean, false}};
  index_assign.infer = infer_index_assign;
  index_assign.alias_mask = 1;
  index_assign.ns_per_element = 1.0f;
  index_assign.doc =
      "x with the elements that index would select replaced by value; of a position named twice the last "
      "value stays."
      "\n\nvalue broadcasts to the selection and is cast to x's dtype. Written over x's bytes when nothing "
      "else needs "
      "them. An index out of range fails the result with IndexError.\n\nWhat `x[i] = v` with integer arrays "
      "becomes.";
  set_indexing_derivative(index_assign);
  registry.add(std::move(index_assign));
  Op index_add;
  index_add.name = "index_add";
  index_add.inputs = {"x", "value", "indices"};
  index_add.variadic = true;
  index_add.attributes = {{"axes", AttrKind::dims, {}, true}, {"front", AttrKind::boolean, false}};
  index_add.infer = infer_index_add;
  index_add.alias_mask = 1;
  index_add.ns_per_element = 1.5f;
  index_add.doc =
      "x with value added to the elements that index would select; to a position named twice both values, in "
      "the order of the indices.\n\nWhat the gradient of reading with integer arrays needs. value broadcasts "
      "to the selection and is cast to x's dtype. Raises DTypeError for bool and 16-bit floating dtypes; an "
      "index out of range fails the result with IndexError.\n\nNumPy's numpy.add.at.";
  set_indexing_derivative(index_add);
  registry.add(std::move(index_add));
}

}  // namespace

void register_indexing(OpRegistry& registry) {
  add_reads(registry);
  add_writes(registry);
}

}  // namespace thalweg
