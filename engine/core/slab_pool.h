// slab_pool.h: process-wide pools of type-stable slots with a per-thread magazine in front.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

namespace thalweg {

/// Locks of pools and allocators, which must be free in a forked child; see runtime/fork.cpp.
class PoolLocks {
 public:
  static void add(std::mutex* lock);
  static void remove(std::mutex* lock);
  static void lock_all();
  static void unlock_all();
};

/// Hands out slots of `T`. A slot is constructed once and never destroyed or given back to the system, so a
/// late read through a stale pointer finds a `T` (possibly reused), never unmapped memory. Any thread may
/// take and give.
template <class T>
class SlabPool {
 public:
  static T* take() {
    Magazine& magazine = magazine_;
    if (magazine.count == 0) refill(magazine);
    T* slot = magazine.slots[--magazine.count];
    if (magazine.count >= kAhead) prefetch(magazine.slots[magazine.count - kAhead]);
    return slot;
  }

  /// Makes the pool's shared part, which must not happen for the first time while another thread forks.
  static void prepare() { static_cast<void>(shared()); }

  static void give(T* slot) noexcept {
    Magazine& magazine = magazine_;
    if (magazine.state != State::open) [[unlikely]]
      return give_unusually(magazine, slot);
    if (magazine.count == kMagazine) spill(magazine);
    magazine.slots[magazine.count++] = slot;
  }

 private:
  static constexpr std::size_t kMagazine = 128;
  static constexpr std::size_t kBatch = 64;
  static constexpr std::size_t kSlab = 256;
  static constexpr std::size_t kAhead = 2;

  enum class State : unsigned char { unused, open, closed };

  // Zero-initialised and trivially destructible, so that access needs no guard; `Closer` empties it at thread
  // exit.
  struct Magazine {
    T* slots[kMagazine];
    std::size_t count;
    State state;
  };
  struct Closer {
    ~Closer() {
      magazine_.state = State::closed;
      while (magazine_.count > 0) spill(magazine_);
    }
  };
  static void open(Magazine& magazine) {
    static thread_local Closer closer;
    static_cast<void>(closer);
    magazine.state = State::open;
  }
  /// The first slot of a thread that never took one, or a slot that comes after the thread's magazine was
  /// closed.
  static void give_unusually(Magazine& magazine, T* slot) noexcept {
    if (magazine.state == State::unused) open(magazine);
    magazine.slots[magazine.count++] = slot;
    if (magazine.state == State::closed) spill(magazine);
  }
  struct Shared {
    Shared() { PoolLocks::add(&lock); }
    std::mutex lock;
    std::vector<T*> free;
    std::vector<std::unique_ptr<T[]>> slabs;
  };

  // Leaked on purpose: threads of the host may give slots back after static destructors ran.
  static Shared& shared() {
    static Shared* instance = new Shared;
    return *instance;
  }

  /// A slot comes back from the thread that used it last, often on another core: its lines are on their way
  /// before it is taken.
  static void prefetch(T* slot) noexcept {
    auto* bytes = reinterpret_cast<const char*>(slot);
    for (std::size_t line = 0; line < sizeof(T); line += 64) __builtin_prefetch(bytes + line, 1);
  }

  static void refill(Magazine& magazine) {
    if (magazine.state == State::unused) open(magazine);
    Shared& pool = shared();
    std::lock_guard guard(pool.lock);
    if (pool.free.size() < kBatch) {
      pool.slabs.push_back(std::make_unique<T[]>(kSlab));
      for (std::size_t i = 0; i < kSlab; ++i) pool.free.push_back(&pool.slabs.back()[i]);
    }
    for (std::size_t i = 0; i < kBatch; ++i) {
      magazine.slots[magazine.count++] = pool.free.back();
      pool.free.pop_back();
    }
  }

  static void spill(Magazine& magazine) noexcept {
    Shared& pool = shared();
    std::lock_guard guard(pool.lock);
    for (std::size_t i = 0; i < kBatch && magazine.count > 0; ++i) {
      pool.free.push_back(magazine.slots[--magazine.count]);
    }
  }

  static inline constinit thread_local Magazine magazine_{};
};

}  // namespace thalweg
