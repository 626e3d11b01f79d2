// reduction_loops.h: the loops that all reductions share, with an association fixed by shape and layout.
//
// A reducer is a struct with
//   using In, Acc;                        element and accumulator types
//   static Acc identity();                combines with any value to that value
//   static Acc load(In, Acc center);      what an element contributes
//   static Acc combine(Acc, Acc);         associative up to rounding
// and a sink is a struct with
//   void store(std::int64_t at, Acc);     writes output `at`
//   Acc center(std::int64_t at);          the value that elements of output `at` are compared with
//   (variance), else 0
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/cpu/loop_nest.h"
#include "kernels/cpu/reduction_plan.h"

namespace thalweg::cpu {

/// Accumulators side by side in a leaf: 128 bytes, so that SIMD registers of every width run at full speed
/// with the same association.
template <class Acc>
inline constexpr std::int64_t kLanes = 128 / static_cast<std::int64_t>(sizeof(Acc));

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

/// Columns that are reduced side by side: 1 KiB of accumulators, which stay in the first-level cache.
template <class Acc>
inline constexpr std::int64_t kTile = 1024 / static_cast<std::int64_t>(sizeof(Acc));

/// The accumulators of a tile of columns and the tree that its blocks of rows join.
template <class Reducer>
class ColumnTile {
 public:
  using In = typename Reducer::In;
  using Acc = typename Reducer::Acc;

  ColumnTile(std::int64_t width, std::int64_t column_stride) noexcept
      : width_(width), column_stride_(column_stride) {}

  Acc* centers() noexcept { return centers_; }

  /// Combines rows [begin, end) of `rows`; afterwards `values()` has one result per column.
  void reduce(const In* data, const LoopNest<1>& rows, std::int64_t begin, std::int64_t end) noexcept {
    count_ = 0;
    rows_in_block_ = 0;
    const std::int64_t row_stride = rows.inner_stride(0);
    rows.run(begin, end, [&](const auto& at, std::int64_t count) {
      for (std::int64_t i = 0; i < count; ++i) add_row(data + at[0] + i * row_stride);
    });
    finish();
  }

  const Acc* values() const noexcept { return block_; }

 private:
  void add_row(const In* row) noexcept {
    if (rows_in_block_ == 0) {
      for (std::int64_t i = 0; i < width_; ++i)
        block_[i] = Reducer::load(row[i * column_stride_], centers_[i]);
    } else if (column_stride_ == 1) {
      for (std::int64_t i = 0; i < width_; ++i) {
        block_[i] = Reducer::combine(block_[i], Reducer::load(row[i], centers_[i]));
      }
    } else {
      for (std::int64_t i = 0; i < width_; ++i) {
        block_[i] = Reducer::combine(block_[i], Reducer::load(row[i * column_stride_], centers_[i]));
      }
    }
    if (++rows_in_block_ == kLeafRows) push_block();
  }

  void join(int level) noexcept {
    for (std::int64_t i = 0; i < width_; ++i) block_[i] = Reducer::combine(levels_[level][i], block_[i]);
  }

  void push_block() noexcept {
    int level = 0;
    for (std::uint64_t bits = count_++; (bits & 1) != 0; bits >>= 1) join(level++);
    std::copy_n(block_, width_, levels_[level]);
    rows_in_block_ = 0;
  }

  /// Leaves the result of all blocks in `block_`.
  void finish() noexcept {
    std::uint64_t bits = count_;
    int level = 0;
    if (rows_in_block_ == 0) {
      for (; (bits & 1) == 0; bits >>= 1) ++level;
      std::copy_n(levels_[level], width_, block_);
      bits >>= 1;
      ++level;
    }
    for (; bits != 0; bits >>= 1, ++level) {
      if ((bits & 1) != 0) join(level);
    }
  }

  // 2^36 blocks of 16 rows are more than memory holds.
  static constexpr int kLevels = 36;

