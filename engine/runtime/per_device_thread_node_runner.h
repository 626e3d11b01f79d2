// per_device_thread_node_runner.h: one arena, flow graph and thread per device, all in this process.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/device_arena.h"
#include "runtime/naive_runner.h"
#include "runtime/node_runner.h"

namespace thalweg {

/// The default node runner. Small ready operators of built-in kernels run at once on the baton holder; every
/// other one becomes a task of its flow node in its device's arena.
class PerDeviceThreadNodeRunner final : public NodeRunner {
 public:
  PerDeviceThreadNodeRunner(NaiveRunner& naive, RunnerSupportedDevices devices, int threads, bool run_inline,
                            NodeRunnerListener& listener);
  ~PerDeviceThreadNodeRunner() override;

  bool launch(Operator* op) override;
  void end_batch() override;
  void recycle(Operator* op) override;
  Operator* claim_ancestor(Operand& target) override;
  Operator* claim_ready(Operator* op) override;
  bool is_stuck(const LogicalGraph& graph) const noexcept override;
  int running() const noexcept override;
  int user_kernels() const noexcept override { return user_kernels_.load(std::memory_order_relaxed); }
  void run_claimed(Operator* op) noexcept override;
  int parked() const noexcept override { return parked_count_.load(std::memory_order_acquire); }
  bool retry_parked(bool all) noexcept override;
  void fail_parked() noexcept override;
  void wait_begins(const Operator& op, const Operand& operand) override;
  void wait_ends(const Operator& op, const Operand& operand) noexcept override;
  void rebuild(int threads) override;
  std::uint64_t run_inline() const noexcept override { return inline_count_.load(std::memory_order_relaxed); }

 private:
  DeviceArena& arena_of(Device device);
  DeviceArena& arena_of_running(const Operator* op) noexcept;
  static Operand* first_pending_input(Operator* op) noexcept;
  bool run_at_once(Operator* op) noexcept;
  bool wire(Operator* op, DeviceArena& arena);
  OperatorNode* execute(Operator* op, bool keep_consumer) noexcept;
  void signal(Operator* op) noexcept;
  void part_over(Operator* op) noexcept;
  void park(Operator* op);
  Operator* take_fitting(bool all) noexcept;
  Operator* take_oldest_parked() noexcept;
  /// How many operators sit in waits of their kernels; -1 if one of them is about to go on.
  int waiting_operators() const noexcept;

  NaiveRunner& naive_;
  RunnerSupportedDevices devices_;
  int threads_;
  bool run_inline_;
  NodeRunnerListener& listener_;
  std::vector<std::unique_ptr<DeviceArena>> arenas_;
  std::atomic<std::uint64_t> inline_count_{0};
  std::atomic<int> user_kernels_{0};
  std::atomic<int> parked_count_{0};
  std::mutex parked_lock_;
  std::deque<Operator*> parked_;
  struct BodyWait {
    const Operator* op;
    const Operand* operand;
  };
  mutable std::mutex waits_lock_;
  std::vector<BodyWait> waits_;
};

}  // namespace thalweg
