// reduction_plan.h: how a reduction walks its input: which dimensions it keeps, which it combines, and in
// what order.
#pragma once

#include <cstdint>

#include <thalweg/kernel.h>

#include "kernels/cpu/loop_nest.h"

namespace thalweg::cpu {

/// Elements of the input that one parallel chunk reduces. A result depends on it, never on the number of
/// threads.
inline constexpr std::int64_t kReduceChunk = 32768;

/// The two loop nests of a reduction, chosen by shape and layout alone.
struct ReductionPlan {
  /// Kept dimensions; operand 0 is the input, operand 1 the output.
  LoopNest<2> kept;
  /// Reduced dimensions of the input.
  LoopNest<1> reduced;
  /// Reduce many neighbouring outputs side by side, one row of the input at a time, instead of one output
  /// after the other. The innermost kept dimension has then been taken out of `kept`:
  bool by_column = false;
  std::int64_t columns = 1;
  std::int64_t column_stride = 0;
  std::int64_t output_stride = 0;
};

/// Whether the reduced elements may be visited in any order, or must be in C order (positions matter).
enum class VisitOrder { any, c_order };

/// The axes named by attribute 0 of a reduction (all if None), bit i for axis i.
std::uint64_t reduced_axes(const KernelContext& ctx);

ReductionPlan plan_reduction(const TensorView& input, std::uint64_t reduced, VisitOrder order);

}  // namespace thalweg::cpu
