// eager_graph_executor.cpp: the baton, the queue's drain, dispatch and back-pressure.
#include "runtime/eager_graph_executor.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <thalweg/errors.h>

#include "runtime/engine_task.h"
#include "runtime/host_release.h"
#include "runtime/per_device_thread_node_runner.h"

namespace thalweg {
namespace {

/// Inline runs are counted in groups: a counter shared with other threads costs more than a small operator.
constexpr std::int64_t kAccountEvery = 64;
/// Ready operators are put in groups, but wait no longer than for so many others.
constexpr int kFlushEvery = 16;
constexpr std::uint64_t kCallerDrainEvery = 64;
/// A drain ends after about so many messages even if more have come: whoever waits must get to look at the
/// value he waits for, however fast others issue.
constexpr std::size_t kFairDrain = 4096;
/// Caller-driven: how often the holder looks at the queue again after he gave the baton back, if nobody wants
/// it. What comes later is from threads that issue at this moment, and those drain themselves.
constexpr int kLooks = 2;
using std::chrono::milliseconds;
/// Who waits to issue looks again after so long, at the latest.
constexpr milliseconds kTick{50};
/// And is the first in line after so long.
constexpr milliseconds kPatience{20};

/// The operator that this thread sent some operators ago, for the reader's prefetch.
const void* earlier_operator(const void* op) noexcept {
  constexpr unsigned kDistance = 8;
  struct Ring {
    const void* sent[kDistance];
    unsigned next;
  };
  static constinit thread_local Ring ring{};
  const void* earlier = ring.sent[ring.next % kDistance];
  ring.sent[ring.next++ % kDistance] = op;
  return earlier;
}

}  // namespace

EagerGraphExecutor::EagerGraphExecutor(Engine& engine, const EngineOptions& options, NaiveRunner& naive,
                                       RunnerSupportedDevices devices, int threads)
    : engine_(engine),
      mode_(options.mode),
      hooks_(options.hooks),
      naive_(naive),
      runner_(new PerDeviceThreadNodeRunner(naive, devices, threads, options.run_inline, *this)),
      admission_(options.max_operators_in_flight, options.max_bytes_in_flight) {
  graph_.set_name(options.name);
  if (options.memory_limit > 0) admission_.always_ask(true);
}

EagerGraphExecutor::~EagerGraphExecutor() { shutdown(); }

void EagerGraphExecutor::set_limits(std::int64_t operators, std::int64_t bytes) noexcept {
  admission_.set_limits(operators, bytes);
  progress_.wake();
}

// --- sending
// --------------------------------------------------------------------------------------------------------

void EagerGraphExecutor::submit(Operator* op) {
  if (forked_) [[unlikely]] {
    drain_in_child();
    return run_synchronously(op);
  }
  op->run_ahead_units = Admission::units_of(op->bytes);
  if (imported_bytes_.load(std::memory_order_relaxed) != 0) [[unlikely]]
    count_imported(op);
  if (!admission_.try_enter(op->run_ahead_units)) [[unlikely]]
    EngineTask::active() ? admission_.enter(op->run_ahead_units) : admit(op);
  const std::uint64_t id = op->id;
  op->prefetch_hint = earlier_operator(op);
  queue_.push(op);
  const Controller state = controller_.load(std::memory_order_seq_cst);
  if (mode_ == EngineMode::caller_driven) {
    const bool due = (id & (kCallerDrainEvery - 1)) < 2;
    if (due && !EngineTask::active() && grab_baton()) {
      drain();
      give_baton();
    }
  } else if (state == Controller::none || state == Controller::asleep) [[unlikely]] {
    wake_controller();
  }
}

void EagerGraphExecutor::send(ControlMessage* message) {
  queue_.push(message);
  if (forked_ || mode_ == EngineMode::caller_driven) {
    if (!EngineTask::active()) try_drain();
    return;
  }
  const Controller state = controller_.load(std::memory_order_seq_cst);
  if (state == Controller::none || state == Controller::asleep) wake_controller();
}

void EagerGraphExecutor::release(Operand* operand) noexcept {
  if (forked_ || stop_.load(std::memory_order_acquire)) return operand->handles_gone();
  queue_.push_released(operand);
  if (controller_.load(std::memory_order_seq_cst) == Controller::asleep) wake_controller();
}

/// A loop that brings data in and drops it after use holds it until its readers have run: what was brought in
/// counts with the next operator.
void EagerGraphExecutor::count_imported(Operator* op) noexcept {
  op->run_ahead_units =
      Admission::units_of(op->bytes + imported_bytes_.exchange(0, std::memory_order_relaxed));
}

void EagerGraphExecutor::flush() {
  if (!EngineTask::active()) try_drain();
}

/// Of somebody who waits to issue: after some time others let him go first, or small requests would take the
/// room that a large one waits for.
class EagerGraphExecutor::Turn {
 public:
  explicit Turn(EagerGraphExecutor& executor) noexcept : executor_(executor) {}
  ~Turn() {
    if (executor_.admission_.end_turn(this)) executor_.progress_.wake();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  /// Once per look. True if nothing has finished for a while, and nothing runs that will.
  bool look(std::uint64_t finished) noexcept {
    const auto now = std::chrono::steady_clock::now();
    if (now - begin_ > kPatience) executor_.admission_.take_turn(this);
    if (finished != finished_) {
      finished_ = finished;
      progress_at_ = now;
    }
    executor_.ease_holds();
    return now - progress_at_ > kTick && executor_.is_idle();
  }

 private:
  EagerGraphExecutor& executor_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point progress_at_ = begin_;
  std::uint64_t finished_ = executor_.progress_.finished();
};

void EagerGraphExecutor::ease_holds() noexcept {
  const bool user_code_runs =
      callbacks_running.load(std::memory_order_relaxed) > 0 || runner_->user_kernels() > 0;
  if (admission_.ease(progress_.finished(), user_code_runs)) progress_.wake();
}

/// True if nothing runs but users' kernels, which may wait for what this thread does.
bool EagerGraphExecutor::is_idle() {
  if (!try_baton()) return false;
  const bool idle = runner_->running() <= runner_->user_kernels();
  give_baton();
  return idle;
}

/// Under a limit of memory what is in flight must find room for its results in whatever order it runs, or the
/// newest could take what the oldest need and all would wait for each other.
bool EagerGraphExecutor::has_room(Device device, std::int64_t bytes) const {
  const std::int64_t limit = naive_.memory_limit();
  if (limit == 0 || bytes <= Buffer::kInlineBytes || admission_.operators() == 0) return true;
  return naive_.live_bytes(device) + admission_.bytes() + bytes <= limit;
}

/// Blocks until the limits leave room: the caller drains and helps meanwhile.
void EagerGraphExecutor::admit(Operator* op) {
  const auto try_admit = [&](const void* turn, bool has_room) {
    return has_room && admission_.try_enter_held(op->run_ahead_units, turn);
  };
  if (try_admit(nullptr, has_room(op->device, op->bytes))) return;
  const HostRelease release(hooks_);
  // An in-place form has given its old value away: interrupted, it enters at once and its caller throws.
  const bool may_interrupt = !op->in_place && op->outputs()[0]->recover == nullptr;
  Turn turn(*this);
  for (;;) {
    try_drain();
    fail_parked_if_stuck();
    const std::uint64_t finished = progress_.finished();
    const bool stands_still = turn.look(finished);
    if (try_admit(&turn, stands_still || has_room(op->device, op->bytes))) return;
    const std::int64_t operators = admission_.operators();
    const std::int64_t limit = admission_.max_operators();
    // Not one by one: a caller that wakes for every finished operator slows those who run them.
    const std::int64_t excess = operators < limit ? 1 : operators - limit / 4 * 3;
    progress_.sleep_until(finished + static_cast<std::uint64_t>(std::max<std::int64_t>(excess, 1)),
                          runner_->parked() > 0 ? milliseconds(1) : kPatience);
    const bool interrupted = is_interrupted();
    if (forked_) return admission_.enter(op->run_ahead_units);  // by the host's code, and this is the child
    if (interrupted && !may_interrupt) {
      late_interrupt_ = this;
      return admission_.enter(op->run_ahead_units);
    }
    if (interrupted) {
      naive_.fail(*op, std::make_exception_ptr(Interrupted()));
      op->free();
      throw Interrupted();
    }
  }
}

Buffer* EagerGraphExecutor::allocate(Device device, std::int64_t bytes) {
  Allocator& allocator = naive_.allocator(device);
  const bool may_wait = !forked_ && !EngineTask::active();
  if (!may_wait || has_room(device, bytes)) {
    if (Buffer* buffer = allocator.try_allocate(bytes)) return buffer;
  }
  const std::int64_t limit = naive_.memory_limit();
  if (!may_wait || (limit > 0 && bytes > limit)) return nullptr;
  const HostRelease release(hooks_);
  Turn turn(*this);
  for (;;) {
    const std::uint64_t finished = progress_.finished();
    const bool is_last_look = admission_.operators() == 0;
    if (is_last_look) {
      take_baton();  // others may have dropped handles that only a drain lets go of
      drain();
      give_baton();
    } else {
      try_drain();
    }
    if (turn.look(finished) || is_last_look || has_room(device, bytes)) {
      if (Buffer* buffer = allocator.try_allocate(bytes)) return buffer;
    }
    if (is_last_look && admission_.operators() == 0) return nullptr;
    fail_parked_if_stuck();
    progress_.sleep_until(finished + 1, milliseconds(1));
    check_interrupted();
    if (forked_) return allocator.try_allocate(bytes);
  }
}

// --- the baton
// ------------------------------------------------------------------------------------------------------

/// For callers that must have it. Its holder may drain for milliseconds: sleep meanwhile, the cores are
/// needed.
void EagerGraphExecutor::take_baton() noexcept {
  takers_.fetch_add(1, std::memory_order_seq_cst);
  for (int tries = 0; baton_.exchange(true, std::memory_order_acquire); ++tries) {
    if (tries < 64) {
      std::this_thread::yield();
    } else {
      progress_.sleep_until(progress_.finished() + std::max<std::uint64_t>(in_flight(), 1),
                            std::chrono::microseconds(200));
    }
  }
  takers_.fetch_sub(1, std::memory_order_seq_cst);
}

/// Whoever gives the baton back looks at the queue again: a sender that came meanwhile may have relied on the
/// holder. Callbacks of operators that ran under the baton are user code and run here, after it is gone.
void EagerGraphExecutor::give_baton() noexcept {
  for (int looks = kLooks;; --looks) {
    Waiter* postponed = std::exchange(postponed_, nullptr);
    // seq_cst, so that the look at the queue comes after; pairs with a sender's push and failed try.
    baton_.store(false, std::memory_order_seq_cst);
    while (postponed != nullptr) {
      Waiter* next = postponed->next;
      postponed->notify(postponed);
      postponed = next;
    }
    if (queue_.empty()) [[likely]]
      return;
    if (mode_ != EngineMode::caller_driven) break;
    // Those who wanted the baton may sleep by now and nobody else come by; threads that merely issue will.
    if (looks <= 0 && !wanted_.load(std::memory_order_seq_cst)) return;
    if (!try_baton()) return;
    drain();
  }
  if (controller_.load(std::memory_order_seq_cst) == Controller::asleep) wake_controller();
}

void EagerGraphExecutor::give_baton_unused() noexcept {
  baton_.store(false, std::memory_order_seq_cst);
  if (queue_.empty()) return;
  if (mode_ == EngineMode::caller_driven) {
    if (wanted_.load(std::memory_order_seq_cst)) try_drain();
  } else if (controller_.load(std::memory_order_seq_cst) == Controller::asleep) {
    wake_controller();
  }
}

void EagerGraphExecutor::on_postponed(Waiter* newest) noexcept {
  while (newest != nullptr) {
    Waiter* next = newest->next;
    newest->next = postponed_;
    postponed_ = newest;
    newest = next;
  }
}

bool EagerGraphExecutor::try_drain() {
  bool drained = false;
  for (int look = 0; look < kLooks && (look == 0 || !queue_.empty()); ++look) {
    if (!try_baton()) return drained;
    drain();
    give_baton();
    drained = true;
  }
  return true;
}

std::size_t EagerGraphExecutor::drain() {
  if (forked_) [[unlikely]]
    return drain_in_child();
  std::size_t count = 0;
  GraphTraversalSequence order;
  // Acquire: what was sent before somebody wanted the baton is in the queue below.
  if (wanted_.load(std::memory_order_relaxed)) wanted_.exchange(false, std::memory_order_acq_rel);
  reap();
  while (count < kFairDrain) {
    Message* message = queue_.take_all();
    if (message == nullptr) break;
    while (message != nullptr) {
      Message* next = message->next_message;
      if (message->kind == Message::Kind::add_operator) {
        order.append(static_cast<Operator*>(message));
      } else {
        dispatch(order);
        handle(static_cast<ControlMessage*>(message));
      }
      ++count;
      message = next;
    }
    dispatch(order);
    reap();
  }
  free_released();
  return count;
}

void EagerGraphExecutor::dispatch(GraphTraversalSequence& order) {
  if (order.empty()) return;
  free_released();  // before the consumers start, so that they find dropped values dead and may have their
                    // buffers
  for (const auto& pass : passes_) pass->run(order);
  std::int64_t operators = 0;
  std::int64_t units = 0;
  int launched = 0;
  order.for_each([&](Operator* op) {
    if (++launched % kFlushEvery == 0) runner_->end_batch();
    if (!runner_->launch(op)) return graph_.add(op);
    ++operators;
    units += op->run_ahead_units;
    runner_->recycle(op);
    op->free();
    if (operators == kAccountEvery) {
      account(operators, units);
      operators = units = 0;
      free_released();
    }
  });
  runner_->end_batch();
  if (operators > 0) account(operators, units);
  order.clear();
}

void EagerGraphExecutor::handle(ControlMessage* message) {
  const std::unique_ptr<ControlMessage> owner(message);
  struct Visitor {
    EagerGraphExecutor& self;
    void operator()(NameOperand& body) const {
      self.graph_.name_operand(*body.operand, std::move(body.name));
      body.operand->unref();
    }
    void operator()(NameGraph& body) const { self.graph_.set_name(std::move(body.name)); }
    void operator()(FetchValue& body) const { body.operand->unref(); }
    void operator()(Synchronise& body) const { self.reach(*body.point); }
    void operator()(SetOption& body) const {
      const bool was_limited = self.naive_.memory_limit() > 0;
      const bool is_limited = body.value > 0;
      self.naive_.set_memory_limit(body.value);
      if (was_limited != is_limited) self.admission_.always_ask(is_limited);
      if (body.applied != nullptr) body.applied->store(true, std::memory_order_release);
    }
  };
  std::visit(Visitor{*this}, message->body);
}

void EagerGraphExecutor::reach(SyncPoint& point) noexcept {
  point.finished =
      progress_.finished();  // before the count: what finishes in between is waited for twice, not missed
  point.left = graph_.count_before(point.before);
  point.reached.store(true, std::memory_order_release);
  progress_.wake();
}

void EagerGraphExecutor::reap() {
  for (Operator* op = graph_.reap(); op != nullptr;) {
    Operator* next = op->next_retired;
    runner_->recycle(op);
    op->free();
    op = next;
  }
}

void EagerGraphExecutor::free_released() noexcept {
  for (Operand* operand = queue_.take_released(); operand != nullptr;) {
    Operand* next = operand->next_released;
    operand->handles_gone();
    operand = next;
  }
}

void EagerGraphExecutor::account(std::int64_t operators, std::int64_t units) noexcept {
  admission_.leave(operators, units);
  progress_.add(static_cast<std::uint64_t>(operators));
}

void EagerGraphExecutor::on_finished(Operator* op) noexcept { account(1, op->run_ahead_units); }

/// In a forked child. What was running when the process was forked never finishes here.
void EagerGraphExecutor::run_synchronously(Operator* op) noexcept {
  bool lost = false;
  for (const Operand* input : op->inputs()) lost = lost || !input->is_done();
  if (lost) {
    naive_.fail(*op,
                std::make_exception_ptr(EngineError("an input was in flight when the process was forked")));
  } else {
    naive_.prepare(*op);
    naive_.run(*op, {}, true);
  }
  progress_.add(1);
  op->free();
}

std::size_t EagerGraphExecutor::drain_in_child() noexcept {
  std::size_t count = 0;
  for (Message* message = queue_.take_all(); message != nullptr; ++count) {
    Message* next = message->next_message;
    if (message->kind == Message::Kind::add_operator) {
      admission_.leave(1, static_cast<Operator*>(message)->run_ahead_units);
      run_synchronously(static_cast<Operator*>(message));
    } else {
      handle(static_cast<ControlMessage*>(message));
    }
    message = next;
  }
  free_released();
  return count;
}

}  // namespace thalweg