  std::int64_t width_;
  std::int64_t column_stride_;
  std::uint64_t count_ = 0;
  std::int64_t rows_in_block_ = 0;
  alignas(64) Acc block_[kTile<Acc>];
  alignas(64) Acc centers_[kTile<Acc>];
  alignas(64) Acc levels_[kLevels][kTile<Acc>];
};

/// A unit of column work: one tile of columns of one outer position, one piece of the rows.
struct ColumnUnit {
  std::int64_t outer;
  std::int64_t tile;
  std::int64_t piece;
};

template <class Reducer, class Sink>
class ColumnReduction {
 public:
  using In = typename Reducer::In;
  using Acc = typename Reducer::Acc;

  ColumnReduction(const ReductionPlan& plan, const In* data, const Sink& sink)
      : plan_(plan),
        data_(data),
        sink_(sink),
        tile_width_(std::min(plan.columns, kTile<Acc>)),
        tiles_(ceil_div(plan.columns, tile_width_)),
        rows_(plan.reduced.total()),
        piece_rows_(std::max(kLeafRows, ceil_div(kReduceChunk / tile_width_, kLeafRows) * kLeafRows)),
        pieces_(ceil_div(rows_, piece_rows_)) {}

  void run(const KernelContext& ctx) {
    const std::int64_t units = plan_.kept.total() * tiles_ * pieces_;
    if (pieces_ > 1) partials_.resize(static_cast<std::size_t>(plan_.kept.total() * pieces_ * plan_.columns));
    const std::int64_t group =
        std::max<std::int64_t>(1, kReduceChunk / (std::min(rows_, piece_rows_) * tile_width_));
    ctx.parallel_for(ceil_div(units, group), [&](std::int64_t chunk) {
      const std::int64_t begin = chunk * group;
      for (std::int64_t unit = begin; unit < std::min(units, begin + group); ++unit) {
        reduce_unit({unit / pieces_ / tiles_, unit / pieces_ % tiles_, unit % pieces_});
      }
    });
    if (pieces_ > 1) combine_pieces(ctx);
  }

 private:
  void reduce_unit(ColumnUnit unit) noexcept {
    const std::int64_t first = unit.tile * tile_width_;
    const std::int64_t width = std::min(tile_width_, plan_.columns - first);
    const auto at = plan_.kept.offsets(unit.outer);
    const std::int64_t out = at[1] + first * plan_.output_stride;
    ColumnTile<Reducer> tile(width, plan_.column_stride);
    for (std::int64_t i = 0; i < width; ++i) tile.centers()[i] = sink_.center(out + i * plan_.output_stride);
    const std::int64_t begin = unit.piece * piece_rows_;
    tile.reduce(data_ + at[0] + first * plan_.column_stride, plan_.reduced, begin,
                std::min(rows_, begin + piece_rows_));
    if (pieces_ > 1) {
      std::copy_n(tile.values(), width, partials_.data() + partial(unit.outer, unit.piece, first));
    } else {
      for (std::int64_t i = 0; i < width; ++i) sink_.store(out + i * plan_.output_stride, tile.values()[i]);
    }
  }

  void combine_pieces(const KernelContext& ctx) {
    const std::int64_t outputs = plan_.kept.total() * plan_.columns;
    const std::int64_t group = std::max<std::int64_t>(1, kReduceChunk / pieces_);
    ctx.parallel_for(ceil_div(outputs, group), [&](std::int64_t chunk) {
      const std::int64_t end = std::min(outputs, (chunk + 1) * group);
      for (std::int64_t output = chunk * group; output < end; ++output) {
        const std::int64_t outer = output / plan_.columns;
        const std::int64_t column = output % plan_.columns;
        PairwiseTree<Reducer> tree;
        for (std::int64_t piece = 0; piece < pieces_; ++piece)
          tree.push(partials_[partial(outer, piece, column)]);
        sink_.store(plan_.kept.offsets(outer)[1] + column * plan_.output_stride, tree.result());
      }
    });
  }

  std::size_t partial(std::int64_t outer, std::int64_t piece, std::int64_t column) const noexcept {
    return static_cast<std::size_t>((outer * pieces_ + piece) * plan_.columns + column);
  }

  const ReductionPlan& plan_;
  const In* data_;
  const Sink& sink_;
  std::int64_t tile_width_;
  std::int64_t tiles_;
  std::int64_t rows_;
  std::int64_t piece_rows_;
  std::int64_t pieces_;
  std::vector<Acc> partials_;
};

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
