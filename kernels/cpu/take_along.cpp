// take_along.cpp: the kernel of take_along_axis.
#include <algorithm>
#include <array>
#include <atomic>
#include <string>
#include <type_traits>

#include <thalweg/errors.h>

#include "kernels/cpu/nd_copy.h"
#include "kernels/cpu/register.h"

namespace thalweg::cpu {
namespace {

constexpr std::int64_t kAlongChunk = 16384;

/// Where the indices of an axis lead. Operand 0 of the nest is x, which stands still along the axis, operand
/// 1 the indices, operand 2 the output.
struct Along {
  LoopNest<3> nest;
  std::int64_t size = 0;
  std::int64_t stride = 0;
  int axis = 0;
};

Along along(const KernelContext& ctx) {
  const TensorView& x = ctx.input(0);
  const TensorView& indices = ctx.input(1);
  const Shape& shape = ctx.output().shape();
  Along result;
  result.axis = normalize_axis(ctx.op().name, ctx.attributes().get<std::int64_t>(0), x.rank());
  result.size = x.shape()[result.axis];
  result.stride = x.strides()[result.axis];
  for (int axis = 0; axis < x.rank(); ++axis) {
    const bool still = axis == result.axis || x.shape()[axis] == 1;
    result.nest.add(shape[axis],
                    {still ? 0 : x.strides()[axis], indices.shape()[axis] == 1 ? 0 : indices.strides()[axis],
                     ctx.output().strides()[axis]});
  }
  return result;
}

/// Copies the elements; returns an index that is out of bounds, or 0.
template <class T, class Index>
Index take_along(const KernelContext& ctx, const Along& plan) {
  std::atomic<Index> bad{0};
  const auto [x_step, index_step, out_step] =
      std::array{plan.nest.inner_stride(0), plan.nest.inner_stride(1), plan.nest.inner_stride(2)};
  const auto copy = [&, x_step = x_step, index_step = index_step, out_step = out_step](const auto& at,
                                                                                       std::int64_t count) {
    const T* in = ctx.input(0).as<const T>() + at[0];
    const Index* indices = ctx.input(1).as<const Index>() + at[1];
    T* out = ctx.output().as<T>() + at[2];
    for (std::int64_t i = 0; i < count; ++i) {
      const Index index = indices[i * index_step];
      // A uint64 above 2^63-1 turns negative here and stays out of bounds.
      auto position = static_cast<std::int64_t>(index);
      if (std::is_signed_v<Index> && position < 0) position += plan.size;
      if (position < 0 || position >= plan.size) {
        bad.store(index, std::memory_order_relaxed);
      } else {
        out[i * out_step] = in[i * x_step + position * plan.stride];
      }
    }
  };
  const std::int64_t total = plan.nest.total();
  ctx.parallel_for(ceil_div(total, kAlongChunk), [&](std::int64_t chunk) {
    plan.nest.run(chunk * kAlongChunk, std::min(total, (chunk + 1) * kAlongChunk), copy);
  });
  return bad.load(std::memory_order_relaxed);
}

void take_along_axis_kernel(const KernelContext& ctx) {
  if (ctx.output().numel() == 0) return;
  const Along plan = along(ctx);
  visit_dtype(ctx.input(1).dtype(), [&]<class Index>() {
    if constexpr (std::is_integral_v<Index> && !std::is_same_v<Index, bool>) {
      visit_item(item_size(ctx.input(0).dtype()), [&]<class T>() {
        const Index bad = take_along<T, Index>(ctx, plan);
        // 0 is never out of bounds: inference has refused an axis without elements.
        if (bad == 0) return;
        throw IndexError(ctx.op().name + ": index " + std::to_string(bad) + " is out of bounds for axis " +
                         std::to_string(plan.axis) + " with size " + std::to_string(plan.size));
      });
    }
  });
}

}  // namespace

void register_take_along_axis_kernel(KernelRegistry& registry) {
  registry.add("take_along_axis", DeviceType::cpu, take_along_axis_kernel);
}

}  // namespace thalweg::cpu
