// progress.h: how many operators have finished, and sleeping until more have.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <new>

namespace thalweg {

/// A counter that threads can sleep on. Counting costs one addition and one load while nobody sleeps.
class Progress {
 public:
  std::uint64_t finished() const noexcept { return finished_.load(std::memory_order_seq_cst); }

  void add(std::uint64_t count) noexcept {
    // seq_cst: either the sleeper, which sets wake_at_ and reads finished_, sees the count or we see
    // wake_at_.
    const std::uint64_t now = finished_.fetch_add(count, std::memory_order_seq_cst) + count;
    if (now >= wake_at_.load(std::memory_order_seq_cst)) [[unlikely]]
      wake();
  }

  /// Sleeps until `finished() >= target` or `timeout` passed. May return early.
  void sleep_until(std::uint64_t target, std::chrono::microseconds timeout) {
    std::unique_lock lock(lock_);
    wake_at_.store(std::min(wake_at_.load(std::memory_order_relaxed), target), std::memory_order_seq_cst);
    if (finished() >= target) return;
    changed_.wait_for(lock, timeout);
  }

  /// Sleeps while `waiting()`, which somebody ends and then calls `wake`.
  template <class Waiting>
  void sleep_while(Waiting&& waiting, std::chrono::microseconds timeout) {
    std::unique_lock lock(lock_);
    changed_.wait_for(lock, timeout, [&] { return !waiting(); });
  }

  /// Wakes every sleeper.
  void wake() noexcept {
    {
      std::lock_guard guard(lock_);
      wake_at_.store(kNever, std::memory_order_seq_cst);
    }
    changed_.notify_all();
  }

  /// In a forked child: the sleepers do not exist here.
  void forget_sleepers() noexcept {
    wake_at_.store(kNever, std::memory_order_relaxed);
    // Made anew without destruction: destroying a condition variable waits for its sleepers.
    new (&lock_) std::mutex;
    new (&changed_) std::condition_variable;
  }

 private:
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};

  alignas(64) std::atomic<std::uint64_t> finished_{0};
  alignas(64) std::atomic<std::uint64_t> wake_at_{kNever};
  std::mutex lock_;
  std::condition_variable changed_;
};

}  // namespace thalweg
