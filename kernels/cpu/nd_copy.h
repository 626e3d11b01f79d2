// nd_copy.h: copies between strided tensors of one item size.
#pragma once

#include <cstdint>

#include <thalweg/kernel.h>

#include "kernels/cpu/loop_nest.h"
#include "kernels/numeric.h"

namespace thalweg::cpu {

/// Elements per chunk of the parallel copies.
inline constexpr std::int64_t kCopyChunk = 32768;

/// The nest that walks `shape` in C order; operand 0 is the source, operand 1 the destination.
LoopNest<2> copy_nest(const Shape& shape, const Strides& source, const Strides& destination);

/// Copies elements [begin, end) of `nest`, each of `item` bytes (1, 2, 4, 8 or 16), on the calling thread.
void copy_range(const LoopNest<2>& nest, std::int64_t begin, std::int64_t end, const void* source,
                void* destination, std::int64_t item) noexcept;

/// Copies all elements of `nest` on as many threads as `ctx` offers.
void copy_all(const KernelContext& ctx, const LoopNest<2>& nest, const void* source, void* destination,
              std::int64_t item);

/// `data` moved on by `elements` of `item` bytes.
inline void* advance(void* data, std::int64_t elements, std::int64_t item) noexcept {
  return static_cast<char*>(data) + elements * item;
}
inline const void* advance(const void* data, std::int64_t elements, std::int64_t item) noexcept {
  return static_cast<const char*>(data) + elements * item;
}

/// Calls `fn.template operator()<T>()` with an unsigned integer of `item` bytes, 1 to 8.
template <class Fn>
decltype(auto) visit_unsigned(std::int64_t item, Fn&& fn) {
  switch (item) {
    case 1: return fn.template operator()<std::uint8_t>();
    case 2: return fn.template operator()<std::uint16_t>();
    case 4: return fn.template operator()<std::uint32_t>();
    default: return fn.template operator()<std::uint64_t>();
  }
}

/// As visit_unsigned, with a pair of words for items of 16 bytes: for what only moves them.
template <class Fn>
decltype(auto) visit_item(std::int64_t item, Fn&& fn) {
  if (item == 16) return fn.template operator()<functors::Item16>();
  return visit_unsigned(item, fn);
}

}  // namespace thalweg::cpu
