// recorder.h: what recording for backward asks of whoever issues operators. Implemented by autograd/.
#pragma once

#include <span>

#include <thalweg/engine.h>

namespace thalweg {

class OpNode;

/// A reference on `autograd`.
void ref_autograd(AutogradMeta* autograd) noexcept;
void unref_autograd(AutogradMeta* autograd) noexcept;
bool requires_grad(const AutogradMeta* autograd) noexcept;
/// `autograd` itself if it is a leaf's, else null.
AutogradMeta* leaf_autograd(AutogradMeta* autograd) noexcept;

/// True if one of the tensors has something to do with gradients. All that an operator without costs.
inline bool any_autograd(std::span<const Tensor* const> inputs) noexcept {
  for (const Tensor* input : inputs) {
    if (input->autograd() != nullptr) return true;
  }
  return false;
}

/// One operator on its way into the graph of backward. Made before the operator is issued, as it takes
/// handles on what is to be saved; any thread.
class Record {
 public:
  /// Records nothing if the thread's modes, the Op or the inputs say so.
  Record(const Op& op, std::span<const Tensor* const> inputs, SiteId site);
  ~Record();
  Record(const Record&) = delete;
  Record& operator=(const Record&) = delete;

  explicit operator bool() const noexcept { return node_ != nullptr; }
  /// The operator was issued with `attributes`, defaults included: makes `outputs` its results.
  void finish(Attributes attributes, std::span<Tensor> outputs);

 private:
  OpNode* node_ = nullptr;  // a reference
};

/// Throws EngineError if an in-place form of `op` on `target` is not allowed now: on a leaf that requires a
/// gradient while operators are recorded.
void check_in_place(const Op& op, const Tensor& target);
/// After an in-place form that was not recorded: a leaf stays the leaf it was, what an operator had made
/// becomes a constant.
void rebind_unrecorded(Tensor& target) noexcept;

}  // namespace thalweg
