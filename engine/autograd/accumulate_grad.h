// accumulate_grad.h: the node at which a leaf's gradient is added up.
#pragma once

#include <memory>
#include <string>

#include <thalweg/node.h>

#include "autograd/meta.h"

namespace thalweg {

/// One per leaf as long as something refers to it. Holds the leaf's hooks, and its gradient weakly.
class AccumulateGrad final : public Node {
 public:
  AccumulateGrad(std::shared_ptr<GradState> state, const TensorMeta& like);
  ~AccumulateGrad() override;

  std::string name() const override { return "AccumulateGrad"; }
  void run(TensorList& gradients, TensorList& results, const NeededEdges& needed, bool keep) override;
  std::shared_ptr<HookList> tensor_hooks() const override { return state_->hooks; }
  bool is_accumulation() const noexcept override { return true; }
  int visit_host(VisitHost visit, void* argument) override;
  const GradState& state() const noexcept { return *state_; }

 private:
  const std::shared_ptr<GradState> state_;
};

/// The node of the leaf `tensor` with `meta`, made if there is none.
NodePtr accumulation_of(AutogradMeta& meta, const Tensor& tensor);

}  // namespace thalweg
