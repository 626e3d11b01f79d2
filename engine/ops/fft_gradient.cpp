// fft_gradient.cpp: derivatives of the Fourier transforms. They are linear: the gradient goes through the
// adjoint, which is the transform in the other direction with the other normalization.
#include "ops/fft_gradient.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "ops/derivative.h"

namespace thalweg {
namespace {

const BuiltinOp fftn_op("fftn");
const BuiltinOp ifftn_op("ifftn");
const BuiltinOp rfftn_op("rfftn");
const BuiltinOp slice_op("slice");
const BuiltinOp slice_assign_op("slice_assign");

/// The transformed axes in the caller's order.
Dims axes_of(const GradientContext& ctx) {
  const int rank = static_cast<int>(ctx.input_shape(0).size());
  const AttrValue& given = ctx.attributes()[1];
  Dims axes;
  if (const auto* axis = std::get_if<std::int64_t>(&given)) {
    axes.push_back(normalize_axis(ctx.op().name, *axis, rank));
  } else if (const auto* several = std::get_if<Dims>(&given)) {
    for (int axis : normalize_axes(ctx.op().name, *several, rank)) axes.push_back(axis);
  } else {
    for (int axis = 0; axis < rank; ++axis) axes.push_back(axis);
  }
  return axes;
}

std::string norm_of(const GradientContext& ctx) { return ctx.attributes().get<std::string>(2); }

std::string other(const std::string& norm) {
  return norm == "backward" ? "forward" : norm == "forward" ? "backward" : norm;
}

Tensor transform(const GradientContext& ctx, const BuiltinOp& op, const Tensor& x, const std::string& norm) {
  return ctx.call(op, x, attributes_of(std::monostate{}, axes_of(ctx), norm));
}

/// x cropped, or with zeros behind, so that it has `shape`.
Tensor fitted(const GradientContext& ctx, const Tensor& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  Shape common = shape;
  for (std::size_t axis = 0; axis < shape.size(); ++axis)
    common[axis] = std::min(shape[axis], x.shape()[axis]);
  const Dims starts(shape.size(), 0);
  const Dims steps(shape.size(), 1);
  const Tensor part = common == x.shape() ? x : ctx.call(slice_op, x, attributes_of(starts, steps, common));
  if (common == shape) return part;
  return ctx.call(slice_assign_op, ctx.zeros({x.dtype(), x.device(), shape}), part,
                  attributes_of(starts, steps, common));
}

/// The length of the transform along its last axis, of which rfft and ihfft give the half.
std::int64_t real_length(const GradientContext& ctx, std::int64_t axis) {
  const AttrValue& given = ctx.attributes()[0];
  if (const auto* n = std::get_if<std::int64_t>(&given)) return *n;
  if (const auto* s = std::get_if<Dims>(&given); s != nullptr && s->back() != -1) return s->back();
  return ctx.input_shape(0)[static_cast<std::size_t>(axis)];
}

/// Of a transform of real numbers: the half spectrum with zeros for the other half, transformed back.
Tensor back_from_half(const GradientContext& ctx, const Tensor& g, const std::string& norm) {
  const std::int64_t last = axes_of(ctx).back();
  Shape whole = g.shape();
  whole[static_cast<std::size_t>(last)] = real_length(ctx, last);
  return fitted(ctx, transform(ctx, ifftn_op, fitted(ctx, g, whole), norm), ctx.input_shape(0));
}

/// Of a transform to real numbers: elements of the half spectrum count twice, but for those that are their
/// own conjugates.
Tensor back_to_half(const GradientContext& ctx, const std::string& norm) {
  const Tensor& g = ctx.grad();
  const auto last = static_cast<std::size_t>(axes_of(ctx).back());
  const Tensor half = transform(ctx, rfftn_op, g, norm);
  const std::int64_t count = half.shape()[last];
  Shape shape(half.shape().size(), 1);
  shape[last] = count;
  Tensor weights = ctx.broadcast_to(ctx.number(2, g), shape);
  const std::int64_t step = g.shape()[last] % 2 == 0 && count > 1 ? count - 1 : count;
  Dims steps(shape.size(), 1);
  Dims sizes(shape.size(), 1);
  steps[last] = step;
  sizes[last] = step < count ? 2 : 1;
  weights = ctx.call(slice_assign_op, weights, ctx.number(1, g),
                     attributes_of(Dims(shape.size(), 0), steps, sizes));
  return fitted(ctx, ctx.multiply(half, weights), ctx.input_shape(0));
}

void fft_gradient(GradientContext& ctx) {
  ctx.set(0, fitted(ctx, transform(ctx, ifftn_op, ctx.grad(), other(norm_of(ctx))), ctx.input_shape(0)));
}
void ifft_gradient(GradientContext& ctx) {
  ctx.set(0, fitted(ctx, transform(ctx, fftn_op, ctx.grad(), other(norm_of(ctx))), ctx.input_shape(0)));
}
void rfft_gradient(GradientContext& ctx) { ctx.set(0, back_from_half(ctx, ctx.grad(), other(norm_of(ctx)))); }
void irfft_gradient(GradientContext& ctx) { ctx.set(0, back_to_half(ctx, other(norm_of(ctx)))); }
// hfft is irfft of the conjugates, and ihfft the conjugates of rfft, with the other normalization.
void hfft_gradient(GradientContext& ctx) { ctx.set(0, ctx.conj(back_to_half(ctx, norm_of(ctx)))); }
void ihfft_gradient(GradientContext& ctx) {
  ctx.set(0, back_from_half(ctx, ctx.conj(ctx.grad()), norm_of(ctx)));
}

const Derivative kDerivatives[] = {
    {"fft", fft_gradient},   {"ifft", ifft_gradient},   {"fftn", fft_gradient},   {"ifftn", ifft_gradient},
    {"rfft", rfft_gradient}, {"irfft", irfft_gradient}, {"rfftn", rfft_gradient}, {"irfftn", irfft_gradient},
    {"hfft", hfft_gradient}, {"ihfft", ihfft_gradient},
};

}  // namespace

void set_fft_derivative(Op& op) { set_from(kDerivatives, op); }

}  // namespace thalweg
