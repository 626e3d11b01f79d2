// strided_copy.cpp: a nest of loops over the outer axes around one run over the last.
#include "strided_copy.h"

#include <cstdint>
#include <cstring>

namespace thalweg::python {

namespace {

template <std::size_t item>
void copy_run(std::byte* target, const std::byte* source, std::int64_t count, std::int64_t stride) {
  for (std::int64_t i = 0; i < count; ++i)
    std::memcpy(target + i * std::int64_t(item), source + i * stride, item);
}

using RunFn = void (*)(std::byte*, const std::byte*, std::int64_t, std::int64_t);

RunFn run_for(std::size_t item) noexcept {
  switch (item) {
    case 1: return copy_run<1>;
    case 2: return copy_run<2>;
    case 4: return copy_run<4>;
    case 8: return copy_run<8>;
    default: return copy_run<16>;
  }
}

}  // namespace

void copy_to_c_order(void* target, const void* source, const Dims& shape, const Dims& byte_strides,
                     std::size_t item) {
  auto* out = static_cast<std::byte*>(target);
  const auto* in = static_cast<const std::byte*>(source);
  const std::int64_t count = numel(shape);
  if (count == 0) return;
  if (shape.empty()) {
    std::memcpy(out, in, item);
    return;
  }
  const std::size_t last = shape.size() - 1;
  const std::int64_t run = shape[last];
  const RunFn copy = run_for(item);
  Dims position(shape.size(), 0);
  for (std::int64_t done = 0; done < count; done += run) {
    if (byte_strides[last] == std::int64_t(item)) {
      std::memcpy(out, in, std::size_t(run) * item);
    } else {
      copy(out, in, run, byte_strides[last]);
    }
    out += run * std::int64_t(item);
    for (std::size_t axis = last; axis-- > 0;) {
      in += byte_strides[axis];
      if (++position[axis] < shape[axis]) break;
      in -= byte_strides[axis] * shape[axis];
      position[axis] = 0;
    }
  }
}

Dims byte_strides(const Strides& strides, std::int64_t item) {
  Dims bytes = strides;
  for (std::int64_t& stride : bytes) stride *= item;
  return bytes;
}

}  // namespace thalweg::python
