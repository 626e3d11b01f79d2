// message_queue.h: what callers send to the baton holder, and the queue that carries it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>

#include "graph/operand.h"

namespace thalweg {

/// One entry of the queue. The add-operator message is the Operator itself; all others are ControlMessages.
struct Message {
  enum class Kind : std::uint8_t { add_operator, control };

  explicit Message(Kind message_kind) noexcept : kind(message_kind) {}

  Message* next_message = nullptr;
  /// An operator sent a little earlier by the same thread, which the queue's reader brings into its cache in
  /// passing. Only a hint: the slot may have been reused.
  const void* prefetch_hint = nullptr;
  Kind kind;
};

/// Names an operand in dumps. Holds a reference on it.
struct NameOperand {
  Operand* operand;
  std::string name;
};
struct NameGraph {
  std::string name;
};
/// Someone reads `operand`: everything in front of it must start now. Holds a reference on it.
struct FetchValue {
  Operand* operand;
};
/// Where a synchronising caller stands, filled by the baton holder when it meets the message: everything sent
/// in front of it is launched then, `left` of it has not finished, and `finished` operators had before that
/// count was taken.
struct SyncPoint {
  std::uint64_t before = 0;  // operators with a smaller id count
  std::uint64_t finished = 0;
  std::uint64_t left = 0;
  std::atomic<bool> reached{false};
};
/// Everything in front of it must start now.
struct Synchronise {
  std::shared_ptr<SyncPoint> point;
};
/// Holds for the operators behind it.
struct SetOption {
  enum class Option : std::uint8_t { memory_limit } option;
  std::int64_t value;
  std::atomic<bool>* applied = nullptr;  ///< of the sender, who waits for it
};

/// A rare message, on the heap. Operands released while unfinished travel in a lane of their own
/// (MessageQueue).
struct ControlMessage : Message {
  using Body = std::variant<NameOperand, NameGraph, FetchValue, Synchronise, SetOption>;

  explicit ControlMessage(Body message_body) : Message(Kind::control), body(std::move(message_body)) {}

  Body body;
};

/// Many producers, one consumer at a time (the baton holder). A push is one compare-and-swap, no allocation.
///
/// Order: if push A returned before push B began, A comes out first. The release lane carries operands whose
/// last handle went while they were unfinished; their order against operators does not matter, so they ride
/// beside the messages and are picked up with the next drain.
class MessageQueue {
 public:
  void push(Message* message) noexcept {
    Message* head = head_.load(std::memory_order_relaxed);
    do {
      message->next_message = head;
      // seq_cst: the sender then reads whether the controller sleeps; pairs with the controller's store and
      // re-check.
    } while (
        !head_.compare_exchange_weak(head, message, std::memory_order_seq_cst, std::memory_order_relaxed));
  }

  /// Takes everything, oldest first.
  Message* take_all() noexcept {
    if (head_.load(std::memory_order_relaxed) == nullptr) return nullptr;
    Message* newest_first = head_.exchange(nullptr, std::memory_order_acquire);
    Message* oldest_first = nullptr;
    while (newest_first != nullptr) {
      Message* next = newest_first->next_message;
      prefetch(*newest_first);
      newest_first->next_message = oldest_first;
      oldest_first = newest_first;
      newest_first = next;
    }
    return oldest_first;
  }

  /// No message; released operands do not count.
  bool empty() const noexcept { return head_.load(std::memory_order_seq_cst) == nullptr; }
  bool has_released() const noexcept { return released_.load(std::memory_order_seq_cst) != nullptr; }

  /// The newest message, linked to the older ones by next_message. They stay as they are while the consumer,
  /// who alone may call this, takes nothing.
  const Message* peek() const noexcept { return head_.load(std::memory_order_acquire); }

  /// The release-operand message: whoever takes it calls `handles_gone`.
  void push_released(Operand* operand) noexcept {
    Operand* head = released_.load(std::memory_order_relaxed);
    do {
      operand->next_released = head;
    } while (!released_.compare_exchange_weak(head, operand, std::memory_order_seq_cst,
                                              std::memory_order_relaxed));
  }
  Operand* take_released() noexcept {
    if (released_.load(std::memory_order_relaxed) == nullptr) return nullptr;
    return released_.exchange(nullptr, std::memory_order_acquire);
  }

 private:
  /// The list leads from one cold cache line to the next; hints let several of them come at once.
  static void prefetch(const Message& message) noexcept {
    const auto* hint = static_cast<const char*>(message.prefetch_hint);
    for (int line = 0; line < 4; ++line) __builtin_prefetch(hint + line * 64, 1);
  }

  alignas(64) std::atomic<Message*> head_{nullptr};
  alignas(64) std::atomic<Operand*> released_{nullptr};
};

}  // namespace thalweg
