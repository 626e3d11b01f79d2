// packing_node.h: the node of an operator that was issued while saved-tensor hooks were set.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include <thalweg/autograd.h>

#include "autograd/op_node.h"

namespace thalweg {

/// Keeps what the hooks made of the saved values. On the heap: an OpNode without hooks pays nothing for it.
class PackingNode final : public OpNode {
 public:
  PackingNode(const Op& op, std::span<const Tensor* const> inputs, SiteId site) : OpNode(op, inputs, site) {}

  /// An exception leaves the rest unpacked.
  void pack_saved() override;
  int visit_host(VisitHost visit, void* argument) override;

 private:
  ~PackingNode() override = default;
  void free() noexcept override { delete this; }
  TensorList take_saved(bool keep) override;
  void check(const Tensor& value, const ValueMeta& meta) const;

  /// Beside `saved_`: null where the value is there. Under the lock once others see the node.
  std::vector<std::shared_ptr<PackedValue>> packed_;
  /// What each must be again.
  std::vector<ValueMeta> metas_;
};

}  // namespace thalweg
