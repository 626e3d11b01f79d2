// parallelism.cpp: the process-wide limit of oneTBB, which the C++ library leaves to its host.
#include "parallelism.h"

#include <algorithm>
#include <memory>
#include <thread>

#include <oneapi/tbb/global_control.h>

namespace thalweg::python {

void allow_parallelism(int num_threads) {
  // Leaked: arenas may outlive every static destructor.
  static auto* limit = new std::unique_ptr<tbb::global_control>;
  static int allowed = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  const int wanted = num_threads + 1;
  if (wanted <= allowed) return;
  allowed = wanted;
  // The smallest of all controls counts: the old one must go first.
  limit->reset();
  *limit = std::make_unique<tbb::global_control>(tbb::global_control::max_allowed_parallelism, wanted);
}

}  // namespace thalweg::python
