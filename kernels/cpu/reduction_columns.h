// reduction_columns.h: reductions of many neighbouring outputs side by side, one row of the input at a time.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "kernels/cpu/reduction_rows.h"
#include "kernels/cpu/scratch.h"

namespace thalweg::cpu {

/// Columns that are reduced side by side if there are few.
template <class Acc>
inline constexpr std::int64_t kTile = 1024 / static_cast<std::int64_t>(sizeof(Acc));

/// Columns that are reduced side by side if there are many: rows are then read in long runs, and the
/// accumulators still stay in the first-level cache.
template <class Acc>
inline constexpr std::int64_t kWideTile = 8 * kTile<Acc>;

/// The accumulators of a tile of columns and the tree that its blocks of rows join. One tile is good for one
/// reduction after the other.
template <class Reducer>
class ColumnTile {
 public:
  using In = typename Reducer::In;
  using Acc = typename Reducer::Acc;

  /// For up to `width` columns and `blocks` blocks of rows. Throws std::bad_alloc.
  ColumnTile(std::int64_t width, std::int64_t blocks, std::int64_t column_stride)
      : column_stride_(column_stride),
        capacity_(width),
        memory_(width * (2 + std::bit_width(static_cast<std::uint64_t>(blocks)))),
        block_(memory_.get()),
        centers_(block_ + width),
        levels_(centers_ + width) {}

  /// Begins the reduction of `width` columns; their centers are to be set next.
  void start(std::int64_t width) noexcept {
    width_ = width;
    count_ = 0;
    rows_in_block_ = 0;
  }

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

  /// The same for `count` rows of values, each of which stands for a block.
  void reduce_values(const Acc* values, std::int64_t row_stride, std::int64_t count) noexcept {
    for (std::int64_t row = 0; row < count; ++row) {
      std::copy_n(values + row * row_stride, width_, block_);
      push_block();
    }
    finish();
  }

  const Acc* values() const noexcept { return block_; }

 private:
  static constexpr bool kDense = requires(const ColumnRows<Acc>& rows) { Reducer::combine_columns(rows); };

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
    if constexpr (kDense) {
      if (column_stride_ == 1) {
        const std::int64_t taken = std::min(count, kLeafRows - rows_in_block_);
        if (rows_in_block_ == 0) {
          Reducer::combine_columns({row, row + row_stride, block_, row_stride, taken - 1, width_});
        } else {
          Reducer::combine_columns({block_, row, block_, row_stride, taken, width_});
        }
        return taken;
      }
    }
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

  Acc* level(int number) const noexcept { return levels_ + number * capacity_; }

  void join(int number) noexcept {
    const Acc* earlier = level(number);
    if constexpr (kDense) {
      Reducer::combine_columns({earlier, block_, block_, 0, 1, width_});
    } else {
      for (std::int64_t i = 0; i < width_; ++i) block_[i] = Reducer::combine(earlier[i], block_[i]);
    }
  }

  void push_block() noexcept {
    int number = 0;
    for (std::uint64_t bits = count_++; (bits & 1) != 0; bits >>= 1) join(number++);
    std::copy_n(block_, width_, level(number));
    rows_in_block_ = 0;
  }

  /// Leaves the result of all blocks in `block_`.
  void finish() noexcept {
    std::uint64_t bits = count_;
    int number = 0;
    if (rows_in_block_ == 0) {
      for (; (bits & 1) == 0; bits >>= 1) ++number;
      std::copy_n(level(number), width_, block_);
      bits >>= 1;
      ++number;
    }
    for (; bits != 0; bits >>= 1, ++number) {
      if ((bits & 1) != 0) join(number);
    }
  }

