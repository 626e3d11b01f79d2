// elementwise_gradient.cpp: derivatives of the elementwise Ops. Gradients of complex functions are PyTorch's,
// conjugates of Wirtinger's: g times the conjugate of the derivative.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <numbers>
#include <string_view>

#include "ops/derivative.h"

namespace thalweg {
namespace {

const BuiltinOp sign_op("sign");
const BuiltinOp square_op("square");
const BuiltinOp sqrt_op("sqrt");
const BuiltinOp exp_op("exp");
const BuiltinOp log_op("log");
const BuiltinOp sin_op("sin");
const BuiltinOp cos_op("cos");
const BuiltinOp sinh_op("sinh");
const BuiltinOp cosh_op("cosh");
const BuiltinOp erf_op("erf");
const BuiltinOp sigmoid_op("sigmoid");
const BuiltinOp relu_gradient_op("relu_gradient");
const BuiltinOp tanh_gradient_op("tanh_gradient");
const BuiltinOp sigmoid_gradient_op("sigmoid_gradient");
const BuiltinOp silu_gradient_op("silu_gradient");
const BuiltinOp gelu_gradient_op("gelu_gradient");
const BuiltinOp abs_op("abs");
const BuiltinOp real_op("real");
const BuiltinOp pow_op("pow");
const BuiltinOp equal_op("equal");
const BuiltinOp less_op("less");
const BuiltinOp greater_op("greater");
const BuiltinOp less_equal_op("less_equal");
const BuiltinOp greater_equal_op("greater_equal");
const BuiltinOp logical_and_op("logical_and");
const BuiltinOp logical_or_op("logical_or");
const BuiltinOp floor_divide_op("floor_divide");

/// x + value.
Tensor plus(const GradientContext& ctx, const Tensor& x, double value) {
  return ctx.add(x, ctx.number(value, x));
}
/// value - x.
Tensor from(const GradientContext& ctx, double value, const Tensor& x) {
  return ctx.subtract(ctx.number(value, x), x);
}
Tensor square(const GradientContext& ctx, const Tensor& x) { return ctx.call(square_op, x); }
/// The conjugate of input or output, which most derivatives multiply by.
Tensor x_of(const GradientContext& ctx) { return ctx.conj(ctx.input(0)); }
Tensor y_of(const GradientContext& ctx) { return ctx.conj(ctx.output()); }
void multiply_by(GradientContext& ctx, const Tensor& factor) { ctx.set(0, ctx.multiply(ctx.grad(), factor)); }
void divide_by(GradientContext& ctx, const Tensor& divisor) { ctx.set(0, ctx.divide(ctx.grad(), divisor)); }

// --- one input
// ------------------------------------------------------------------------------------------------------

void pass(GradientContext& ctx) { ctx.set(0, ctx.grad()); }
void negate(GradientContext& ctx) { ctx.set(0, ctx.negative(ctx.grad())); }
void zero(GradientContext& ctx) {
  for (std::size_t i = 0; i < ctx.input_count(); ++i) {
    if (ctx.needs(i)) ctx.set(i, ctx.zeros(ctx.input_meta(i)));
  }
}
void conjugate(GradientContext& ctx) { ctx.set(0, ctx.conj(ctx.grad())); }
void abs_gradient(GradientContext& ctx) { multiply_by(ctx, ctx.call(sign_op, ctx.input(0))); }

/// Of y = x / |x|: what of g is across y, over |x|; 0 at 0. Real signs are constant.
void sign_gradient(GradientContext& ctx) {
  if (!is_complex(ctx.output_meta().dtype)) return zero(ctx);
  const Tensor x = ctx.input(0);
  const Tensor y = ctx.call(sign_op, x);
  const Tensor along = ctx.multiply(y, ctx.call(real_op, ctx.multiply(ctx.conj(y), ctx.grad())));
  const Tensor across = ctx.divide(ctx.subtract(ctx.grad(), along), ctx.call(abs_op, x));
  const Tensor none = ctx.number(0, across);
  ctx.set(0, ctx.where(ctx.call(equal_op, x, none), none, across));
}

void square_gradient(GradientContext& ctx) { multiply_by(ctx, ctx.scale(x_of(ctx), 2)); }
void reciprocal_gradient(GradientContext& ctx) { multiply_by(ctx, ctx.negative(square(ctx, y_of(ctx)))); }
void sqrt_gradient(GradientContext& ctx) { divide_by(ctx, ctx.scale(y_of(ctx), 2)); }
void exp_gradient(GradientContext& ctx) { multiply_by(ctx, y_of(ctx)); }
void expm1_gradient(GradientContext& ctx) { multiply_by(ctx, plus(ctx, y_of(ctx), 1)); }
void log_gradient(GradientContext& ctx) { divide_by(ctx, x_of(ctx)); }
void log1p_gradient(GradientContext& ctx) { divide_by(ctx, plus(ctx, x_of(ctx), 1)); }
void log2_gradient(GradientContext& ctx) { divide_by(ctx, ctx.scale(x_of(ctx), std::numbers::ln2)); }
void log10_gradient(GradientContext& ctx) { divide_by(ctx, ctx.scale(x_of(ctx), std::numbers::ln10)); }
void sin_gradient(GradientContext& ctx) { multiply_by(ctx, ctx.conj(ctx.call(cos_op, ctx.input(0)))); }
void cos_gradient(GradientContext& ctx) {
  multiply_by(ctx, ctx.negative(ctx.conj(ctx.call(sin_op, ctx.input(0)))));
}
void tan_gradient(GradientContext& ctx) { multiply_by(ctx, plus(ctx, square(ctx, y_of(ctx)), 1)); }
Tensor asin_slope(const GradientContext& ctx) {
  return ctx.conj(ctx.call(sqrt_op, from(ctx, 1, square(ctx, ctx.input(0)))));
}
void asin_gradient(GradientContext& ctx) { divide_by(ctx, asin_slope(ctx)); }
void acos_gradient(GradientContext& ctx) { divide_by(ctx, ctx.negative(asin_slope(ctx))); }
void atan_gradient(GradientContext& ctx) { divide_by(ctx, plus(ctx, square(ctx, x_of(ctx)), 1)); }
void sinh_gradient(GradientContext& ctx) { multiply_by(ctx, ctx.conj(ctx.call(cosh_op, ctx.input(0)))); }
void cosh_gradient(GradientContext& ctx) { multiply_by(ctx, ctx.conj(ctx.call(sinh_op, ctx.input(0)))); }
void tanh_gradient(GradientContext& ctx) {
  if (is_complex(ctx.output_meta().dtype)) return multiply_by(ctx, from(ctx, 1, square(ctx, y_of(ctx))));
  ctx.set(0, ctx.call(tanh_gradient_op, ctx.grad(), ctx.output()));
}
void asinh_gradient(GradientContext& ctx) {
  divide_by(ctx, ctx.conj(ctx.call(sqrt_op, plus(ctx, square(ctx, ctx.input(0)), 1))));
}
/// Two roots, as one root of x * x - 1 has another branch where the real part is negative.
void acosh_gradient(GradientContext& ctx) {
  const Tensor x = ctx.input(0);
  const Tensor below = ctx.call(sqrt_op, plus(ctx, x, -1));
  divide_by(ctx, ctx.conj(ctx.multiply(below, ctx.call(sqrt_op, plus(ctx, x, 1)))));
}
void atanh_gradient(GradientContext& ctx) { divide_by(ctx, from(ctx, 1, square(ctx, x_of(ctx)))); }
/// 2 / sqrt(pi) * exp(-x * x).
Tensor erf_slope(const GradientContext& ctx) {
  const Tensor bell = ctx.call(exp_op, ctx.negative(square(ctx, ctx.input(0))));
  return ctx.scale(bell, 2 * std::numbers::inv_sqrtpi);
}
void erf_gradient(GradientContext& ctx) { multiply_by(ctx, erf_slope(ctx)); }
void erfc_gradient(GradientContext& ctx) { multiply_by(ctx, ctx.negative(erf_slope(ctx))); }
void relu_gradient(GradientContext& ctx) { ctx.set(0, ctx.call(relu_gradient_op, ctx.grad(), ctx.output())); }
void sigmoid_gradient(GradientContext& ctx) {
  ctx.set(0, ctx.call(sigmoid_gradient_op, ctx.grad(), ctx.output()));
}
void silu_gradient(GradientContext& ctx) { ctx.set(0, ctx.call(silu_gradient_op, ctx.grad(), ctx.input(0))); }
void gelu_gradient(GradientContext& ctx) { ctx.set(0, ctx.call(gelu_gradient_op, ctx.grad(), ctx.input(0))); }

// --- gradients of functions: of x1 times a slope f'(x2)
// -----------------------------------------------------------------------------------------------------------

/// Of the incoming gradient by `op` itself, of x2 by `curvature`, f''(x2).
void slope_gradient(GradientContext& ctx, const BuiltinOp& op,
                    Tensor (*curvature)(const GradientContext&, const Tensor&)) {
  if (ctx.needs(0)) ctx.set(0, ctx.call(op, ctx.grad(), ctx.input(1)));
  if (!ctx.needs(1)) return;
  ctx.set(1, ctx.multiply(ctx.multiply(ctx.grad(), ctx.input(0)), curvature(ctx, ctx.input(1))));
}
void relu_gradient_gradient(GradientContext& ctx) {
  if (ctx.needs(0)) ctx.set(0, ctx.call(relu_gradient_op, ctx.grad(), ctx.input(1)));
  if (ctx.needs(1)) ctx.set(1, ctx.zeros(ctx.input_meta(1)));
}
void tanh_gradient_gradient(GradientContext& ctx) {
  slope_gradient(ctx, tanh_gradient_op,
                 [](const GradientContext& c, const Tensor& y) { return c.scale(y, -2); });
}
void sigmoid_gradient_gradient(GradientContext& ctx) {
  slope_gradient(ctx, sigmoid_gradient_op,
                 [](const GradientContext& c, const Tensor& y) { return from(c, 1, c.scale(y, 2)); });
}
/// s (1 - s) (2 + x (1 - 2 s)) with s = sigmoid(x).
void silu_gradient_gradient(GradientContext& ctx) {
  slope_gradient(ctx, silu_gradient_op, [](const GradientContext& c, const Tensor& x) {
    const Tensor s = c.call(sigmoid_op, x);
    const Tensor turn = plus(c, c.multiply(x, from(c, 1, c.scale(s, 2))), 2);
    return c.multiply(c.multiply(s, from(c, 1, s)), turn);
  });
}
/// (2 - x x) exp(-x x / 2) / sqrt(2 pi).
void gelu_gradient_gradient(GradientContext& ctx) {
  slope_gradient(ctx, gelu_gradient_op, [](const GradientContext& c, const Tensor& x) {
    const Tensor squares = square(c, x);
    const Tensor bell =
        c.scale(c.call(exp_op, c.scale(squares, -0.5)), std::numbers::inv_sqrtpi * std::numbers::sqrt2 / 2);
    return c.multiply(from(c, 2, squares), bell);
  });
}

// --- two inputs
// -----------------------------------------------------------------------------------------------------

void add_gradient(GradientContext& ctx) {
  if (ctx.needs(0)) ctx.set(0, ctx.grad());
  if (ctx.needs(1)) ctx.set(1, ctx.grad());
}
void subtract_gradient(GradientContext& ctx) {
  if (ctx.needs(0)) ctx.set(0, ctx.grad());
  if (ctx.needs(1)) ctx.set(1, ctx.negative(ctx.grad()));
}
void multiply_gradient(GradientContext& ctx) {
  if (ctx.needs(0)) ctx.set(0, ctx.multiply(ctx.grad(), ctx.conj(ctx.input(1))));
  if (ctx.needs(1)) ctx.set(1, ctx.multiply(ctx.grad(), ctx.conj(ctx.input(0))));
}
void divide_gradient(GradientContext& ctx) {
  const Tensor share = ctx.divide(ctx.grad(), ctx.conj(ctx.input(1)));
  if (ctx.needs(0)) ctx.set(0, share);
  if (ctx.needs(1)) ctx.set(1, ctx.negative(ctx.multiply(share, y_of(ctx))));
}
void remainder_gradient(GradientContext& ctx) {
  if (ctx.needs(0)) ctx.set(0, ctx.grad());
  if (!ctx.needs(1)) return;
  const Tensor quotient = ctx.call(floor_divide_op, ctx.input(0), ctx.input(1));
  ctx.set(1, ctx.negative(ctx.multiply(ctx.grad(), quotient)));
}

/// The power rule gives 0 where the exponent is 0, and the rule of the exponent 0 where the base is.
void pow_gradient(GradientContext& ctx) {
  const Tensor base = ctx.input(0);
  const Tensor exponent = ctx.input(1);
  const Tensor& g = ctx.grad();
  const Tensor none = ctx.number(0, g);
  if (ctx.needs(0)) {
    const Tensor lower = ctx.call(pow_op, base, plus(ctx, exponent, -1));
    const Tensor slope = ctx.multiply(g, ctx.conj(ctx.multiply(exponent, lower)));
    ctx.set(0, ctx.where(ctx.call(equal_op, exponent, ctx.number(0, exponent)), none, slope));
  }
  if (ctx.needs(1)) {
    const Tensor slope = ctx.multiply(g, ctx.conj(ctx.multiply(ctx.output(), ctx.call(log_op, base))));
    const Tensor size = is_complex(exponent.dtype()) ? ctx.call(real_op, exponent) : exponent;
    const Tensor flat = ctx.call(logical_and_op, ctx.call(equal_op, base, ctx.number(0, base)),
                                 ctx.call(greater_equal_op, size, ctx.number(0, size)));
    ctx.set(1, ctx.where(flat, none, slope));
  }
}

/// All to the input that won, half to each of two equal ones.
void extremum_gradient(GradientContext& ctx, const BuiltinOp& first_loses, const BuiltinOp& second_loses) {
  const Tensor a = ctx.input(0);
  const Tensor b = ctx.input(1);
  const Tensor none = ctx.number(0, ctx.grad());
  const Tensor share = ctx.where(ctx.call(equal_op, a, b), ctx.scale(ctx.grad(), 0.5), ctx.grad());
  if (ctx.needs(0)) ctx.set(0, ctx.where(ctx.call(first_loses, a, b), none, share));
  if (ctx.needs(1)) ctx.set(1, ctx.where(ctx.call(second_loses, a, b), none, share));
}
void maximum_gradient(GradientContext& ctx) { extremum_gradient(ctx, less_op, greater_op); }
void minimum_gradient(GradientContext& ctx) { extremum_gradient(ctx, greater_op, less_op); }

void copysign_gradient(GradientContext& ctx) {
  if (ctx.needs(1)) ctx.set(1, ctx.zeros(ctx.input_meta(1)));
  if (!ctx.needs(0)) return;
  const Tensor x = ctx.input(0);
  const Tensor none = ctx.number(0, x);
  const Tensor turned = ctx.where(ctx.call(equal_op, x, none), none, ctx.divide(ctx.output(), x));
  ctx.set(0, ctx.multiply(ctx.grad(), turned));
}
void atan2_gradient(GradientContext& ctx) {
  const Tensor a = ctx.input(0);
  const Tensor b = ctx.input(1);
  // At the origin, and where the squares vanish, the gradient is 0.
  const Tensor size = ctx.add(square(ctx, a), square(ctx, b));
  const Tensor none = ctx.number(0, size);
  const Tensor share = ctx.where(ctx.call(equal_op, size, none), none, ctx.divide(ctx.grad(), size));
  if (ctx.needs(0)) ctx.set(0, ctx.multiply(share, b));
  if (ctx.needs(1)) ctx.set(1, ctx.negative(ctx.multiply(share, a)));
}
void hypot_gradient(GradientContext& ctx) {
  for (std::size_t i : {0, 1}) {
    if (ctx.needs(i)) ctx.set(i, ctx.multiply(ctx.grad(), ctx.divide(ctx.input(i), ctx.output())));
  }
}
/// Of the larger input's sigmoid of the difference; half of equal ones, infinities among them.
void logaddexp_gradient(GradientContext& ctx) {
  const Tensor a = ctx.input(0);
  const Tensor b = ctx.input(1);
  const Tensor none = ctx.number(0, ctx.grad());
  const Tensor difference = ctx.where(ctx.call(equal_op, a, b), none, ctx.subtract(a, b));
  if (ctx.needs(0)) ctx.set(0, ctx.multiply(ctx.grad(), ctx.call(sigmoid_op, difference)));
  if (ctx.needs(1)) ctx.set(1, ctx.multiply(ctx.grad(), ctx.call(sigmoid_op, ctx.negative(difference))));
}

// --- three inputs
// ---------------------------------------------------------------------------------------------------

void where_gradient(GradientContext& ctx) {
  const Tensor none = ctx.number(0, ctx.grad());
  if (ctx.needs(1)) ctx.set(1, ctx.where(ctx.input(0), ctx.grad(), none));
  if (ctx.needs(2)) ctx.set(2, ctx.where(ctx.input(0), none, ctx.grad()));
}

/// To x inside the bounds, which belong to the inside; else to the bound that took its place.
void clip_gradient(GradientContext& ctx) {
  const Tensor x = ctx.input(0);
  const Tensor low = ctx.input(1);
  const Tensor high = ctx.input(2);
  const Tensor& g = ctx.grad();
  const Tensor none = ctx.number(0, g);
  if (ctx.needs(0)) {
    ctx.set(0, ctx.where(ctx.call(logical_and_op, ctx.call(greater_equal_op, x, low),
                                  ctx.call(less_equal_op, x, high)),
                         g, none));
  }
  if (ctx.needs(1)) {
    ctx.set(1, ctx.where(ctx.call(logical_and_op, ctx.call(less_op, x, low), ctx.call(less_op, low, high)), g,
                         none));
  }
  if (ctx.needs(2)) {
    ctx.set(2, ctx.where(ctx.call(logical_or_op, ctx.call(greater_op, x, high), ctx.call(less_op, high, low)),
                         g, none));
  }
}

const std::vector<SavedValue> kInput = {save_input(0)};
const std::vector<SavedValue> kOutput = {save_output(0)};
const std::vector<SavedValue> kBoth = {save_input(0), save_input(1)};
const std::vector<SavedValue> kSlope = {save_input(0, for_input(1)), save_input(1)};

const Derivative kDerivatives[] = {
    {"negative", negate},
    {"positive", pass},
    {"abs", abs_gradient, kInput},
    {"sign", sign_gradient, kInput},
    {"conj", conjugate},
    {"square", square_gradient, kInput},
    {"reciprocal", reciprocal_gradient, kOutput},
    {"floor", zero},
    {"ceil", zero},
    {"trunc", zero},
    {"round", zero},
    {"sqrt", sqrt_gradient, kOutput},
    {"exp", exp_gradient, kOutput},
    {"expm1", expm1_gradient, kOutput},
    {"log", log_gradient, kInput},
    {"log1p", log1p_gradient, kInput},
    {"log2", log2_gradient, kInput},
    {"log10", log10_gradient, kInput},
    {"sin", sin_gradient, kInput},
    {"cos", cos_gradient, kInput},
    {"tan", tan_gradient, kOutput},
    {"asin", asin_gradient, kInput},
    {"acos", acos_gradient, kInput},
    {"atan", atan_gradient, kInput},
    {"sinh", sinh_gradient, kInput},
    {"cosh", cosh_gradient, kInput},
    {"tanh", tanh_gradient, kOutput},
    {"asinh", asinh_gradient, kInput},
    {"acosh", acosh_gradient, kInput},
    {"atanh", atanh_gradient, kInput},
    {"erf", erf_gradient, kInput},
    {"erfc", erfc_gradient, kInput},
    {"sigmoid", sigmoid_gradient, kOutput},
    {"silu", silu_gradient, kInput},
    {"gelu", gelu_gradient, kInput},
    {"relu", relu_gradient, kOutput},
    {"relu_gradient", relu_gradient_gradient, {save_input(1)}},
    {"tanh_gradient", tanh_gradient_gradient, kSlope},
    {"sigmoid_gradient", sigmoid_gradient_gradient, kSlope},
    {"silu_gradient", silu_gradient_gradient, kSlope},
    {"gelu_gradient", gelu_gradient_gradient, kSlope},
    {"add", add_gradient},
    {"subtract", subtract_gradient},
    {"multiply", multiply_gradient, {save_input(0, for_input(1)), save_input(1, for_input(0))}},
    {"divide", divide_gradient, {save_input(1), save_output(0, for_input(1))}},
    {"floor_divide", zero},
    {"remainder", remainder_gradient, {save_input(0, for_input(1)), save_input(1, for_input(1))}},
    {"pow", pow_gradient, {save_input(0), save_input(1), save_output(0, for_input(1))}},
    {"minimum", minimum_gradient, kBoth},
    {"maximum", maximum_gradient, kBoth},
    {"copysign", copysign_gradient, {save_input(0, for_input(0)), save_output(0, for_input(0))}},
    {"atan2", atan2_gradient, kBoth},
    {"hypot", hypot_gradient, {save_input(0, for_input(0)), save_input(1, for_input(1)), save_output(0)}},
    {"logaddexp", logaddexp_gradient, kBoth},
    {"where", where_gradient, {save_input(0)}},
    {"clip", clip_gradient, {save_input(0), save_input(1), save_input(2)}},
};

/// Bits and truth values, and what steps from one floating value to the next.
constexpr std::string_view kNotDifferentiable[] = {
    "logical_not",
    "bitwise_invert",
    "isnan",
    "isinf",
    "isfinite",
    "signbit",
    "nextafter",
    "logical_and",
    "logical_or",
    "logical_xor",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "bitwise_left_shift",
    "bitwise_right_shift",
    "equal",
    "not_equal",
    "less",
    "less_equal",
    "greater",
    "greater_equal",
};

}  // namespace

void set_elementwise_derivative(Op& op) {
  set_from(kDerivatives, op);
  if (std::find(std::begin(kNotDifferentiable), std::end(kNotDifferentiable), op.name) !=
      std::end(kNotDifferentiable)) {
    op.not_differentiable = kAllOutputs;
  }
}

}  // namespace thalweg
