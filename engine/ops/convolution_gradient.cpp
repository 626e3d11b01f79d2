// convolution_gradient.cpp: the derivative of convolutions, in convolutions: of the gradient spread out with
// the kernels turned round, and of x with the gradient as kernels.
#include "ops/convolution_gradient.h"

#include <algorithm>
#include <vector>

#include "ops/derivative.h"

namespace thalweg {
namespace {

const BuiltinOp conv1d_op("conv1d");
const BuiltinOp conv2d_op("conv2d");
const BuiltinOp permute_dims_op("permute_dims");
const BuiltinOp flip_op("flip");
const BuiltinOp slice_op("slice");
const BuiltinOp slice_assign_op("slice_assign");

/// One call's numbers, and x and its gradients with a batch axis.
struct Convolution {
  explicit Convolution(const GradientContext& ctx)
      : ctx(ctx),
        stride(ctx.attributes().get<Dims>(0)),
        padding(ctx.attributes().get<Dims>(1)),
        dilation(ctx.attributes().get<Dims>(2)),
        groups(ctx.attributes().get<std::int64_t>(3)),
        rank(stride.size()),
        grad(batched(ctx.grad())) {}

  /// (C, …) as (1, C, …).
  Tensor batched(const Tensor& x) const {
    Shape shape = x.shape();
    if (shape.size() == rank + 1) shape.insert(0, 1);
    return ctx.reshape(x, shape);
  }
  const BuiltinOp& op() const { return rank == 1 ? conv1d_op : conv2d_op; }
  Tensor permuted(const Tensor& x, const Dims& order) const {
    return ctx.call(permute_dims_op, x, attributes_of(order));
  }
  /// The axes 0, 1, … with those given in front.
  Dims order(std::initializer_list<std::int64_t> front) const {
    Dims axes(front);
    for (std::size_t i = 0; i < rank; ++i) axes.push_back(static_cast<std::int64_t>(front.size() + i));
    return axes;
  }
  /// `count` elements from `start` on along the axes of the windows.
  Tensor window(const Tensor& x, const Dims& start, const Shape& count) const {
    Dims starts(x.shape().size(), 0);
    Dims sizes = x.shape();
    for (std::size_t i = 0; i < rank; ++i) {
      starts[2 + i] = start[i];
      sizes[2 + i] = count[2 + i];
    }
    return sizes == x.shape() ? x
                              : ctx.call(slice_op, x, attributes_of(starts, Dims(sizes.size(), 1), sizes));
  }
  /// The gradient with stride - 1 zeros between its elements.
  Tensor spread() const {
    if (std::all_of(stride.begin(), stride.end(), [](std::int64_t step) { return step == 1; })) return grad;
    ValueMeta like{grad.dtype(), grad.device(), grad.shape()};
    Dims steps(like.shape.size(), 1);
    for (std::size_t i = 0; i < rank; ++i) {
      like.shape[2 + i] = std::max<std::int64_t>(0, (like.shape[2 + i] - 1) * stride[i] + 1);
      steps[2 + i] = stride[i];
    }
    return ctx.call(slice_assign_op, ctx.zeros(like), grad,
                    attributes_of(Dims(steps.size(), 0), steps, grad.shape()));
  }

  const GradientContext& ctx;
  const Dims& stride;
  const Dims& padding;
  const Dims& dilation;
  const std::int64_t groups;
  const std::size_t rank;
  const Tensor grad;
};

/// (O, C / groups, …) as (C, O / groups, …), turned round.
Tensor turned_kernels(const Convolution& conv, const Tensor& weight) {
  const GradientContext& ctx = conv.ctx;
  const Shape& shape = weight.shape();
  Shape parted{conv.groups, shape[0] / conv.groups, shape[1]};
  Shape joined{conv.groups * shape[1], shape[0] / conv.groups};
  Dims axes;
  for (std::size_t i = 0; i < conv.rank; ++i) {
    parted.push_back(shape[2 + i]);
    joined.push_back(shape[2 + i]);
    axes.push_back(static_cast<std::int64_t>(2 + i));
  }
  const Tensor swapped = conv.permuted(ctx.reshape(weight, parted), conv.order({0, 2, 1}));
  return ctx.conj(ctx.call(flip_op, ctx.reshape(swapped, joined), attributes_of(axes)));
}

void gradient_of_x(GradientContext& ctx, const Convolution& conv, const Shape& shape) {
  const Tensor weight = ctx.input(1);
  Dims padding;
  Dims cut;
  for (std::size_t i = 0; i < conv.rank; ++i) {
    const std::int64_t reach = conv.dilation[i] * (weight.shape()[2 + i] - 1);
    const std::int64_t before = conv.padding[2 * i];
    const std::int64_t behind = conv.padding[2 * i + 1];
    // What the last window left over.
    const std::int64_t rest = (shape[2 + i] + before + behind - reach - 1) % conv.stride[i];
    padding.push_back(std::max<std::int64_t>(0, reach - before));
    padding.push_back(std::max<std::int64_t>(0, reach - behind + rest));
    cut.push_back(std::max<std::int64_t>(0, before - reach));
  }
  const Tensor whole = ctx.call(conv.op(), conv.spread(), turned_kernels(conv, weight),
                                attributes_of(Dims(conv.rank, 1), padding, conv.dilation, conv.groups));
  ctx.set(0, ctx.reshape(conv.window(whole, cut, shape), ctx.input_shape(0)));
}

/// The windows of x that the elements of the gradient saw, as convolutions with the gradient: the batch is
/// what is summed over, and so takes the place of the channels.
void gradient_of_weight(GradientContext& ctx, const Convolution& conv) {
  const Tensor x = conv.batched(ctx.input(0));
  const std::int64_t batch = x.shape()[0];
  const std::int64_t channels = x.shape()[1] / conv.groups;
  Shape parted{batch, conv.groups, channels};
  Shape joined{channels, conv.groups * batch};
  for (std::size_t i = 0; i < conv.rank; ++i) {
    parted.push_back(x.shape()[2 + i]);
    joined.push_back(x.shape()[2 + i]);
  }
  const Tensor seen = ctx.reshape(conv.permuted(ctx.reshape(x, parted), conv.order({2, 1, 0})), joined);
  const Tensor kernels = conv.permuted(conv.grad, conv.order({1, 0}));
  const Tensor whole = ctx.call(conv.op(), ctx.conj(seen), kernels,
                                attributes_of(conv.dilation, conv.padding, conv.stride, conv.groups));
  const Tensor found = conv.window(whole, Dims(conv.rank, 0), ctx.input_shape(1));
  ctx.set(1, conv.permuted(found, conv.order({1, 0})));
}

void convolution_gradient(GradientContext& ctx) {
  const Convolution conv(ctx);
  if (ctx.needs(0)) {
    Shape shape = ctx.input_shape(0);
    if (shape.size() == conv.rank + 1) shape.insert(0, 1);
    gradient_of_x(ctx, conv, shape);
  }
  if (ctx.needs(1)) gradient_of_weight(ctx, conv);
  if (ctx.input_count() < 3 || !ctx.needs(2)) return;
  Dims axes{0};
  for (std::size_t i = 0; i < conv.rank; ++i) axes.push_back(static_cast<std::int64_t>(2 + i));
  ctx.set(2, ctx.reshape(ctx.sum_keeping(conv.grad, axes), ctx.input_shape(2)));
}

}  // namespace

void set_convolution_derivative(Op& op) {
  set_derivative(op, convolution_gradient, {save_input(0, for_input(1)), save_input(1, for_input(0))});
}

}  // namespace thalweg
