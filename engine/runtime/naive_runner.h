// naive_runner.h: carries out one operator on its device: kernel lookup, donation, buffers, errors, release.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include <thalweg/kernel.h>

#include "graph/operator.h"
#include "runtime/allocator.h"
#include "runtime/failure_log.h"
#include "runtime/kernel_stream.h"
#include "runtime/runner_supported_devices.h"

namespace thalweg {

enum class RunResult : std::uint8_t { done, needs_memory };

/// Both executors run operators through it. Thread-safe: every call works on its own operator.
class NaiveRunner {
 public:
  /// Up to this estimate a ready operator of a built-in kernel runs on the thread that drains the queue.
  static constexpr float kInlineNs = 2000.0F;

  NaiveRunner(const KernelRegistry& kernels, RunnerSupportedDevices devices, const EngineOptions& options,
              FailureLog& failures);

  /// Looks the kernel up and estimates the cost.
  void prepare(Operator& op) const noexcept;

  /// Runs `op`, whose inputs are done: its outputs are ready or failed and its input references dropped
  /// afterwards. `needs_memory`: nothing was done, because the device's limit is reached; with `last_resort`
  /// that becomes the operator's failure instead.
  RunResult run(Operator& op, const RunScope& scope, bool last_resort) noexcept;

  /// Fails `op` without running it, with an error that the caller is about to raise.
  void fail(Operator& op, std::exception_ptr error) noexcept;

  /// Fails `op` because its outputs do not fit.
  void fail_for_memory(Operator& op) noexcept;
  /// Gives `op` an error that nobody has seen yet.
  void fail_with(Operator& op, std::exception_ptr error) noexcept;

  /// Whether there is memory for the outputs of `op`, whose inputs are done, at this moment.
  bool fits(Operator& op) noexcept;
  /// From now on operators that have not begun fail instead of running.
  void abandon() noexcept { abandoned_.store(true, std::memory_order_relaxed); }
  FailureLog& failures() noexcept { return failures_; }
  Allocator& allocator(Device device) noexcept { return *allocators_[devices_.ordinal(device)]; }
  /// Of each device; 0 for none.
  std::int64_t memory_limit() const noexcept { return memory_limit_.load(std::memory_order_relaxed); }
  std::int64_t live_bytes(Device device) const {
    return allocators_[static_cast<std::size_t>(devices_.ordinal(device))]->stats().live_bytes;
  }
  void set_memory_limit(std::int64_t bytes) noexcept {
    memory_limit_.store(bytes, std::memory_order_relaxed);
    for (auto& allocator : allocators_) allocator->set_memory_limit(bytes);
  }
  std::uint64_t donated() const noexcept { return donated_.load(std::memory_order_relaxed); }

 private:
  struct Outputs;

  Failure* inherited_failure(Operator& op) const noexcept;
  static Buffer* donor(Operator& op) noexcept;
  bool make_outputs(Operator& op, Outputs& outputs);
  void launch(Operator& op, Outputs& outputs, const RunScope& scope);
  void publish(Operator& op, Outputs& outputs) noexcept;
  void publish_failure(Operator& op, Failure* failure) noexcept;
  [[noreturn]] void throw_out_of_memory(Operator& op);
  Failure* make_failure(const Operator& op, std::exception_ptr error) const;

  const KernelRegistry& kernels_;
  RunnerSupportedDevices devices_;
  FailureLog& failures_;
  const ResolveSite resolve_site_;
  std::vector<AllocatorOwner> allocators_;
  std::vector<std::unique_ptr<KernelStream>> compute_;
  std::vector<std::unique_ptr<KernelStream>> copy_;
  std::atomic<std::uint64_t> donated_{0};
  std::atomic<bool> abandoned_{false};
  std::atomic<std::int64_t> memory_limit_;
};

}  // namespace thalweg
