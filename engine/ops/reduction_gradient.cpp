// reduction_gradient.cpp: derivatives of the Ops that combine elements along axes, scans and softmax among
// them.
#include <algorithm>
#include <iterator>
#include <string_view>

#include <thalweg/autograd.h>

#include "ops/derivative.h"

namespace thalweg {
namespace {

const BuiltinOp equal_op("equal");
const BuiltinOp astype_op("astype");
const BuiltinOp mean_op("mean");
const BuiltinOp cumulative_prod_op("cumulative_prod");
const BuiltinOp cumulative_sum_op("cumulative_sum");
const BuiltinOp prod_op("prod");
const BuiltinOp arange_op("arange");
const BuiltinOp flip_op("flip");
const BuiltinOp slice_op("slice");
const BuiltinOp permute_dims_op("permute_dims");

/// The axes that the reduction went over, from the front.
Dims reduced_axes(const GradientContext& ctx) {
  const int rank = static_cast<int>(ctx.input_shape(0).size());
  Dims axes;
  if (ctx.attributes().has(0)) {
    for (int axis : normalize_axes(ctx.op().name, ctx.attributes().get<Dims>(0), rank)) axes.push_back(axis);
    std::sort(axes.begin(), axes.end());
  } else {
    for (int axis = 0; axis < rank; ++axis) axes.push_back(axis);
  }
  return axes;
}

/// The input's shape with the reduced axes of size 1.
Shape kept_shape(const GradientContext& ctx) {
  Shape shape = ctx.input_shape(0);
  for (std::int64_t axis : reduced_axes(ctx)) shape[static_cast<std::size_t>(axis)] = 1;
  return shape;
}

/// How many elements went into each output.
std::int64_t reduced_count(const GradientContext& ctx) {
  std::int64_t count = 1;
  for (std::int64_t axis : reduced_axes(ctx)) count *= ctx.input_shape(0)[static_cast<std::size_t>(axis)];
  return count;
}

Tensor kept(const GradientContext& ctx, const Tensor& x) { return ctx.reshape(x, kept_shape(ctx)); }

void sum_gradient(GradientContext& ctx) {
  ctx.set(0, ctx.broadcast_to(kept(ctx, ctx.grad()), ctx.input_shape(0)));
}

void mean_gradient(GradientContext& ctx) {
  const Tensor count = ctx.number(static_cast<double>(reduced_count(ctx)), ctx.grad());
  ctx.set(0, ctx.broadcast_to(kept(ctx, ctx.divide(ctx.grad(), count)), ctx.input_shape(0)));
}

/// In equal parts to the elements that are the largest (or smallest).
void extremum_gradient(GradientContext& ctx) {
  const Tensor hit = ctx.call(astype_op, ctx.call(equal_op, ctx.input(0), kept(ctx, ctx.output())),
                              attributes_of(ctx.grad().dtype()));
  const Tensor share = ctx.divide(kept(ctx, ctx.grad()), ctx.sum_keeping(hit, reduced_axes(ctx)));
  ctx.set(0, ctx.multiply(hit, share));
}

/// What the divisor of var was.
double degrees(const GradientContext& ctx) {
  return std::max(0.0, static_cast<double>(reduced_count(ctx)) - ctx.attributes().get_or<double>(2, 0.0));
}

Tensor deviation(const GradientContext& ctx) {
  const Tensor x = ctx.input(0);
  return ctx.subtract(x, ctx.call(mean_op, x, attributes_of(reduced_axes(ctx), true)));
}

void var_gradient(GradientContext& ctx) {
  const Tensor share = ctx.divide(ctx.scale(kept(ctx, ctx.grad()), 2), ctx.number(degrees(ctx), ctx.grad()));
  ctx.set(0, ctx.multiply(deviation(ctx), share));
}

/// 0 where all elements are equal.
void std_gradient(GradientContext& ctx) {
  const Tensor y = kept(ctx, ctx.output());
  const Tensor none = ctx.number(0, y);
  const Tensor share = ctx.divide(kept(ctx, ctx.grad()), ctx.scale(y, degrees(ctx)));
  ctx.set(0, ctx.multiply(deviation(ctx), ctx.where(ctx.call(equal_op, y, none), none, share)));
}

/// All but the last (or first) element along the last axis.
Tensor without_one(const GradientContext& ctx, const Tensor& x, std::int64_t start) {
  Dims starts(x.shape().size(), 0);
  Dims sizes = x.shape();
  starts.back() = start;
  --sizes.back();
  return ctx.call(slice_op, x, attributes_of(starts, Dims(sizes.size(), 1), sizes));
}

Tensor flipped(const GradientContext& ctx, const Tensor& x, std::int64_t axis) {
  return ctx.call(flip_op, x, attributes_of(Dims{axis}));
}

/// For each element along the last axis the product of those before it.
Tensor product_before(const GradientContext& ctx, const Tensor& x) {
  const Tensor all = ctx.call(cumulative_prod_op, x, attributes_of(std::int64_t{-1}, x.dtype(), true));
  return without_one(ctx, all, 0);
}

/// For each element along the last axis the product of the others, so that zeros are no harm: those before
/// times those behind. Where the derivative is recorded, as products of all with 1 in the element's own
/// place, as they have derivatives themselves.
Tensor product_of_others(const GradientContext& ctx, const Tensor& x) {
  if (!is_grad_enabled()) {
    const Tensor behind = flipped(ctx, product_before(ctx, flipped(ctx, x, -1)), -1);
    return ctx.multiply(product_before(ctx, x), behind);
  }
  const std::int64_t count = x.shape().back();
  Shape rows = x.shape();
  rows.insert(rows.size() - 1, 1);
  const Tensor place = ctx.call(arange_op, std::span<const Tensor>(),
                                attributes_of(Scalar(std::int64_t{0}), Scalar(count), Scalar(std::int64_t{1}),
                                              DType::int64, x.device()));
  const Tensor own = ctx.call(equal_op, place, ctx.reshape(place, {count, 1}));
  const Tensor others = ctx.where(own, ctx.number(1, x), ctx.reshape(x, rows));
  return ctx.call(prod_op, others, attributes_of(Dims{-1}));
}

void prod_gradient(GradientContext& ctx) {
  const Dims axes = reduced_axes(ctx);
  const Shape& shape = ctx.input_shape(0);
  Dims order;
  Shape rest;
  for (std::int64_t axis = 0; axis < static_cast<std::int64_t>(shape.size()); ++axis) {
    if (std::find(axes.begin(), axes.end(), axis) != axes.end()) continue;
    order.push_back(axis);
    rest.push_back(shape[static_cast<std::size_t>(axis)]);
  }
  for (std::int64_t axis : axes) order.push_back(axis);
  Tensor x = ctx.input(0);
  if (!shape.empty()) x = ctx.call(permute_dims_op, x, attributes_of(order));
  const Shape ordered = x.shape();
  Shape flat = rest;
  flat.push_back(reduced_count(ctx));
  x = ctx.reshape(x, flat);
  rest.push_back(1);
  const Tensor slope = ctx.conj(product_of_others(ctx, x));
  Tensor gradient = ctx.reshape(ctx.multiply(ctx.reshape(ctx.grad(), rest), slope), ordered);
  if (!shape.empty()) {
    Dims back(order.size(), 0);
    for (std::size_t i = 0; i < order.size(); ++i)
      back[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
    gradient = ctx.call(permute_dims_op, gradient, attributes_of(back));
  }
  ctx.set(0, gradient);
}

/// Each element is in its own sum and all behind it.
void cumulative_sum_gradient(GradientContext& ctx) {
  const std::int64_t axis = ctx.attributes().get<std::int64_t>(0);
  Tensor g = ctx.grad();
  if (g.shape() != ctx.input_shape(0)) {  // a 0 in front
    const auto at = static_cast<std::size_t>(normalize_axis(ctx.op().name, axis, g.rank()));
    Dims starts(g.shape().size(), 0);
    starts[at] = 1;
    g = ctx.call(slice_op, g, attributes_of(starts, Dims(starts.size(), 1), ctx.input_shape(0)));
  }
  const Tensor sums = ctx.call(cumulative_sum_op, flipped(ctx, g, axis), attributes_of(axis, g.dtype()));
  ctx.set(0, flipped(ctx, sums, axis));
}

const Derivative kDerivatives[] = {
    {"cumulative_sum", cumulative_sum_gradient},
    {"sum", sum_gradient},
    {"mean", mean_gradient},
    {"prod", prod_gradient, {save_input(0)}},
    {"max", extremum_gradient, {save_input(0), save_output(0)}},
    {"min", extremum_gradient, {save_input(0), save_output(0)}},
    {"var", var_gradient, {save_input(0)}},
    {"std", std_gradient, {save_input(0), save_output(0)}},
};

constexpr std::string_view kNotDifferentiable[] = {"any", "all", "count_nonzero", "argmax", "argmin"};

}  // namespace

void set_reduction_derivative(Op& op) {
  set_from(kDerivatives, op);
  if (std::find(std::begin(kNotDifferentiable), std::end(kNotDifferentiable), op.name) !=
      std::end(kNotDifferentiable)) {
    op.not_differentiable = kAllOutputs;
  }
}

}  // namespace thalweg
