// manipulation.cpp: Ops that rearrange: views (reshape, permute_dims, slice, …), concat and roll.
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

[[noreturn]] void throw_shape(const InferContext& ctx, const std::string& text) {
  throw ShapeError(std::string(ctx.name()) + ": " + text);
}

/// Makes output 0 share input 0's bytes.
void set_view(InferContext& ctx, Shape shape, Strides strides, std::int64_t offset_delta = 0) {
  const TensorMeta& input = ctx.input(0);
  checked_numel(ctx.name(), shape, item_size(input.dtype));
  TensorMeta& output = ctx.output();
  output.dtype = input.dtype;
  output.offset = input.offset + offset_delta;
  output.shape = std::move(shape);
  output.strides = std::move(strides);
}

/// `wanted` with its -1 replaced; throws unless it has as many elements as input 0.
Shape resolve_shape(const InferContext& ctx, const Shape& wanted) {
  const Shape& shape = ctx.input(0).shape;
  const std::int64_t count = numel(shape);
  Shape known = wanted;
  int free_axis = -1;
  for (std::size_t axis = 0; axis < wanted.size(); ++axis) {
    if (wanted[axis] != -1) continue;
    if (free_axis >= 0) throw_shape(ctx, "shape " + to_string(wanted) + " has more than one -1");
    free_axis = static_cast<int>(axis);
    known[axis] = 1;
  }
  const std::int64_t fixed = checked_numel(ctx.name(), known, item_size(ctx.input(0).dtype));
  const bool fits = free_axis < 0 ? fixed == count : fixed != 0 && count % fixed == 0;
  if (!fits) {
    throw_shape(ctx, "shape " + to_string(shape) + " has " + std::to_string(count) +
                         (count == 1 ? " element" : " elements") + " and cannot become " + to_string(wanted));
  }
  if (free_axis >= 0) known[free_axis] = count / fixed;
  return known;
}

/// Strides that read `shape`/`strides` as `target` of the same number of elements; false if there are none.
/// Walks both shapes from the back, one group of axes with equal products at a time; each group must be one
/// even run.
bool view_strides(const Shape& shape, const Strides& strides, const Shape& target, Strides* result) {
  *result = contiguous_strides(target);
  if (numel(target) == 0) return true;
  std::size_t from = shape.size();
  std::size_t to = target.size();
  while (true) {
    while (from > 0 && shape[from - 1] == 1) --from;
    while (to > 0 && target[to - 1] == 1) --to;
    if (from == 0 || to == 0) return true;
    const std::int64_t stride = strides[--from];
    std::int64_t have = shape[from];
    std::int64_t next = stride * shape[from];
    std::int64_t want = target[--to];
    (*result)[to] = stride;
    while (have != want) {
      if (have < want) {
        if (shape[--from] != 1 && strides[from] != next) return false;
        have *= shape[from];
        if (shape[from] != 1) next *= shape[from];
      } else {
        (*result)[to - 1] = stride * want;
        want *= target[--to];
      }
    }
  }
}

void infer_reshape(InferContext& ctx) {
  const TensorMeta& input = ctx.input(0);
  Shape shape = resolve_shape(ctx, ctx.attributes().get<Dims>(0));
  Strides strides;
  if (!view_strides(input.shape, input.strides, shape, &strides)) ctx.require_contiguous(0);
  set_view(ctx, std::move(shape), std::move(strides));
}

void infer_permute_dims(InferContext& ctx) {
  const TensorMeta& input = ctx.input(0);
  const std::size_t rank = input.shape.size();
  Shape shape(rank, 0);
  Strides strides(rank, 0);
  if (!ctx.attributes().has(0)) {
    std::reverse_copy(input.shape.begin(), input.shape.end(), shape.begin());
    std::reverse_copy(input.strides.begin(), input.strides.end(), strides.begin());
    return set_view(ctx, std::move(shape), std::move(strides));
  }
  const Dims& order = ctx.attributes().get<Dims>(0);
  auto axes = normalize_axes(ctx.name(), order, input.rank());
  if (axes.size() != rank) {
    throw_shape(ctx, "axes " + to_string(order) + " must name each of the " + std::to_string(rank) +
                         " axes of shape " + to_string(input.shape) + " once");
  }
  for (std::size_t i = 0; i < rank; ++i) {
    shape[i] = input.shape[axes[i]];
    strides[i] = input.strides[axes[i]];
  }
  set_view(ctx, std::move(shape), std::move(strides));
}

