// selection.cpp: Ops that a mask's values direct: nonzero, mask_select, mask_assign, mask_scatter. How much a
// mask selects is counted before (count_nonzero) and handed over as an attribute, so that inference knows the
// shape.
#include <algorithm>
#include <string>
#include <utility>

#include <thalweg/errors.h>
#include <thalweg/op.h>

#include "ops/builtin.h"
#include "ops/derivative.h"

namespace thalweg {
namespace {

std::int64_t selected_count(const InferContext& ctx, std::int64_t most) {
  const std::int64_t count = ctx.attributes().get<std::int64_t>(0);
  if (count >= 0 && count <= most) return count;
  throw ValueError(std::string(ctx.name()) + ": count is " + std::to_string(count) +
                   "; it must be from 0 to " + std::to_string(most));
}

void infer_nonzero(InferContext& ctx) {
  const TensorMeta& x = ctx.input(0);
  if (x.rank() == 0) throw ShapeError(std::string(ctx.name()) + ": a 0-d tensor has no axis to name");
  ctx.set_contiguous(0, {x.rank(), selected_count(ctx, x.numel())}, DType::int64);
}

/// A mask's axes have the sizes of the first axes of x, or 0 (array API standard, boolean array indexing).
bool fits_first_axes(const Shape& mask, const Shape& x) {
  return mask.size() <= x.size() &&
         std::equal(mask.begin(), mask.end(), x.begin(),
                    [](std::int64_t size, std::int64_t of_x) { return size == of_x || size == 0; });
}

/// Checks that input `i` is a mask over the first axes of input 0; returns the shape of what one of its
/// elements selects.
Shape rest_behind_mask(const InferContext& ctx, std::size_t i) {
  const TensorMeta& x = ctx.input(0);
  const TensorMeta& mask = ctx.input(i);
  if (mask.dtype != DType::bool_) {
    throw DTypeError(std::string(ctx.name()) + ": the mask must be bool, not " +
                     std::string(name(mask.dtype)));
  }
  if (!fits_first_axes(mask.shape, x.shape)) {
    throw IndexError(std::string(ctx.name()) + ": mask of shape " + to_string(mask.shape) +
                     " does not match the first axes of shape " + to_string(x.shape));
  }
  Shape rest;
  for (int axis = mask.rank(); axis < x.rank(); ++axis) rest.push_back(x.shape[axis]);
  return rest;
}

void infer_mask_select(InferContext& ctx) {
  Shape shape = rest_behind_mask(ctx, 1);
  shape.insert(0, selected_count(ctx, ctx.input(1).numel()));
  ctx.set_contiguous(0, shape, ctx.input(0).dtype);
}

void infer_mask_assign(InferContext& ctx) {
  const Shape& shape = ctx.input(0).shape;
  if (ctx.input(2).dtype != DType::bool_) {
    throw DTypeError("mask_assign: the mask must be bool, not " + std::string(name(ctx.input(2).dtype)));
  }
  for (std::size_t i : {1, 2}) {
    if (broadcast_shapes(ctx.name(), ctx.input(i).shape, shape) == shape) continue;
    throw ShapeError("mask_assign: " + std::string(i == 1 ? "value" : "mask") + " of shape " +
                     to_string(ctx.input(i).shape) + " does not broadcast to shape " + to_string(shape));
  }
  ctx.cast_input(1, ctx.input(0).dtype);
  ctx.set_contiguous(0, shape, ctx.input(0).dtype);
}

void infer_mask_scatter(InferContext& ctx) {
  const Shape rest = rest_behind_mask(ctx, 2);
  const Shape& value = ctx.input(1).shape;
  bool fits = value.size() == rest.size() + 1;
  for (std::size_t axis = 0; fits && axis < rest.size(); ++axis) {
    fits = value[axis + 1] == 1 || value[axis + 1] == rest[axis];
  }
  if (!fits) {
    throw ShapeError(std::string(ctx.name()) + ": value of shape " + to_string(value) +
                     " does not broadcast to rows of shape " + to_string(rest) + ", one for each place");
  }
  const std::int64_t places = ctx.input(2).numel();
  if (value[0] > places) {
    throw ShapeError(std::string(ctx.name()) + ": value has " + std::to_string(value[0]) +
                     " rows, more than the " + std::to_string(places) + " elements of the mask");
  }
  ctx.cast_input(1, ctx.input(0).dtype);
  ctx.set_contiguous(0, ctx.input(0).shape, ctx.input(0).dtype);
}

Op make_op(std::string name, std::vector<std::string> inputs, void (*infer)(InferContext&),
           const std::string& doc) {
  Op op;
  op.name = std::move(name);
  op.inputs = std::move(inputs);
  op.infer = infer;
  op.ns_per_element = 1.0f;
  op.doc = doc;
  set_indexing_derivative(op);
  return op;
}

}  // namespace

void register_selection(OpRegistry& registry) {
  const AttrSpec count{"count", AttrKind::integer, {}, true};
  Op nonzero =
      make_op("nonzero", {"x"}, infer_nonzero,
              "The positions of the elements of x that are not zero, in C order: one row of int64 for "
              "each axis of x.\n\ncount: how many there are, as count_nonzero says. nan is not zero. "
              "Raises ShapeError for a 0-d x.\n\nArray API standard, searching functions.");
  nonzero.attributes = {count};
  registry.add(std::move(nonzero));
  Op select =
      make_op("mask_select", {"x", "mask"}, infer_mask_select,
              "The elements of x where mask is true, in C order, along one axis that replaces those of "
              "the mask.\n\nWhat x[mask] becomes. mask: bool, of the shape of the first axes of x "
              "(or 0 instead of a size), else IndexError. count: how many places it selects.\n\nArray API "
              "standard, boolean array "
              "indexing.");
  select.attributes = {count};
  registry.add(std::move(select));
  Op assign =
      make_op("mask_assign", {"x", "value", "mask"}, infer_mask_assign,
              "x with the elements where mask is true replaced by those of value.\n\nWhat x[mask] = value "
              "becomes. value and mask (bool) broadcast to the shape of x, value is cast to its dtype.\n\n"
              "NumPy, boolean array indexing.");
  assign.alias_mask = 1;
  assign.ns_per_element = 0.5f;
  registry.add(std::move(assign));
  Op scatter =
      make_op("mask_scatter", {"x", "value", "mask"}, infer_mask_scatter,
              "x with the elements where mask is true replaced by the rows of value in turn.\n\nWhat "
              "x[mask] = value becomes where value has a row for each place. mask: bool, of the shape of "
              "the first axes of x, else IndexError. value is cast to the dtype of x. If it has not as "
              "many rows as the mask selects places, the result fails with ShapeError.\n\nNumPy, boolean "
              "array indexing.");
  scatter.alias_mask = 1;
  registry.add(std::move(scatter));
}

}  // namespace thalweg
