// graph_constructor.h: turns a call into one Operator: metadata checked and inferred on the caller's thread.
#pragma once

#include <atomic>
#include <span>

#include <thalweg/engine.h>
#include <thalweg/op.h>

#include "graph/graph_executor.h"
#include "graph/operator_record.h"

namespace thalweg {

/// Decides what an operator's results are and which operators go in front of it (casts, contiguous copies,
/// copies of 0-d cpu tensors). Any thread; errors raise in the call and leave nothing behind.
class GraphConstructor {
 public:
  GraphConstructor(const OpRegistry& ops, GraphExecutor& executor) : ops_(ops), executor_(executor) {}

  /// Resolves the Ops that the constructor issues by itself. Call when the registry is complete.
  void bind();

  /// Issues `op`; `outputs` receives op.outputs operands with one handle each, `completed`, if given, the
  /// attributes with their defaults.
  void apply(const Op& op, std::span<Operand* const> inputs, Attributes attributes, SiteId site,
             std::span<Operand*> outputs, Attributes* completed = nullptr);

  /// Issues the in-place form of `op` whose input 0 is `target`, whose handle it takes over; the result is
  /// the new operand with one handle. On an exception the handle stays the caller's.
  Operand* apply_in_place(const Op& op, Operand* target, std::span<Operand* const> others,
                          Attributes attributes, SiteId site, Attributes* completed = nullptr);

  std::uint64_t take_id() noexcept { return next_id_.fetch_add(1, std::memory_order_relaxed); }
  std::uint64_t next_id() const noexcept { return next_id_.load(std::memory_order_seq_cst); }

  /// Until `stop_recording`, every issued operator gets an OperatorRecord, handed over by `keep`: the same
  /// function and owner at every call.
  void record_with(void (*keep)(void* owner, OperatorRecord* record), void* owner) noexcept;
  void stop_recording() noexcept { recording_.store(false, std::memory_order_release); }

 private:
  struct Call;

  void infer(Call& call);
  void infer_into(Call& call);
  void prepare_inputs(Call& call);
  Operand* insert(const Op& op, Operand* input, Attributes attributes, SiteId site);
  Operator* assemble(Call& call);
  void attach_record(Operator& op);
  void submit(Call& call, Operand* replaced = nullptr);

  const OpRegistry& ops_;
  GraphExecutor& executor_;
  const Op* astype_ = nullptr;
  const Op* contiguous_ = nullptr;
  const Op* to_device_ = nullptr;
  std::atomic<bool> recording_{false};
  void (*keep_record_)(void*, OperatorRecord*) = nullptr;
  void* record_owner_ = nullptr;
  alignas(64) std::atomic<std::uint64_t> next_id_{1};
};

}  // namespace thalweg
