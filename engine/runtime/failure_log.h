// failure_log.h: the failures of one engine that nobody was told of yet.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "core/slab_pool.h"
#include "graph/failure.h"

namespace thalweg {

/// Thread-safe. Holds a reference on each failure until it was reported.
class FailureLog {
 public:
  FailureLog() { PoolLocks::add(&lock_); }
  FailureLog(const FailureLog&) = delete;
  FailureLog& operator=(const FailureLog&) = delete;
  ~FailureLog() {
    PoolLocks::remove(&lock_);
    for (Failure* failure : failures_) failure->unref();
  }

  void add(Failure* failure) {
    failure->ref();
    std::lock_guard guard(lock_);
    ++total_;
    if (failures_.size() >= kKept) drop_reported();
    if (failures_.size() >= kKept) {
      failure->unref();
      ++dropped_;
      return;
    }
    failures_.push_back(failure);
  }

  /// The oldest unreported failure of an operator with an id below `before` (a reference) or nullptr;
  /// `others` counts the rest. Marks them all as reported.
  Failure* take_oldest(std::uint64_t before, std::uint64_t& others) {
    std::lock_guard guard(lock_);
    drop_reported();
    Failure* oldest = nullptr;
    others = 0;
    for (Failure* failure : failures_) {
      if (failure->operator_id >= before) continue;
      failure->reported.store(true, std::memory_order_relaxed);
      if (oldest == nullptr || failure->operator_id < oldest->operator_id) {
        others += oldest != nullptr ? 1 : 0;
        oldest = failure;
      } else {
        ++others;
      }
    }
    if (oldest != nullptr) {
      oldest->ref();
      others += dropped_;
      dropped_ = 0;
    }
    drop_reported();
    return oldest;
  }

  /// Every unreported failure, oldest first (references); `others` counts those that were not kept.
  std::vector<Failure*> take_all(std::uint64_t& others) {
    std::lock_guard guard(lock_);
    drop_reported();
    others = std::exchange(dropped_, 0);
    return std::exchange(failures_, {});
  }

  /// Somebody else tells of those so far: the parent of a forked process.
  void forget() {
    std::uint64_t others = 0;
    for (Failure* failure : take_all(others)) failure->unref();
  }

  std::uint64_t total() const {
    std::lock_guard guard(lock_);
    return total_;
  }

 private:
  static constexpr std::size_t kKept = 1024;

  void drop_reported() {
    std::erase_if(failures_, [](Failure* failure) {
      const bool reported = failure->reported.load(std::memory_order_relaxed);
      if (reported) failure->unref();
      return reported;
    });
  }

  mutable std::mutex lock_;
  std::vector<Failure*> failures_;
  std::uint64_t total_ = 0;
  std::uint64_t dropped_ = 0;
};

}  // namespace thalweg
