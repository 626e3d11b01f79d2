// pass.h: the rewrite stage: a list of passes over the operators of one batch, run under the baton before
// dispatch.
#pragma once

#include <memory>
#include <vector>

#include "graph/graph_traversal_sequence.h"

namespace thalweg {

/// One rewrite. It may annotate operators; it runs no user code and does not block.
class RewritePass {
 public:
  virtual ~RewritePass() = default;
  virtual void run(GraphTraversalSequence& order) = 0;
};

using RewritePasses = std::vector<std::unique_ptr<RewritePass>>;

/// The passes of the eager executor, in order.
RewritePasses default_rewrite_passes();

}  // namespace thalweg
