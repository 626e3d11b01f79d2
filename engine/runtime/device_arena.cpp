// device_arena.cpp: arena, graph, device thread, permits and the parallel loop of kernels.
#include "runtime/device_arena.h"

#include <algorithm>

#include <oneapi/tbb/flow_graph.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_group.h>

#include "runtime/engine_task.h"
#include "runtime/operator_node.h"

namespace thalweg {

bool inside_tbb_task() noexcept { return tbb::task::current_context() != nullptr; }

namespace {

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
  DeviceArena* arena = EngineTask::arena();
  EngineTask* task = EngineTask::exchange(nullptr);
  arena != nullptr ? arena->suspend_body(operand) : suspend_on(operand);
  EngineTask::exchange(task);
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

/// `task_arena(threads + 1, 2)`: the device thread and one more external thread have seats of their own, so
/// entering never delegates; `threads - 1` seats are left for oneTBB's workers.
struct DeviceArena::Tbb {
  explicit Tbb(int threads)
      : context(tbb::task_group_context::isolated,
                tbb::task_group_context::default_traits | tbb::task_group_context::concurrent_wait),
        arena(threads + 1, 2) {
    arena.execute([this] {
      graph = std::make_unique<tbb::flow::graph>(context);
      pump = std::make_unique<Pump>(*graph, tbb::flow::unlimited, [](ReadyBatch* batch) noexcept {
        for (std::size_t i = 0; i < batch->count; ++i) batch->nodes[i]->put_guard();
        SlabPool<ReadyBatch>::give(batch);
        return tbb::flow::continue_msg();
      });
    });
  }

  // Isolated: the default context would be bound to whatever task happened to construct the graph.
  tbb::task_group_context context;
  tbb::task_arena arena;
  std::unique_ptr<tbb::flow::graph> graph;
  /// Puts the guards of a batch from inside the arena, where a put is a push to the thread's own queue.
  using Pump = tbb::flow::function_node<ReadyBatch*, tbb::flow::continue_msg>;
  std::unique_ptr<Pump> pump;
};

DeviceArena::DeviceArena(Device device, int threads, bool use_worklist, void* owner, Execute execute,
                         TaskOver task_over)
    : device_(device),
      threads_(threads),
      use_worklist_(use_worklist),
      owner_(owner),
      execute_(execute),
      task_over_(task_over),
      tbb_(std::make_unique<Tbb>(threads)) {
  SlabPool<ReadyBatch>::prepare();
}

DeviceArena::~DeviceArena() {
  if (device_thread_.joinable()) {
    tbb_->graph->release_wait();
    device_thread_.join();
  }
  nodes_.clear();
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
  device_thread_ = std::thread([this] { tbb_->arena.execute([this] { tbb_->graph->wait_for_all(); }); });
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
  // The graph's wait keeps the arena alive until the task is over.
  tbb_->graph->reserve_wait();
  tbb_->arena.enqueue([this] {
    run_deferred();
    tbb_->graph->release_wait();
  });
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

void DeviceArena::parallel_for(void* runner, std::int64_t chunks, void (*body)(void*, std::int64_t),
                               void* context) {
  auto& arena = *static_cast<DeviceArena*>(runner);
  std::atomic<std::int64_t> next{0};
  const auto work = [&] {
    for (std::int64_t chunk = 0; (chunk = next.fetch_add(1, std::memory_order_relaxed)) < chunks;) {
      body(context, chunk);
    }
  };
  const auto parts = static_cast<int>(std::min<std::int64_t>(arena.threads_, chunks));
  // At its end the loop waits for the parts of others, and oneTBB may put this stack aside meanwhile and go
  // on with it on another thread: the mark of the kernel must not stay behind.
  EngineTask* const kernel = EngineTask::exchange(nullptr);
  // Isolated: a wait inside a body would otherwise pick up other operators' bodies and nest them on this
  // stack.
  tbb::this_task_arena::isolate([&] {
    tbb::parallel_for(
        0, parts,
        [&](int part) {
          // The caller has a permit; others join only with one of their own.
          if (part == 0) {
            EngineTask* const outer = EngineTask::exchange(kernel);
            work();
            EngineTask::exchange(outer);
            return;
          }
          if (next.load(std::memory_order_relaxed) >= chunks || !arena.try_acquire_permit()) return;
          {
            const EngineTask task(EngineTask::Kind::kernel, &arena);
            work();
          }
          arena.return_permit();
        },
        tbb::simple_partitioner());
  });
  EngineTask::exchange(kernel);
}

}  // namespace thalweg
