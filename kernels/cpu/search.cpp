// search.cpp: the kernel of searchsorted.
#include <algorithm>
#include <string>
#include <type_traits>

#include "kernels/cpu/half.h"
#include "kernels/cpu/loop_nest.h"
#include "kernels/cpu/register.h"

namespace thalweg::cpu {
namespace {

/// Elements that one parallel chunk looks up.
constexpr std::int64_t kSearchChunk = 4096;

/// The order of sort: NaNs after all numbers.
template <class T>
bool comes_before(T a, T b) noexcept {
  if constexpr (std::is_floating_point_v<T>) return a < b || (b != b && a == a);
  return a < b;
}

/// How many elements of the sorted `data` come before `value` or, with `or_equal`, do not come after it.
template <bool or_equal, class T>
std::int64_t count_before(const T* data, std::int64_t count, std::int64_t stride, T value) noexcept {
  std::int64_t begin = 0;
  while (count > 0) {
    const std::int64_t half = count / 2;
    const T middle = data[(begin + half) * stride];
    const bool before = or_equal ? !comes_before(value, middle) : comes_before(middle, value);
    begin = before ? begin + half + 1 : begin;
    count = before ? count - half - 1 : half;
  }
  return begin;
}

template <bool or_equal, class T>
void search(const KernelContext& ctx) {
  const TensorView& sorted = ctx.input(0);
  const TensorView& values = ctx.input(1);
  LoopNest<2> nest;
  for (int axis = 0; axis < values.rank(); ++axis) {
    nest.add(values.shape()[axis], {values.strides()[axis], ctx.output().strides()[axis]});
  }
  const T* data = sorted.as<const T>();
  const std::int64_t length = sorted.shape()[0];
  const std::int64_t stride = sorted.strides()[0];
  ctx.parallel_for(ceil_div(nest.total(), kSearchChunk), [&](std::int64_t chunk) {
    nest.run(chunk * kSearchChunk, std::min(nest.total(), (chunk + 1) * kSearchChunk),
             [&](const auto& at, std::int64_t count) {
               const T* in = values.as<const T>() + at[0];
               std::int64_t* out = ctx.output().as<std::int64_t>() + at[1];
               for (std::int64_t i = 0; i < count; ++i) {
                 out[i * nest.inner_stride(1)] =
                     count_before<or_equal>(data, length, stride, in[i * nest.inner_stride(0)]);
               }
             });
  });
}

void searchsorted_kernel(const KernelContext& ctx) {
  const bool right = ctx.attributes().get<std::string>(0) == "right";
  visit_dtype(ctx.input(0).dtype(), [&]<class T>() {
    // Inference lets no other dtypes through.
    if constexpr (std::is_arithmetic_v<T>) right ? search<true, T>(ctx) : search<false, T>(ctx);
  });
}

}  // namespace

void register_search_kernels(KernelRegistry& registry) {
  registry.add("searchsorted", DeviceType::cpu, in_float32(searchsorted_kernel));
}

}  // namespace thalweg::cpu
