// normalization.cpp: Ops that bring rows to a common size: softmax, log_softmax, layer_norm, rms_norm.
#include <string>
#include <utility>
#include <vector>

#include <thalweg/errors.h>
#include <thalweg/op.h>

#include "ops/builtin.h"
#include "ops/derivative.h"

namespace thalweg {
namespace {

void require_floating(const InferContext& ctx, DType dtype) {
  if (is_floating(dtype)) return;
  throw DTypeError(std::string(ctx.name()) + ": dtype " + std::string(name(dtype)) +
                   " is not floating; use float32 or another real floating dtype");
}

void infer_softmax(InferContext& ctx) {
  const TensorMeta& x = ctx.input(0);
  require_floating(ctx, x.dtype);
  normalize_axis(ctx.name(), ctx.attributes().get<std::int64_t>(0), x.rank());
  ctx.require_contiguous(0);
  ctx.set_contiguous(0, x.shape, x.dtype);
}

/// The inputs behind x have the shape of its last axes.
void infer_norm(InferContext& ctx, std::size_t most_inputs) {
  const TensorMeta& x = ctx.input(0);
  const std::string name(ctx.name());
  const std::int64_t axes = ctx.attributes().get<std::int64_t>(0);
  const double eps = ctx.attributes().get<double>(1);
  if (axes < 1 || axes > x.rank()) {
    throw ValueError(name + ": axes is " + std::to_string(axes) + "; it must be from 1 to " +
                     std::to_string(x.rank()) + ", the axes of x");
  }
  if (!(eps >= 0)) throw ValueError(name + ": eps is " + std::to_string(eps) + "; it must be at least 0");
  if (ctx.input_count() > most_inputs) {
    throw ValueError(name + ": takes at most " + std::to_string(most_inputs) + " inputs, not " +
                     std::to_string(ctx.input_count()));
  }
  const Shape sizes(
      std::span<const std::int64_t>(x.shape.data() + x.rank() - axes, static_cast<std::size_t>(axes)));
  DType dtype = x.dtype;
  for (std::size_t i = 1; i < ctx.input_count(); ++i) {
    if (ctx.input(i).shape != sizes) {
      throw ShapeError(name + ": " + (i == 1 ? "weight" : "bias") + " has shape " +
                       to_string(ctx.input(i).shape) + "; it must be " + to_string(sizes));
    }
    dtype = promote(dtype, ctx.input(i).dtype);
  }
  require_floating(ctx, x.dtype);
  require_floating(ctx, dtype);
  for (std::size_t i = 0; i < ctx.input_count(); ++i) {
    ctx.cast_input(i, dtype);
    ctx.require_contiguous(i);
  }
  ctx.set_contiguous(0, x.shape, dtype);
}

Op softmax(std::string name, const std::string& what) {
  Op op;
  op.name = std::move(name);
  op.inputs = {"x"};
  op.attributes = {{"axis", AttrKind::integer, std::int64_t{-1}}};
  op.infer = infer_softmax;
  op.ns_per_element = 1.0f;
  op.doc =
      what +
      "\n\nThe result has the shape and dtype of x. Where all elements along the axis are -inf, or one is "
      "inf or nan, the results there are nan. Raises IndexError for an axis out of range and DTypeError "
      "for dtypes that are not real floating ones.\n\nPyTorch's softmax and log_softmax.";
  set_normalization_derivative(op);
  return op;
}

Op norm(std::string name, std::size_t most_inputs, const std::string& what) {
  Op op;
  op.name = std::move(name);
  op.inputs = {"x", "parameters"};
  op.variadic = true;
  op.attributes = {{"axes", AttrKind::integer, {}, true}, {"eps", AttrKind::floating, {}, true}};
  op.infer = [most_inputs](InferContext& ctx) { infer_norm(ctx, most_inputs); };
  op.ns_per_element = 0.5f;
  op.doc = what +
           " over the last axes of x.\n\naxes: how many of them. parameters: weight and bias of their shape, "
           "neither or the first alone. Dtypes are promoted. Raises ShapeError for shapes that do not fit, "
           "ValueError for other arguments out of range and DTypeError for dtypes that are not real floating "
           "ones.\n\nPyTorch's layer_norm and rms_norm.";
  set_normalization_derivative(op);
  return op;
}

}  // namespace

void register_normalization(OpRegistry& registry) {
  registry.add(softmax("softmax", "exp(x) over its sum along an axis, without overflow."));
  registry.add(softmax("log_softmax",
                       "The logarithm of softmax along an axis, with all its digits where that is near 0."));
  registry.add(
      norm("layer_norm", 3,
           "(x - mean) / sqrt(var + eps) * weight + bias, with the mean and the population variance"));
  registry.add(norm("rms_norm", 2, "x / sqrt(mean(x**2) + eps) * weight, with the mean"));
}

}  // namespace thalweg
