// sleeper.h: a thread that sleeps until an operand is done, and may give up.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "graph/operand.h"

namespace thalweg {

/// Shared by the sleeping thread and the operand's waiter list, because a sleeper that gives up cannot leave
/// the list.
class Sleeper final : public Waiter {
 public:
  static Sleeper* on(Operand& operand) {
    auto* sleeper = new Sleeper;
    if (operand.add_waiter(sleeper)) return sleeper;
    delete sleeper;
    return nullptr;
  }

  /// True once the operand is done.
  bool sleep(std::chrono::microseconds timeout) {
    std::unique_lock lock(lock_);
    return changed_.wait_for(lock, timeout, [this] { return done_; });
  }
  void unref() noexcept {
    if (refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

 private:
  Sleeper() {
    notify = [](Waiter* waiter) noexcept {
      auto* self = static_cast<Sleeper*>(waiter);
      {
        std::lock_guard guard(self->lock_);
        self->done_ = true;
      }
      self->changed_.notify_all();
      self->unref();
    };
  }

  std::atomic<int> refs_{2};
  std::mutex lock_;
  std::condition_variable changed_;
  bool done_ = false;
};

}  // namespace thalweg
