// failure_log.h: the failures of one engine that nobody was told of yet.
#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <utility>
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

  /// Throws the oldest unreported failure of the operators with an id below `before`, if there is one, with
  /// the texts of the others behind it. An exception that is not ours has no place for them: they stay.
  void raise_before(std::uint64_t before);

  /// The unreported failures of operators with an id below `before`, oldest first (references); `others`
  /// counts those that were not kept.
  std::vector<Failure*> take_before(std::uint64_t before, std::uint64_t& others) {
    std::lock_guard guard(lock_);
    drop_reported();
    const auto later = std::stable_partition(failures_.begin(), failures_.end(), [&](const Failure* failure) {
      return failure->operator_id < before;
    });
    std::vector<Failure*> taken(failures_.begin(), later);
    failures_.erase(failures_.begin(), later);
    others = taken.empty() ? 0 : std::exchange(dropped_, 0);
    std::sort(taken.begin(), taken.end(),
              [](const Failure* a, const Failure* b) { return a->operator_id < b->operator_id; });
    return taken;
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

  void put_back(const std::vector<Failure*>& failures, std::uint64_t not_kept);
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
