// strided_loop.h: runs an inner loop over broadcast, strided operands, in parallel where size pays.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include <thalweg/kernel.h>

#include "kernels/cpu/elementwise_table.h"

namespace thalweg::cpu {

/// The most operands of one loop: an output and three inputs.
inline constexpr int kMaxOperands = 4;

/// Elements that one thread takes at a time, about 10 us of work; a power of two. It depends on the Op and
/// the dtype only, so that chunks are the same for any number of threads.
std::int64_t chunk_elements(float ns_per_element) noexcept;

/// The estimated time of one element, by the Op and the dtype it computes in.
inline float element_ns(const KernelContext& context) noexcept {
  return context.op().element_ns((context.input_count() > 0 ? context.input(0) : context.output()).dtype());
}

/// True where `count` elements are worth more than one thread.
inline bool pays_in_parallel(std::int64_t count, std::int64_t chunk) noexcept { return count >= 3 * chunk; }

/// `body(chunk)` for each of `chunks`, which share `elements` of the Op: by several threads where those take
/// longer than a thread needs to wake up. The chunks are the same either way.
template <class Body>
void for_chunks(const KernelContext& context, std::int64_t elements, std::int64_t chunks, const Body& body) {
  constexpr float kWorthwhile = 40'000;  // nanoseconds
  if (static_cast<float>(elements) * element_ns(context) >= kWorthwhile) {
    return context.parallel_for(chunks, body);
  }
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) body(chunk);
}

/// A chunk of at most `chunk`, so that few threads get equal shares of `count`.
inline std::int64_t even_chunk(std::int64_t count, std::int64_t chunk) noexcept {
  constexpr std::int64_t kShares = 8;
  constexpr std::int64_t kStep = 1024;
  return std::min(chunk, (count / kShares + kStep - 1) / kStep * kStep);
}

/// Runs `loop` over the context's output 0 and `inputs`, each broadcast to the output's shape. Cheapest where
/// all are contiguous or single elements: then it neither allocates nor looks at axes. Otherwise axes are
/// merged, a long one is made the inner one, and operands in different orders are crossed tile by tile to
/// stay in cache.
void run_loop(const KernelContext& context, Loop loop, std::span<const TensorView> inputs);

/// As run_loop, of a loop that takes float32 where operands have half-precision dtypes: they are converted
/// piece by piece.
void run_half_loop(const KernelContext& context, Loop loop, std::span<const TensorView> inputs);

/// Copies input 0, of the output's dtype or item size: as run_loop, and where axes are crossed small blocks
/// are transposed in registers.
void run_copy(const KernelContext& context);

/// `body(begin, end)` for the ranges that cover [0, count), in parallel where that pays. `body` must not
/// throw.
template <class Body>
void for_ranges(const KernelContext& context, std::int64_t count, Body&& body) {
  std::int64_t chunk = chunk_elements(element_ns(context));
  if (!pays_in_parallel(count, chunk)) return body(std::int64_t{0}, count);
  chunk = even_chunk(count, chunk);
  context.parallel_for((count + chunk - 1) / chunk, [&](std::int64_t index) {
    std::int64_t begin = index * chunk;
    body(begin, begin + chunk < count ? begin + chunk : count);
  });
}

}  // namespace thalweg::cpu
