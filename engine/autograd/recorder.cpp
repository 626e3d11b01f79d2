// recorder.cpp: which operators become nodes.
#include "graph/recorder.h"

#include <utility>

#include <thalweg/autograd.h>

#include "autograd/meta.h"
#include "autograd/op_node.h"

namespace thalweg {

Record::Record(const Op& op, std::span<const Tensor* const> inputs, SiteId site) {
  if (!is_grad_enabled() || !op.is_differentiable()) return;
  for (const Tensor* input : inputs) {
    if (!input->requires_grad()) continue;
    node_ = OpNode::make(op, inputs, site);
    return;
  }
}

Record::~Record() {
  if (node_ != nullptr) node_->unref();
}

void Record::finish(Attributes attributes, std::span<Tensor> outputs) {
  const Op& op = node_->op();
  const auto passes_gradient = [&](std::size_t j) {
    return (op.not_differentiable >> j & 1) == 0 && is_inexact(outputs[j].dtype());
  };
  bool any = false;
  for (std::size_t j = 0; j < outputs.size(); ++j) any |= passes_gradient(j);
  if (!any) return;
  node_->finish(std::move(attributes), outputs);
  for (std::size_t j = 0; j < outputs.size(); ++j) {
    if (passes_gradient(j)) outputs[j].set_autograd(make_interior(NodePtr::share(node_), j));
  }
  if (saved_tensors_hooks() != nullptr) [[unlikely]]
    node_->pack_saved();
}

}  // namespace thalweg
