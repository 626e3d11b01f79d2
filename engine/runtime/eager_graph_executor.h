// eager_graph_executor.h: the controller: drains the queue, keeps the logical graph, dispatches to the node
// runner.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>

#include "graph/graph_executor.h"
#include "graph/logical_graph.h"
#include "graph/rewrite/pass.h"
#include "runtime/admission.h"
#include "runtime/naive_runner.h"
#include "runtime/node_runner.h"
#include "runtime/progress.h"

namespace thalweg {

/// Carries operators out through the task graph. One thread at a time holds the baton and drains the queue:
/// the controller thread (AsyncMain), or a caller that waits.
class EagerGraphExecutor final : public GraphExecutor, private NodeRunnerListener {
 public:
  EagerGraphExecutor(Engine& engine, const EngineOptions& options, NaiveRunner& naive,
                     RunnerSupportedDevices devices, int threads);
  ~EagerGraphExecutor() override;

  void submit(Operator* op) override;
  void send(ControlMessage* message) override;
  void release(Operand* operand) noexcept override;
  void flush() override;
  void wait(Operand& operand) override;
  void synchronise() override;
  Engine& engine() noexcept override { return engine_; }

  /// The id that `synchronise` waits up to: everything issued so far is below it.
  void set_id_source(std::uint64_t (*next_id)(void*), void* owner) noexcept {
    next_id_ = next_id;
    id_owner_ = owner;
  }
  /// Waits until nothing is in flight. Throws Interrupted, if it may, when the host asks for it.
  void drain_all(bool may_interrupt);
  /// Bytes that came in from outside: they count against the run-ahead limit with the next operator.
  void add_imported(std::int64_t bytes) noexcept {
    imported_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  }
  /// A block for data from outside. Leaves the room that operators in flight will need, and waits for them
  /// where it has to, but not inside an operator or a callback. nullptr if nothing that is in flight can free
  /// so much.
  Buffer* allocate(Device device, std::int64_t bytes);
  /// Drains, stops the controller and the arenas.
  void shutdown() noexcept;
  /// Whether this thread is inside a kernel or a completion callback of this engine.
  bool runs_this_thread() const noexcept;
  /// Settles, then makes the arenas anew; `current` says how many threads they have.
  void set_num_threads(int threads, std::atomic<int>& current);
  /// Whether this thread's last in-place form was interrupted while it waited for room. It was issued: its
  /// caller throws Interrupted once the handle is the new value's.
  bool take_late_interrupt() noexcept {
    if (late_interrupt_ != this) [[likely]]
      return false;
    late_interrupt_ = nullptr;
    return true;
  }
  void set_limits(std::int64_t operators, std::int64_t bytes) noexcept;
  /// Who waits for values gets them a moment before their operators are counted: waits for that, too. Inside
  /// operators and callbacks it does not.
  void settle_counts();
  std::uint64_t executed() const noexcept { return progress_.finished(); }
  std::uint64_t in_flight() const noexcept { return static_cast<std::uint64_t>(admission_.operators()); }
  std::uint64_t run_inline() const noexcept { return runner_ ? runner_->run_inline() : 0; }

  /// Calls `read(graph, newest)` while holding the baton. `newest` is the newest message that was sent and
  /// not handled, linked to the older ones: nothing is launched. Not from an operator or a callback, which
  /// may run under the baton.
  template <class Read>
  void inspect(Read&& read) {
    struct Baton {
      explicit Baton(EagerGraphExecutor& executor) : self(executor) { self.take_baton(); }
      ~Baton() { self.give_baton_unused(); }
      EagerGraphExecutor& self;
    } baton(*this);
    reap();
    read(graph_, queue_.peek());
  }

  // Fork: the process is forked between `hold_for_fork` of all engines and one of the others.
  /// Waits until nothing is in flight; application threads are held back from here on.
  void settle_for_fork() noexcept;
  /// Takes the baton. False if something is in flight again, since kernels of one engine may use another;
  /// then `release_after_try` gives it back.
  bool hold_for_fork() noexcept;
  void release_after_try() noexcept;
  void after_fork_in_parent() noexcept;
  void after_fork_in_child() noexcept;
  bool is_forked() const noexcept { return forked_; }

