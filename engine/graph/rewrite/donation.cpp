// donation.cpp: the donation pass.
#include "graph/rewrite/donation.h"

namespace thalweg {

std::uint8_t donation_candidates(Operator& op) noexcept {
  if (op.op->alias_mask == 0 || op.op->outputs != 1 || op.bytes <= Buffer::kInlineBytes) return 0;
  // Up to the inline size a donation saves nothing.
  const TensorMeta& output = op.outputs()[0]->meta;
  std::uint8_t mask = 0;
  const auto inputs = op.inputs();
  for (std::size_t i = 0; i < inputs.size() && i < 8; ++i) {
    const TensorMeta& input = inputs[i]->meta;
    // A user's kernel may throw half-way, and the value that its in-place form replaces must survive that.
    if (op.in_place && op.op->is_custom && i == 0) continue;
    const bool fits = (op.op->alias_mask >> i & 1) != 0 && input.offset == 0 &&
                      input.bytes() == output.bytes() && item_size(input.dtype) == item_size(output.dtype) &&
                      is_contiguous(input.shape, input.strides);
    if (fits) mask |= static_cast<std::uint8_t>(1U << i);
  }
  return mask;
}

void DonationPass::run(GraphTraversalSequence& order) {
  order.for_each([](Operator* op) { op->donate_mask = donation_candidates(*op); });
}

RewritePasses default_rewrite_passes() {
  RewritePasses passes;
  passes.push_back(std::make_unique<DonationPass>());
  return passes;
}

}  // namespace thalweg