  std::int64_t column_stride_;
  std::int64_t capacity_;
  std::int64_t width_ = 0;
  std::uint64_t count_ = 0;
  std::int64_t rows_in_block_ = 0;
  Scratch<Acc> memory_;
  Acc* block_;
  Acc* centers_;
  Acc* levels_;
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

/// How many columns make a tile, and how many rows a piece of work takes of it.
struct ColumnWork {
  std::int64_t tile_width;
  std::int64_t piece_rows;
};

/// The pieces of many columns are powers of two of blocks of rows. The tree of the blocks is then the same
/// for any of them, so that their size may follow the size of the whole input.
template <class Acc>
ColumnWork divide_columns(const ReductionPlan& plan, std::int64_t folded) noexcept {
  const std::int64_t columns = plan.columns;
  if (columns < kTile<Acc>) {
    const std::int64_t unit = kLeafRows * folded;
    return {columns, ceil_div(std::max(kLeafRows, kReduceChunk / columns), unit) * unit};
  }
  // The same share for each tile, in whole cache lines.
  constexpr std::int64_t line = 64;
  const std::int64_t share = ceil_div(columns, ceil_div(columns, kWideTile<Acc>));
  const std::int64_t width = std::min(columns, ceil_div(share, line) * line);
  const std::int64_t total = plan.kept.total() * columns * plan.reduced.total();
  const std::int64_t elements = std::clamp(total / 32, kReduceChunk, 8 * kReduceChunk);
  const auto rows = static_cast<std::uint64_t>(std::max(kLeafRows, elements / width));
  return {width, static_cast<std::int64_t>(std::bit_floor(rows))};
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
        rows_(plan.reduced.total()),
        folded_(rows_folded<Acc>(plan)),
        work_(divide_columns<Acc>(plan, folded_)),
        tiles_(ceil_div(plan.columns, work_.tile_width)),
        pieces_(ceil_div(rows_, work_.piece_rows)),
        partials_(pieces_ > 1 ? plan.kept.total() * pieces_ * plan.columns : 0) {}

  void run(const KernelContext& ctx) const {
    const std::int64_t rows = std::min(rows_, work_.piece_rows);
    for_tiles(ctx, plan_.kept.total() * tiles_ * pieces_, rows,
              [&](ColumnTile<Reducer>& tile, std::int64_t unit) {
                reduce_unit(tile, {unit / pieces_ / tiles_, unit / pieces_ % tiles_, unit % pieces_});
              });
    if (pieces_ == 1) return;
    for_tiles(ctx, plan_.kept.total() * tiles_, pieces_ * kLeafRows,
              [&](ColumnTile<Reducer>& tile, std::int64_t unit) {
                combine_pieces(tile, {unit / tiles_, unit % tiles_, 0});
              });
  }

 private:
  /// Calls `body(tile, unit)` for all units of `rows` rows each, those of a chunk with one tile.
  template <class Body>
  void for_tiles(const KernelContext& ctx, std::int64_t units, std::int64_t rows, const Body& body) const {
    const std::int64_t group = std::max<std::int64_t>(1, kReduceChunk / (rows * work_.tile_width));
    for_chunks(ctx, units * rows * work_.tile_width, ceil_div(units, group), [&](std::int64_t chunk) {
      ColumnTile<Reducer> tile(work_.tile_width * folded_, ceil_div(rows, kLeafRows), plan_.column_stride);
      for (std::int64_t unit = chunk * group; unit < std::min(units, (chunk + 1) * group); ++unit) {
        body(tile, unit);
      }
    });
  }

  void reduce_unit(ColumnTile<Reducer>& tile, ColumnUnit unit) const noexcept {
    const std::int64_t first = unit.tile * work_.tile_width;
    const std::int64_t width = std::min(work_.tile_width, plan_.columns - first);
    const auto at = plan_.kept.offsets(unit.outer);
    const std::int64_t out = at[1] + first * plan_.output_stride;
    const In* data = data_ + at[0] + first * plan_.column_stride;
    const std::int64_t begin = unit.piece * work_.piece_rows;
    const std::int64_t end = std::min(rows_, begin + work_.piece_rows);
    tile.start(width * folded_);
    Acc* centers = tile.centers();
    for (std::int64_t i = 0; i < width; ++i) centers[i] = sink_.center(out + i * plan_.output_stride);
    for (std::int64_t i = width; i < width * folded_; ++i) centers[i] = centers[i - width];
    Acc few[kFewColumns];
    const Acc* values = tile.values();
    if (folded_ == 1) {
      tile.reduce(data, plan_.reduced, begin, end);
    } else {
      reduce_folded(&tile, data + begin * width, end - begin, few);
      values = few;
    }
    if (pieces_ > 1) {
      std::copy_n(values, width, partial(unit.outer, unit.piece, first));
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

  void combine_pieces(ColumnTile<Reducer>& tile, ColumnUnit unit) const noexcept {
    const std::int64_t first = unit.tile * work_.tile_width;
    const std::int64_t width = std::min(work_.tile_width, plan_.columns - first);
    tile.start(width);
    tile.reduce_values(partial(unit.outer, 0, first), plan_.columns, pieces_);
    const std::int64_t out = plan_.kept.offsets(unit.outer)[1] + first * plan_.output_stride;
    for (std::int64_t i = 0; i < width; ++i) sink_.store(out + i * plan_.output_stride, tile.values()[i]);
  }

  Acc* partial(std::int64_t outer, std::int64_t piece, std::int64_t column) const noexcept {
    return partials_.get() + (outer * pieces_ + piece) * plan_.columns + column;
  }

  const ReductionPlan& plan_;
  const In* data_;
  const Sink& sink_;
  std::int64_t rows_;
  std::int64_t folded_;
  ColumnWork work_;
  std::int64_t tiles_;
  std::int64_t pieces_;
  Scratch<Acc> partials_;
};

}  // namespace thalweg::cpu
