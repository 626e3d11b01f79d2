// operand.cpp: completion and death of operands.
#include "graph/operand.h"

namespace thalweg {

void Operand::complete(std::uintptr_t done) noexcept {
  // Release pairs with the acquire in state(); acquire makes the waiters' fields visible.
  const std::uintptr_t word = state_.exchange(done, std::memory_order_acq_rel);
  THALWEG_ASSERT(word != kReady && word != kFailed, "an operand is written once");
  auto* waiter = reinterpret_cast<Waiter*>(word);
  while (waiter != nullptr) {
    Waiter* next = waiter->next;  // read first: notify may free the waiter
    waiter->notify(waiter);
    waiter = next;
  }
}

void Operand::destroy() noexcept {
  // Chains of recoverable values can be long: walk them instead of recursing.
  Operand* operand = this;
  while (operand != nullptr) {
    const std::uintptr_t word = operand->state_.load(std::memory_order_acquire);
    if (word == kReady && operand->buffer_ != nullptr) operand->buffer_->unref();
    if (word == kFailed) operand->failure_->unref();
    Operand* next = operand->recover;
    operand->recover = nullptr;
    operand->buffer_ = nullptr;
    SlabPool<Operand>::give(operand);
    operand = next != nullptr && next->refs_.fetch_sub(1, std::memory_order_acq_rel) == 1 ? next : nullptr;
  }
}

}  // namespace thalweg
