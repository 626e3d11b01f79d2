// reduction_rows.h: reductions one output after the other, with an association fixed by shape and layout.
//
// A reducer is a struct with
//   using In, Acc;                        element and accumulator types
//   static Acc identity();                combines with any value to that value
//   static Acc load(In, Acc center);      what an element contributes
//   static Acc combine(Acc, Acc);         associative up to rounding
//   static void combine_leaves(const In*, int64 count, Acc* values);       optional, see LeavesLoop
//   static void combine_columns(const ColumnRows<Acc>&);                    optional, with In = Acc, see
//   ColumnsLoop
// and a sink is a struct with
//   void store(std::int64_t at, Acc);     writes output `at`
//   Acc center(std::int64_t at);          the value that elements of output `at` are compared with
//   (variance), else 0
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/cpu/dense_table.h"
#include "kernels/cpu/loop_nest.h"
#include "kernels/cpu/reduction_plan.h"
#include "kernels/cpu/strided_loop.h"

namespace thalweg::cpu {

/// Accumulators side by side in a leaf: enough that SIMD registers of every width run at full speed with the
/// same association.
template <class Acc>
inline constexpr std::int64_t kLanes = kLaneBytes / static_cast<std::int64_t>(sizeof(Acc));

template <class Acc>
inline constexpr std::int64_t kLeaf = kLeafBytes / static_cast<std::int64_t>(sizeof(Acc));

/// The loop for T = float or double of those two.
template <class T, class Float, class Double>
constexpr auto table_loop(Float for_float, Double for_double) noexcept {
  if constexpr (sizeof(T) == sizeof(float)) {
    return for_float;
  } else {
    return for_double;
  }
}

/// Rows that a column reduction adds up before they join the tree.
inline constexpr std::int64_t kLeafRows = 16;

/// Combines a stream of values as a balanced binary tree, left to right. The tree depends on their number
/// only.
template <class Reducer>
class PairwiseTree {
 public:
  using Acc = typename Reducer::Acc;

  void push(Acc value) noexcept {
    int level = 0;
    for (std::uint64_t bits = count_++; (bits & 1) != 0; bits >>= 1) {
      value = Reducer::combine(levels_[level++], value);
    }
    levels_[level] = value;
  }

  Acc result() const noexcept {
    if (count_ == 0) return Reducer::identity();
    int level = 0;
    std::uint64_t bits = count_;
    for (; (bits & 1) == 0; bits >>= 1) ++level;
    Acc value = levels_[level];
    while ((bits >>= 1) != 0) {
      ++level;
      if ((bits & 1) != 0) value = Reducer::combine(levels_[level], value);
    }
    return value;
  }

