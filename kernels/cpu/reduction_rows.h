// reduction_rows.h: reductions one output after the other, with an association fixed by shape and layout.
//
// A reducer is a struct with
//   using In, Acc;                        element and accumulator types
//   static Acc identity();                combines with any value to that value
//   static Acc load(In, Acc center);      what an element contributes
//   static Acc combine(Acc, Acc);         associative up to rounding
//   static LanesLoop<In> dense_loop();    optional, with In = Acc: `combine` of contiguous elements in one
//   call
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

namespace thalweg::cpu {

/// Accumulators side by side in a leaf: 128 bytes, so that SIMD registers of every width run at full speed
/// with the same association.
template <class Acc>
inline constexpr std::int64_t kLanes = kLaneBytes / static_cast<std::int64_t>(sizeof(Acc));

/// Elements of a leaf: each accumulator takes 16 in a row, as in NumPy's pairwise sum.
template <class Acc>
inline constexpr std::int64_t kLeaf = 16 * kLanes<Acc>;

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
    if constexpr (requires { Reducer::dense_loop(); }) {
      Reducer::dense_loop()(data, count / lanes, sums);
      done = count / lanes * lanes;
    }
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

/// Reduces elements [begin, end) of `nest`.
template <class Reducer>
typename Reducer::Acc reduce_nest(const typename Reducer::In* data, const LoopNest<1>& nest,
                                  std::int64_t begin, std::int64_t end,
                                  typename Reducer::Acc center) noexcept {
  constexpr std::int64_t leaf = kLeaf<typename Reducer::Acc>;
  const std::int64_t stride = nest.inner_stride(0);
  if (nest.rank() <= 1 && end - begin <= leaf) {
    return reduce_leaf<Reducer>(data + begin * stride, end - begin, stride, center);
  }
  PairwiseTree<Reducer> tree;
  nest.run(begin, end, [&](const auto& at, std::int64_t count) {
    const typename Reducer::In* run = data + at[0];
    for (std::int64_t done = 0; done < count; done += leaf) {
      tree.push(reduce_leaf<Reducer>(run + done * stride, std::min(leaf, count - done), stride, center));
    }
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
  ctx.parallel_for(ceil_div(outputs, group), [&](std::int64_t chunk) {
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
  ctx.parallel_for(outputs * pieces, [&](std::int64_t chunk) {
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
