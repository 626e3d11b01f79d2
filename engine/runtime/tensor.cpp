// tensor.cpp: the handle: counts, waiting, reading.
#include <memory>

#include <thalweg/errors.h>
#include <thalweg/tensor.h>

#include "graph/operand.h"
#include "graph/recorder.h"
#include "runtime/engine_impl.h"
#include "runtime/engine_task.h"

namespace thalweg {

Tensor::Tensor(const Tensor& other) noexcept : operand_(other.operand_), autograd_(other.autograd_) {
  if (operand_ != nullptr) operand_->add_handle();
  if (autograd_ != nullptr) ref_autograd(autograd_);
}

Tensor& Tensor::operator=(const Tensor& other) noexcept {
  Tensor copy(other);
  std::swap(operand_, copy.operand_);
  std::swap(autograd_, copy.autograd_);
  return *this;
}

void Tensor::set_autograd(AutogradMeta* adopted) noexcept {
  AutogradMeta* const before = std::exchange(autograd_, adopted);
  if (before != nullptr) unref_autograd(before);
}

Tensor Tensor::detach() const noexcept {
  if (operand_ != nullptr) operand_->add_handle();
  return Tensor(operand_);
}

void Tensor::drop() noexcept {
  if (autograd_ != nullptr) set_autograd(nullptr);
  Operand* operand = operand_;
  // An unfinished value whose last handle goes is sent to the controller; a finished one dies here.
  if (!operand->forget_handle()) return;
  if (operand->is_done()) {
    operand->handles_gone();
  } else {
    operand->executor->release(operand);
  }
}

const TensorMeta& Tensor::meta() const noexcept { return operand_->meta; }
Engine& Tensor::engine() const noexcept { return operand_->executor->engine(); }
std::uint64_t Tensor::id() const noexcept { return operand_->id; }

bool Tensor::is_ready() const {
  if (operand_->is_done()) return true;
  operand_->executor->flush();
  return operand_->is_done();
}

void Tensor::wait() const {
  if (!operand_->is_done()) operand_->executor->wait(*operand_);
  if (operand_->state() == OperandState::failed) [[unlikely]]
    operand_->failure()->raise();
}

TensorView Tensor::view() const {
  wait();
  return {operand_->data(), &operand_->meta};
}

Scalar Tensor::item() const {
  if (numel() != 1) {
    throw ValueError("item: takes a tensor of one element, this has shape " + to_string(shape()));
  }
  const TensorView value = view();
  if (is_half(value.dtype())) return double{from_half(*value.as<std::uint16_t>(), value.dtype())};
  return visit_dtype(value.dtype(), [&]<class T>() -> Scalar {
    const T element = *value.as<T>();
    if constexpr (std::is_same_v<T, bool>) return Scalar(element);
    if constexpr (std::is_floating_point_v<T>) return Scalar(static_cast<double>(element));
    if constexpr (kIsStdComplex<T>) {
      return Scalar(std::complex<double>(element));
    } else {
      if constexpr (std::is_unsigned_v<T>) return Scalar(static_cast<std::uint64_t>(element));
      return Scalar(static_cast<std::int64_t>(element));
    }
  });
}

bool Tensor::has_failed() const noexcept { return operand_->state() == OperandState::failed; }

FailureInfo Tensor::failure() const {
  if (!has_failed()) return {};
  Failure& failure = *operand_->failure();
  failure.reported.store(true, std::memory_order_relaxed);
  return {failure.op, failure.device, failure.site_text(), failure.exception,
          failure_prefix(failure) + failure_text(failure.exception)};
}

Tensor Tensor::recover() const {
  if (!operand_->is_done()) operand_->executor->wait(*operand_);
  const Operand* operand = operand_;
  while (operand != nullptr && operand->state() == OperandState::failed) {
    Operand* earlier = operand->recover;
    if (earlier != nullptr && !earlier->is_done()) earlier->executor->wait(*earlier);
    operand = earlier;
  }
  if (operand == operand_) return *this;
  if (operand == nullptr) {
    throw ValueError(
        "recover: there is no earlier value; only a failed result of an in-place form keeps one");
  }
  operand_->failure()->reported.store(true, std::memory_order_relaxed);  // it was dealt with
  auto* found = const_cast<Operand*>(operand);
  found->revive_handle();
  Tensor result(found);
  if (AutogradMeta* const leaf = leaf_autograd(autograd_)) {
    ref_autograd(leaf);
    result.set_autograd(leaf);
  }
  return result;
}

void Tensor::on_ready(std::function<void()> callback) const {
  struct Callback final : Waiter {
    std::function<void()> call;
    GraphExecutor* executor = nullptr;
  };
  auto waiter = std::make_unique<Callback>();
  waiter->call = std::move(callback);
  waiter->notify = [](Waiter* self) noexcept {
    if (EngineTask::postpone(self)) return;
    const std::unique_ptr<Callback> owner(static_cast<Callback*>(self));
    const EngineTask task(EngineTask::Kind::callback, {}, owner->executor);
    owner->executor->callbacks_running.fetch_add(1, std::memory_order_relaxed);
    owner->call();
    owner->executor->callbacks_running.fetch_sub(1, std::memory_order_relaxed);
  };
  GraphExecutor* const executor = operand_->executor;  // the callback may drop this very handle
  waiter->executor = executor;
  if (operand_->add_waiter(waiter.get())) {
    waiter.release();
    executor->flush();
    return;
  }
  const EngineTask task(EngineTask::Kind::callback, {}, executor);
  waiter->call();
}

void Tensor::set_name(std::string name) const {
  operand_->ref();
  operand_->executor->send(new ControlMessage(NameOperand{operand_, std::move(name)}));
}

bool Tensor::owns_bytes_alone() const noexcept {
  return operand_->is_done() && !has_failed() && operand_->buffer()->is_unique() &&
         !operand_->buffer()->is_foreign();
}

}  // namespace thalweg
