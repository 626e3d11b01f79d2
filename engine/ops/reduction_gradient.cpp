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
const BuiltinOp concat_op("concat");

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

/// `count` elements along `axis` from `start` on.
Tensor part_of(const GradientContext& ctx, const Tensor& x, std::size_t axis, std::int64_t start,
               std::int64_t count) {
  Dims sizes = x.shape();
  if (sizes[axis] == count) return x;
  Dims starts(sizes.size(), 0);
  starts[axis] = start;
  sizes[axis] = count;
  return ctx.call(slice_op, x, attributes_of(starts, Dims(sizes.size(), 1), sizes));
}

Tensor flipped(const GradientContext& ctx, const Tensor& x, std::int64_t axis) {
  return ctx.call(flip_op, x, attributes_of(Dims{axis}));
}

/// For each element along `axis` the product of those before it, in `dtype`.
Tensor product_before(const GradientContext& ctx, const Tensor& x, std::size_t axis, DType dtype) {
  const Tensor all =
      ctx.call(cumulative_prod_op, x, attributes_of(static_cast<std::int64_t>(axis), dtype, true));
  return part_of(ctx, all, axis, 0, x.shape()[axis]);
}

/// For each element along the last axis the product of the others, so that zeros are no harm: those before
/// times those behind. Where the derivative is recorded, as products of all with 1 in the element's own
/// place, as they have derivatives themselves.
Tensor product_of_others(const GradientContext& ctx, const Tensor& x) {
  if (!is_grad_enabled()) {
    const std::size_t last = x.shape().size() - 1;
    const Tensor behind = flipped(ctx, product_before(ctx, flipped(ctx, x, -1), last, x.dtype()), -1);
    return ctx.multiply(product_before(ctx, x, last, x.dtype()), behind);
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

/// The axis of a scan.
std::size_t scanned_axis(const GradientContext& ctx) {
  const std::int64_t axis = ctx.attributes().get<std::int64_t>(0);
  return static_cast<std::size_t>(normalize_axis(ctx.op().name, axis, ctx.grad().rank()));
}

/// The gradient of a scan, without that of an initial element in front.
Tensor scanned_grad(const GradientContext& ctx, std::size_t axis) {
  const std::int64_t length = ctx.input_shape(0)[axis];
  return part_of(ctx, ctx.grad(), axis, ctx.grad().shape()[axis] - length, length);
}

/// Each element is in its own sum and all behind it.
void cumulative_sum_gradient(GradientContext& ctx) {
  const std::size_t at = scanned_axis(ctx);
  const auto axis = static_cast<std::int64_t>(at);
  const Tensor g = scanned_grad(ctx, at);
  const Tensor sums = ctx.call(cumulative_sum_op, flipped(ctx, g, axis), attributes_of(axis, g.dtype()));
  ctx.set(0, flipped(ctx, sums, axis));
}

/// The t with t[i] = g[i] + factors[i] * t[i + 1] along `axis`, which has one factor less than gradients. By
/// doubling (Kogge and Stone, A parallel algorithm for the efficient solution of a general class of
/// recurrence equations, 1973): after the step of `reach` each t has the terms of 2 * reach gradients.
Tensor recurrence_from_behind(const GradientContext& ctx, Tensor factors, Tensor t, std::size_t axis) {
  const std::int64_t length = t.shape()[axis];
  for (std::int64_t reach = 1; reach < length; reach *= 2) {
    const std::int64_t open = length - reach;  // those behind have all their terms
    const Tensor more = ctx.multiply(factors, part_of(ctx, t, axis, reach, open));
    const Tensor parts[] = {ctx.add(part_of(ctx, t, axis, 0, open), more),
                            part_of(ctx, t, axis, open, reach)};
    t = ctx.call(concat_op, parts, attributes_of(Dims{static_cast<std::int64_t>(axis)}));
    const std::int64_t left = open - reach;
    if (left > 0) {
      factors = ctx.multiply(part_of(ctx, factors, axis, 0, left), part_of(ctx, factors, axis, reach, left));
    }
  }
  return t;
}

/// Element i goes with the product of those before it into the products g[i] + x[i + 1] (g[i + 1] + …): no
/// division, so that zeros are no harm, and derivatives of any order.
void cumulative_prod_gradient(GradientContext& ctx) {
  const std::size_t axis = scanned_axis(ctx);
  const Tensor g = scanned_grad(ctx, axis);
  const std::int64_t length = g.shape()[axis];
  if (length < 2) return ctx.set(0, g);
  Tensor x = ctx.input(0);
  if (x.dtype() != g.dtype()) x = ctx.call(astype_op, x, attributes_of(g.dtype()));
  const Tensor before = ctx.conj(product_before(ctx, x, axis, g.dtype()));
  const Tensor factors = ctx.conj(part_of(ctx, x, axis, 1, length - 1));
  ctx.set(0, ctx.multiply(before, recurrence_from_behind(ctx, factors, g, axis)));
}

const Derivative kDerivatives[] = {
    {"cumulative_sum", cumulative_sum_gradient},
    {"cumulative_prod", cumulative_prod_gradient, {save_input(0)}},
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
