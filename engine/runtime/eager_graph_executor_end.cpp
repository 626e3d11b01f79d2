// eager_graph_executor_end.cpp: waiting until nothing is in flight: new arenas, shutdown, fork.
#include <chrono>
#include <new>
#include <thread>
#include <utility>

#include <thalweg/errors.h>

#include "runtime/device_arena.h"
#include "runtime/eager_graph_executor.h"
#include "runtime/engine_task.h"
#include "runtime/host_release.h"

namespace thalweg {
namespace {

/// Who waits for the end of everything looks for interrupts this often.
constexpr std::chrono::milliseconds kTick{50};

}  // namespace

void EagerGraphExecutor::set_num_threads(int threads, std::atomic<int>& current) {
  if (forked_) return current.store(threads);  // in the child no runner is left that the baton is for
  const HostRelease release(hooks_);
  take_baton();
  if (current.load() != threads) {
    give_baton();
    take_settled(true);
    // With the baton: of calls at the same time the last one's threads are what `current` says.
    if (!forked_) runner_->rebuild(threads);
  }
  current.store(threads);
  give_baton();
}

/// Takes the baton when everything sent has finished and its slots are back. Application threads are held
/// back meanwhile, or they could keep it going for ever; a running kernel may issue operators and wait for
/// them.
void EagerGraphExecutor::take_settled(bool may_interrupt) {
  struct Hold {
    explicit Hold(EagerGraphExecutor& executor) : self(executor) { self.admission_.begin_hold(); }
    ~Hold() {
      self.admission_.end_hold();
      self.progress_.wake();
    }
    EagerGraphExecutor& self;
  } hold(*this);
  while (!forked_) {
    take_baton();
    if (settle_for(kTick)) return;
    // A signal handler may use the engine.
    give_baton();
    if (may_interrupt) check_interrupted();
  }
  take_baton();  // the host's code has forked, and this is the child
}

/// With the baton. False if something was still in flight after `time`.
bool EagerGraphExecutor::settle_for(std::chrono::milliseconds time) noexcept {
  const auto end = std::chrono::steady_clock::now() + time;
  for (;;) {
    const std::uint64_t finished = progress_.finished();
    drain();
    if (!queue_.empty()) continue;
    if (graph_.empty()) return true;
    if (runner_->parked() > 0 && !runner_->retry_parked(false) && is_stuck() &&
        !runner_->retry_parked(true) && is_stuck()) {
      runner_->fail_parked();
    }
    const std::uint64_t left = graph_.count_before(~std::uint64_t{0});
    if (left == 0) {
      // The last one woke us before its flow task was over, perhaps on its own core: let it get there.
      std::this_thread::yield();
      continue;
    }
    progress_.sleep_until(finished + left, std::chrono::milliseconds(1));
    ease_holds();
    if (std::chrono::steady_clock::now() >= end) return false;
  }
}

void EagerGraphExecutor::drain_all(bool may_interrupt) {
  if (forked_) return;
  const HostRelease release(hooks_);
  take_settled(may_interrupt);
  give_baton();
}

void EagerGraphExecutor::shutdown() noexcept {
  if (forked_) return;
  const HostRelease release(hooks_);
  take_settled(false);
  give_baton();
  {
    std::lock_guard guard(controller_lock_);
    stop_.store(true, std::memory_order_release);
  }
  controller_wake_.notify_one();
  if (controller_thread_.joinable()) controller_thread_.join();
  take_settled(false);
  runner_->rebuild(1);
  give_baton();
}

// --- fork
// -----------------------------------------------------------------------------------------------------------

bool EagerGraphExecutor::runs_this_thread() const noexcept {
  const void* const callback = EngineTask::executor_of_callback();
  if (callback == static_cast<const GraphExecutor*>(this)) return true;
  const DeviceArena* arena = EngineTask::arena();
  return arena != nullptr && arena->owner() == runner_.get();
}

void EagerGraphExecutor::settle_for_fork() noexcept {
  if (forked_ || EngineTask::active()) return;
  if (!std::exchange(held_for_fork_, true)) admission_.begin_hold();  // until after it
  take_settled(false);
  give_baton();
}

void EagerGraphExecutor::release_after_try() noexcept {
  if (!forked_ && forked_with_baton_) give_baton();
}

bool EagerGraphExecutor::hold_for_fork() noexcept {
  if (forked_) return true;
  forked_with_baton_ = true;
  if (!EngineTask::active()) {
    take_baton();
    drain();
    reap();
    return queue_.empty() && graph_.empty();
  }
  // From inside an operator or a callback waiting would be for ourselves: values in flight are lost to the
  // child.
  for (int tries = 0; !try_baton(); ++tries) {
    if (tries == 1000) {
      forked_with_baton_ = false;
      return true;
    }
    std::this_thread::yield();
  }
  return true;
}

void EagerGraphExecutor::after_fork_in_parent() noexcept {
  if (std::exchange(held_for_fork_, false)) admission_.end_hold();
  if (!forked_ && forked_with_baton_) give_baton();
  progress_.wake();
}

/// None of the engine's threads exist here: operators run in the issuing call from now on.
void EagerGraphExecutor::after_fork_in_child() noexcept {
  forked_ = true;
  graph_.operand_names().keep_all(false);  // recordings are the parent's too
  naive_.failures().forget();  // the parent's to report; whoever reads such a value here is told still
  admission_.forget_holds();
  held_for_fork_ = false;
  progress_.forget_sleepers();
  if (controller_thread_.joinable()) controller_thread_.detach();
  new (&controller_lock_) std::mutex;
  new (&controller_wake_) std::condition_variable;
  static_cast<void>(runner_.release());  // its threads are gone: leaked, never joined
  baton_.store(false, std::memory_order_relaxed);
  takers_.store(0, std::memory_order_relaxed);
}

}  // namespace thalweg
