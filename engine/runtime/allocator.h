// allocator.h: the bytes of one device: a free list per size of block, a limit, and figures.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include <thalweg/engine.h>

#include "core/buffer.h"

namespace thalweg {

/// Host memory of one (posed) device. Thread-safe. Buffers may outlive the engine: the allocator dies with
/// the last of them once its owner let go.
class Allocator {
 public:
  static constexpr std::int64_t kAlignment = 64;

  Allocator(std::int64_t cache_limit, std::int64_t memory_limit);
  Allocator(const Allocator&) = delete;
  Allocator& operator=(const Allocator&) = delete;

  /// A buffer of `bytes` with one reference, or nullptr over the limit or when the system has none left. At
  /// most Buffer::kInlineBytes cost no block and do not count.
  Buffer* try_allocate(std::int64_t bytes);

  MemoryStats stats() const;
  void reset_peak();
  void set_memory_limit(std::int64_t bytes);
  /// Gives every kept block back to the system.
  void trim();
  /// As trim, and from now on blocks go straight back.
  void stop_keeping();
  /// The owner goes; the allocator deletes itself when no buffer is left.
  void disown();

 private:
  ~Allocator();
  void* take_block(std::int64_t size);
  void give_block(void* data, std::int64_t size) noexcept;
  void trim_locked() noexcept;
  static void free_buffer(void* owner, void* data, std::int64_t size) noexcept;

  mutable std::mutex lock_;
  std::unordered_map<std::int64_t, std::vector<void*>> free_;
  std::int64_t cache_limit_;
  std::int64_t memory_limit_;
  std::int64_t live_ = 0;
  std::int64_t peak_ = 0;
  std::int64_t cached_ = 0;
  bool owned_ = true;
};

struct DisownAllocator {
  void operator()(Allocator* allocator) const { allocator->disown(); }
};
using AllocatorOwner = std::unique_ptr<Allocator, DisownAllocator>;

}  // namespace thalweg
