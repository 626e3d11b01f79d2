// manipulation.cpp: the kernels of concat and roll. The other Ops of the family are views.
#include <utility>

#include "kernels/cpu/nd_copy.h"
#include "kernels/cpu/register.h"

namespace thalweg::cpu {
namespace {

void concat_kernel(const KernelContext& ctx) {
  const TensorView& output = ctx.output();
  const std::int64_t item = item_size(output.dtype());
  const bool flat = !ctx.attributes().has(0);
  const int axis = flat ? 0 : normalize_axis(ctx.op().name, ctx.attributes().get<Dims>(0)[0], output.rank());
  std::int64_t done = 0;  // along `axis`
  for (const TensorView& input : ctx.inputs()) {
    const Strides strides = flat ? contiguous_strides(input.shape()) : output.strides();
    void* place = advance(output.data, done * output.strides()[axis], item);
    copy_all(ctx, copy_nest(input.shape(), input.strides(), strides), input.data, place, item);
    done += flat ? input.numel() : input.shape()[axis];
  }
}

/// How far the elements move along each axis, in [0, size).
Dims shift_by_axis(const KernelContext& ctx, const Shape& shape) {
  const Dims& shifts = ctx.attributes().get<Dims>(0);
  Dims result(shape.size(), 0);
  auto add = [&](std::size_t axis, std::int64_t shift) {
    const std::int64_t size = shape[axis];
    shift %= size;
    if (shift < 0) shift += size;
    // Both are below size: the sum may not overflow.
    result[axis] = shift >= size - result[axis] ? shift - (size - result[axis]) : result[axis] + shift;
  };
  if (!ctx.attributes().has(1)) {
    for (std::int64_t shift : shifts) add(0, shift);
    return result;
  }
  const Dims& axes = ctx.attributes().get<Dims>(1);
  const std::size_t count = shifts.size() == 1 || axes.empty() ? axes.size() : shifts.size();
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t axis = axes[axes.size() == 1 ? 0 : i];
    add(normalize_axis(ctx.op().name, axis, static_cast<int>(shape.size())),
        shifts[shifts.size() == 1 ? 0 : i]);
  }
  return result;
}

/// Copies a tensor in blocks, each axis cut in two where its end wraps to the front.
class Roll {
 public:
  Roll(const KernelContext& ctx, const Strides& input, const Strides& output, Dims shifts)
      : ctx_(ctx), input_(input), output_(output), shifts_(std::move(shifts)) {}

  /// Copies the block that starts at `from` and `to` (elements) and has `shape`, whose axes below `axis` are
  /// cut.
  void copy(std::size_t axis, Shape* shape, std::int64_t from, std::int64_t to) const {
    while (axis < shifts_.size() && shifts_[axis] == 0) ++axis;
    if (axis == shifts_.size()) {
      const std::int64_t item = item_size(ctx_.output().dtype());
      copy_all(ctx_, copy_nest(*shape, input_, output_),
               advance(std::as_const(ctx_.input(0).data), from, item), advance(ctx_.output().data, to, item),
               item);
      return;
    }
    const std::int64_t size = (*shape)[axis];
    const std::int64_t shift = shifts_[axis];
    (*shape)[axis] = size - shift;
    copy(axis + 1, shape, from, to + shift * output_[axis]);
    (*shape)[axis] = shift;
    copy(axis + 1, shape, from + (size - shift) * input_[axis], to);
    (*shape)[axis] = size;
  }

 private:
  const KernelContext& ctx_;
  const Strides& input_;
  const Strides& output_;
  Dims shifts_;
};

void roll_kernel(const KernelContext& ctx) {
  if (ctx.output().numel() == 0) return;
  if (ctx.attributes().has(1)) {
    Shape shape = ctx.output().shape();
    const Roll roll(ctx, ctx.input(0).strides(), ctx.output().strides(), shift_by_axis(ctx, shape));
    return roll.copy(0, &shape, 0, 0);
  }
  // The Op asked for a contiguous input: roll it as one axis.
  Shape shape{ctx.output().numel()};
  const Strides strides{1};
  Roll(ctx, strides, strides, shift_by_axis(ctx, shape)).copy(0, &shape, 0, 0);
}

}  // namespace

void register_manipulation_kernels(KernelRegistry& registry) {
  registry.add("concat", DeviceType::cpu, concat_kernel);
  registry.add("roll", DeviceType::cpu, roll_kernel);
}

}  // namespace thalweg::cpu
