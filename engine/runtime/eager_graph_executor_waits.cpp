// eager_graph_executor_waits.cpp: waiting callers that help, and the controller thread.
#include <chrono>
#include <system_error>
#include <thread>
#if defined(__linux__)
#include <sys/prctl.h>
#endif

#include <thalweg/errors.h>

#include "runtime/device_arena.h"
#include "runtime/eager_graph_executor.h"
#include "runtime/engine_task.h"
#include "runtime/host_release.h"
#include "runtime/sleeper.h"

namespace thalweg {
namespace {

using std::chrono::microseconds;

/// A wait looks for interrupts and stuck operators this often.
constexpr microseconds kTick{50'000};
constexpr microseconds kParkedTick{1'000};
constexpr microseconds kNap{50};
constexpr int kNaps = 20;
/// About as long as a sleep and a wake-up cost.
constexpr microseconds kSpin{4};
/// How many live operators a synchronising caller looks at for one to help with.
constexpr int kHelpLook = 8;

bool spin_until_done(const Operand& operand) {
  const auto end = std::chrono::steady_clock::now() + kSpin;
  do {
    for (int i = 0; i < 32; ++i) {
      if (operand.is_done()) return true;
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    }
  } while (std::chrono::steady_clock::now() < end);
  return operand.is_done();
}

}  // namespace

/// Runs the host's code, which may use the engine and may fork: in the child `forked_` is set afterwards, and
/// there is no runner.
bool EagerGraphExecutor::is_interrupted() {
  if (hooks_.interrupted == nullptr) return false;
  const Admission::HostCode host_code(admission_);
  return hooks_.interrupted();
}

void EagerGraphExecutor::check_interrupted() {
  if (is_interrupted()) throw Interrupted();
}

/// Drains if the baton is free and runs one short ancestor of `operand`, if one is ready.
EagerGraphExecutor::Helped EagerGraphExecutor::help(Operand& operand) {
  if (!try_baton()) return Helped::baton_is_taken;
  drain();
  Operator* op = operand.is_done() ? nullptr : runner_->claim_ancestor(operand);
  give_baton();
  if (op == nullptr) return Helped::nothing_to_run;
  runner_->run_claimed(op);
  return Helped::ran_one;
}

void EagerGraphExecutor::wait(Operand& operand) {
  if (operand.is_done()) return;
  if (EngineTask::in_callback()) {
    throw EngineError(
        "wait: a completion callback must not wait for a value; issue operators or hand the work on");
  }
  if (DeviceArena::in_foreign_task()) {
    // Its thread may be the last one, and a kernel that waits for the task would not give its own away.
    throw EngineError(
        "wait: a oneTBB task that a kernel started must not wait for a value; wait before, or use "
        "KernelContext::parallel_for, whose chunks may wait");
  }
  if (forked_) return wait_in_child(operand);
  const HostRelease release(hooks_);
  Helped helped = Helped::ran_one;
  apart_from_kernel([&] {
    while (helped == Helped::ran_one && !operand.is_done()) helped = help(operand);
  });
  if (operand.is_done()) return;
  if (helped == Helped::baton_is_taken) {
    // Whoever drains meets this behind the operand's producer; if it was about to stop, it looks at the queue
    // again.
    operand.ref();
    send(new ControlMessage(FetchValue{&operand}));
  }
  if (spin_until_done(operand)) return;
  inside_tbb_task() ? wait_inside_task(operand) : wait_outside_task(operand);
}

void EagerGraphExecutor::wait_outside_task(Operand& operand) {
  Sleeper* sleeper = Sleeper::on(operand);
  if (sleeper == nullptr) return;
  const std::unique_ptr<Sleeper, void (*)(Sleeper*)> owner(sleeper, [](Sleeper* self) { self->unref(); });
  // A kernel that waited for memory may run on this thread and wait too: the value needs a permit.
  const PermitPause pause;
  try_drain();
  while (!sleeper->sleep(runner_->parked() > 0 ? kParkedTick : kTick)) {
    try_drain();
    fail_parked_if_stuck();
    check_interrupted();
    if (forked_) return wait_in_child(operand);
  }
}

void EagerGraphExecutor::wait_in_child(Operand& operand) {
  drain_in_child();
  if (!operand.is_done()) throw EngineError("wait: the value was in flight when the process was forked");
}

/// The thread must go on serving the arena: a sleep here could take the last one away from the awaited
/// operator.
void EagerGraphExecutor::wait_inside_task(Operand& operand) {
  const DeviceArena* arena = EngineTask::arena();
  const Operator* const op =
      arena != nullptr && arena->owner() == runner_.get() ? EngineTask::running_operator() : nullptr;
  apart_from_kernel([&] { try_drain(); });
  if (op != nullptr) runner_->wait_begins(*op, operand);
  while (!operand.is_done()) {
    suspend_until_done(operand);
  }
  if (op != nullptr) runner_->wait_ends(*op, operand);
}

void EagerGraphExecutor::synchronise() {
  if (forked_) return;
  const std::uint64_t before = next_id_(id_owner_);
  const HostRelease release(hooks_);
  while (!forked_) {
    SyncPoint here;
    here.before = before;
    if (!try_baton()) {
      if (!meet_sync_point(here)) continue;
    } else {
      drain();
      reach(here);
      Operator* claimed = here.left > 0 ? claim_any() : nullptr;
      give_baton();
      if (claimed != nullptr) {
        runner_->run_claimed(claimed);
        continue;
      }
    }
    if (here.left == 0) return;
    progress_.sleep_until(here.finished + here.left, runner_->parked() > 0 ? kParkedTick : kTick);
    fail_parked_if_stuck();
    check_interrupted();
  }
}

void EagerGraphExecutor::settle_counts() {
  if (forked_ || EngineTask::active()) return;
  const HostRelease release(hooks_);
  inspect([](const LogicalGraph& graph, const Message*) {
    for (const Operator* op = graph.first(); op != nullptr; op = op->live_next) {
      while (op->claim.load(std::memory_order_acquire) == Operator::kFinished) std::this_thread::yield();
    }
  });
}

/// Somebody else drains: has it say how things stand when it gets to where we are. False if it has not in a
/// while.
bool EagerGraphExecutor::meet_sync_point(SyncPoint& here) {
  auto point = std::make_shared<SyncPoint>();
  point->before = here.before;
  send(new ControlMessage(Synchronise{point}));
  progress_.sleep_while([&] { return !point->reached.load(std::memory_order_acquire); }, kTick);
  check_interrupted();
  if (!point->reached.load(std::memory_order_acquire)) return false;
  here.finished = point->finished;
  here.left = point->left;
  return true;
}

/// With the baton: a short operator among the oldest that is ready and has not begun.
Operator* EagerGraphExecutor::claim_any() {
  Operator* op = graph_.first();
  for (int look = 0; op != nullptr && look < kHelpLook; ++look, op = op->live_next) {
    if (Operator* claimed = runner_->claim_ready(op)) return claimed;
  }
  return nullptr;
}

/// If operators wait for memory and nothing else can run any more, the oldest of them gets its error.
void EagerGraphExecutor::fail_parked_if_stuck() noexcept {
  if (runner_->parked() == 0 && !holds_for_parked_.load(std::memory_order_relaxed)) return;
  if (judging_.exchange(true, std::memory_order_acquire)) return;
  const auto now = std::chrono::steady_clock::now();
  if (runner_->parked() == 0) {
    hold_for_parked(false);
  } else if (parked_since_ == std::chrono::steady_clock::time_point{}) {
    parked_since_ = now;
  } else if (now - parked_since_ > kTick) {
    hold_for_parked(true);
  }
  // The user may have dropped tensors; and one further back may fit, and let the first go on when it has run.
  if (!runner_->retry_parked(false) && drain_if_stuck(false) && !runner_->retry_parked(true)) {
    drain_if_stuck(true);
  }
  ease_holds();
  judging_.store(false, std::memory_order_release);
}

/// Application threads that go on issuing could take the memory for ever, and there would never be a verdict.
void EagerGraphExecutor::hold_for_parked(bool on) noexcept {
  if (!on) parked_since_ = {};
  if (holds_for_parked_.exchange(on) == on) return;
  if (on) return admission_.begin_hold();
  admission_.end_hold();
  progress_.wake();
}

bool EagerGraphExecutor::drain_if_stuck(bool fail) noexcept {
  if (!try_baton()) return false;
  drain();
  // Under the baton, so that nothing is launched between the look and the verdict.
  const bool stuck = is_stuck();
  if (stuck && fail) runner_->fail_parked();
  give_baton();
  return stuck;
}

/// With the baton. The queue last: a kernel may have issued what it waits for now.
bool EagerGraphExecutor::is_stuck() const noexcept {
  return runner_->parked() > 0 && runner_->is_stuck(graph_) && queue_.empty();
}

/// Callers may be gone or merely poll: the controller sees to it, in caller mode too.
void EagerGraphExecutor::on_parked() noexcept {
  if (controller_.load(std::memory_order_seq_cst) != Controller::running) wake_controller();
}

// --- the controller thread
// ------------------------------------------------------------------------------------------

void EagerGraphExecutor::wake_controller() noexcept {
  if (forked_ || (mode_ != EngineMode::threaded && runner_->parked() == 0)) return;
  bool started = true;
  {
    std::lock_guard guard(controller_lock_);
    if (stop_.load(std::memory_order_relaxed)) return;
    if (!controller_thread_.joinable()) {
      started = start_controller();
    } else {
      controller_.store(Controller::running, std::memory_order_seq_cst);
    }
  }
  controller_wake_.notify_one();
  if (!started && !EngineTask::active()) try_drain();
}

/// Where the system has no thread for it, callers drain, and the next one tries again.
bool EagerGraphExecutor::start_controller() noexcept {
  controller_.store(Controller::running, std::memory_order_seq_cst);
  try {
    controller_thread_ = std::thread([this] { async_main(); });
    return true;
  } catch (const std::system_error&) {
    controller_.store(Controller::none, std::memory_order_seq_cst);
    return false;
  }
}

void EagerGraphExecutor::async_main() noexcept {
#if defined(__linux__)
  prctl(PR_SET_TIMERSLACK, 1000UL);  // the default of 50 us would double the naps
#endif
  int idle = 0;
  while (!stop_.load(std::memory_order_acquire)) {
    std::size_t count = 0;
    if (!queue_.empty() || idle < kNaps) {
      if (try_baton()) {
        count = drain();
        give_baton();
      }
    }
    idle = count > 0 ? 0 : idle + 1;
    fail_parked_if_stuck();
    if (runner_->parked() > 0) idle = 0;
    nap(idle < kNaps ? Controller::napping : Controller::asleep);
  }
}

void EagerGraphExecutor::nap(Controller state) noexcept {
  std::unique_lock lock(controller_lock_);
  if (stop_.load(std::memory_order_relaxed)) return;
  controller_.store(state, std::memory_order_seq_cst);
  if (state == Controller::napping) {
    controller_wake_.wait_for(lock, kNap);
  } else if (queue_.empty() && !queue_.has_released() && runner_->parked() == 0 &&
             !holds_for_parked_.load(std::memory_order_relaxed)) {  // seq_cst on both sides: a sender that
                                                                    // missed the store is seen here
    controller_wake_.wait(lock, [this] {
      return stop_.load(std::memory_order_relaxed) ||
             controller_.load(std::memory_order_relaxed) != Controller::asleep;
    });
  }
  controller_.store(Controller::running, std::memory_order_seq_cst);
}

}  // namespace thalweg
