// allocations.h: counts the heap allocations of the whole program; the program's malloc is replaced.
#pragma once

#include <cstdint>

namespace bench {

/// Counts calls of malloc, calloc, realloc and aligned forms (operator new among them), by any thread, while
/// it lives. One at a time.
class AllocationCount {
 public:
  AllocationCount();
  ~AllocationCount();
  std::uint64_t so_far() const;
};

}  // namespace bench
