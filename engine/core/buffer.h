// buffer.h: reference-counted bytes on one device. Up to 64 bytes live in the object itself.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "core/slab_pool.h"

namespace thalweg {

/// Bytes that one or more operands (a value and its views) share. Any thread may hold and drop references.
class Buffer {
 public:
  static constexpr std::int64_t kInlineBytes = 64;

  /// A buffer of at most kInlineBytes with one reference.
  static Buffer* make_inline() {
    Buffer* buffer = SlabPool<Buffer>::take();
    buffer->reset(buffer->inline_bytes_, nullptr, nullptr, 0);
    return buffer;
  }

  /// A buffer over `data`; `free(owner, data, bytes)` runs with the last reference.
  using FreeFn = void (*)(void* owner, void* data, std::int64_t bytes) noexcept;
  static Buffer* make(void* data, std::int64_t bytes, FreeFn free, void* owner) {
    Buffer* buffer = SlabPool<Buffer>::take();
    buffer->reset(data, free, owner, bytes);
    return buffer;
  }

  /// A buffer over foreign memory, which is never written; `release` runs with the last reference, on any
  /// thread.
  static Buffer* make_foreign(void* data, std::function<void()> release) {
    auto* held = new std::function<void()>(std::move(release));
    Buffer* buffer = make(
        data, 0,
        [](void* owner, void*, std::int64_t) noexcept {
          auto* release = static_cast<std::function<void()>*>(owner);
          if (*release) (*release)();
          delete release;
        },
        held);
    buffer->foreign_ = true;
    return buffer;
  }

  void* data() const noexcept { return data_; }
  bool is_foreign() const noexcept { return foreign_; }
  std::int64_t capacity() const noexcept { return data_ == inline_bytes_ ? kInlineBytes : bytes_; }

  void ref() noexcept { refs_.fetch_add(1, std::memory_order_relaxed); }
  void unref() noexcept {
    // A sole owner needs no read-modify-write; acquire pairs with the release of owners that went before.
    if (refs_.load(std::memory_order_acquire) == 1 || refs_.fetch_sub(1, std::memory_order_acq_rel) == 1)
      destroy();
  }
  /// True if the caller's reference is the only one: pairs with the release in `unref` of the others.
  bool is_unique() const noexcept { return refs_.load(std::memory_order_acquire) == 1; }

 private:
  friend class SlabPool<Buffer>;

  void reset(void* data, FreeFn free, void* owner, std::int64_t bytes) noexcept {
    refs_.store(1, std::memory_order_relaxed);
    foreign_ = false;
    data_ = data;
    free_ = free;
    owner_ = owner;
    bytes_ = bytes;
  }
  void destroy() noexcept {
    if (free_ != nullptr) free_(owner_, data_, bytes_);
    SlabPool<Buffer>::give(this);
  }

  std::atomic<std::int32_t> refs_{0};
  bool foreign_ = false;
  void* data_ = nullptr;
  FreeFn free_ = nullptr;
  void* owner_ = nullptr;
  std::int64_t bytes_ = 0;
  alignas(64) std::byte inline_bytes_[kInlineBytes];
};

}  // namespace thalweg
