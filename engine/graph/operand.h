// operand.h: one result of an operator: metadata, counts and a state that is written once.
#pragma once

#include <atomic>
#include <cstdint>

#include <thalweg/op.h>

#include "core/assert.h"
#include "core/buffer.h"
#include "core/slab_pool.h"
#include "graph/failure.h"

namespace thalweg {

class GraphExecutor;
class Operator;

/// Somebody who wants to know when an operand is done. `notify` runs on the completing thread, must not
/// block, and may free the waiter.
struct Waiter {
  Waiter* next = nullptr;
  void (*notify)(Waiter*) noexcept = nullptr;
};

enum class OperandState : std::uint8_t { pending, ready, failed };

/// The value of one output of one operator. Written once; any thread may hold references. A reference is held
/// by every consumer that has not run, the producer until it ran, every later value that could recover to it,
/// and the handles together.
///
/// Those who issue operators and those who run them count on cache lines of their own, or every operator
/// would move the lines of its inputs between cores: consumers are added on the issuers' line and dropped
/// from `refs_`, which stays above zero while there is a handle. When the last one goes, what was added is
/// added up.
class alignas(64) Operand {
  // The runners' line, with what finds the producer: whoever wires or completes an operator touches nothing
  // else of its operands.
  std::atomic<std::uintptr_t> state_{0};  // kPending, a list of waiters, kReady or kFailed
  std::atomic<std::int64_t> refs_{0};
  union {
    Buffer* buffer_ = nullptr;
    Failure* failure_;
  };

 public:
  /// The operator that makes this value and its id. Dereferenced only under the baton while the operand is
  /// pending. Atomic because a helper that walks ancestors may look at a slot just given back (it validates
  /// afterwards).
  std::atomic<Operator*> producer{nullptr};
  std::atomic<std::uint64_t> producer_id{0};

 private:
  // The issuers' line.
  alignas(64) std::atomic<std::int64_t> added_{0};  // consumers added that are not in refs_
  std::atomic<std::uint32_t> handles_{0};

 public:
  std::uint64_t id = 0;
  GraphExecutor* executor = nullptr;
  /// Link in the lane of released operands.
  Operand* next_released = nullptr;

  /// A pending operand with one handle and, if `produced`, the producer's reference.
  static Operand* make(GraphExecutor* executor, bool produced) {
    Operand* operand = SlabPool<Operand>::take();
    operand->refs_.store(produced ? kHandles + 1 : kHandles, std::memory_order_relaxed);
    operand->added_.store(0, std::memory_order_relaxed);
    operand->handles_.store(1, std::memory_order_relaxed);
    operand->state_.store(kPending, std::memory_order_relaxed);
    operand->buffer_ = nullptr;
    operand->producer.store(nullptr, std::memory_order_relaxed);
    operand->producer_id.store(0, std::memory_order_relaxed);
    operand->executor = executor;
    operand->recover = nullptr;
    return operand;
  }

  // --- state ---
  OperandState state() const noexcept {
    // Acquire pairs with the release in complete(): who sees ready sees the buffer filled.
    const std::uintptr_t word = state_.load(std::memory_order_acquire);
    return word == kReady    ? OperandState::ready
           : word == kFailed ? OperandState::failed
                             : OperandState::pending;
  }
  bool is_done() const noexcept { return state() != OperandState::pending; }

  /// Publishes the value held in `buffer` (the reference is taken over).
  void set_ready(Buffer* buffer) noexcept {
    buffer_ = buffer;
    complete(kReady);
  }
  /// Publishes `failure` (a new reference is taken).
  void set_failed(Failure* failure) noexcept {
    failure->ref();
    failure_ = failure;
    complete(kFailed);
  }
  /// Queues `waiter` unless the operand is done already; false then.
  bool add_waiter(Waiter* waiter) noexcept {
    std::uintptr_t word = state_.load(std::memory_order_acquire);
    do {
      if (word == kReady || word == kFailed) return false;
      waiter->next = reinterpret_cast<Waiter*>(word);
    } while (!state_.compare_exchange_weak(word, reinterpret_cast<std::uintptr_t>(waiter),
                                           std::memory_order_acq_rel, std::memory_order_acquire));
    return true;
  }

  /// The bytes; only when ready.
  Buffer* buffer() const noexcept { return buffer_; }
  /// The reason; only when failed.
  Failure* failure() const noexcept { return failure_; }
  /// Address of the first element; only when ready.
  void* data() const noexcept {
    return static_cast<std::byte*>(buffer_->data()) + meta.offset * item_size(meta.dtype);
  }

  // --- counts ---
  /// One more reference, by somebody who has a reference or a handle.
  void ref() noexcept { refs_.fetch_add(1, std::memory_order_relaxed); }
  void unref() noexcept {
    if (refs_.load(std::memory_order_acquire) == 1 || refs_.fetch_sub(1, std::memory_order_acq_rel) == 1)
      destroy();
  }
  /// True if the caller's reference is the only one, and there is no handle.
  bool is_unique() const noexcept { return refs_.load(std::memory_order_acquire) == 1; }

  /// The same as `ref`, by somebody who has a handle.
  void add_consumer() noexcept {
    THALWEG_ASSERT(handles() > 0, "whoever adds a consumer has a handle");
    added_.fetch_add(1, std::memory_order_relaxed);
  }
  /// One more handle, by somebody who has one.
  void add_handle() noexcept { handles_.fetch_add(1, std::memory_order_relaxed); }
  /// A handle for somebody who has a reference.
  void revive_handle() noexcept {
    // In this order: a handle that others see is one that refs_ knows of.
    refs_.fetch_add(kHandles, std::memory_order_relaxed);
    if (handles_.fetch_add(1, std::memory_order_acq_rel) != 0)
      refs_.fetch_sub(kHandles, std::memory_order_acq_rel);
  }
  /// Gives a handle up; true if it was the last one: the caller then sees to it that `handles_gone` is
  /// called.
  bool forget_handle() noexcept { return handles_.fetch_sub(1, std::memory_order_acq_rel) == 1; }
  /// Takes the handles' reference back and frees the operand if nothing else holds it.
  void handles_gone() noexcept {
    const std::int64_t added = added_.exchange(0, std::memory_order_acquire);
    if (refs_.fetch_add(added - kHandles, std::memory_order_acq_rel) == kHandles - added) destroy();
  }
  void drop_handle() noexcept {
    if (forget_handle()) handles_gone();
  }
  std::uint32_t handles() const noexcept { return handles_.load(std::memory_order_relaxed); }

  TensorMeta meta;
  /// For a failed result of an in-place form: the value it was to replace (a reference), set before
  /// set_failed.
  Operand* recover = nullptr;

 private:
  /// What the handles together count for in refs_: more than there can be consumers that ran.
  static constexpr std::int64_t kHandles = std::int64_t{1} << 56;

  static constexpr std::uintptr_t kPending = 0;
  static constexpr std::uintptr_t kReady = 1;
  static constexpr std::uintptr_t kFailed = 2;

  void complete(std::uintptr_t done) noexcept;
  void destroy() noexcept;
};

}  // namespace thalweg
