// convolution.cpp: Ops that slide windows over their input: conv1d, conv2d.
#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include <thalweg/errors.h>
#include <thalweg/op.h>

#include "ops/builtin.h"
#include "ops/convolution_gradient.h"
#include "ops/integer_range.h"

namespace thalweg {
namespace {

enum Attribute : std::size_t { kStride, kPadding, kDilation, kGroups };

void check_ranks(const InferContext& ctx, int rank) {
  const Shape& x = ctx.input(0).shape;
  const Shape& weight = ctx.input(1).shape;
  const std::string name(ctx.name());
  const std::string axes = rank == 1 ? "L" : "H, W";
  const auto x_rank = static_cast<int>(x.size());
  if (x_rank != rank + 1 && x_rank != rank + 2) {
    throw ShapeError(name + ": x must be (N, C, " + axes + ") or (C, " + axes + "), its shape is " +
                     to_string(x));
  }
  const bool has_axes = static_cast<int>(weight.size()) == rank + 2;
  if (!has_axes || std::find(weight.begin() + 2, weight.end(), 0) != weight.end()) {
    throw ShapeError(name + ": weight must be (outputs, inputs / groups, kernel of " + std::to_string(rank) +
                     " axes), its shape is " + to_string(weight));
  }
}

void check_channels(const InferContext& ctx, std::int64_t channels) {
  const Shape& weight = ctx.input(1).shape;
  const std::int64_t groups = ctx.attributes().get<std::int64_t>(kGroups);
  const std::string name(ctx.name());
  if (groups < 1 || channels % groups != 0 || weight[0] % groups != 0) {
    throw ValueError(name + ": groups is " + std::to_string(groups) + "; it must divide the " +
                     std::to_string(channels) + " input and " + std::to_string(weight[0]) +
                     " output channels");
  }
  if (weight[1] != channels / groups) {
    throw ShapeError(name + ": weight of shape " + to_string(weight) + " with " + std::to_string(groups) +
                     " groups needs " + std::to_string(weight[1] * groups) + " channels, x of shape " +
                     to_string(ctx.input(0).shape) + " has " + std::to_string(channels));
  }
  if (ctx.input_count() > 3) {
    throw ValueError(name + ": takes one bias, not " + std::to_string(ctx.input_count() - 2));
  }
  if (ctx.input_count() == 3 && ctx.input(2).shape != Shape{weight[0]}) {
    throw ShapeError(name + ": bias has shape " + to_string(ctx.input(2).shape) + "; it must be " +
                     to_string(Shape{weight[0]}));
  }
}

/// The numbers of an attribute, `count` of them and none below `least`.
const Dims& numbers(const InferContext& ctx, Attribute attribute, int count, std::int64_t least) {
  const Dims& given = ctx.attributes().get<Dims>(attribute);
  const std::string what = std::string(ctx.name()) + ": " + ctx.op().attributes[attribute].name;
  if (static_cast<int>(given.size()) != count) {
    throw ValueError(what + " has " + std::to_string(given.size()) + " numbers; it must have " +
                     std::to_string(count));
  }
  for (std::int64_t number : given) {
    if (number >= least) continue;
    throw ValueError(what + " is " + std::to_string(number) + "; it must be at least " +
                     std::to_string(least));
  }
  return given;
}

void infer_convolution(InferContext& ctx, int rank) {
  check_ranks(ctx, rank);
  const Shape& x = ctx.input(0).shape;
  const Shape& weight = ctx.input(1).shape;
  const std::size_t first = x.size() - static_cast<std::size_t>(rank);
  check_channels(ctx, x[first - 1]);
  const Dims& stride = numbers(ctx, kStride, rank, 1);
  const Dims& padding = numbers(ctx, kPadding, 2 * rank, 0);
  const Dims& dilation = numbers(ctx, kDilation, rank, 1);
  Shape shape = x;
  shape[first - 1] = weight[0];
  for (int i = 0; i < rank; ++i) {
    const std::int64_t size = x[first + i];
    // Sums and products of attributes may be large.
    const Int128 reach = Int128{dilation[i]} * (weight[2 + i] - 1) + 1;
    const Int128 room = Int128{size} + padding[2 * i] + padding[2 * i + 1] - reach;
    constexpr Int128 most = std::numeric_limits<std::int64_t>::max();
    if (room < 0) {
      throw ShapeError(std::string(ctx.name()) + ": a window of " +
                       std::to_string(static_cast<std::int64_t>(std::min(reach, most))) +
                       " does not fit into an axis of size " + std::to_string(size) + " with padding " +
                       std::to_string(padding[2 * i]) + " and " + std::to_string(padding[2 * i + 1]));
    }
    shape[first + i] = static_cast<std::int64_t>(std::min(room / stride[i] + 1, most));
  }
  DType dtype = ctx.input(0).dtype;
  for (std::size_t i = 1; i < ctx.input_count(); ++i) dtype = promote(dtype, ctx.input(i).dtype);
  for (std::size_t i = 0; i < ctx.input_count(); ++i) {
    ctx.cast_input(i, dtype);
    if (i > 0) ctx.require_contiguous(i);
  }
  ctx.set_contiguous(0, shape, dtype);
}

double convolution_cost_ns(std::span<const TensorMeta* const> inputs,
                           std::span<const TensorMeta* const> outputs) {
  const auto& weight = inputs[1]->shape;
  const double terms =
      static_cast<double>(numel(weight)) / static_cast<double>(std::max<std::int64_t>(1, weight[0]));
  const double factor = is_complex(outputs[0]->dtype) ? 8.0 : 2.0;
  return factor * static_cast<double>(outputs[0]->numel()) * terms / 50.0 + 500.0;
}

Op convolution(std::string name, int rank, const std::string& doc) {
  Op op;
  op.name = std::move(name);
  op.inputs = {"x", "weight", "bias"};
  op.variadic = true;
  op.attributes = {{"stride", AttrKind::dims, {}, true},
                   {"padding", AttrKind::dims, {}, true},
                   {"dilation", AttrKind::dims, {}, true},
                   {"groups", AttrKind::integer, std::int64_t{1}}};
  op.infer = [rank](InferContext& ctx) { infer_convolution(ctx, rank); };
  op.cost_ns = convolution_cost_ns;
  op.doc = doc;
  set_convolution_derivative(op);
  return op;
}

}  // namespace

void register_convolution(OpRegistry& registry) {
  const std::string rest =
      "\n\nThe bias may be left out. stride and dilation: one number for each of these axes, padding two: "
      "zeros before and behind it. With groups, output channels see the input channels of their own group "
      "only. Dtypes are promoted and computed as in matmul; the terms of a sum are added in the order of the "
      "weights. Raises ShapeError for shapes that do not fit and ValueError for other arguments out of "
      "range.\n\nPyTorch's conv1d and conv2d.";
  registry.add(convolution("conv1d", 1,
                           "The sums of products of kernels and the windows of x, (N, C, L) or (C, L), along "
                           "its last axis." +
                               rest));
  registry.add(convolution("conv2d", 2,
                           "The sums of products of kernels and the windows of x, (N, C, H, W) or (C, H, W), "
                           "over its last two axes." +
                               rest));
}

}  // namespace thalweg
