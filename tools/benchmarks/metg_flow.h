// metg_flow.h: the METG peer: an eager raw oneTBB flow graph.
#pragma once

#include <cstdint>

#include "metg_pattern.h"

namespace bench {

struct MetgRun {
  double seconds = 0;
  std::int64_t executed = 0;
  /// Tasks that were given anything but the payloads of their dependencies.
  std::int64_t bad = 0;
};

/// Runs the pattern with one continue_node per task, created and wired while earlier ones run, on `threads`
/// threads, the creating one included. The nodes are destroyed after the clock has stopped.
MetgRun run_metg_flow(const MetgPattern& pattern, std::int64_t iterations, int threads);

}  // namespace bench
