// arena_ref.h: a DeviceArena as it is known to threads and marks that may outlive it.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/slab_pool.h"

namespace thalweg {

class DeviceArena;

/// Reads as nullptr once the arena is gone.
class ArenaRef {
 public:
  /// Where an arena says that it is alive. Never unmapped, so that a late look at it is harmless.
  struct Slot {
    std::atomic<std::uint64_t> generation{0};
    DeviceArena* arena = nullptr;
  };

  constexpr ArenaRef() noexcept = default;
  explicit ArenaRef(const Slot& slot) noexcept
      : slot_(&slot), generation_(slot.generation.load(std::memory_order_acquire)) {}

  DeviceArena* get() const noexcept {
    if (slot_ == nullptr || slot_->generation.load(std::memory_order_acquire) != generation_) return nullptr;
    return slot_->arena;
  }

 private:
  const Slot* slot_ = nullptr;
  std::uint64_t generation_ = 0;
};

/// The slot of one arena while that lives.
class ArenaRefSource {
 public:
  explicit ArenaRefSource(DeviceArena& arena) : slot_(SlabPool<ArenaRef::Slot>::take()) {
    slot_->arena = &arena;
  }
  ~ArenaRefSource() {
    slot_->generation.fetch_add(1, std::memory_order_release);
    SlabPool<ArenaRef::Slot>::give(slot_);
  }
  ArenaRefSource(const ArenaRefSource&) = delete;
  ArenaRefSource& operator=(const ArenaRefSource&) = delete;

  ArenaRef ref() const noexcept { return ArenaRef(*slot_); }

 private:
  ArenaRef::Slot* const slot_;
};

}  // namespace thalweg