 private:
  std::uint64_t count_ = 0;
  Acc levels_[64];
};

/// Reduces at most kLeaf elements `stride` apart.
template <class Reducer>
typename Reducer::Acc reduce_leaf(const typename Reducer::In* data, std::int64_t count, std::int64_t stride,
                                  typename Reducer::Acc center) noexcept {
  using Acc = typename Reducer::Acc;
  constexpr std::int64_t lanes = kLanes<Acc>;
  if (count <= 8) {
    Acc value = Reducer::load(data[0], center);
    for (std::int64_t i = 1; i < count; ++i)
      value = Reducer::combine(value, Reducer::load(data[i * stride], center));
    return value;
  }
  Acc sums[lanes];
  std::fill_n(sums, lanes, Reducer::identity());
  std::int64_t done = 0;
  if (stride == 1) {
    for (; done + lanes <= count; done += lanes) {
      for (std::int64_t lane = 0; lane < lanes; ++lane) {
        sums[lane] = Reducer::combine(sums[lane], Reducer::load(data[done + lane], center));
      }
    }
  } else {
    for (; done + lanes <= count; done += lanes) {
      for (std::int64_t lane = 0; lane < lanes; ++lane) {
        sums[lane] = Reducer::combine(sums[lane], Reducer::load(data[(done + lane) * stride], center));
      }
    }
  }
  for (std::int64_t lane = 0; done < count; ++done, ++lane) {
    sums[lane] = Reducer::combine(sums[lane], Reducer::load(data[done * stride], center));
  }
  for (std::int64_t half = lanes / 2; half > 0; half /= 2) {
    for (std::int64_t lane = 0; lane < half; ++lane)
      sums[lane] = Reducer::combine(sums[lane], sums[lane + half]);
  }
  return sums[0];
}

/// Combines the leaves of a run of `count` elements and hands their values to `take`, in order.
template <class Reducer, class Take>
void reduce_run(const typename Reducer::In* data, std::int64_t count, std::int64_t stride,
                typename Reducer::Acc center, Take&& take) noexcept {
  using Acc = typename Reducer::Acc;
  constexpr std::int64_t leaf = kLeaf<Acc>;
  if constexpr (requires { Reducer::combine_leaves(data, count, &center); }) {
    if (stride == 1) {
      constexpr std::int64_t leaves = 64;
      Acc values[leaves];
      for (std::int64_t done = 0; done < count; done += leaves * leaf) {
        const std::int64_t length = std::min(leaves * leaf, count - done);
        Reducer::combine_leaves(data + done, length, values);
        for (std::int64_t i = 0; i < ceil_div(length, leaf); ++i) take(values[i]);
      }
      return;
    }
  }
  for (std::int64_t done = 0; done < count; done += leaf) {
    take(reduce_leaf<Reducer>(data + done * stride, std::min(leaf, count - done), stride, center));
  }
}

/// Reduces elements [begin, end) of `nest`.
template <class Reducer>
typename Reducer::Acc reduce_nest(const typename Reducer::In* data, const LoopNest<1>& nest,
                                  std::int64_t begin, std::int64_t end,
                                  typename Reducer::Acc center) noexcept {
  using Acc = typename Reducer::Acc;
  const std::int64_t stride = nest.inner_stride(0);
  if (nest.rank() <= 1 && end - begin <= kLeaf<Acc>) {
    Acc result = Reducer::identity();
    reduce_run<Reducer>(data + begin * stride, end - begin, stride, center,
                        [&](Acc value) { result = value; });
    return result;
  }
  PairwiseTree<Reducer> tree;
  nest.run(begin, end, [&](const auto& at, std::int64_t count) {
    reduce_run<Reducer>(data + at[0], count, stride, center, [&](Acc value) { tree.push(value); });
  });
  return tree.result();
}

/// Short reductions: whole outputs, several to a chunk.
template <class Reducer, class Sink>
void reduce_short_rows(const KernelContext& ctx, const ReductionPlan& plan, const typename Reducer::In* data,
                       const Sink& sink) {
  const std::int64_t length = plan.reduced.total();
  const std::int64_t outputs = plan.kept.total();
  const std::int64_t group = std::max<std::int64_t>(1, kReduceChunk / length);
  const std::int64_t input_stride = plan.kept.inner_stride(0);
  const std::int64_t output_stride = plan.kept.inner_stride(1);
  for_chunks(ctx, outputs * length, ceil_div(outputs, group), [&](std::int64_t chunk) {
    const std::int64_t begin = chunk * group;
    plan.kept.run(begin, std::min(outputs, begin + group), [&](const auto& at, std::int64_t count) {
      for (std::int64_t i = 0; i < count; ++i) {
        const std::int64_t out = at[1] + i * output_stride;
        sink.store(out, reduce_nest<Reducer>(data + at[0] + i * input_stride, plan.reduced, 0, length,
                                             sink.center(out)));
      }
    });
  });
}

/// Long reductions: each output in pieces of kReduceChunk elements, then the pieces in order.
template <class Reducer, class Sink>
void reduce_long_rows(const KernelContext& ctx, const ReductionPlan& plan, const typename Reducer::In* data,
                      const Sink& sink) {
  using Acc = typename Reducer::Acc;
  const std::int64_t length = plan.reduced.total();
  const std::int64_t outputs = plan.kept.total();
  const std::int64_t pieces = ceil_div(length, kReduceChunk);
  std::vector<Acc> partials(static_cast<std::size_t>(outputs * pieces));
  for_chunks(ctx, outputs * length, outputs * pieces, [&](std::int64_t chunk) {
    const auto at = plan.kept.offsets(chunk / pieces);
    const std::int64_t begin = chunk % pieces * kReduceChunk;
    const std::int64_t end = std::min(length, begin + kReduceChunk);
    partials[chunk] = reduce_nest<Reducer>(data + at[0], plan.reduced, begin, end, sink.center(at[1]));
  });
  for (std::int64_t output = 0; output < outputs; ++output) {
    PairwiseTree<Reducer> tree;
    for (std::int64_t piece = 0; piece < pieces; ++piece) tree.push(partials[output * pieces + piece]);
    sink.store(plan.kept.offsets(output)[1], tree.result());
  }
}

}  // namespace thalweg::cpu
