// per_device_thread_node_runner.cpp: from a launched operator to its completion.
#include "runtime/per_device_thread_node_runner.h"

#include "runtime/engine_task.h"
#include "runtime/operator_node.h"

namespace thalweg {
namespace {

/// A helping caller takes nothing longer, so that it can answer an interrupt between operators.
constexpr float kHelperNs = 1e6F;
/// How far up the ancestors a helper looks.
constexpr int kHelperDepth = 32;

}  // namespace

PerDeviceThreadNodeRunner::PerDeviceThreadNodeRunner(NaiveRunner& naive, RunnerSupportedDevices devices,
                                                     int threads, bool run_inline,
                                                     NodeRunnerListener& listener)
    : naive_(naive),
      devices_(devices),
      threads_(threads),
      run_inline_(run_inline),
      listener_(listener),
      arenas_(static_cast<std::size_t>(devices.count())) {}

PerDeviceThreadNodeRunner::~PerDeviceThreadNodeRunner() = default;

DeviceArena& PerDeviceThreadNodeRunner::arena_of(Device device) {
  auto& arena = arenas_[static_cast<std::size_t>(devices_.ordinal(device))];
  if (arena == nullptr) {
    arena = std::make_unique<DeviceArena>(
        device, threads_, run_inline_, this,
        [](void* self, Operator* op, bool keep_consumer) noexcept {
          return static_cast<PerDeviceThreadNodeRunner*>(self)->execute(op, keep_consumer);
        },
        [](void* self, Operator* op) noexcept {
          static_cast<PerDeviceThreadNodeRunner*>(self)->part_over(op);
        });
  }
  return *arena;
}

void PerDeviceThreadNodeRunner::rebuild(int threads) {
  for (auto& arena : arenas_) arena.reset();
  threads_ = threads;
}

Operand* PerDeviceThreadNodeRunner::first_pending_input(Operator* op) noexcept {
  for (Operand* input : op->inputs()) {
    if (!input->is_done()) return input;
  }
  return nullptr;
}

DeviceArena& PerDeviceThreadNodeRunner::arena_of_running(const Operator* op) noexcept {
  return *arenas_[static_cast<std::size_t>(devices_.ordinal(op->device))];
}

bool PerDeviceThreadNodeRunner::launch(Operator* op) {
  naive_.prepare(*op);
  DeviceArena& arena = arena_of(op->device);
  OperatorNode& node = arena.take_node(op);
  if (run_inline_ && op->is_small && first_pending_input(op) == nullptr) {
    // Its node has no edges and nobody can add one: consumers come later in the queue, and we hold the baton.
    const EngineTask task(EngineTask::Kind::inline_run);
    const RunResult result = naive_.run(*op, {}, false);
    if (task.postponed() != nullptr) listener_.on_postponed(task.postponed());
    if (result == RunResult::done) {
      inline_count_.fetch_add(1, std::memory_order_relaxed);
      return true;
    }
  }
  op->parts.store(2, std::memory_order_relaxed);
  op->show_operands();
  // Release: a helper or the flow task that claims the operator sees it complete.
  op->claim.store(op->id, std::memory_order_release);
  arena.start();
  wire(op, arena) ? node.put_guard() : arena.put_ready(node);
  return false;
}

void PerDeviceThreadNodeRunner::end_batch() {
  for (auto& arena : arenas_) {
    if (arena != nullptr) arena->flush_ready();
  }
}

/// True if it waits for a producer.
bool PerDeviceThreadNodeRunner::wire(Operator* op, DeviceArena& arena) {
  bool waits = false;
  for (Operand* input : op->inputs()) {
    if (input->is_done()) continue;
    // Pending under the baton: the producer's slot cannot be reaped, so its node is valid and tells whether
    // it is over.
    Operator* made_by = input->producer.load(std::memory_order_relaxed);
    OperatorNode& producer = *made_by->node;
    if (made_by->device == arena.device()) {
      waits |= producer.add_successor(*op->node);
    } else {
      op->guards.fetch_add(1, std::memory_order_relaxed);
      if (producer.add_foreign_successor(*op)) {
        waits = true;
      } else {
        op->guards.fetch_sub(1, std::memory_order_relaxed);
      }
    }
  }
  return waits;
}

void PerDeviceThreadNodeRunner::recycle(Operator* op) { arena_of_running(op).give_node(op->node); }

/// With a permit of the operator's arena. Also the entry of operators that waited for one.
OperatorNode* PerDeviceThreadNodeRunner::execute(Operator* op, bool keep_consumer) noexcept {
  DeviceArena& arena = arena_of_running(op);
  {
    const EngineTask task(EngineTask::Kind::kernel, arena.ref());
    if (naive_.run(*op, arena.scope(), false) == RunResult::needs_memory) {
      park(op, false);
      return nullptr;
    }
  }
  OperatorNode* next = nullptr;
  if (keep_consumer) {
    // Only while signalling: a body that is suspended inside its kernel must not keep what others of the
    // thread signal.
    OperatorNode::Worklist worklist(arena);
    signal(op);
    next = worklist.take();
  } else {
    signal(op);
  }
  // Runs inside a flow task of the arena, which keeps the arena alive after the operator is gone.
  part_over(op);
  // With a consumer in hand nothing else may run first: it could wait for the very consumer.
  if (next == nullptr && parked_count_.load(std::memory_order_acquire) > 0) retry_parked();
  return next;
}

/// The operator has run: consumers may go. Its slot stays until `part_over`, which outside the arena's tasks
/// must be the last look at the arena: with the last operator reaped somebody may take the arena down.
void PerDeviceThreadNodeRunner::signal(Operator* op) noexcept {
  op->node->finish();
  op->claim.store(Operator::kFinished, std::memory_order_release);
  listener_.on_finished(op);
}

void PerDeviceThreadNodeRunner::part_over(Operator* op) noexcept {
  // Acquire-release: the last one out sees what the other did and hands it to the reaper.
  if (op->parts.fetch_sub(1, std::memory_order_acq_rel) == 1) listener_.on_retirable(op);
}

void PerDeviceThreadNodeRunner::park(Operator* op, bool in_front) {
  std::lock_guard guard(parked_lock_);
  in_front ? parked_.push_front(op) : parked_.push_back(op);
  parked_count_.fetch_add(1, std::memory_order_seq_cst);
}

Operator* PerDeviceThreadNodeRunner::take_parked() noexcept {
  std::lock_guard guard(parked_lock_);
  if (parked_.empty()) return nullptr;
  Operator* op = parked_.front();
  parked_.pop_front();
  parked_count_.fetch_sub(1, std::memory_order_seq_cst);
  return op;
}

void PerDeviceThreadNodeRunner::fail_parked() noexcept {
  Operator* op = take_parked();
  if (op == nullptr) return;
  {
    const EngineTask task(EngineTask::Kind::inline_run);
    naive_.fail_for_memory(*op);
    if (task.postponed() != nullptr) listener_.on_postponed(task.postponed());
  }
  signal(op);
  part_over(op);
}

void PerDeviceThreadNodeRunner::retry_parked() noexcept {
  while (Operator* op = take_parked()) {
    DeviceArena& arena = arena_of_running(op);
    if (!arena.try_acquire_permit()) {
      arena.defer(op);
      return arena.wake_deferred();
    }
    RunResult result = RunResult::done;
    {
      const EngineTask task(EngineTask::Kind::kernel, arena.ref());
      // Without a scope: this may be a thread outside the arena.
      result = naive_.run(*op, {}, false);
    }
    if (result == RunResult::needs_memory) {
      park(op, true);
      return arena.return_permit();
    }
    signal(op);
    arena.return_permit();
    part_over(op);
  }
}

/// Short ones of the library. A user's kernel may wait: on top of another one it would keep that one's
/// permit, and outside the arena its tasks could not be told from the host's.
static bool may_be_helped_with(const Operator& op) noexcept {
  return op.cost_ns <= kHelperNs && !op.op->is_custom;
}

/// An operator that has not begun keeps its inputs, so while its claim stands what was read of them is valid;
/// an operand read before the claim went may be another's by now, and is then dropped without having been
/// followed.
Operator* PerDeviceThreadNodeRunner::claim_ancestor(Operand& target) {
  Operand* wanted = &target;
  Operator* consumer = nullptr;
  std::uint64_t consumer_id = 0;
  for (int depth = 0; depth < kHelperDepth; ++depth) {
    if (wanted->is_done()) return nullptr;
    Operator* producer = wanted->producer.load(std::memory_order_acquire);
    std::uint64_t id = wanted->producer_id.load(std::memory_order_acquire);
    if (consumer != nullptr && consumer->claim.load(std::memory_order_acquire) != consumer_id) return nullptr;
    if (producer == nullptr || producer->claim.load(std::memory_order_acquire) != id) return nullptr;
    Operand* unfinished = first_pending_input(producer);
    if (unfinished != nullptr) {
      consumer = producer;
      consumer_id = id;
      wanted = unfinished;
      continue;
    }
    if (!may_be_helped_with(*producer)) return nullptr;
    DeviceArena& arena = arena_of(producer->device);
    if (!arena.try_acquire_permit()) return nullptr;
    if (producer->claim.compare_exchange_strong(id, 0, std::memory_order_acq_rel)) return producer;
    arena.return_permit();
    return nullptr;
  }
  return nullptr;
}

Operator* PerDeviceThreadNodeRunner::claim_ready(Operator* op) {
  std::uint64_t id = op->id;
  if (op->claim.load(std::memory_order_acquire) != id || first_pending_input(op) != nullptr) return nullptr;
  if (!may_be_helped_with(*op)) return nullptr;
  DeviceArena& arena = arena_of(op->device);
  if (!arena.try_acquire_permit()) return nullptr;
  if (op->claim.compare_exchange_strong(id, 0, std::memory_order_acq_rel)) return op;
  arena.return_permit();
  return nullptr;
}

bool PerDeviceThreadNodeRunner::is_stuck(const LogicalGraph& graph) const noexcept {
  int held = 0;
  for (Operator* op = graph.first(); op != nullptr; op = op->live_next) {
    const std::uint64_t claim = op->claim.load(std::memory_order_acquire);
    if (claim == 0) ++held;
    if (claim == op->id && first_pending_input(op) == nullptr) return false;
  }
  return held <= parked();
}

void PerDeviceThreadNodeRunner::run_claimed(Operator* op) noexcept {
  DeviceArena& arena = arena_of_running(op);
  RunResult result = RunResult::done;
  {
    const EngineTask task(EngineTask::Kind::kernel, arena.ref());
    result = naive_.run(*op, {}, false);
  }
  if (result == RunResult::needs_memory) {
    park(op, false);
    return arena.return_permit();
  }
  signal(op);
  arena.return_permit();
  part_over(op);
  if (parked_count_.load(std::memory_order_acquire) > 0) retry_parked();
}

}  // namespace thalweg
