// graph_traversal_sequence.h: the operators of one batch of messages in topological order.
#pragma once

#include "core/assert.h"
#include "graph/operator.h"

namespace thalweg {

/// Operators in an order in which every producer stands before its consumers. Issue order is such an order:
/// an operand exists only after its producer's message was pushed, and the queue keeps pushes that happened
/// before one another in order. So nothing is sorted; debug builds check it.
class GraphTraversalSequence {
 public:
  void append(Operator* op) noexcept {
    op->next_ready = nullptr;
    (last_ != nullptr ? last_->next_ready : first_) = op;
    last_ = op;
  }
  bool empty() const noexcept { return first_ == nullptr; }
  void clear() noexcept { first_ = last_ = nullptr; }

  /// Calls `visit` for each operator; the visit may free it.
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (Operator* op = first_; op != nullptr;) {
      Operator* next = op->next_ready;
      if (next != nullptr) prefetch_operands(*next);
      visit(op);
      op = next;
    }
  }

 private:
  static void prefetch_operands(Operator& op) noexcept {
    for (const Operand* input : op.inputs()) __builtin_prefetch(input);
    for (const Operand* output : op.outputs()) __builtin_prefetch(output, 1);
  }

  Operator* first_ = nullptr;
  Operator* last_ = nullptr;
};

}  // namespace thalweg
