// eager_graph_executor.cpp: the baton, the queue's drain, dispatch and back-pressure.
#include "runtime/eager_graph_executor.h"

#include <algorithm>
#include <chrono>

#include <thalweg/errors.h>

#include "runtime/engine_task.h"
#include "runtime/host_release.h"
#include "runtime/per_device_thread_node_runner.h"

namespace thalweg {
namespace {

constexpr int kCountShift = 40;
constexpr std::uint64_t kUnitMask = (std::uint64_t{1} << kCountShift) - 1;
constexpr std::int64_t kUnit = 64;
/// Inline runs are counted in groups: a counter shared with other threads costs more than a small operator.
constexpr std::int64_t kAccountEvery = 64;
constexpr std::uint64_t kCallerDrainEvery = 64;

std::uint64_t in_flight_word(std::int64_t operators, std::int64_t units) {
  return (static_cast<std::uint64_t>(operators) << kCountShift) + static_cast<std::uint64_t>(units);
}
std::int64_t units_of(std::int64_t bytes) { return (bytes + kUnit - 1) / kUnit; }

}  // namespace

EagerGraphExecutor::EagerGraphExecutor(Engine& engine, const EngineOptions& options, NaiveRunner& naive,
                                       RunnerSupportedDevices devices, int threads)
    : engine_(engine), mode_(options.mode), hooks_(options.hooks), naive_(naive),
      runner_(new PerDeviceThreadNodeRunner(naive, devices, threads, options.run_inline, *this)),
      max_operators_(options.max_operators_in_flight), max_bytes_(options.max_bytes_in_flight) {
  graph_.set_name(options.name);
}

EagerGraphExecutor::~EagerGraphExecutor() { shutdown(); }

std::uint64_t EagerGraphExecutor::in_flight() const noexcept {
  return in_flight_.load(std::memory_order_relaxed) >> kCountShift;
}

void EagerGraphExecutor::set_limits(std::int64_t operators, std::int64_t bytes) noexcept {
  max_operators_.store(operators, std::memory_order_relaxed);
  max_bytes_.store(bytes, std::memory_order_relaxed);
  progress_.wake();
}

// --- sending --------------------------------------------------------------------------------------------------------

void EagerGraphExecutor::submit(Operator* op) {
  if (forked_) [[unlikely]] return run_synchronously(op);
  const std::int64_t units = units_of(op->bytes);
  const std::uint64_t mine = in_flight_word(1, units);
  const std::uint64_t others = in_flight_.fetch_add(mine, std::memory_order_relaxed);
  const bool over = static_cast<std::int64_t>(others >> kCountShift) >= max_operators_.load(std::memory_order_relaxed) ||
                    (static_cast<std::int64_t>(others & kUnitMask) + units) * kUnit >
                        max_bytes_.load(std::memory_order_relaxed);
  if (over && others != 0 && !EngineTask::active()) [[unlikely]] {
    in_flight_.fetch_sub(mine, std::memory_order_relaxed);
    admit(op);
    in_flight_.fetch_add(mine, std::memory_order_relaxed);
  }
  const std::uint64_t id = op->id;
  queue_.push(op);
  const Controller state = controller_.load(std::memory_order_seq_cst);
  if (mode_ == EngineMode::caller_driven) {
    if (id % kCallerDrainEvery == 0 && !EngineTask::active()) try_drain();
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
  if (forked_ || stop_.load(std::memory_order_acquire)) return operand->unref();
  queue_.push_released(operand);
  if (controller_.load(std::memory_order_seq_cst) == Controller::asleep) wake_controller();
}

void EagerGraphExecutor::flush() {
  if (!EngineTask::active()) try_drain();
}

/// Blocks while the run-ahead is over its limits: the caller drains and helps meanwhile. An operator larger than the
/// byte limit enters when nothing is in flight.
void EagerGraphExecutor::admit(Operator* op) {
  const HostRelease release(hooks_);
  const std::int64_t units = units_of(op->bytes);
  const bool may_interrupt = !op->in_place && op->outputs()[0]->recover == nullptr;
  for (;;) {
    try_drain();
    fail_parked_if_stuck();
    const std::uint64_t finished = progress_.finished();
    const std::uint64_t word = in_flight_.load(std::memory_order_relaxed);
    const auto operators = static_cast<std::int64_t>(word >> kCountShift);
    const std::int64_t limit = max_operators_.load(std::memory_order_relaxed);
    const bool bytes_fit = (static_cast<std::int64_t>(word & kUnitMask) + units) * kUnit <=
                           max_bytes_.load(std::memory_order_relaxed);
    if (word == 0 || (operators < limit && bytes_fit)) return;
    // Not one by one: a caller that wakes for every finished operator slows those who run them.
    const std::int64_t excess = bytes_fit ? operators - limit / 4 * 3 : 1;
    progress_.sleep_until(finished + static_cast<std::uint64_t>(std::max<std::int64_t>(excess, 1)),
                          std::chrono::milliseconds(runner_->parked() > 0 ? 1 : 50));
    if (may_interrupt && hooks_.interrupted != nullptr && hooks_.interrupted()) {
      naive_.fail(*op, std::make_exception_ptr(Interrupted()));
      op->free();
      throw Interrupted();
    }
  }
}

// --- the baton ------------------------------------------------------------------------------------------------------

void EagerGraphExecutor::take_baton() noexcept {
  for (int spins = 0; !try_baton(); ++spins) {
    if (spins > 64) std::this_thread::yield();
  }
}

/// Whoever gives the baton back looks at the queue again: a sender that came meanwhile may have relied on the holder.
void EagerGraphExecutor::give_baton() noexcept {
  // seq_cst, so that the look at the queue comes after; pairs with a sender's push and failed try.
  baton_.store(false, std::memory_order_seq_cst);
  if (queue_.empty()) [[likely]] return;
  if (controller_.load(std::memory_order_seq_cst) == Controller::asleep) wake_controller();
}

bool EagerGraphExecutor::try_drain() {
  bool drained = false;
  do {
    if (!try_baton()) return drained;
    drain();
    give_baton();
    drained = true;
  } while (!queue_.empty());
  return true;
}

std::size_t EagerGraphExecutor::drain() {
  std::size_t count = 0;
  GraphTraversalSequence order;
  reap();
  while (Message* message = queue_.take_all()) {
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
  for (const auto& pass : passes_) pass->run(order);
  std::int64_t operators = 0;
  std::int64_t units = 0;
  order.for_each([&](Operator* op) {
    if (!runner_->launch(op)) return graph_.add(op);
    ++operators;
    units += units_of(op->bytes);
    runner_->recycle(op);
    op->free();
    if (operators == kAccountEvery) {
      account(operators, units);
      operators = units = 0;
    }
  });
  if (operators > 0) account(operators, units);
  order.clear();
}

void EagerGraphExecutor::handle(ControlMessage* message) {
  const std::unique_ptr<ControlMessage> owner(message);
  struct Visitor {
    EagerGraphExecutor& self;
    void operator()(NameOperand& body) const {
      self.graph_.operand_names().set(body.operand->id, std::move(body.name));
      body.operand->unref();
    }
    void operator()(NameGraph& body) const { self.graph_.set_name(std::move(body.name)); }
    void operator()(FetchValue& body) const { body.operand->unref(); }
    void operator()(Synchronise& body) const { body.reached->store(true, std::memory_order_release); }
    void operator()(SetOption& body) const {
      if (body.option == SetOption::Option::run_inline) self.runner_->set_inline(body.value != 0);
      if (body.option == SetOption::Option::recording) self.graph_.operand_names().keep_all(body.value != 0);
    }
  };
  std::visit(Visitor{*this}, message->body);
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
    operand->unref();
    operand = next;
  }
}

void EagerGraphExecutor::account(std::int64_t operators, std::int64_t units) noexcept {
  in_flight_.fetch_sub(in_flight_word(operators, units), std::memory_order_relaxed);
  progress_.add(static_cast<std::uint64_t>(operators));
}

void EagerGraphExecutor::on_finished(Operator* op) noexcept { account(1, units_of(op->bytes)); }

// --- options --------------------------------------------------------------------------------------------------------

void EagerGraphExecutor::rebuild(int threads) {
  take_baton();
  settle();
  runner_->rebuild(threads);
  give_baton();
}

/// With the baton: returns when everything sent has finished and its slots are back.
void EagerGraphExecutor::settle() noexcept {
  for (;;) {
    drain();
    if (graph_.empty() && queue_.empty()) return;
    if (runner_->parked() > 0 && runner_->is_stuck(graph_)) runner_->retry_parked(true);
    progress_.sleep_until(progress_.finished() + 1, std::chrono::microseconds(200));
  }
}

void EagerGraphExecutor::drain_all() noexcept {
  if (forked_) return;
  take_baton();
  settle();
  give_baton();
}

void EagerGraphExecutor::run_synchronously(Operator* op) noexcept {
  naive_.prepare(*op);
  naive_.run(*op, {}, true);
  progress_.add(1);
  op->free();
}

}  // namespace thalweg
