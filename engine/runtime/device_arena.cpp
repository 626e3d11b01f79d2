// device_arena.cpp: arena, graph, device thread, permits and how kernels' parallel loops run.
#include "runtime/device_arena.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <string>
#include <system_error>
#include <utility>

#include <oneapi/tbb/flow_graph.h>
#include <oneapi/tbb/task.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_group.h>

#include <thalweg/errors.h>

#include "runtime/device_arena_place.h"
#include "runtime/engine_task.h"
#include "runtime/operator_node.h"
#include "runtime/parallel_loop.h"

namespace thalweg {

bool inside_tbb_task() noexcept { return tbb::task::current_context() != nullptr; }

namespace {

/// A suspended task keeps one of oneTBB's stacks, which is two mappings of the 65,530 that Linux gives a
/// process.
constexpr int kMostSuspended = 16'384;

/// One of the process's suspended tasks while it lives; throws EngineError for one too many.
class Suspended {
 public:
  Suspended() {
    if (count_.fetch_add(1, std::memory_order_relaxed) < kMostSuspended) return;
    count_.fetch_sub(1, std::memory_order_relaxed);
    throw EngineError(
        "wait: " + std::to_string(kMostSuspended) +
        " kernels and tasks of this process wait for values already, each with a stack of its own; "
        "make what a kernel needs its input instead of waiting for it inside");
  }
  ~Suspended() { count_.fetch_sub(1, std::memory_order_relaxed); }
  Suspended(const Suspended&) = delete;
  Suspended& operator=(const Suspended&) = delete;

 private:
  static inline constinit std::atomic<int> count_{0};
};

void suspend_on(Operand& operand) {
  struct Resume final : Waiter {
    tbb::task::suspend_point point = nullptr;
  } waiter;
  waiter.notify = [](Waiter* self) noexcept { tbb::task::resume(static_cast<Resume*>(self)->point); };
  tbb::task::suspend([&](tbb::task::suspend_point point) {
    waiter.point = point;
    if (!operand.add_waiter(&waiter)) tbb::task::resume(point);
  });
}

}  // namespace

void suspend_until_done(Operand& operand) {
  const Suspended suspended;
  DeviceArena* arena = EngineTask::arena();
  const EngineTask::Mark mark = EngineTask::exchange({});
  arena != nullptr ? arena->suspend_body(operand) : suspend_on(operand);
  EngineTask::exchange(mark);
}

PermitPause::PermitPause() noexcept : arena_(EngineTask::arena()) {
  if (arena_ != nullptr) arena_->return_permit();
}

PermitPause::~PermitPause() {
  if (arena_ != nullptr) arena_->take_permit();
}

namespace {

struct ReadyBatch {
  static constexpr std::size_t kNodes = 16;
  OperatorNode* nodes[kNodes];
  std::size_t count = 0;
};

}  // namespace

DeviceArena* DeviceArena::of_this_thread() noexcept { return Place::here(); }

/// `task_arena(threads + 1, 2)`: the device thread and one more external thread have seats of their own, so
/// entering never delegates; `threads - 1` seats are left for oneTBB's workers.
struct DeviceArena::Tbb {
  Tbb(int threads, DeviceArena& device_arena)
      : context(tbb::task_group_context::isolated,
                tbb::task_group_context::default_traits | tbb::task_group_context::concurrent_wait),
        arena(threads + 1, 2) {
    arena.execute([this, owner = &device_arena] {
      graph = std::make_unique<tbb::flow::graph>(context);
      pump = std::make_unique<Pump>(*graph, tbb::flow::unlimited, [](ReadyBatch* batch) noexcept {
        for (std::size_t i = 0; i < batch->count; ++i) batch->nodes[i]->put_guard();
        SlabPool<ReadyBatch>::give(batch);
        return tbb::flow::continue_msg();
      });
      wake = std::make_unique<Wake>(*graph, tbb::flow::unlimited, [owner](tbb::flow::continue_msg) noexcept {
        owner->run_deferred();
        return tbb::flow::continue_msg();
      });
      parts = std::make_unique<Parts>(*graph, tbb::flow::unlimited, [](ParallelLoop* loop) noexcept {
        loop->arena->join(*loop);
        return tbb::flow::continue_msg();
      });
    });
    // From here on only the device thread and oneTBB's workers come in; the thread that makes the arena may
    // be in another one.
    place = std::make_unique<Place>(arena, device_arena.ref());
  }
  ~Tbb() { Place::retire(std::move(place)); }

