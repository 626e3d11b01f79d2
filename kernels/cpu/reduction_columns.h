// reduction_columns.h: reductions of many neighbouring outputs side by side, one row of the input at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/cpu/reduction_rows.h"

namespace thalweg::cpu {

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
    rows.run(begin, end, [&](const auto& at, std::int64_t count) {
      take_rows(data + at[0], rows.inner_stride(0), count);
    });
    finish();
  }

  /// The same for `count` rows `row_stride` apart.
  void reduce_even(const In* data, std::int64_t row_stride, std::int64_t count) noexcept {
    take_rows(data, row_stride, count);
    finish();
  }

  const Acc* values() const noexcept { return block_; }

 private:
  void take_rows(const In* data, std::int64_t row_stride, std::int64_t count) noexcept {
    for (std::int64_t done = 0; done < count;) {
      const std::int64_t taken = add_rows(data + done * row_stride, row_stride, count - done);
      done += taken;
      rows_in_block_ += taken;
      if (rows_in_block_ == kLeafRows) push_block();
    }
  }

  /// Combines some of the next rows of a block, at most `count`, and returns how many.
  std::int64_t add_rows(const In* row, std::int64_t row_stride, std::int64_t count) noexcept {
    if (rows_in_block_ == 0) {
      for (std::int64_t i = 0; i < width_; ++i)
        block_[i] = Reducer::load(row[i * column_stride_], centers_[i]);
      return 1;
    }
    if (column_stride_ != 1) {
      combine_row(row, column_stride_);
      return 1;
    }
    // 1 + 3 * 5 rows make a block; five at a time spare most loads and stores of the accumulators.
    if (count < 5 || rows_in_block_ > kLeafRows - 5) {
      combine_row(row, 1);
      return 1;
    }
    for (std::int64_t i = 0; i < width_; ++i) {
      Acc value = block_[i];
      for (int r = 0; r < 5; ++r)
        value = Reducer::combine(value, Reducer::load(row[r * row_stride + i], centers_[i]));
      block_[i] = value;
    }
    return 5;
  }

  void combine_row(const In* row, std::int64_t stride) noexcept {
    for (std::int64_t i = 0; i < width_; ++i) {
      block_[i] = Reducer::combine(block_[i], Reducer::load(row[i * stride], centers_[i]));
    }
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

/// Matrices with no more columns than this are reduced several rows at a time, as if these were one row.
inline constexpr std::int64_t kFewColumns = 16;

/// How many rows are taken for one: 1 unless columns are few and rows lie densely.
template <class Acc>
std::int64_t rows_folded(const ReductionPlan& plan) noexcept {
  const bool dense = plan.column_stride == 1 && plan.reduced.inner_stride(0) == plan.columns;
  if (!dense || plan.columns > kFewColumns || plan.reduced.rank() != 1) return 1;
  const std::int64_t rows = kTile<Acc> / plan.columns;
  return plan.reduced.total() >= 4 * rows ? rows : 1;
}

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
        folded_(rows_folded<Acc>(plan)),
        piece_rows_(ceil_div(std::max(kLeafRows, kReduceChunk / tile_width_), kLeafRows * folded_) *
                    kLeafRows * folded_),
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
    const In* data = data_ + at[0] + first * plan_.column_stride;
    const std::int64_t begin = unit.piece * piece_rows_;
    const std::int64_t end = std::min(rows_, begin + piece_rows_);
    ColumnTile<Reducer> tile(width * folded_, plan_.column_stride);
    for (std::int64_t i = 0; i < width * folded_; ++i) {
      tile.centers()[i] = sink_.center(out + i % width * plan_.output_stride);
    }
    Acc few[kFewColumns];
    const Acc* values = tile.values();
    if (folded_ == 1) {
      tile.reduce(data, plan_.reduced, begin, end);
    } else {
      reduce_folded(&tile, data + begin * width, end - begin, few);
      values = few;
    }
    if (pieces_ > 1) {
      std::copy_n(values, width, partials_.data() + partial(unit.outer, unit.piece, first));
    } else {
      for (std::int64_t i = 0; i < width; ++i) sink_.store(out + i * plan_.output_stride, values[i]);
    }
  }

  /// Reduces `rows` dense rows: `folded_` of them side by side, then these to one, then the rows left over.
  void reduce_folded(ColumnTile<Reducer>* tile, const In* data, std::int64_t rows,
                     Acc* result) const noexcept {
    const std::int64_t width = plan_.columns;
    const std::int64_t wide_rows = rows / folded_;
    if (wide_rows > 0) tile->reduce_even(data, folded_ * width, wide_rows);
    for (std::int64_t column = 0; column < width; ++column) {
      PairwiseTree<Reducer> tree;
      for (std::int64_t i = 0; i < folded_ && wide_rows > 0; ++i)
        tree.push(tile->values()[i * width + column]);
      for (std::int64_t row = wide_rows * folded_; row < rows; ++row) {
        tree.push(Reducer::load(data[row * width + column], tile->centers()[column]));
      }
      result[column] = tree.result();
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
        for (std::int64_t piece = 0; piece < pieces_; ++piece) {
          tree.push(partials_[partial(outer, piece, column)]);
        }
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
  std::int64_t folded_;
  std::int64_t piece_rows_;
  std::int64_t pieces_;
  std::vector<Acc> partials_;
};

}  // namespace thalweg::cpu
