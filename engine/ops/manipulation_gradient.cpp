// manipulation_gradient.cpp: derivatives of the Ops that rearrange, cast and copy.
#include <algorithm>
#include <complex>
#include <cstdlib>
#include <utility>

#include "ops/derivative.h"

namespace thalweg {
namespace {

const BuiltinOp permute_dims_op("permute_dims");
const BuiltinOp flip_op("flip");
const BuiltinOp slice_op("slice");
const BuiltinOp slice_assign_op("slice_assign");
const BuiltinOp roll_op("roll");
const BuiltinOp to_device_op("to_device");

/// Backward sums a broadcast gradient, casts and takes the real part by itself.
void pass(GradientContext& ctx) { ctx.set(0, ctx.grad()); }

void reshape_gradient(GradientContext& ctx) { ctx.set(0, ctx.reshape(ctx.grad(), ctx.input_shape(0))); }

Dims inverse_of(const Dims& order) {
  Dims inverse(order.size(), 0);
  for (std::size_t i = 0; i < order.size(); ++i)
    inverse[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
  return inverse;
}

void permute_gradient(GradientContext& ctx) {
  if (!ctx.attributes().has(0)) return ctx.set(0, ctx.call(permute_dims_op, ctx.grad()));
  Dims order;
  for (int axis : normalize_axes(ctx.op().name, ctx.attributes().get<Dims>(0), ctx.grad().rank()))
    order.push_back(axis);
  ctx.set(0, ctx.call(permute_dims_op, ctx.grad(), attributes_of(inverse_of(order))));
}

void flip_gradient(GradientContext& ctx) { ctx.set(0, ctx.call(flip_op, ctx.grad(), ctx.attributes())); }

/// Zeros but for the region, where the gradient goes.
void slice_gradient(GradientContext& ctx) {
  ctx.set(0, ctx.call(slice_assign_op, ctx.zeros(ctx.input_meta(0)), ctx.grad(), ctx.attributes()));
}

/// The diagonal is every (columns + 1)-th element of the matrix, written on end.
void diagonal_gradient(GradientContext& ctx) {
  const Shape& shape = ctx.input_shape(0);
  const int rank = static_cast<int>(shape.size());
  const std::int64_t offset = ctx.attributes().get_or<std::int64_t>(0, 0);
  const int row = normalize_axis(ctx.op().name, ctx.attributes().get_or<std::int64_t>(1, 0), rank);
  const int column = normalize_axis(ctx.op().name, ctx.attributes().get_or<std::int64_t>(2, 1), rank);
  Dims order;
  Shape flat;
  for (int axis = 0; axis < rank; ++axis) {
    if (axis == row || axis == column) continue;
    order.push_back(axis);
    flat.push_back(shape[static_cast<std::size_t>(axis)]);
  }
  Shape ordered = flat;
  for (int axis : {row, column}) {
    order.push_back(axis);
    ordered.push_back(shape[static_cast<std::size_t>(axis)]);
  }
  const std::int64_t columns = ordered.back();
  flat.push_back(ordered[ordered.size() - 2] * columns);
  ValueMeta like = ctx.input_meta(0);
  like.shape = flat;
  Dims starts(flat.size(), 0);
  Dims steps(flat.size(), 1);
  if (ctx.grad().shape().back() > 0) starts.back() = offset < 0 ? -offset * columns : offset;
  steps.back() = columns + 1;
  const Tensor filled = ctx.call(slice_assign_op, ctx.zeros(like), ctx.grad(),
                                 attributes_of(starts, steps, ctx.grad().shape()));
  ctx.set(0, ctx.call(permute_dims_op, ctx.reshape(filled, ordered), attributes_of(inverse_of(order))));
}

/// To each array its part; axis None joined them flattened.
void concat_gradient(GradientContext& ctx) {
  const bool flattened = !ctx.attributes().has(0);
  const int axis =
      flattened ? 0 : normalize_axis(ctx.op().name, ctx.attributes().get<Dims>(0)[0], ctx.grad().rank());
  const auto at = static_cast<std::size_t>(axis);
  Dims starts(ctx.grad().shape().size(), 0);
  const Dims steps(starts.size(), 1);
  for (std::size_t i = 0; i < ctx.input_count(); ++i) {
    const Shape& shape = ctx.input_shape(i);
    const std::int64_t length = flattened ? numel(shape) : shape[at];
    if (ctx.needs(i)) {
      const Tensor part =
          ctx.call(slice_op, ctx.grad(), attributes_of(starts, steps, flattened ? Dims{length} : shape));
      ctx.set(i, ctx.reshape(part, shape));
    }
    starts[at] += length;
  }
}

void roll_gradient(GradientContext& ctx) {
  Attributes back = ctx.attributes();
  Dims shifts = back.get<Dims>(0);
  for (std::int64_t& shift : shifts) shift = -shift;
  back[0] = shifts;
  ctx.set(0, ctx.call(roll_op, ctx.grad(), std::move(back)));
}

void to_device_gradient(GradientContext& ctx) {
  const Device from = ctx.input_meta(0).device;
  ctx.set(0,
          ctx.grad().device() == from ? ctx.grad() : ctx.call(to_device_op, ctx.grad(), attributes_of(from)));
}

void imag_gradient(GradientContext& ctx) {
  const Tensor& g = ctx.grad();
  const Tensor i =
      ctx.engine().constant(Scalar(std::complex<double>(0, 1)), complex_dtype(g.dtype()), g.device());
  ctx.set(0, ctx.multiply(g, i));
}

const Derivative kDerivatives[] = {
    {"reshape", reshape_gradient},
    {"permute_dims", permute_gradient},
    {"broadcast_to", pass},
    {"expand_dims", reshape_gradient},
    {"squeeze", reshape_gradient},
    {"flip", flip_gradient},
    {"slice", slice_gradient},
    {"diagonal", diagonal_gradient},
    {"concat", concat_gradient},
    {"roll", roll_gradient},
    {"astype", pass},
    {"contiguous", pass},
    {"to_device", to_device_gradient},
    {"check_nan", pass},
    {"real", pass},
    {"imag", imag_gradient},
};

}  // namespace

void set_manipulation_derivative(Op& op) {
  set_from(kDerivatives, op);
  op.saves_shapes = op.name == "concat";
}

}  // namespace thalweg
