// engine_impl.h: the parts of one engine and how they are put together.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include <thalweg/engine.h>

#include "graph/graph_constructor.h"
#include "runtime/eager_graph_executor.h"
#include "runtime/naive_runner.h"
#include "runtime/synchronous_executor.h"

namespace thalweg {

struct Engine::Impl {
  Impl(Engine& engine, EngineOptions engine_options, RegisterKernels register_kernels);
  ~Impl();

  /// Before the first operator: resolves kernels and built-in Ops; after it the registries do not change.
  void freeze();
  void check_accepting(const Op& op) const;
  std::string site_text(SiteId site) const;
  /// True where an operator is over when its call returns: a failure is then raised by that very call.
  bool raises_in_call() const noexcept { return synchronous != nullptr || eager->is_forked(); }

  // Operators of which an input has something to do with gradients.
  void apply_recorded(const Op& op, std::span<const Tensor* const> inputs, std::span<Operand* const> operands,
                      Attributes attributes, SiteId site, std::span<Operand*> outputs,
                      std::span<Tensor> results);
  void apply_in_place_recorded(const Op& op, Tensor& target, std::span<const Tensor* const> others,
                               std::span<Operand* const> operands, Attributes attributes, SiteId site);
  void rebind(Tensor& target, Operand* output);

  EngineOptions options;
  OpRegistry ops;
  KernelRegistry kernels;
  RunnerSupportedDevices devices;
  std::atomic<int> threads;
  FailureLog failures;
  NaiveRunner naive;
  std::unique_ptr<SynchronousExecutor> synchronous;
  std::unique_ptr<EagerGraphExecutor> eager;
  GraphExecutor& executor;
  GraphConstructor constructor;

  std::mutex freeze_lock;
  std::atomic<bool> frozen{false};
  std::atomic<bool> closed{false};
  std::atomic<const void*> last_import{nullptr};

  // Recording; see inspect/graph_dump.h.
  std::mutex record_lock;
  bool recording = false;
  std::uint32_t recording_process = 0;  // its fork_generation
  std::uint64_t recording_since = 0;    // the first id
  std::vector<std::unique_ptr<OperatorRecord>> records;
};

}  // namespace thalweg
