// naive_runner.cpp: one operator from "inputs are done" to "outputs are done".
#include "runtime/naive_runner.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <limits>
#include <thread>

#include <thalweg/errors.h>

#include "graph/operator_record.h"
#include "runtime/blob.h"

namespace thalweg {
namespace {

constexpr std::size_t kFewViews = 8;

std::int64_t now_ns() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

double estimate_ns(Operator& op) {
  std::int64_t elements = 0;
  DType dtype = op.outputs()[0]->meta.dtype;
  if (!op.inputs().empty()) dtype = op.inputs()[0]->meta.dtype;
  for (const Operand* operand : op.inputs()) elements = std::max(elements, operand->meta.numel());
  for (const Operand* operand : op.outputs()) elements = std::max(elements, operand->meta.numel());
  return 20.0 + static_cast<double>(op.op->element_ns(dtype)) * static_cast<double>(elements);
}

double estimate_by_function(Operator& op) {
  std::vector<const TensorMeta*> inputs;
  std::vector<const TensorMeta*> outputs;
  for (const Operand* operand : op.inputs()) inputs.push_back(&operand->meta);
  for (const Operand* operand : op.outputs()) outputs.push_back(&operand->meta);
  return op.op->cost_ns(inputs, outputs);
}

}  // namespace

/// The buffers of the values being made (one reference each until published).
struct NaiveRunner::Outputs {
  explicit Outputs(std::size_t count) : count_(count) {
    if (count > few_.size()) many_.resize(count);
  }
  ~Outputs() {
    for (std::size_t i = 0; i < count_; ++i) {
      if ((*this)[i] != nullptr) (*this)[i]->unref();
    }
  }
  Buffer*& operator[](std::size_t i) noexcept { return many_.empty() ? few_[i] : many_[i]; }

  bool donated = false;

 private:
  std::size_t count_;
  std::array<Buffer*, 4> few_{};
  std::vector<Buffer*> many_;
};

NaiveRunner::NaiveRunner(const KernelRegistry& kernels, RunnerSupportedDevices devices,
                         const EngineOptions& options, FailureLog& failures)
    : kernels_(kernels),
      devices_(devices),
      failures_(failures),
      resolve_site_(options.hooks.resolve_site),
      memory_limit_(options.memory_limit) {
  for (int i = 0; i < devices.count(); ++i) {
    allocators_.emplace_back(new Allocator(options.cache_limit, options.memory_limit));
    compute_.push_back(std::make_unique<HostStream>("compute"));
    copy_.push_back(std::make_unique<HostStream>("copy"));
  }
}

void NaiveRunner::prepare(Operator& op) const noexcept {
  if (op.op->kind == OpKind::view) {
    op.cost_ns = 10.0F;
    op.is_small = true;
    return;
  }
  op.kernel = kernels_.find(*op.op, op.device.type);
  if (op.op->ns_per_element < 0) {
    op.cost_ns = std::numeric_limits<float>::infinity();
  } else {
    op.cost_ns = static_cast<float>(op.op->cost_ns ? estimate_by_function(op) : estimate_ns(op));
  }
  op.is_small = op.cost_ns <= kInlineNs && !op.op->is_custom;
}

Failure* NaiveRunner::inherited_failure(Operator& op) const noexcept {
  for (const Operand* input : op.inputs()) {
    if (input->state() == OperandState::failed) return input->failure();
  }
  return nullptr;
}

/// The dying input whose bytes output 0 may have, or nullptr.
Buffer* NaiveRunner::donor(Operator& op) noexcept {
  const auto inputs = op.inputs();
  for (std::size_t i = 0; op.donate_mask >> i != 0; ++i) {
    if ((op.donate_mask >> i & 1) == 0) continue;
    Operand* input = inputs[i];
    Buffer* buffer = input->buffer();
    if (input->is_unique() && buffer->is_unique() && !buffer->is_foreign()) return buffer;
  }
  return nullptr;
}

bool NaiveRunner::make_outputs(Operator& op, Outputs& outputs) {
  if (op.op->kind == OpKind::view) {
    outputs[0] = op.inputs()[0]->buffer();
    outputs[0]->ref();
    return true;
  }
  if (op.donate_mask != 0 && (outputs[0] = donor(op)) != nullptr) {
    outputs[0]->ref();
    outputs.donated = true;
  }
  const auto operands = op.outputs();
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (outputs[i] == nullptr) outputs[i] = allocator(op.device).try_allocate(operands[i]->meta.bytes());
    if (outputs[i] == nullptr) return false;
  }
  return true;
}

void NaiveRunner::launch(Operator& op, Outputs& outputs, const RunScope& scope) {
  if (op.op->kind == OpKind::view) return;
  if (op.kernel == nullptr) {
    throw KernelError(op.op->name + " has no kernel for " + to_string(op.device));
  }
  const auto ins = op.inputs();
  const auto outs = op.outputs();
  std::array<TensorView, kFewViews> few;
  std::vector<TensorView> many;
  TensorView* views = few.data();
  if (ins.size() + outs.size() > kFewViews) {
    many.resize(ins.size() + outs.size());
    views = many.data();
  }
  for (std::size_t i = 0; i < ins.size(); ++i) views[i] = Blob{ins[i]->buffer(), &ins[i]->meta}.view();
  for (std::size_t i = 0; i < outs.size(); ++i) {
    views[ins.size() + i] = Blob{outputs[i], &outs[i]->meta}.view();
  }
  auto& streams = op.op->kind == OpKind::copy ? copy_ : compute_;
  streams[static_cast<std::size_t>(devices_.ordinal(op.device))]->enqueue(Kernel{
      *op.kernel, *op.op, op.attributes, {views, ins.size()}, {views + ins.size(), outs.size()}, scope});
}