 private:
  enum class Controller : std::uint8_t { none, running, napping, asleep };

  // NodeRunnerListener
  void on_finished(Operator* op) noexcept override;
  void on_postponed(Waiter* newest) noexcept override;
  void on_retirable(Operator* op) noexcept override { graph_.retire(op); }
  void on_parked() noexcept override;

  // The baton.
  /// Those who must have it (`take_baton`) go first, however often others merely try.
  bool try_baton() noexcept {
    if (grab_baton()) return true;
    if (mode_ != EngineMode::caller_driven) return false;
    // Whoever inspects leaves the queue alone unless it reads this after giving the baton back; seq_cst on
    // both sides.
    wanted_.store(true, std::memory_order_seq_cst);
    return grab_baton();
  }
  bool grab_baton() noexcept {
    return takers_.load(std::memory_order_seq_cst) == 0 && !baton_.exchange(true, std::memory_order_seq_cst);
  }
  void take_baton() noexcept;
  void give_baton() noexcept;
  /// After an inspection: starts nothing by itself.
  void give_baton_unused() noexcept;
  /// Drains what was sent so far if the baton is free; false if somebody else held it.
  bool try_drain();
  std::size_t drain();
  void handle(ControlMessage* message);
  void reach(SyncPoint& point) noexcept;
  void dispatch(GraphTraversalSequence& order);
  void reap();
  void free_released() noexcept;
  void account(std::int64_t operators, std::int64_t units) noexcept;
  void take_settled(bool may_interrupt);
  bool settle_for(std::chrono::milliseconds time) noexcept;
  std::size_t drain_in_child() noexcept;

  // Back-pressure.
  void admit(Operator* op);
  bool has_room(Device device, std::int64_t bytes) const;
  void ease_holds() noexcept;
  bool is_idle();
  class Turn;
  void count_imported(Operator* op) noexcept;

  // Waiting.
  void wait_outside_task(Operand& operand);
  void wait_inside_task(Operand& operand);
  void wait_in_child(Operand& operand);
  enum class Helped : std::uint8_t { ran_one, nothing_to_run, baton_is_taken };
  Helped help(Operand& operand);
  bool meet_sync_point(SyncPoint& here);
  Operator* claim_any();
  bool is_stuck() const noexcept;
  bool drain_if_stuck(bool fail) noexcept;
  void fail_parked_if_stuck() noexcept;
  void hold_for_parked(bool on) noexcept;
  bool is_interrupted();
  void check_interrupted();

  // The controller thread.
  void async_main() noexcept;
  void nap(Controller state) noexcept;
  void wake_controller() noexcept;
  bool start_controller() noexcept;
  void run_synchronously(Operator* op) noexcept;

  Engine& engine_;
  const EngineMode mode_;
  const HostHooks hooks_;
  NaiveRunner& naive_;
  std::unique_ptr<NodeRunner> runner_;
  RewritePasses passes_ = default_rewrite_passes();
  std::uint64_t (*next_id_)(void*) = nullptr;
  void* id_owner_ = nullptr;

  MessageQueue queue_;
  alignas(64) std::atomic<bool> baton_{false};
  std::atomic<int> takers_{0};  // threads in `take_baton`
  std::atomic<bool> wanted_{
      false};           // caller-driven: somebody did not get the baton since the last drain began
  LogicalGraph graph_;  // baton
  Progress progress_;

  Admission admission_;
  std::atomic<std::int64_t> imported_bytes_{0};  // with the next operator

  alignas(64) std::atomic<Controller> controller_{Controller::none};
  std::atomic<bool> stop_{false};
  // While operators wait for memory: since when, and whether application threads are held back for them.
  std::chrono::steady_clock::time_point parked_since_{};  // judging_
  std::atomic<bool> holds_for_parked_{false};
  std::atomic<bool> judging_{false};  // somebody looks whether operators wait for memory in vain
  Waiter* postponed_ = nullptr;       // baton
  bool forked_ = false;
  bool forked_with_baton_ = false;
  static inline constinit thread_local const EagerGraphExecutor* late_interrupt_ = nullptr;
  bool held_for_fork_ = false;
  std::mutex controller_lock_;
  std::condition_variable controller_wake_;
  std::thread controller_thread_;
};

}  // namespace thalweg
