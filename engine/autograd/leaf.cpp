// leaf.cpp: tensors that require gradients, and the gradients they keep.
#include <string>
#include <utility>

#include <thalweg/autograd.h>
#include <thalweg/errors.h>

#include "autograd/accumulate_grad.h"
#include "autograd/meta.h"
#include "graph/recorder.h"

namespace thalweg {

namespace {

AutogradMeta& meta_for(const char* what, const Tensor& tensor) {
  if (tensor.requires_grad()) return *tensor.autograd();
  throw EngineError(std::string(what) +
                    ": the tensor does not require a gradient; call requires_grad_() first");
}

/// Keeps the gradient of a non-leaf as a leaf's is kept.
class RetainGrad final : public Hook {
 public:
  RetainGrad(std::shared_ptr<GradState> state, std::uint32_t number) : state_(std::move(state)) {
    output = number;
  }
  void run(std::span<Tensor> gradients, std::span<const Tensor>) override {
    accumulate(*state_, gradients[0], 0);
  }

 private:
  const std::shared_ptr<GradState> state_;
};

}  // namespace

bool Tensor::requires_grad() const noexcept {
  return autograd_ != nullptr && thalweg::requires_grad(autograd_);
}

void set_requires_grad(Tensor& tensor, bool required) {
  AutogradMeta* const meta = tensor.autograd();
  if (required && !is_inexact(tensor.dtype())) {
    throw DTypeError("requires_grad: " + std::string(name(tensor.dtype())) +
                     " has no gradient, only floating and complex dtypes do; cast with astype first");
  }
  if (meta == nullptr) {
    if (required) tensor.set_autograd(make_leaf(true));
    return;
  }
  if (meta->is_leaf()) {
    meta->required.store(required, std::memory_order_relaxed);
  } else if (!required) {
    throw EngineError(
        "requires_grad: only leaves can be told to require no gradient; for a tensor that an operator made "
        "use detach()");
  }
}

bool is_leaf(const Tensor& tensor) noexcept {
  return tensor.autograd() == nullptr || tensor.autograd()->is_leaf();
}

NodePtr grad_fn(const Tensor& tensor) noexcept {
  return tensor.autograd() == nullptr ? NodePtr() : tensor.autograd()->grad_fn;
}

Edge gradient_edge(const Tensor& tensor) {
  AutogradMeta* const meta = tensor.autograd();
  if (meta == nullptr || !meta->requires_grad()) return {};
  if (!meta->is_leaf()) return {meta->grad_fn, meta->output};
  return {accumulation_of(*meta, tensor), 0};
}

Tensor output_of(NodePtr node, std::size_t output, const Tensor& value) {
  Tensor result = value.detach();
  result.set_autograd(make_interior(std::move(node), output));
  return result;
}

Tensor gradient_of(const Tensor& tensor) {
  if (tensor.autograd() == nullptr) return {};
  const std::shared_ptr<GradSlot> slot = tensor.autograd()->slot_if_any();
  return slot == nullptr ? Tensor() : slot->load();
}

void check_gradient(const Tensor& tensor, const Tensor& gradient) {
  if (gradient.shape() != tensor.shape()) {
    throw ShapeError("grad: a gradient of shape " + to_string(gradient.shape()) +
                     " does not fit a tensor of shape " + to_string(tensor.shape()));
  }
  if (gradient.dtype() != tensor.dtype()) {
    throw DTypeError("grad: a gradient of " + std::string(name(gradient.dtype())) +
                     " does not fit a tensor of " + std::string(name(tensor.dtype())) +
                     "; cast it with astype");
  }
  if (&gradient.engine() != &tensor.engine()) {
    throw EngineError(
        "grad: the gradient belongs to another engine than the tensor; carry its value over, in Python with "
        "from_numpy(x.numpy())");
  }
  if (gradient.device() != tensor.device()) {
    throw DeviceError("grad: a gradient on " + to_string(gradient.device()) + " does not fit a tensor on " +
                      to_string(tensor.device()) + "; bring it there with .to(device)");
  }
}

void set_gradient(const Tensor& tensor, Tensor gradient) {
  if (gradient) check_gradient(tensor, gradient);
  if (tensor.autograd() == nullptr) {
    if (!gradient) return;
    throw EngineError("grad: the tensor has nothing to do with gradients; call requires_grad_() first");
  }
  for (;;) {
    const std::shared_ptr<GradSlot> slot = tensor.autograd()->slot();
    const Tensor before = slot->load();
    if (slot->exchange(before.operand(), gradient)) return;
  }
}

std::shared_ptr<GradSlot> grad_slot(const Tensor& tensor) { return tensor.autograd()->slot(); }

std::shared_ptr<GradSlot> replace_grad_slot(const Tensor& tensor, const std::shared_ptr<GradSlot>& slot) {
  return tensor.autograd()->replace_slot(slot);
}

void retain_grad(const Tensor& tensor) {
  AutogradMeta& meta = meta_for("retain_grad", tensor);
  if (meta.is_leaf()) return;
  const std::shared_ptr<GradState>& state = meta.state();
  {
    std::lock_guard guard(state->lock);
    if (std::exchange(state->retains, true)) return;
  }
  meta.grad_fn->make_hooks().retain->add(std::make_shared<RetainGrad>(state, meta.output));
}

bool retains_grad(const Tensor& tensor) noexcept {
  if (tensor.autograd() == nullptr) return false;
  const std::shared_ptr<GradState>* const state = tensor.autograd()->state_if_any();
  if (state == nullptr) return false;
  std::lock_guard guard((*state)->lock);
  return (*state)->retains;
}

std::shared_ptr<HookList> add_tensor_hook(const Tensor& tensor, std::shared_ptr<Hook> hook) {
  AutogradMeta& meta = meta_for("register_hook", tensor);
  hook->output = meta.output;
  std::shared_ptr<HookList> list = meta.is_leaf() ? meta.state()->hooks : meta.grad_fn->make_hooks().tensor;
  list->add(std::move(hook));
  return list;
}

std::shared_ptr<HookList> add_post_accumulate_hook(const Tensor& tensor, std::shared_ptr<Hook> hook) {
  AutogradMeta& meta = meta_for("register_post_accumulate_grad_hook", tensor);
  if (!meta.is_leaf()) {
    throw EngineError(
        "register_post_accumulate_grad_hook: only leaves add gradients up; for a tensor that an operator "
        "made "
        "use register_hook");
  }
  meta.state()->post_hooks->add(std::move(hook));
  return meta.state()->post_hooks;
}

void set_host_leaf(const Tensor& leaf, std::shared_ptr<void> object) {
  const std::shared_ptr<GradState>& state = leaf.autograd()->state();
  std::lock_guard guard(state->lock);
  std::swap(state->host, object);
}

std::shared_ptr<void> host_leaf(const Node& node) {
  if (!node.is_accumulation()) return nullptr;
  const GradState& state = static_cast<const AccumulateGrad&>(node).state();
  std::lock_guard guard(state.lock);
  return state.meta == nullptr ? nullptr : state.host;
}

bool accumulates_into(const Node& node, const Tensor& tensor) noexcept {
  if (!node.is_accumulation() || tensor.autograd() == nullptr) return false;
  const auto* const state = tensor.autograd()->state_if_any();
  return state != nullptr && state->get() == &static_cast<const AccumulateGrad&>(node).state();
}

// --- in-place forms
// ---------------------------------------------------------------------------------------

void check_in_place(const Op& op, const Tensor& target) {
  if (!target.requires_grad() || !is_grad_enabled() || !is_leaf(target)) return;
  throw EngineError(
      op.name +
      ": a leaf that requires a gradient cannot be changed in place while operators are recorded; "
      "do it in `with no_grad():`, or use the plain form, which makes a new tensor");
}

void rebind_unrecorded(Tensor& target) noexcept {
  if (target.autograd() != nullptr && !target.autograd()->is_leaf()) target.set_autograd(nullptr);
}

}  // namespace thalweg
