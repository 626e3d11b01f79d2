// logical_graph.h: the operators that are issued and not finished, in issue order, with their operands'
// names.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

#include "graph/operand_names.h"
#include "graph/operator.h"

namespace thalweg {

/// Lives under the baton, but for `retire`, which any thread may call.
class LogicalGraph {
 public:
  void add(Operator* op) noexcept;
  /// Takes an operator out that has finished under the baton.
  void remove(Operator* op) noexcept;
  /// Hands a finished operator to the next `reap`. Lock-free.
  void retire(Operator* op) noexcept;
  /// Takes the retired operators out; linked by next_retired.
  Operator* reap() noexcept;

  Operator* first() const noexcept { return first_; }
  bool empty() const noexcept { return first_ == nullptr; }
  /// Unfinished operators with an id below `id`.
  std::uint64_t count_before(std::uint64_t id) const noexcept;

  void set_name(std::string name) { name_ = std::move(name); }
  const std::string& name() const noexcept { return name_; }
  void name_operand(const Operand& operand, std::string name) {
    operand_names_.set(operand.id, std::move(name));
  }
  /// Empty if it has none.
  const std::string& name_of(const Operand& operand) const;
  OperandNames& operand_names() noexcept { return operand_names_; }

 private:
  Operator* first_ = nullptr;
  Operator* last_ = nullptr;
  std::string name_ = "graph";
  OperandNames operand_names_;
  alignas(64) std::atomic<Operator*> retired_{nullptr};
};

}  // namespace thalweg
