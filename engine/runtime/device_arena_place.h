// device_arena_place.h: how a thread knows the device's arena that it is in.
#pragma once

#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_scheduler_observer.h>

#include "core/slab_pool.h"
#include "runtime/arena_ref.h"
#include "runtime/device_arena.h"
#include "runtime/engine_task.h"

namespace thalweg {

/// Tells the threads of a device's arena which one they are in.
class DeviceArena::Place final : public tbb::task_scheduler_observer {
 public:
  Place(tbb::task_arena& arena, ArenaRef ref) : tbb::task_scheduler_observer(arena), ref_(ref) {
    observe(true);
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  // A worker is in one arena at a time; one that is still on its way out of an arena that is gone keeps a
  // reference that reads as nullptr. Other threads may go from one arena into another and back, as where a
  // kernel closes another engine.
  void on_scheduler_entry(bool is_worker) override {
    Presence& presence = of_thread();
    if (is_worker) presence.depth = 0;
    if (presence.depth < Presence::kDeepest) {
      presence.refs[presence.depth] = ref_;
      presence.outer_marks[presence.depth] = EngineTask::exchange({});
    }
    ++presence.depth;
  }
  void on_scheduler_exit(bool is_worker) override {
    Presence& presence = of_thread();
    presence.depth = is_worker ? 0 : presence.depth - 1;
    // Of a worker: what a kernel that went on elsewhere may have left behind.
    EngineTask::exchange(is_worker || presence.depth >= Presence::kDeepest
                             ? EngineTask::Mark{}
                             : presence.outer_marks[presence.depth]);
  }

  static DeviceArena* here() noexcept {
    const Presence& presence = of_thread();
    const int depth = std::min(presence.depth, Presence::kDeepest);
    return depth == 0 ? nullptr : presence.refs[depth - 1].get();
  }

  /// oneTBB keeps a record of an observer until the last worker has left the arena, and the record dies with
  /// the arena only while the observer is there. So places go when their records have gone.
  static void retire(std::unique_ptr<Place> place) {
    struct Retired {
      Retired() { PoolLocks::add(&lock); }
      std::mutex lock;
      std::vector<std::unique_ptr<Place>> places;
    };
    static Retired& retired = *new Retired;  // leaked, as workers may outlive static destructors
    const std::lock_guard guard(retired.lock);
    std::erase_if(retired.places, [](const auto& old) {
      if (old->is_observing()) return false;
      old->observe(false);  // changes nothing, but is ordered after the last worker's call of it
      return true;
    });
    retired.places.push_back(std::move(place));
  }

 private:
  struct Presence {
    static constexpr int kDeepest = 4;
    int depth = 0;
    ArenaRef refs[kDeepest];
    EngineTask::Mark outer_marks[kDeepest];
  };
  // Never inlined: a caller may have gone from one thread to another.
  [[gnu::noinline]] static Presence& of_thread() noexcept {
    static constinit thread_local Presence presence;
    return presence;
  }

  const ArenaRef ref_;
};

}  // namespace thalweg
