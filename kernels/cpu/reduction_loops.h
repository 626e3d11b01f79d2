// reduction_loops.h: runs a reducer (see reduction_rows.h) over an input along a plan.
#pragma once

#include <algorithm>

#include "kernels/cpu/reduction_columns.h"
#include "kernels/cpu/reduction_rows.h"

namespace thalweg::cpu {

/// Reduces input 0 along `plan`; the caller has dealt with an empty reduction and with no outputs.
template <class Reducer, class Sink>
void reduce(const KernelContext& ctx, const ReductionPlan& plan, const Sink& sink) {
  const auto* data = ctx.input(0).as<const typename Reducer::In>();
  if (plan.by_column) {
    ColumnReduction<Reducer, Sink>(plan, data, sink).run(ctx);
  } else if (plan.reduced.total() <= kReduceChunk) {
    reduce_short_rows<Reducer>(ctx, plan, data, sink);
  } else {
    reduce_long_rows<Reducer>(ctx, plan, data, sink);
  }
}

/// Writes `value` to every output: what an empty reduction gives.
template <class T>
void fill_output(const KernelContext& ctx, T value) {
  std::fill_n(ctx.output().as<T>(), ctx.output().numel(), value);
}

}  // namespace thalweg::cpu
