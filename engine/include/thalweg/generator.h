// generator.h: counter-based random streams: what a value is depends on seed and issue order only.
#pragma once

#include <atomic>
#include <cstdint>

namespace thalweg {

/// A seed and a counter. Each random operator takes `draws` counters when it is issued, on the caller's
/// thread, so its values do not depend on when or where it runs. Thread-safe.
class Generator {
 public:
  explicit Generator(std::uint64_t seed = 0) noexcept : seed_(seed) {}

  std::uint64_t seed() const noexcept { return seed_.load(std::memory_order_relaxed); }
  std::uint64_t counter() const noexcept { return counter_.load(std::memory_order_relaxed); }
  /// Takes `draws` counters; the first of them.
  std::uint64_t take(std::uint64_t draws) noexcept {
    return counter_.fetch_add(draws, std::memory_order_relaxed);
  }
  /// Gives back what `take` gave at `first`, unless others have taken since.
  void put_back(std::uint64_t first, std::uint64_t draws) noexcept {
    std::uint64_t taken = first + draws;
    counter_.compare_exchange_strong(taken, first, std::memory_order_relaxed);
  }
  void set(std::uint64_t seed, std::uint64_t counter) noexcept {
    seed_.store(seed, std::memory_order_relaxed);
    counter_.store(counter, std::memory_order_relaxed);
  }

 private:
  std::atomic<std::uint64_t> seed_;
  std::atomic<std::uint64_t> counter_{0};
};

/// The counters that a random Op of `numel` elements takes: one for every two elements, rounded up.
std::uint64_t random_draws(std::int64_t numel) noexcept;

}  // namespace thalweg