void infer_broadcast_to(InferContext& ctx) {
  const TensorMeta& input = ctx.input(0);
  const Shape& shape = ctx.attributes().get<Dims>(0);
  checked_numel(ctx.name(), shape, item_size(input.dtype));
  bool fits = shape.size() >= input.shape.size();
  for (std::size_t back = 1; fits && back <= input.shape.size(); ++back) {
    const std::int64_t dim = input.shape[input.shape.size() - back];
    fits = dim == 1 || dim == shape[shape.size() - back];
  }
  if (!fits) {
    throw_shape(ctx, "shape " + to_string(input.shape) + " does not broadcast to " + to_string(shape) +
                         "; from the last axis on, each size must be equal or 1");
  }
  set_view(ctx, shape, broadcast_strides(input.shape, input.strides, shape));
}

void infer_expand_dims(InferContext& ctx) {
  const TensorMeta& input = ctx.input(0);
  const Dims& places = ctx.attributes().get<Dims>(0);
  const int rank = input.rank() + static_cast<int>(places.size());
  auto axes = normalize_axes(ctx.name(), places, rank);
  std::sort(axes.begin(), axes.end());
  Shape shape = input.shape;
  Strides strides = input.strides;
  for (int axis : axes) {
    shape.insert(axis, 1);
    strides.insert(axis, 0);
  }
  set_view(ctx, std::move(shape), std::move(strides));
}

void infer_squeeze(InferContext& ctx) {
  const TensorMeta& input = ctx.input(0);
  bool dropped[kMaxRank] = {};
  if (ctx.attributes().has(0)) {
    for (int axis : normalize_axes(ctx.name(), ctx.attributes().get<Dims>(0), input.rank())) {
      if (input.shape[axis] != 1) {
        throw_shape(ctx, "axis " + std::to_string(axis) + " of shape " + to_string(input.shape) +
                             " has size " + std::to_string(input.shape[axis]) +
                             "; only axes of size 1 can be squeezed");
      }
      dropped[axis] = true;
    }
  } else {
    for (int axis = 0; axis < input.rank(); ++axis) dropped[axis] = input.shape[axis] == 1;
  }
  Shape shape;
  Strides strides;
  for (int axis = 0; axis < input.rank(); ++axis) {
    if (dropped[axis]) continue;
    shape.push_back(input.shape[axis]);
    strides.push_back(input.strides[axis]);
  }
  set_view(ctx, std::move(shape), std::move(strides));
}

void infer_flip(InferContext& ctx) {
  const TensorMeta& input = ctx.input(0);
  bool flipped[kMaxRank] = {};
  if (ctx.attributes().has(0)) {
    for (int axis : normalize_axes(ctx.name(), ctx.attributes().get<Dims>(0), input.rank()))
      flipped[axis] = true;
  } else {
    std::fill_n(flipped, input.rank(), true);
  }
  Strides strides = input.strides;
  std::int64_t offset = 0;
  const bool empty = input.numel() == 0;
  for (int axis = 0; axis < input.rank(); ++axis) {
    if (!flipped[axis] || empty || input.shape[axis] == 1) continue;
    offset += (input.shape[axis] - 1) * strides[axis];
    strides[axis] = -strides[axis];
  }
  set_view(ctx, input.shape, std::move(strides), offset);
}

void infer_slice(InferContext& ctx) {
  Region region = resolve_region(ctx, 0);
  set_view(ctx, std::move(region.shape), std::move(region.strides), region.offset);
}

void infer_diagonal(InferContext& ctx) {
  const TensorMeta& input = ctx.input(0);
  if (input.rank() < 2) throw_shape(ctx, "needs at least 2 dimensions, got shape " + to_string(input.shape));
  const std::int64_t diagonal = ctx.attributes().get_or<std::int64_t>(0, 0);
  const int row = normalize_axis(ctx.name(), ctx.attributes().get_or<std::int64_t>(1, 0), input.rank());
  const int column = normalize_axis(ctx.name(), ctx.attributes().get_or<std::int64_t>(2, 1), input.rank());
  if (row == column) throw_shape(ctx, "axis1 and axis2 are both " + std::to_string(row));
  const std::int64_t rows = input.shape[row];
  const std::int64_t columns = input.shape[column];
  // Clamped to the matrix, so that no offset overflows.
  const std::int64_t down = diagonal < 0 ? std::min(diagonal < -rows ? rows : -diagonal, rows) : 0;
  const std::int64_t right = diagonal > 0 ? std::min(diagonal, columns) : 0;
  const std::int64_t length = std::max<std::int64_t>(0, std::min(rows - down, columns - right));
  Shape shape;
  Strides strides;
  for (int axis = 0; axis < input.rank(); ++axis) {
    if (axis == row || axis == column) continue;
    shape.push_back(input.shape[axis]);
    strides.push_back(input.strides[axis]);
  }
  shape.push_back(length);
  strides.push_back(input.strides[row] + input.strides[column]);
  const std::int64_t start = down * input.strides[row] + right * input.strides[column];
  const std::int64_t offset = length == 0 ? 0 : start;
  set_view(ctx, std::move(shape), std::move(strides), offset);
}

