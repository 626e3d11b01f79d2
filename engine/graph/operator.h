// operator.h: one application of an Op, from issue until it has run. Lives in a slab slot, which is also its
// message.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <thread>

#include <thalweg/engine.h>
#include <thalweg/kernel.h>

#include "graph/message_queue.h"
#include "graph/operand.h"

namespace thalweg {

class OperatorNode;
struct OperatorRecord;

/// Filled by the GraphConstructor on the caller's thread, handed to the baton holder by the queue, run by
/// whoever claims it, reaped by the baton holder.
class alignas(64) Operator : public Message {
 public:
  Operator() noexcept : Message(Kind::add_operator) {}

  static Operator* make(const Op& op, std::size_t inputs, std::size_t outputs) {
    Operator* self = SlabPool<Operator>::take();
    self->op = &op;
    self->claim.store(0, std::memory_order_relaxed);
    self->parts.store(1, std::memory_order_relaxed);
    self->guards.store(1, std::memory_order_relaxed);
    self->hold_.store(kPrivate, std::memory_order_relaxed);
    self->node = nullptr;
    self->kernel = nullptr;
    self->record = nullptr;
    self->donate_mask = 0;
    self->in_place = false;
    self->resize(inputs, outputs);
    return self;
  }
  /// Gives the slot back. References on operands are the caller's business.
  void free() noexcept {
    attributes.values().clear();
    SlabPool<Operator>::give(this);
  }

  std::span<Operand*> inputs() noexcept { return {input_data(), input_count_}; }
  std::span<Operand*> outputs() noexcept { return {input_data() + input_count_, output_count_}; }

  const Op* op = nullptr;
  std::uint64_t id = 0;
  SiteId site = 0;
  Device device;
  /// Bit i: input i may give its bytes to output 0 if this operator's reference turns out to be the last
  /// (rewrite/).
  std::uint8_t donate_mask = 0;
  /// Input 0 is the value that an in-place form replaces.
  bool in_place = false;
  /// Its estimate is below the inline limit and its kernel is a built-in one.
  bool is_small = false;
  /// Estimated nanoseconds on one core; infinite for kernels of unknown cost.
  float cost_ns = 0;
  /// Of its outputs.
  std::int64_t bytes = 0;
  Attributes attributes;
  const KernelFn* kernel = nullptr;

  // --- running ---
  static constexpr std::uint64_t kFinished = ~std::uint64_t{0};
  static constexpr std::uint64_t kCounted = kFinished - 1;
  /// The id while nobody has begun to run it; whoever swaps it to 0 runs it, and sets kFinished when its
  /// outputs are done and kCounted when the executor has been told. Ids are never reused, slots are.
  alignas(64) std::atomic<std::uint64_t> claim{0};

 private:
  /// Whether a dump may read the operands: nobody else sees the operator, it holds them, a dump reads them,
  /// they went.
  enum Hold : std::uint8_t { kPrivate, kHeld, kPinned, kLetGo };
  std::atomic<std::uint8_t> hold_{kPrivate};

 public:
  /// The run itself and, once its guard was put, the flow task: the slot is reaped when both are over.
  std::atomic<std::uint32_t> parts{1};
  /// Puts that its node still waits for: the creation guard and one for every producer of another device's
  /// graph.
  std::atomic<std::uint32_t> guards{1};
  /// Baton, before others may run it: from now on a dump may look at its operands.
  void show_operands() noexcept { hold_.store(kHeld, std::memory_order_relaxed); }
  /// Baton: true if it has not let go of its operands; it then keeps them until `unpin`, well under a
  /// microsecond later.
  bool pin() noexcept {
    std::uint8_t held = kHeld;
    return hold_.compare_exchange_strong(held, kPinned, std::memory_order_acquire, std::memory_order_relaxed);
  }
  void unpin() noexcept { hold_.store(kHeld, std::memory_order_release); }
  /// Whoever ran it, before the first reference on an operand is dropped. Waits for a dump that has it
  /// pinned.
  void let_go() noexcept {
    if (hold_.load(std::memory_order_relaxed) == kPrivate) return;
    std::uint8_t held = kHeld;
    // Acquire pairs with the release in unpin(): the dump has read the operands before their slots are used
    // again.
    for (int spins = 0;
         !hold_.compare_exchange_weak(held, kLetGo, std::memory_order_acquire, std::memory_order_relaxed);
         ++spins) {
      held = kHeld;
      if (spins > 64) std::this_thread::yield();
    }
  }
  OperatorNode* node = nullptr;
  /// What it counts against the run-ahead limit of bytes, in the executor's units.
  std::int64_t run_ahead_units = 0;
  /// Present while recording.
  OperatorRecord* record = nullptr;

  // --- LogicalGraph (baton) and its lists: a cache line of the baton holder's ---
  alignas(64) Operator* live_previous = nullptr;
  Operator* live_next = nullptr;
  Operator* next_retired = nullptr;
  Operator* next_ready = nullptr;

 private:
  static constexpr std::size_t kInlineOperands = 4;

  void resize(std::size_t inputs, std::size_t outputs) {
    if (inputs + outputs > kInlineOperands && inputs + outputs > many_capacity_) {
      many_ = std::make_unique<Operand*[]>(inputs + outputs);
      many_capacity_ = inputs + outputs;
    }
    input_count_ = static_cast<std::uint32_t>(inputs);
    output_count_ = static_cast<std::uint32_t>(outputs);
  }
  Operand** input_data() noexcept {
    return input_count_ + output_count_ > kInlineOperands ? many_.get() : few_;
  }

  std::uint32_t input_count_ = 0;
  std::uint32_t output_count_ = 0;
  Operand* few_[kInlineOperands] = {};
  std::unique_ptr<Operand*[]> many_;  // kept with the slot for the next operator of many operands
  std::size_t many_capacity_ = 0;
};

}  // namespace thalweg
