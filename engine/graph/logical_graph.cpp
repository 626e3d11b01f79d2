// logical_graph.cpp: the live list and the retired list.
#include "graph/logical_graph.h"

namespace thalweg {

void LogicalGraph::add(Operator* op) noexcept {
  op->live_previous = last_;
  op->live_next = nullptr;
  (last_ != nullptr ? last_->live_next : first_) = op;
  last_ = op;
}

void LogicalGraph::remove(Operator* op) noexcept {
  (op->live_previous != nullptr ? op->live_previous->live_next : first_) = op->live_next;
  (op->live_next != nullptr ? op->live_next->live_previous : last_) = op->live_previous;
}

void LogicalGraph::retire(Operator* op) noexcept {
  Operator* head = retired_.load(std::memory_order_relaxed);
  do {
    op->next_retired = head;
    // Release pairs with the acquire in reap(): the reaper sees what the run left in the operator.
  } while (!retired_.compare_exchange_weak(head, op, std::memory_order_release, std::memory_order_relaxed));
}

Operator* LogicalGraph::reap() noexcept {
  if (retired_.load(std::memory_order_relaxed) == nullptr) return nullptr;
  Operator* list = retired_.exchange(nullptr, std::memory_order_acquire);
  for (Operator* op = list; op != nullptr; op = op->next_retired) remove(op);
  return list;
}

std::uint64_t LogicalGraph::count_before(std::uint64_t id) const noexcept {
  std::uint64_t count = 0;
  for (const Operator* op = first_; op != nullptr; op = op->live_next) {
    const bool finished = op->claim.load(std::memory_order_acquire) >= Operator::kCounted;
    count += op->id < id && !finished ? 1 : 0;
  }
  return count;
}

const std::string& LogicalGraph::name_of(const Operand& operand) const {
  static const std::string kNone;
  const std::string* name = operand_names_.find(operand.id);
  return name != nullptr ? *name : kNone;
}

}  // namespace thalweg
