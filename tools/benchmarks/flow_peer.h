// flow_peer.h: the peers of the engine: bare oneTBB continue_nodes, one per addition, wired while earlier
// ones run.
#pragma once

#include <cstdint>
#include <memory>

#include "add_plan.h"

namespace bench {

/// How the peer gets and gives back its nodes.
enum class NodeSupply : std::uint8_t {
  heap,  ///< `new`, and `delete` one by one as soon as nobody may touch the node any more
  slab,  ///< reset and reused; never destroyed while the graph runs
};

/// One flow graph whose bodies run on `threads` threads, beside the thread that issues.
class FlowPeer {
 public:
  FlowPeer(NodeSupply supply, int threads);
  ~FlowPeer();
  FlowPeer(const FlowPeer&) = delete;
  FlowPeer& operator=(const FlowPeer&) = delete;

  struct Result {
    double seconds = 0;  ///< from the first addition issued to the last one done
    double checksum = 0;
    std::int64_t executed = 0;
  };
  Result run(const AddPlan& plan);

  struct Graph;

 private:
  std::unique_ptr<Graph> graph_;
};

}  // namespace bench
