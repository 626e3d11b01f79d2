// nd_copy.cpp: copies between strided tensors of one item size.
#include "kernels/cpu/nd_copy.h"

#include <algorithm>
#include <cstring>

namespace thalweg::cpu {

LoopNest<2> copy_nest(const Shape& shape, const Strides& source, const Strides& destination) {
  LoopNest<2> nest;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    nest.add(shape[axis], {source[axis], destination[axis]});
  }
  return nest;
}

void copy_range(const LoopNest<2>& nest, std::int64_t begin, std::int64_t end, const void* source,
                void* destination, std::int64_t item) noexcept {
  visit_item(item, [&]<class T>() {
    const T* from = static_cast<const T*>(source);
    T* to = static_cast<T*>(destination);
    const std::int64_t from_stride = nest.inner_stride(0);
    const std::int64_t to_stride = nest.inner_stride(1);
    nest.run(begin, end, [&](const auto& at, std::int64_t count) {
      const T* in = from + at[0];
      T* out = to + at[1];
      if (from_stride == 1 && to_stride == 1) {
        std::memcpy(out, in, static_cast<std::size_t>(count) * sizeof(T));
      } else if (from_stride == 0 && to_stride == 1) {
        std::fill_n(out, count, *in);
      } else if (from_stride == -1 && to_stride == 1) {
        for (std::int64_t i = 0; i < count; ++i) out[i] = in[-i];
      } else {
        for (std::int64_t i = 0; i < count; ++i) out[i * to_stride] = in[i * from_stride];
      }
    });
  });
}

void copy_all(const KernelContext& ctx, const LoopNest<2>& nest, const void* source, void* destination,
              std::int64_t item) {
  const std::int64_t total = nest.total();
  ctx.parallel_for(ceil_div(total, kCopyChunk), [&](std::int64_t chunk) {
    const std::int64_t begin = chunk * kCopyChunk;
    copy_range(nest, begin, std::min(total, begin + kCopyChunk), source, destination, item);
  });
}

}  // namespace thalweg::cpu
