// parallel_loop.h: the state of one parallel loop of a kernel.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>

#include <oneapi/tbb/task.h>

#include "core/slab_pool.h"
#include "runtime/device_arena.h"
#include "runtime/engine_task.h"

namespace thalweg {

/// A kernel's parallel loop. It lives until the last of its invited parts has come, which may be after its
/// end.
struct alignas(64) ParallelLoop {
  void begin(DeviceArena& its_arena, std::int64_t its_chunks, void (*its_body)(void*, std::int64_t),
             void* its_context) noexcept {
    arena = &its_arena;
    op = EngineTask::running_operator();
    chunks = its_chunks;
    body = its_body;
    context = its_context;
    taken.store(0, std::memory_order_relaxed);
    first.store(0, std::memory_order_relaxed);
    last.store(chunks, std::memory_order_relaxed);
    unfinished.store(chunks, std::memory_order_relaxed);
    const auto helpers = static_cast<int>(std::min<std::int64_t>(its_arena.threads(), chunks)) - 1;
    invitations.store(helpers, std::memory_order_relaxed);
    references.store(helpers + 1, std::memory_order_relaxed);
    met.store(false, std::memory_order_relaxed);
    error_chunk = its_chunks;
  }

  /// Who works on it: the caller takes chunks from the first one on, parts that join from the last one back.
  /// Of loop after loop over the same tensors each thread then meets what it has in its own cache.
  enum class Side { caller, part };

  /// Runs chunks while there are any. True if one of them was the last to be finished.
  bool work(Side side) noexcept {
    std::int64_t ran = 0;
    for (; taken.fetch_add(1, std::memory_order_relaxed) < chunks; ++ran) {
      // No more than `chunks` come here, so that the sides never meet.
      const std::int64_t chunk = side == Side::caller ? first.fetch_add(1, std::memory_order_relaxed)
                                                      : last.fetch_sub(1, std::memory_order_relaxed) - 1;
      try {
        body(context, chunk);
      } catch (...) {
        keep_error(chunk);
      }
    }
    // Acquire-release: whoever sees 0 sees what every chunk wrote.
    return ran > 0 && unfinished.fetch_sub(ran, std::memory_order_acq_rel) == ran;
  }
  /// Of several the one of the lowest chunk, so that it does not depend on threads.
  void keep_error(std::int64_t chunk) noexcept {
    const std::lock_guard guard(error_lock);
    if (chunk >= error_chunk) return;
    error_chunk = chunk;
    error = std::current_exception();
  }
  bool has_chunks() const noexcept { return taken.load(std::memory_order_relaxed) < chunks; }
  /// Not inlined: its caller may have gone from one thread to another, and the pool keeps thread-locals.
  [[gnu::noinline]] void unref() noexcept {
    if (references.fetch_sub(1, std::memory_order_acq_rel) == 1) SlabPool<ParallelLoop>::give(this);
  }

  DeviceArena* arena = nullptr;
  const Operator* op = nullptr;  ///< whose loop it is
  std::int64_t chunks = 0;
  void (*body)(void*, std::int64_t) = nullptr;
  void* context = nullptr;
  std::atomic<std::int64_t> taken{0};
  std::atomic<std::int64_t> first{0};  ///< the caller's next chunk
  std::atomic<std::int64_t> last{0};   ///< one behind the next chunk of the parts
  std::atomic<std::int64_t> unfinished{0};
  std::atomic<int> invitations{0};
  std::atomic<int> references{0};
  /// Set by the caller that suspended itself and by the part that ran the last chunk: the second of them
  /// resumes the caller.
  std::atomic<bool> met{false};
  tbb::task::suspend_point caller = nullptr;
  std::mutex error_lock;
  std::int64_t error_chunk = 0;  ///< the lowest that threw, else `chunks`
  std::exception_ptr error;
};

}  // namespace thalweg