/// Before anyone can see the outputs: who sees them finds the record complete, and nobody writes to it after.
static void end_record(Operator& op, OperatorState state) noexcept {
  if (op.record == nullptr) return;
  op.record->end_ns.store(now_ns(), std::memory_order_relaxed);
  op.record->state.store(state, std::memory_order_release);
}

/// Inputs go before the outputs become ready, so that a consumer that starts at once finds them dead and can
/// have their buffers.
void NaiveRunner::publish(Operator& op, Outputs& outputs) noexcept {
  end_record(op, OperatorState::ready);
  op.let_go();
  for (Operand* input : op.inputs()) input->unref();
  const auto operands = op.outputs();
  for (std::size_t i = 0; i < operands.size(); ++i) {
    Operand* output = operands[i];
    Operand* replaced = std::exchange(output->recover, nullptr);
    output->set_ready(std::exchange(outputs[i], nullptr));
    output->unref();
    if (replaced != nullptr) replaced->unref();
  }
}

/// A loop of in-place forms may go on for long after one failed: of what `failed` can recover to, only the
/// value that is not a failed one itself counts.
static void skip_failed_values(Operand& failed) noexcept {
  Operand* const earlier = failed.recover;
  if (earlier == nullptr || earlier->state() != OperandState::failed || earlier->recover == nullptr) return;
  earlier->recover->ref();
  failed.recover = earlier->recover;
  earlier->unref();
}

void NaiveRunner::publish_failure(Operator& op, Failure* failure) noexcept {
  end_record(op, OperatorState::failed);
  op.let_go();
  failure->ref();  // an input may hold the only reference
  const auto inputs = op.inputs();
  // Even where it was donated: a kernel that throws has not written to it yet.
  const bool keep_input0 = op.in_place;
  for (std::size_t i = keep_input0 ? 1 : 0; i < inputs.size(); ++i) inputs[i]->unref();
  for (Operand* output : op.outputs()) {
    if (keep_input0 && output == op.outputs()[0]) output->recover = inputs[0];
    skip_failed_values(*output);
    output->set_failed(failure);
    output->unref();
  }
  failure->unref();
}

Failure* NaiveRunner::make_failure(const Operator& op, std::exception_ptr error) const {
  return new Failure(std::move(error), op.op->name, op.device, op.site, op.id, resolve_site_);
}

void NaiveRunner::fail(Operator& op, std::exception_ptr error) noexcept {
  Failure* failure = make_failure(op, std::move(error));
  failure->reported.store(true, std::memory_order_relaxed);
  publish_failure(op, failure);
  failure->unref();
}

void NaiveRunner::throw_out_of_memory(Operator& op) {
  std::int64_t bytes = 0;
  for (const Operand* output : op.outputs()) bytes += output->meta.bytes();
  const MemoryStats stats = allocator(op.device).stats();
  throw OutOfMemoryError(
      op.op->name + ": " + std::to_string(bytes) + " bytes do not fit on " + to_string(op.device) + ": " +
      std::to_string(stats.live_bytes) + " live, limit " +
      (stats.limit_bytes > 0 ? std::to_string(stats.limit_bytes) : std::string("of the system")) +
      "; drop tensors or raise the limit");
}

void NaiveRunner::fail_with(Operator& op, std::exception_ptr error) noexcept {
  Failure* failure = make_failure(op, std::move(error));
  failures_.add(failure);
  publish_failure(op, failure);
  failure->unref();
}

void NaiveRunner::fail_for_memory(Operator& op) noexcept {
  try {
    throw_out_of_memory(op);
  } catch (...) {
    fail_with(op, std::current_exception());
  }
}

bool NaiveRunner::fits(Operator& op) noexcept {
  if (inherited_failure(op) != nullptr) return true;
  Outputs outputs(op.op->outputs);
  return make_outputs(op, outputs);
}

RunResult NaiveRunner::run(Operator& op, const RunScope& scope, bool last_resort) noexcept {
  OperatorRecord* record = op.record;
  if (record != nullptr) {
    record->start_ns.store(now_ns(), std::memory_order_relaxed);
    record->state.store(OperatorState::running, std::memory_order_relaxed);
    record->thread = static_cast<std::uint32_t>(std::hash<std::thread::id>{}(std::this_thread::get_id()));
  }
  bool failed = true;
  if (Failure* failure = inherited_failure(op)) {
    publish_failure(op, failure);
  } else if (abandoned_.load(std::memory_order_relaxed)) [[unlikely]] {
    fail(op,
         std::make_exception_ptr(EngineError(op.op->name + ": it had not begun when its engine was told to "
                                                           "end at once")));
  } else {
    Outputs outputs(op.op->outputs);
    try {
      if (!make_outputs(op, outputs)) {
        if (!last_resort) return RunResult::needs_memory;
        throw_out_of_memory(op);
      }
      if (outputs.donated) donated_.fetch_add(1, std::memory_order_relaxed);
      launch(op, outputs, scope);
      failed = false;
    } catch (...) {
      fail_with(op, std::current_exception());
    }
    if (!failed) publish(op, outputs);
  }
  return RunResult::done;
}

}  // namespace thalweg