[[noreturn]] void throw_concat(const InferContext& ctx, std::size_t i, int axis) {
  throw_shape(ctx, "shapes " + to_string(ctx.input(0).shape) + " and " + to_string(ctx.input(i).shape) +
                       " of arrays 0 and " + std::to_string(i) + " must be equal except at axis " +
                       std::to_string(axis));
}

Shape concat_shape(const InferContext& ctx, int axis) {
  Shape shape = ctx.input(0).shape;
  for (std::size_t i = 1; i < ctx.input_count(); ++i) {
    const Shape& other = ctx.input(i).shape;
    if (other.size() != shape.size()) throw_concat(ctx, i, axis);
    for (int at = 0; at < static_cast<int>(shape.size()); ++at) {
      if (at != axis && other[at] != shape[at]) throw_concat(ctx, i, axis);
    }
    if (__builtin_add_overflow(shape[axis], other[axis], &shape[axis])) {
      throw_shape(ctx, "the result has more than 2^63-1 elements");
    }
  }
  return shape;
}

void infer_concat(InferContext& ctx) {
  if (ctx.input_count() == 0) throw_shape(ctx, "needs at least one array");
  DType dtype = ctx.input(0).dtype;
  for (std::size_t i = 1; i < ctx.input_count(); ++i) dtype = promote(dtype, ctx.input(i).dtype);
  for (std::size_t i = 0; i < ctx.input_count(); ++i) ctx.cast_input(i, dtype);
  if (!ctx.attributes().has(0)) {
    std::int64_t count = 0;
    for (std::size_t i = 0; i < ctx.input_count(); ++i) {
      if (__builtin_add_overflow(count, ctx.input(i).numel(), &count)) {
        throw_shape(ctx, "the result has more than 2^63-1 elements");
      }
    }
    return ctx.set_contiguous(0, Shape{count}, dtype);
  }
  const Dims& axes = ctx.attributes().get<Dims>(0);
  if (axes.size() != 1) throw_shape(ctx, "axis must be None or one integer, got " + to_string(axes));
  if (ctx.input(0).rank() == 0) throw_shape(ctx, "0-d arrays cannot be joined along an axis; give axis=None");
  const int axis = normalize_axis(ctx.name(), axes[0], ctx.input(0).rank());
  ctx.set_contiguous(0, concat_shape(ctx, axis), dtype);
}

void infer_roll(InferContext& ctx) {
  const TensorMeta& input = ctx.input(0);
  const Dims& shifts = ctx.attributes().get<Dims>(0);
  if (ctx.attributes().has(1)) {
    const Dims& axes = ctx.attributes().get<Dims>(1);
    for (std::int64_t axis : axes) normalize_axis(ctx.name(), axis, input.rank());
    if (shifts.size() != axes.size() && shifts.size() != 1 && axes.size() != 1) {
      throw_shape(ctx, "shift " + to_string(shifts) + " and axis " + to_string(axes) +
                           " must have equal lengths or one of them one entry");
    }
  } else {
    // Without axes the elements move in C order, whatever the layout.
    ctx.require_contiguous(0);
  }
  ctx.set_contiguous(0, input.shape, input.dtype);
}

Op view(std::string name, std::vector<AttrSpec> attributes, void (*infer)(InferContext&), std::string doc) {
  Op op;
  op.name = std::move(name);
  op.inputs = {"x"};
  op.attributes = std::move(attributes);
  op.infer = infer;
  op.doc = std::move(doc);
  op.kind = OpKind::view;
  op.ns_per_element = 0;
  set_manipulation_derivative(op);
  return op;
}

