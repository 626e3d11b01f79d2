// normalization_gradient.cpp: derivatives of softmax, its logarithm and the norms over last axes.
#include "ops/derivative.h"

namespace thalweg {
namespace {

const BuiltinOp exp_op("exp");
const BuiltinOp mean_op("mean");
const BuiltinOp var_op("var");
const BuiltinOp sqrt_op("sqrt");
const BuiltinOp square_op("square");
const BuiltinOp astype_op("astype");

/// x in float32 if it is half: what backward casts the gradient to, it rounds once, as the kernels do.
Tensor widened(const GradientContext& ctx, const Tensor& x) {
  return is_half(x.dtype()) ? ctx.call(astype_op, x, attributes_of(DType::float32)) : x;
}

Dims axis_of(const GradientContext& ctx) {
  return {normalize_axis(ctx.op().name, ctx.attributes().get<std::int64_t>(0), ctx.grad().rank())};
}

void softmax_gradient(GradientContext& ctx) {
  const Tensor y = widened(ctx, ctx.output());
  const Tensor weighted = ctx.multiply(widened(ctx, ctx.grad()), y);
  ctx.set(0, ctx.subtract(weighted, ctx.multiply(y, ctx.sum_keeping(weighted, axis_of(ctx)))));
}

void log_softmax_gradient(GradientContext& ctx) {
  const Tensor g = widened(ctx, ctx.grad());
  const Tensor total = ctx.sum_keeping(g, axis_of(ctx));
  ctx.set(0, ctx.subtract(g, ctx.multiply(ctx.call(exp_op, widened(ctx, ctx.output())), total)));
}

/// The last axes, counted from the end.
Dims norm_axes(const GradientContext& ctx) {
  Dims axes;
  for (std::int64_t axis = -ctx.attributes().get<std::int64_t>(0); axis < 0; ++axis) axes.push_back(axis);
  return axes;
}

Tensor mean_keeping(const GradientContext& ctx, const Tensor& x) {
  return ctx.call(mean_op, x, attributes_of(norm_axes(ctx), true));
}

/// The gradients of x (normalised: `unit`, by the factor `inverse`) and the parameters. What a norm takes out
/// of x, the part along `unit` and with `centred` the mean, it takes out of the gradient too.
void norm_gradient(GradientContext& ctx, const Tensor& unit, const Tensor& inverse, bool centred) {
  const Tensor g = widened(ctx, ctx.grad());
  if (ctx.needs(0)) {
    const Tensor scaled = ctx.input_count() > 1 ? ctx.multiply(g, ctx.input(1)) : g;
    Tensor rest = ctx.subtract(scaled, ctx.multiply(unit, mean_keeping(ctx, ctx.multiply(scaled, unit))));
    if (centred) rest = ctx.subtract(rest, mean_keeping(ctx, scaled));
    ctx.set(0, ctx.multiply(rest, inverse));
  }
  if (ctx.input_count() > 1 && ctx.needs(1)) ctx.set(1, ctx.multiply(g, unit));
  if (ctx.input_count() > 2 && ctx.needs(2)) ctx.set(2, g);
}

Tensor inverse_root(const GradientContext& ctx, const Tensor& x) {
  const Tensor shifted = ctx.add(x, ctx.number(ctx.attributes().get<double>(1), x));
  return ctx.divide(ctx.number(1, x), ctx.call(sqrt_op, shifted));
}

void layer_norm_gradient(GradientContext& ctx) {
  if (!ctx.needs(0) && !ctx.needs(1)) return ctx.set(2, ctx.grad());
  const Tensor x = widened(ctx, ctx.input(0));
  const Tensor inverse = inverse_root(ctx, ctx.call(var_op, x, attributes_of(norm_axes(ctx), true)));
  const Tensor unit = ctx.multiply(ctx.subtract(x, mean_keeping(ctx, x)), inverse);
  norm_gradient(ctx, unit, inverse, true);
}

void rms_norm_gradient(GradientContext& ctx) {
  const Tensor x = widened(ctx, ctx.input(0));
  const Tensor inverse = inverse_root(ctx, mean_keeping(ctx, ctx.call(square_op, x)));
  norm_gradient(ctx, ctx.multiply(x, inverse), inverse, false);
}

const Derivative kDerivatives[] = {
    {"softmax", softmax_gradient, {save_output(0)}},
    {"log_softmax", log_softmax_gradient, {save_output(0)}},
    {"layer_norm",
     layer_norm_gradient,
     {save_input(0, for_input(0) | for_input(1)), save_input(1, for_input(0))}},
    {"rms_norm", rms_norm_gradient, {save_input(0), save_input(1, for_input(0))}},
};

}  // namespace

void set_normalization_derivative(Op& op) { set_from(kDerivatives, op); }

}  // namespace thalweg
