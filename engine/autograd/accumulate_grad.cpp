// accumulate_grad.cpp: adding up the gradient of a leaf.
#include "autograd/accumulate_grad.h"

#include <utility>

namespace thalweg {

AccumulateGrad::AccumulateGrad(std::shared_ptr<GradState> state, const TensorMeta& like)
    : Node(0, 1, 0), state_(std::move(state)) {
  set_output_meta(0, like);
  set_sequence_nr(kLast);
}

AccumulateGrad::~AccumulateGrad() {
  std::lock_guard guard(state_->lock);
  if (state_->accumulation == this) state_->accumulation = nullptr;
}

void AccumulateGrad::run(TensorList& gradients, TensorList&, const NeededEdges&, bool) {
  AutogradMeta* const meta = AutogradMeta::reach(*state_);
  if (meta == nullptr) return;
  const bool wanted = meta->requires_grad();
  meta->unref();
  if (!wanted) return;
  accumulate(*state_, gradients[0], site());
  for (const std::shared_ptr<Hook>& hook : state_->post_hooks->snapshot()) {
    if (state_->post_hooks->contains(hook.get())) hook->run({}, {});
  }
}

int AccumulateGrad::visit_host(VisitHost visit, void* argument) {
  if (const int stop = Node::visit_host(visit, argument)) return stop;
  // The leaf itself shows them while it is there.
  if (state_.use_count() != 1) return 0;
  if (const int stop = state_->hooks->visit_host(visit, argument)) return stop;
  return state_->post_hooks->visit_host(visit, argument);
}

NodePtr accumulation_of(AutogradMeta& meta, const Tensor& tensor) {
  const std::shared_ptr<GradState>& state = meta.state();
  {
    std::lock_guard guard(state->lock);
    if (state->accumulation != nullptr && state->accumulation->try_ref()) return NodePtr(state->accumulation);
  }
  NodePtr fresh(new AccumulateGrad(state, tensor.meta()));
  std::lock_guard guard(state->lock);
  if (state->accumulation != nullptr && state->accumulation->try_ref()) return NodePtr(state->accumulation);
  state->accumulation = fresh.get();
  return fresh;
}

}  // namespace thalweg
