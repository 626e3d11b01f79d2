// half_table.h: loops that convert between half-precision formats and what kernels compute in, one table for
// each instruction set.
#pragma once

#include "kernels/cpu/elementwise_table.h"

// Included by files that are compiled for several instruction sets: no standard C++ headers, no inline
// functions.

namespace thalweg::cpu {

/// Loops of one input. The half-precision formats are 0 for float16 and 1 for bfloat16.
struct HalfTable {
  /// A format to float.
  Loop widen[2];
  /// float to a format, rounded.
  Loop narrow[2];
  /// By dtype of the input: to a float that `narrow` rounds as it would the input. Null where float holds the
  /// input or none is needed.
  Loop to_odd[kLoopDTypes];
};

}  // namespace thalweg::cpu