  // Isolated: the default context would be bound to whatever task happened to construct the graph.
  tbb::task_group_context context;
  tbb::task_arena arena;
  std::unique_ptr<Place> place;
  std::unique_ptr<tbb::flow::graph> graph;
  /// Puts the guards of a batch from inside the arena, where a put is a push to the thread's own queue.
  using Pump = tbb::flow::function_node<ReadyBatch*, tbb::flow::continue_msg>;
  std::unique_ptr<Pump> pump;
  /// Runs what waits for a permit, from inside the arena.
  using Wake = tbb::flow::function_node<tbb::flow::continue_msg, tbb::flow::continue_msg>;
  std::unique_ptr<Wake> wake;
  /// One message is one task that takes part in a kernel's loop.
  using Parts = tbb::flow::function_node<ParallelLoop*, tbb::flow::continue_msg>;
  std::unique_ptr<Parts> parts;
};

bool DeviceArena::in_foreign_task() noexcept {
  const DeviceArena* arena = of_this_thread();
  return arena != nullptr && tbb::task::current_context() != &arena->tbb_->context;
}

void apart_from_kernel(void (*work)(void*), void* context) {
  if (!inside_tbb_task()) return work(context);
  // A region of its own within the kernel's (see `isolated`), whose waits leave the tasks of this one alone.
  tbb::this_task_arena::isolate([&] { work(context); });
}

KernelFn isolated(KernelFn kernel) {
  return [kernel = std::move(kernel)](const KernelContext& context) {
    if (!inside_tbb_task()) return kernel(context);
    tbb::this_task_arena::isolate([&] { kernel(context); });
  };
}

DeviceArena::DeviceArena(Device device, int threads, bool use_worklist, void* owner, Execute execute,
                         TaskOver task_over)
    : device_(device),
      threads_(threads),
      use_worklist_(use_worklist),
      owner_(owner),
      execute_(execute),
      task_over_(task_over),
      ref_source_(*this),
      tbb_(std::make_unique<Tbb>(threads, *this)) {
  SlabPool<ReadyBatch>::prepare();
  SlabPool<ParallelLoop>::prepare();
}

DeviceArena::~DeviceArena() {
  if (device_thread_.joinable()) {
    tbb_->graph->release_wait();
    device_thread_.join();
  }
  nodes_.clear();
  tbb_->parts.reset();
  tbb_->wake.reset();
  tbb_->pump.reset();
  tbb_->graph.reset();
}

OperatorNode& DeviceArena::take_node(Operator* op) {
  if (free_nodes_.empty()) {
    nodes_.emplace_back(*tbb_->graph, *this, &DeviceArena::on_fired);
    free_nodes_.push_back(&nodes_.back());
  }
  OperatorNode& node = *free_nodes_.back();
  free_nodes_.pop_back();
  node.bind(op);
  return node;
}

void DeviceArena::give_node(OperatorNode* node) {
  node->reset();
  free_nodes_.push_back(node);
}

void DeviceArena::put_ready(OperatorNode& node) {
  ready_.push_back(&node);
  if (ready_.size() == ReadyBatch::kNodes) flush_ready();
}

void DeviceArena::flush_ready() {
  if (ready_.empty()) return;
  if (ready_.size() == 1) {
    ready_.front()->put_guard();
  } else {
    ReadyBatch* batch = SlabPool<ReadyBatch>::take();
    batch->count = ready_.size();
    std::copy(ready_.begin(), ready_.end(), batch->nodes);
    tbb_->pump->try_put(batch);
  }
  ready_.clear();
}

void DeviceArena::start() {
  if (device_thread_.joinable()) return;
  // The device thread makes progress even where oneTBB has no worker to spare, and sleeps at no cost in
  // wait_for_all because the graph holds one wait of its own until the end.
  tbb_->graph->reserve_wait();
  try {
    device_thread_ = std::thread([this] { tbb_->arena.execute([this] { tbb_->graph->wait_for_all(); }); });
  } catch (const std::system_error& error) {
    tbb_->graph->release_wait();
    throw EngineError(to_string(device_) + ": its thread could not be started (" + error.what() +
                      "); end other threads, or raise the limits of threads and of address space");
  }
}

void DeviceArena::on_fired(DeviceArena& arena, OperatorNode& node) noexcept {
  for (OperatorNode* next = &node; next != nullptr;) {
    Operator* op = next->op();
    next = nullptr;
    // Somebody else may have run it already; this is then only the signal that came too late.
    std::uint64_t id = op->id;
    if (op->claim.compare_exchange_strong(id, 0, std::memory_order_acq_rel)) next = arena.run_or_defer(op);
    arena.task_over_(arena.owner_, op);
  }
}

OperatorNode* DeviceArena::run_or_defer(Operator* op) noexcept {
  if (!try_acquire_permit()) {
    defer(op);
    run_deferred();  // a permit may have come back before the operator was on the list
    return nullptr;
  }
  OperatorNode* next = execute_(owner_, op, use_worklist_);
  release_permit();
  // With a consumer in hand nothing else may run on this stack first: it could wait for the very consumer.
  next != nullptr ? wake_deferred() : run_deferred();
  return next;
}

void DeviceArena::defer(Operator* op) { push_deferred({op, nullptr}); }

void DeviceArena::hand_in(Operator* op) {
  // Somebody may run the operator as soon as it is on the list: keep the arena until we are out of it.
  tbb_->graph->reserve_wait();
  defer(op);
  wake_deferred();
  tbb_->graph->release_wait();
}

void DeviceArena::push_deferred(Deferred waiting) {
  const std::lock_guard guard(deferred_lock_);
  deferred_.push_back(waiting);
  // seq_cst, as the permit counter: either the thread that returns a permit sees the entry or we see the
  // permit.
  deferred_count_.fetch_add(1, std::memory_order_seq_cst);
}

DeviceArena::Deferred DeviceArena::pop_deferred() noexcept {
  const std::lock_guard guard(deferred_lock_);
  if (deferred_.empty()) return {};
  const Deferred waiting = deferred_.front();
  deferred_.pop_front();
  deferred_count_.fetch_sub(1, std::memory_order_seq_cst);
  return waiting;
}

void DeviceArena::run_deferred() noexcept {
  while (deferred_count_.load(std::memory_order_seq_cst) > 0 && try_acquire_permit()) {
    const Deferred waiting = pop_deferred();
    if (waiting.suspended != nullptr) {
      tbb::task::resume(static_cast<tbb::task::suspend_point>(waiting.suspended));  // with our permit
      continue;
    }
    if (waiting.op != nullptr) execute_(owner_, waiting.op, false);
    release_permit();
  }
}

void DeviceArena::wake_deferred() noexcept {
  if (deferred_count_.load(std::memory_order_seq_cst) == 0) return;
  apart_from_kernel([this] { tbb_->wake->try_put(tbb::flow::continue_msg()); });
}

void DeviceArena::suspend_body(Operand& operand) {
  return_permit();
  suspend_on(operand);
  if (try_acquire_permit()) return;
  // As many bodies run as may: wait for one of them to hand its permit over.
  tbb::task::suspend([this](tbb::task::suspend_point point) {
    // The closure lies on the suspended stack, which may go on as soon as the entry is on the list: copy what
    // is needed, and keep the arena until we are out of it.
    DeviceArena* const arena = this;
    arena->tbb_->graph->reserve_wait();
    arena->push_deferred({nullptr, point});
    arena->wake_deferred();  // a permit may have come back before the entry was on the list
    arena->tbb_->graph->release_wait();
  });
}

RunScope DeviceArena::scope() noexcept {
  return threads_ > 1 ? RunScope{&DeviceArena::parallel_for, this} : RunScope{};
}

RunScope DeviceArena::helper_scope() noexcept {
  return threads_ > 1 ? RunScope{&DeviceArena::parallel_for_of_helper, this} : RunScope{};
}

/// Each part that comes invites two more, so that many are there soon.
void DeviceArena::invite(ParallelLoop& loop) noexcept {
  for (int i = 0; i < 2 && loop.invitations.fetch_sub(1, std::memory_order_relaxed) > 0; ++i) {
    tbb_->parts->try_put(&loop);
  }
}

/// A part of somebody's loop, in a task of its own.
void DeviceArena::join(ParallelLoop& loop) noexcept {
  invite(loop);
  if (loop.has_chunks() && try_acquire_permit()) {
    bool last = false;
    {
      const EngineTask task(EngineTask::Kind::kernel, ref(), loop.op);
      last = loop.work(ParallelLoop::Side::part);
    }
    if (last && loop.met.exchange(true, std::memory_order_acq_rel)) {
      tbb::task::resume(loop.caller);  // with our permit
    } else {
      return_permit();
    }
  }
  loop.unref();
}

ParallelLoop& DeviceArena::begin_loop(std::int64_t chunks, void (*body)(void*, std::int64_t), void* context) {
  ParallelLoop& loop = *SlabPool<ParallelLoop>::take();
  loop.begin(*this, chunks, body, context);
  invite(loop);
  return loop;
}

void DeviceArena::end_loop(ParallelLoop& loop) {
  const std::exception_ptr error = std::exchange(loop.error, nullptr);
  loop.unref();
  if (error != nullptr) std::rethrow_exception(error);
}

void DeviceArena::parallel_for(void* runner, std::int64_t chunks, void (*body)(void*, std::int64_t),
                               void* context) {
  auto& arena = *static_cast<DeviceArena*>(runner);
  ParallelLoop& loop = arena.begin_loop(chunks, body, context);
  if (!loop.work(ParallelLoop::Side::caller) && !arena.spin_for(loop)) arena.suspend_until_over(loop);
  end_loop(loop);
}

/// Who has a chunk of it is at work on it, so the rest takes no longer than one chunk.
void DeviceArena::parallel_for_of_helper(void* runner, std::int64_t chunks, void (*body)(void*, std::int64_t),
                                         void* context) {
  auto& arena = *static_cast<DeviceArena*>(runner);
  ParallelLoop& loop = arena.begin_loop(chunks, body, context);
  if (!loop.work(ParallelLoop::Side::caller)) {
    while (!arena.spin_for(loop)) std::this_thread::yield();
  }
  end_loop(loop);
}

/// The last chunk of others is often as good as done. False if it takes longer than putting this stack aside,
/// or if somebody wants our permit.
bool DeviceArena::spin_for(const ParallelLoop& loop) const noexcept {
  constexpr std::chrono::microseconds kSpin{20};
  const auto end = std::chrono::steady_clock::now() + kSpin;
  do {
    for (int i = 0; i < 16; ++i) {
      if (loop.unfinished.load(std::memory_order_acquire) == 0) return true;
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    }
  } while (deferred_count_.load(std::memory_order_relaxed) == 0 && std::chrono::steady_clock::now() < end);
  return false;
}

/// For the caller of a loop: gives its thread and its permit to others until the last part has come to its
/// end. A wait on this stack would keep both, and the parts may themselves wait for operators that need them.
void DeviceArena::suspend_until_over(ParallelLoop& loop) noexcept {
  const EngineTask::Mark kernel = EngineTask::exchange({});
  tbb::task::suspend([&loop](tbb::task::suspend_point point) {
    // The closure lies on the suspended stack, which may go on as soon as `met` is set: copy what is needed,
    // and keep the arena until we are out of it.
    ParallelLoop& shared = loop;
    DeviceArena& arena = *shared.arena;
    arena.tbb_->graph->reserve_wait();
    shared.caller = point;
    if (shared.met.exchange(true, std::memory_order_acq_rel)) {
      tbb::task::resume(point);  // the last part came first: the permit is still ours
    } else {
      arena.return_permit();  // the last part hands us its own
    }
    arena.tbb_->graph->release_wait();
  });
  EngineTask::exchange(kernel);
}

}  // namespace thalweg