void add_views(OpRegistry& registry) {
  registry.add(
      view("reshape", {{"shape", AttrKind::dims, {}, true}}, infer_reshape,
           "The elements of x in C order under another shape.\n\nOne dimension may be -1 and takes what is "
           "left. Shares x's bytes where its strides allow, else copies. Raises ShapeError if the numbers of "
           "elements differ.\n\nArray API standard, manipulation functions."));
  registry.add(
      view("permute_dims", {{"axes", AttrKind::axes}}, infer_permute_dims,
           "x with its axes in another order: axis i of the result is axis axes[i] of x.\n\naxes: a "
           "permutation, or None to reverse the axes. Shares x's bytes. Raises IndexError or ShapeError for "
           "axes that are no permutation.\n\nArray API standard, manipulation functions."));
  registry.add(view(
      "broadcast_to", {{"shape", AttrKind::dims, {}, true}}, infer_broadcast_to,
      "x repeated along axes of size 1, and along new axes in front, until it has the given shape."
      "\n\nShares x's bytes (stride 0). Raises ShapeError if x does not broadcast to the shape.\n\nArray "
      "API standard, manipulation functions."));
  registry.add(
      view("expand_dims", {{"axis", AttrKind::axes, Dims{0}}}, infer_expand_dims,
           "x with new axes of size 1 at the given positions of the result.\n\nShares x's bytes. Raises "
           "IndexError for a position out of range and ShapeError for a repeated one.\n\nArray API standard, "
           "manipulation functions."));
  registry.add(
      view("squeeze", {{"axis", AttrKind::axes}}, infer_squeeze,
           "x without the given axes of size 1 (None: all of them).\n\nShares x's bytes. Raises ShapeError "
           "for an axis of another size.\n\nArray API standard, manipulation functions."));
  registry.add(view(
      "flip", {{"axis", AttrKind::axes}}, infer_flip,
      "x with the order of its elements reversed along the given axes (None: all).\n\nShares x's bytes "
      "(negative strides). Raises IndexError for an axis out of range.\n\nArray API standard, manipulation "
      "functions."));
  registry.add(view(
      "slice",
      {{"starts", AttrKind::dims, {}, true},
       {"steps", AttrKind::dims, {}, true},
       {"sizes", AttrKind::dims, {}, true},
       {"drop", AttrKind::dims, Dims{}},
       {"insert", AttrKind::dims, Dims{}}},
      infer_slice,
      "The elements starts[i] + k * steps[i], 0 <= k < sizes[i], along every axis i of x.\n\nWhat basic "
      "indexing becomes. drop: axes of size 1 to leave out; insert: positions of new axes in the result. "
      "Shares x's bytes. Raises IndexError for a region that leaves x.\n\nArray API standard, "
      "indexing."));
  registry.add(
      view("diagonal",
           {{"offset", AttrKind::integer, std::int64_t{0}},
            {"axis1", AttrKind::integer, std::int64_t{0}},
            {"axis2", AttrKind::integer, std::int64_t{1}}},
           infer_diagonal,
           "The diagonal of the matrices along axis1 and axis2, as the last axis of the result.\n\noffset: "
           "above (> 0) or below (< 0) the main diagonal. Shares x's bytes. Raises ShapeError below 2 "
           "dimensions.\n\nNumPy's numpy.diagonal."));
}

}  // namespace

void register_manipulation(OpRegistry& registry) {
  add_views(registry);
  Op concat;
  concat.name = "concat";
  concat.inputs = {"arrays"};
  concat.variadic = true;
  concat.attributes = {{"axis", AttrKind::axes, Dims{0}}};
  concat.infer = infer_concat;
  concat.doc =
      "The arrays joined along an existing axis; None joins them flattened.\n\nDtypes are promoted. Raises "
      "ShapeError "
      "if shapes differ elsewhere, for 0-d arrays and for no array.\n\nArray API standard, manipulation "
      "functions.";
  set_manipulation_derivative(concat);
  registry.add(std::move(concat));
  Op roll;
  roll.name = "roll";
  roll.inputs = {"x"};
  roll.attributes = {{"shift", AttrKind::dims, {}, true}, {"axis", AttrKind::axes}};
  roll.infer = infer_roll;
  roll.doc =
      "x with its elements moved on by shift along the given axes; what leaves at the end comes in at the "
      "front.\n\n"
      "axis None moves them in C order over all axes. One shift serves all axes, several shifts of one axis "
      "add up. Raises IndexError for an axis out of range.\n\n"
      "Array API standard, manipulation functions.";
  set_manipulation_derivative(roll);
  registry.add(std::move(roll));
}

}  // namespace thalweg
