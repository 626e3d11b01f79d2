// op_node.h: the node of one recorded operator of an Op.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>

#include <thalweg/gradient.h>
#include <thalweg/node.h>

#include "core/slab_pool.h"

namespace thalweg {

/// "multiply" gives "MultiplyBackward".
std::string backward_name(std::string_view op);

/// What the derivative of an operator needs of it: Op, attributes and what the Op saves. Lives in a slab.
class OpNode : public Node {
 public:
  /// Takes the edges and handles on what is to be saved of `inputs`.
  static OpNode* make(const Op& op, std::span<const Tensor* const> inputs, SiteId site);
  /// The operator was issued: takes the rest, and a sequence number.
  void finish(Attributes attributes, std::span<const Tensor> outputs);

  /// Hands what was saved to the thread's hooks, if there are any.
  virtual void pack_saved() {}

  std::string name() const override { return backward_name(op_.name); }
  void run(TensorList& gradients, TensorList& results, const NeededEdges& needed, bool keep) override;

  const Op& op() const noexcept { return op_; }
  const Attributes& attributes() const noexcept { return attributes_; }
  const ValueMeta& input_meta(std::size_t i) const;
  /// Saved value `at`, an input or output, as a tensor of the graph if operators are recorded.
  Tensor saved(const TensorList& values, SavedValue::Kind kind, std::size_t index) const;

 private:
  struct alignas(64) Slot {
    std::byte bytes[256];
  };

  void free() noexcept override;
  void save_inputs(std::span<const Tensor* const> inputs);
  bool is_wanted(const SavedValue& entry) const noexcept;

  const Op& op_;
  Attributes attributes_;
  std::unique_ptr<ValueMeta[]> input_metas_;

 protected:
  OpNode(const Op& op, std::span<const Tensor* const> inputs, SiteId site);
  ~OpNode() override = default;
  /// What was saved, for one run; unless `keep` for the last.
  virtual TensorList take_saved(bool keep);
  /// As that, under the lock. Throws EngineError if it is gone.
  TensorList take_locked(bool keep);

  /// In the order of op.saves; empty where nothing needs it.
  TensorList saved_;
};

}  // namespace thalweg
