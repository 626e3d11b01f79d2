// per_device_thread_node_runner.cpp: from a launched operator to its completion.
#include "runtime/per_device_thread_node_runner.h"

#include <algorithm>

#include "runtime/engine_task.h"
#include "runtime/operator_node.h"

namespace thalweg {
namespace {

/// A helping caller takes nothing longer: it answers interrupts between operators, and nobody notices 20 ms.
constexpr float kHelperNs = 2e7F;
/// What one takes that waits for all operators: the device's own threads have the longer ones, and would
/// share their cores with it.
constexpr float kSynchronizingHelperNs = 3e4F;
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

/// Its node has no edges and nobody can add one: consumers come later in the queue, and we hold the baton.
bool PerDeviceThreadNodeRunner::run_at_once(Operator* op) noexcept {
  const EngineTask task(EngineTask::Kind::inline_run);
  const RunResult result = naive_.run(*op, {}, false);
  if (task.postponed() != nullptr) listener_.on_postponed(task.postponed());
  if (result != RunResult::done) return false;
  inline_count_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

bool PerDeviceThreadNodeRunner::launch(Operator* op) {
  naive_.prepare(*op);
  DeviceArena* arena = nullptr;
  OperatorNode* node = nullptr;
  try {
    arena = &arena_of(op->device);
    node = &arena->take_node(op);
    if (run_inline_ && op->is_small && first_pending_input(op) == nullptr && run_at_once(op)) return true;
    arena->start();
  } catch (const std::exception&) {
    const EngineTask task(EngineTask::Kind::inline_run);
    naive_.fail_with(*op, std::current_exception());
    if (task.postponed() != nullptr) listener_.on_postponed(task.postponed());
    return true;
  }
  op->parts.store(2, std::memory_order_relaxed);
  op->show_operands();
  // Release: a helper or the flow task that claims the operator sees it complete.
  op->claim.store(op->id, std::memory_order_release);
  wire(op, *arena) ? node->put_guard() : arena->put_ready(*node);
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

void PerDeviceThreadNodeRunner::recycle(Operator* op) {
  if (op->node != nullptr) arena_of_running(op).give_node(op->node);
}

/// With a permit of the operator's arena. Also the entry of operators that waited for one.
OperatorNode* PerDeviceThreadNodeRunner::execute(Operator* op, bool keep_consumer) noexcept {
  DeviceArena& arena = arena_of_running(op);
  {
    const EngineTask task(EngineTask::Kind::kernel, arena.ref(), op);
    const bool is_custom = op->op->is_custom;
    if (is_custom) user_kernels_.fetch_add(1, std::memory_order_relaxed);
    const RunResult result = naive_.run(*op, arena.scope(), false);
    if (is_custom) user_kernels_.fetch_sub(1, std::memory_order_relaxed);
    if (result == RunResult::needs_memory) {
      park(op);
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
  if (parked_count_.load(std::memory_order_acquire) > 0) retry_parked(false);
  return next;
}

/// The operator has run: consumers may go. Its slot stays until `part_over`, which outside the arena's tasks
/// must be the last look at the arena: with the last operator reaped somebody may take the arena down.
void PerDeviceThreadNodeRunner::signal(Operator* op) noexcept {
  op->node->finish();
  op->claim.store(Operator::kFinished, std::memory_order_release);
  listener_.on_finished(op);
  op->claim.store(Operator::kCounted, std::memory_order_release);
}

void PerDeviceThreadNodeRunner::part_over(Operator* op) noexcept {
  // Acquire-release: the last one out sees what the other did and hands it to the reaper.
  if (op->parts.fetch_sub(1, std::memory_order_acq_rel) == 1) listener_.on_retirable(op);
}

void PerDeviceThreadNodeRunner::park(Operator* op) {
  {
    std::lock_guard guard(parked_lock_);
    parked_.push_back(op);
    parked_count_.fetch_add(1, std::memory_order_seq_cst);
  }
  listener_.on_parked();
}

Operator* PerDeviceThreadNodeRunner::take_fitting(bool all) noexcept {
  std::lock_guard guard(parked_lock_);
  std::vector<bool> is_full(arenas_.size());
  for (auto place = parked_.begin(); place != parked_.end(); ++place) {
    Operator* const op = *place;
    const auto device = static_cast<std::size_t>(devices_.ordinal(op->device));
    if (is_full[device]) continue;
    if (naive_.fits(*op)) {
      parked_.erase(place);
      parked_count_.fetch_sub(1, std::memory_order_seq_cst);
      return op;
    }
    is_full[device] = !all;
  }
  return nullptr;
}

Operator* PerDeviceThreadNodeRunner::take_oldest_parked() noexcept {
  std::lock_guard guard(parked_lock_);
  const auto oldest = std::min_element(parked_.begin(), parked_.end(),
                                       [](const Operator* a, const Operator* b) { return a->id < b->id; });
  if (oldest == parked_.end()) return nullptr;
  Operator* const op = *oldest;
  parked_.erase(oldest);
  parked_count_.fetch_sub(1, std::memory_order_seq_cst);
  return op;
}

void PerDeviceThreadNodeRunner::fail_parked() noexcept {
  Operator* op = take_oldest_parked();
  if (op == nullptr) return;
  {
    const EngineTask task(EngineTask::Kind::inline_run);
    naive_.fail_for_memory(*op);
    if (task.postponed() != nullptr) listener_.on_postponed(task.postponed());
  }
  signal(op);
  part_over(op);
}

/// They run in their arenas, never on this thread: a user's kernel must not wait on top of another one's
/// stack or outside the arena.
bool PerDeviceThreadNodeRunner::retry_parked(bool all) noexcept {
  bool any = false;
  for (int tries = parked(); tries > 0; --tries) {
    Operator* op = take_fitting(all);
    if (op == nullptr) break;
    any = true;
    arena_of_running(op).hand_in(op);
  }
  return any;
}

void PerDeviceThreadNodeRunner::wait_begins(const Operator& op, const Operand& operand) {
  const std::lock_guard guard(waits_lock_);
  waits_.push_back({&op, &operand});
}

void PerDeviceThreadNodeRunner::wait_ends(const Operator& op, const Operand& operand) noexcept {
  const std::lock_guard guard(waits_lock_);
  const auto found = std::find_if(waits_.begin(), waits_.end(), [&](const BodyWait& wait) {
    return wait.op == &op && wait.operand == &operand;
  });
  *found = waits_.back();
  waits_.pop_back();
}

int PerDeviceThreadNodeRunner::waiting_operators() const noexcept {
  const std::lock_guard guard(waits_lock_);
  int count = 0;
  for (auto wait = waits_.begin(); wait != waits_.end(); ++wait) {
    if (wait->operand->is_done()) return -1;
    const bool is_first =
        std::none_of(waits_.begin(), wait, [&](const BodyWait& other) { return other.op == wait->op; });
    if (is_first) ++count;
  }
  return count;
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
  if (!may_be_helped_with(*op) || op->cost_ns > kSynchronizingHelperNs) return nullptr;
  DeviceArena& arena = arena_of(op->device);
  if (!arena.try_acquire_permit()) return nullptr;
  if (op->claim.compare_exchange_strong(id, 0, std::memory_order_acq_rel)) return op;
  arena.return_permit();
  return nullptr;
}

/// The looks come in this order: an operator that ends, or a kernel whose value has come, between two of them
/// makes the sum too small or the answer of the later one no, never yes.
bool PerDeviceThreadNodeRunner::is_stuck(const LogicalGraph& graph) const noexcept {
  int begun = 0;
  for (Operator* op = graph.first(); op != nullptr; op = op->live_next) {
    const std::uint64_t claim = op->claim.load(std::memory_order_acquire);
    if (claim == 0) ++begun;
    if (claim == op->id && first_pending_input(op) == nullptr) return false;
  }
  for (const auto& arena : arenas_) {
    if (arena != nullptr && !arena->is_idle()) return false;
  }
  const int waiting = waiting_operators();
  return waiting >= 0 && begun <= parked() + waiting;
}

int PerDeviceThreadNodeRunner::running() const noexcept {
  int count = 0;
  for (const auto& arena : arenas_) {
    if (arena != nullptr) count += arena->running();
  }
  return count;
}

void PerDeviceThreadNodeRunner::run_claimed(Operator* op) noexcept {
  DeviceArena& arena = arena_of_running(op);
  RunResult result = RunResult::done;
  {
    const EngineTask task(EngineTask::Kind::kernel, arena.ref(), op);
    result = naive_.run(*op, arena.helper_scope(), false);
  }
  if (result == RunResult::needs_memory) {
    park(op);
    return arena.return_permit();
  }
  signal(op);
  if (parked_count_.load(std::memory_order_acquire) > 0) retry_parked(false);
  arena.return_permit();
  part_over(op);
}

}  // namespace thalweg
