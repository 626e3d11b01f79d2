// device_arena.h: the task arena of one device, the flow graph inside it and the thread that keeps it going.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

#include <thalweg/device.h>

#include "graph/operator.h"
#include "runtime/arena_ref.h"
#include "runtime/kernel.h"

namespace thalweg {

class DeviceArena;
class OperatorNode;
struct ParallelLoop;

/// True on a thread that is inside any oneTBB task, the engine's or the host's.
bool inside_tbb_task() noexcept;
/// Inside a oneTBB task: gives the thread to other tasks until `operand` is done. Never blocks the thread.
void suspend_until_done(Operand& operand);

/// Calls `work(context)` so that the tasks which it makes are not taken for the kernel's around it.
void apart_from_kernel(void (*work)(void*), void* context);
template <class Work>
void apart_from_kernel(Work&& work) {
  using Callable = std::remove_reference_t<Work>;
  apart_from_kernel([](void* context) { (*static_cast<Callable*>(context))(); }, std::addressof(work));
}

/// A kernel that may use oneTBB on its own: while it waits for its tasks, its thread must not begin another
/// operator on top of it, which might wait for this one.
KernelFn isolated(KernelFn kernel);

/// While one lives, the running body of this thread, if there is one, has given its permit back: it sleeps.
class PermitPause {
 public:
  PermitPause() noexcept;
  ~PermitPause();
  PermitPause(const PermitPause&) = delete;
  PermitPause& operator=(const PermitPause&) = delete;

 private:
  DeviceArena* arena_;
};

/// One device's arena. Construction and node slots belong to the baton holder; the rest is for any thread.
class DeviceArena {
 public:
  /// Runs one operator, for which there is a permit. With `keep_consumer` it may return a consumer that got
  /// ready, which the caller then fires instead of a task.
  using Execute = OperatorNode* (*)(void* owner, Operator* op, bool keep_consumer) noexcept;
  /// Called when a node's flow task is over.
  using TaskOver = void (*)(void* owner, Operator* op) noexcept;

  DeviceArena(Device device, int threads, bool use_worklist, void* owner, Execute execute,
              TaskOver task_over);
  /// Requires that no operator is in flight.
  ~DeviceArena();
  DeviceArena(const DeviceArena&) = delete;
  DeviceArena& operator=(const DeviceArena&) = delete;

  /// The arena that this thread is in, or nullptr.
  static DeviceArena* of_this_thread() noexcept;
  /// Inside a task of an arena that is not the engine's: one of a loop that a kernel runs on its own.
  static bool in_foreign_task() noexcept;

  ArenaRef ref() const noexcept { return ref_source_.ref(); }
  const void* owner() const noexcept { return owner_; }
  Device device() const noexcept { return device_; }
  int threads() const noexcept { return threads_; }

  /// A node for `op`, whose `node` is set. Baton.
  OperatorNode& take_node(Operator* op);
  /// Baton; the operator and its flow task are over.
  void give_node(OperatorNode* node);
  /// Lets `node` fire as soon as its edges have. Baton. May be held back until `flush_ready`.
  void put_ready(OperatorNode& node);
  /// Puts what is held back: a put from outside costs more than a task, so several go in one. Baton.
  void flush_ready();
  /// Starts the device thread, if it has not been. Before the first put. Throws EngineError if it cannot.
  void start();

  /// A permit to run a body of this device: at most `threads` are out. Never waits. Fails only while as many
  /// bodies run, and each of them looks at the deferred list after it gave its permit back.
  bool try_acquire_permit() noexcept {
    int running = running_.load(std::memory_order_seq_cst);
    while (running < threads_) {
      if (running_.compare_exchange_weak(running, running + 1, std::memory_order_seq_cst)) return true;
    }
    return false;
  }
  /// Gives a permit back from a thread that may be outside the arena; what waits for one then runs inside it.
  void return_permit() noexcept {
    release_permit();
    wake_deferred();
  }
  /// Bodies that run: those that wait for values have given their permits back.
  int running() const noexcept { return running_.load(std::memory_order_seq_cst); }
  /// True if no body runs: those that wait for values have given their permits back.
  bool is_idle() const noexcept {
    return running_.load(std::memory_order_seq_cst) == 0 &&
           deferred_count_.load(std::memory_order_seq_cst) == 0;
  }
  /// For a body that slept and goes on, permits or not.
  void take_permit() noexcept { running_.fetch_add(1, std::memory_order_seq_cst); }

  /// Gives the thread to other tasks until `operand` is done. Inside one of this arena's bodies, whose permit
  /// goes back meanwhile.
  void suspend_body(Operand& operand);

  /// Runs operators that waited for a permit while there are permits.
  void run_deferred() noexcept;
  /// Lets `op` wait for the next permit.
  void defer(Operator* op);
  /// Has a task of the arena run `op`. From any thread, while `op` is unfinished.
  void hand_in(Operator* op);
  /// Has a task of the arena run what waits for a permit.
  void wake_deferred() noexcept;

  /// How a kernel of this device that runs inside the arena may spread.
  RunScope scope() noexcept;
  /// The same for a thread outside the arena that runs one of the library's kernels, whose chunks never wait.
  RunScope helper_scope() noexcept;

 private:
  struct Tbb;
  class Place;
  /// Something that waits for a permit: an operator, or a suspended body that gets the permit handed over.
  struct Deferred {
    Operator* op = nullptr;
    void* suspended = nullptr;
  };

  /// Runs `op` if there is a permit, and what waited for one; else leaves `op` to whoever returns a permit.
  /// Returns a consumer of `op` to fire next, or nullptr.
  OperatorNode* run_or_defer(Operator* op) noexcept;
  static void on_fired(DeviceArena& arena, OperatorNode& node) noexcept;
  static void parallel_for(void* runner, std::int64_t chunks, void (*body)(void*, std::int64_t),
                           void* context);
  static void parallel_for_of_helper(void* runner, std::int64_t chunks, void (*body)(void*, std::int64_t),
                                     void* context);
  ParallelLoop& begin_loop(std::int64_t chunks, void (*body)(void*, std::int64_t), void* context);
  static void end_loop(ParallelLoop& loop);
  void invite(ParallelLoop& loop) noexcept;
  void join(ParallelLoop& loop) noexcept;
  bool spin_for(const ParallelLoop& loop) const noexcept;
  void suspend_until_over(ParallelLoop& loop) noexcept;
  void release_permit() noexcept { running_.fetch_sub(1, std::memory_order_seq_cst); }
  void push_deferred(Deferred waiting);
  Deferred pop_deferred() noexcept;

  const Device device_;
  const int threads_;
  const bool use_worklist_;
  void* const owner_;
  const Execute execute_;
  const TaskOver task_over_;
  const ArenaRefSource ref_source_;
  std::unique_ptr<Tbb> tbb_;
  std::deque<OperatorNode> nodes_;  // stable addresses
  std::vector<OperatorNode*> free_nodes_;
  std::vector<OperatorNode*> ready_;  // baton
  std::thread device_thread_;
  alignas(64) std::atomic<int> running_{0};
  alignas(64) std::atomic<int> deferred_count_{0};
  std::mutex deferred_lock_;
  std::deque<Deferred> deferred_;
};

}  // namespace thalweg
