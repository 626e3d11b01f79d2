// conform.cpp: gradients brought to what their inputs look like.
#include <string>
#include <utility>

#include <thalweg/errors.h>
#include <thalweg/gradient.h>

#include "autograd/backward.h"

namespace thalweg {

namespace {

const BuiltinOp sum_op("sum");
const BuiltinOp reshape_op("reshape");
const BuiltinOp real_op("real");
const BuiltinOp astype_op("astype");
const BuiltinOp to_device_op("to_device");

Tensor apply(const BuiltinOp& op, const Tensor& x, Attributes attributes, SiteId site) {
  Engine& engine = x.engine();
  return engine.apply(op.in(engine), {&x}, std::move(attributes), site);
}

[[noreturn]] void refuse(const Node& from, std::size_t i, const Tensor& gradient, const ValueMeta& meta) {
  throw ShapeError(from.name() + ": gradient " + std::to_string(i) + " has shape " +
                   to_string(gradient.shape()) + ", which does not sum to that of its input, " +
                   to_string(meta.shape));
}

/// Sums over the axes along which `meta.shape` is broadcast to that of the gradient.
Tensor sum_to(Tensor gradient, const ValueMeta& meta, const Node& from, std::size_t i) {
  const Shape& shape = gradient.shape();
  if (shape.size() < meta.shape.size()) refuse(from, i, gradient, meta);
  const std::size_t extra = shape.size() - meta.shape.size();
  Dims axes;
  for (std::size_t axis = 0; axis < extra; ++axis) axes.push_back(static_cast<std::int64_t>(axis));
  for (std::size_t axis = extra; axis < shape.size(); ++axis) {
    const std::int64_t wanted = meta.shape[axis - extra];
    if (shape[axis] == wanted) continue;
    if (wanted != 1) refuse(from, i, gradient, meta);
    axes.push_back(static_cast<std::int64_t>(axis));
  }
  const bool only_extra = axes.size() == extra;
  if (!axes.empty()) {
    gradient = apply(sum_op, gradient, attributes_of(axes, !only_extra), from.site());
  }
  return gradient.shape() == meta.shape ? gradient
                                        : apply(reshape_op, gradient, attributes_of(meta.shape), from.site());
}

}  // namespace

Tensor conform(Tensor gradient, const ValueMeta& meta, const Node& from, std::size_t i) {
  if (gradient.dtype() != meta.dtype) {
    if (is_complex(gradient.dtype()) && !is_complex(meta.dtype)) {
      gradient = apply(real_op, gradient, {}, from.site());
    }
    if (gradient.dtype() != meta.dtype)
      gradient = apply(astype_op, gradient, attributes_of(meta.dtype), from.site());
  }
  if (gradient.shape() != meta.shape) gradient = sum_to(std::move(gradient), meta, from, i);
  if (gradient.device() != meta.device) {
    if (gradient.rank() != 0) {
      throw DeviceError(from.name() + ": gradient " + std::to_string(i) + " is on " +
                        to_string(gradient.device()) + ", its input on " + to_string(meta.device) +
                        "; bring it there with .to(device)");
    }
    gradient = apply(to_device_op, gradient, attributes_of(meta.device), from.site());
  }
  return gradient;
}

}  // namespace thalweg
