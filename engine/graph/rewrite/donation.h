// donation.h: marks which inputs may give their bytes to the output.
#pragma once

#include "graph/rewrite/pass.h"

namespace thalweg {

/// Inputs whose bytes could serve as `op`'s output: in the Op's alias mask, C-contiguous, as many bytes as
/// the output. Whether one really is dead is decided when the operator starts (NaiveRunner).
std::uint8_t donation_candidates(Operator& op) noexcept;

/// Fills Operator::donate_mask.
class DonationPass final : public RewritePass {
 public:
  void run(GraphTraversalSequence& order) override;
};

}  // namespace thalweg
