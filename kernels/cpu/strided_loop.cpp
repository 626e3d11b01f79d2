// strided_loop.cpp: merging, ordering and tiling of axes.
#include "kernels/cpu/strided_loop.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <type_traits>
#include <utility>

#include "kernels/cpu/copy_loop.h"
#include "kernels/cpu/half.h"

namespace thalweg::cpu {
namespace {

/// One axis: its size and the bytes each operand moves along it (0 where it is broadcast).
struct Axis {
  std::int64_t size;
  std::int64_t steps[kMaxOperands];
};

/// The axes of one call, outermost first; at least two, the missing ones of size 1. Uninitialised until
/// filled.
struct Plan {
  int operands = 0;
  int rank = 0;
  std::int64_t items[kMaxOperands];
  char* data[kMaxOperands];
  Axis axes[kMaxRank + 2];
};

/// Elements along each side of a tile where operands are crossed; along the inner axis fewer if the lines
/// that a run touches would all fall into the few same sets of the first-level cache.
constexpr std::int64_t kTile = 64;
constexpr std::int64_t kConflictingTile = 8;
constexpr std::int64_t kConflictingStep = 1024;

bool continues(const Axis& outer, const Axis& inner, int operands) {
  for (int k = 0; k < operands; ++k) {
    if (outer.steps[k] != inner.steps[k] * inner.size) return false;
  }
  return true;
}

std::int64_t step_of(const TensorView& view, int rank, int axis, std::int64_t item) {
  int own = axis - (rank - view.rank());
  if (own < 0 || view.shape()[own] == 1) return 0;
  return view.strides()[own] * item;
}

void add_axis(Plan& plan, const Axis& axis) {
  if (plan.rank > 0 && continues(plan.axes[plan.rank - 1], axis, plan.operands)) {
    Axis& merged = plan.axes[plan.rank - 1];
    std::int64_t size = merged.size * axis.size;
    merged = axis;
    merged.size = size;
  } else {
    plan.axes[plan.rank++] = axis;
  }
}

void fill_plan(Plan& plan, const TensorView& out, std::span<const TensorView> inputs) {
  plan.operands = 1 + static_cast<int>(inputs.size());
  auto view = [&](int k) -> const TensorView& { return k == 0 ? out : inputs[k - 1]; };
  for (int k = 0; k < plan.operands; ++k) {
    plan.items[k] = item_size(view(k).dtype());
    plan.data[k] = view(k).as<char>();
  }
  for (int i = 0; i < out.rank(); ++i) {
    Axis axis{.size = out.shape()[i], .steps = {}};
    if (axis.size == 1) continue;
    for (int k = 0; k < plan.operands; ++k) axis.steps[k] = step_of(view(k), out.rank(), i, plan.items[k]);
    add_axis(plan, axis);
  }
  for (; plan.rank < 2; ++plan.rank) {
    std::move_backward(plan.axes, plan.axes + plan.rank, plan.axes + plan.rank + 1);
    plan.axes[0] = Axis{.size = 1, .steps = {}};
  }
}

/// Makes a long axis the inner one where the last is so short that calling the loop would cost more than it
/// does.
void prefer_long_inner_axis(Plan& plan) {
  Axis& inner = plan.axes[plan.rank - 1];
  Axis* longest = std::max_element(plan.axes, plan.axes + plan.rank - 1,
                                   [](const Axis& a, const Axis& b) { return a.size < b.size; });
  if (inner.size < 8 && longest->size >= 8 * inner.size) std::swap(*longest, inner);
}

/// Brings the axis along which a strided input is dense next to the inner one; true if there is one, and
/// tiles pay.
bool bring_dense_axis_next(Plan& plan) {
  const Axis& inner = plan.axes[plan.rank - 1];
  for (int k = 1; k < plan.operands; ++k) {
    if (std::abs(inner.steps[k]) <= plan.items[k]) continue;
    for (int i = plan.rank - 2; i >= 0; --i) {
      if (std::abs(plan.axes[i].steps[k]) != plan.items[k]) continue;
      std::swap(plan.axes[i], plan.axes[plan.rank - 2]);
      return true;
    }
  }
  return false;
}

/// The two innermost axes cut into tiles, and how many there are with all the outer axes.
struct Tiles {
  std::int64_t row_tile, inner_tile;
  std::int64_t row_count, inner_count, total;
};

std::int64_t crossed_tile(const Plan& plan) {
  const Axis& inner = plan.axes[plan.rank - 1];
  for (int k = 0; k < plan.operands; ++k) {
    if (inner.steps[k] != 0 && inner.steps[k] % kConflictingStep == 0) return kConflictingTile;
  }
  return kTile;
}

Tiles cut(const Plan& plan, bool crossed, std::int64_t chunk) {
  const Axis& rows = plan.axes[plan.rank - 2];
  const Axis& inner = plan.axes[plan.rank - 1];
  Tiles tiles;
  tiles.inner_tile = std::min(inner.size, crossed ? crossed_tile(plan) : chunk);
  tiles.row_tile = std::min(rows.size, crossed ? kTile : std::max<std::int64_t>(1, chunk / tiles.inner_tile));
  tiles.inner_count = (inner.size + tiles.inner_tile - 1) / tiles.inner_tile;
  tiles.row_count = (rows.size + tiles.row_tile - 1) / tiles.row_tile;
  tiles.total = tiles.row_count * tiles.inner_count;
  for (int i = 0; i < plan.rank - 2; ++i) tiles.total *= plan.axes[i].size;
  return tiles;
}

template <class LoopFn>
void run_tile(const Plan& plan, const Tiles& tiles, const LoopFn& loop, std::int64_t index) {
  const Axis& rows = plan.axes[plan.rank - 2];
  const Axis& inner = plan.axes[plan.rank - 1];
  std::int64_t first_item = index % tiles.inner_count * tiles.inner_tile;
  index /= tiles.inner_count;
  std::int64_t first_row = index % tiles.row_count * tiles.row_tile;
  index /= tiles.row_count;
  char* data[kMaxOperands];
  for (int k = 0; k < plan.operands; ++k) {
    data[k] = plan.data[k] + first_item * inner.steps[k] + first_row * rows.steps[k];
  }
  for (int i = plan.rank - 3; i >= 0; --i) {
    std::int64_t place = index % plan.axes[i].size;
    index /= plan.axes[i].size;
    for (int k = 0; k < plan.operands; ++k) data[k] += place * plan.axes[i].steps[k];
  }
  std::int64_t items = std::min(tiles.inner_tile, inner.size - first_item);
  std::int64_t last_row = std::min(first_row + tiles.row_tile, rows.size);
  if constexpr (std::is_same_v<LoopFn, CopyLoop>) {
    if (loop.transpose(data, rows.steps, inner.steps, last_row - first_row, items)) return;
  }
  for (std::int64_t row = first_row; row < last_row; ++row) {
    loop(data, inner.steps, items);
    for (int k = 0; k < plan.operands; ++k) data[k] += rows.steps[k];
  }
}

template <class LoopFn>
void run_strided(const KernelContext& context, const LoopFn& loop, const TensorView& out,
                 std::span<const TensorView> inputs) {
  Plan plan;
  fill_plan(plan, out, inputs);
  prefer_long_inner_axis(plan);
  bool crossed = bring_dense_axis_next(plan);
  std::int64_t chunk = chunk_elements(element_ns(context));
  Tiles tiles = cut(plan, crossed, chunk);
  std::int64_t per_chunk = std::max<std::int64_t>(1, chunk / (tiles.row_tile * tiles.inner_tile));
  if (!pays_in_parallel(out.numel(), chunk)) per_chunk = tiles.total;
  context.parallel_for((tiles.total + per_chunk - 1) / per_chunk, [&](std::int64_t index) {
    std::int64_t end = std::min((index + 1) * per_chunk, tiles.total);
    for (std::int64_t tile = index * per_chunk; tile < end; ++tile) run_tile(plan, tiles, loop, tile);
  });
}

template <class LoopFn>
void run_broadcast(const KernelContext& context, const LoopFn& loop, std::span<const TensorView> inputs) {
  const TensorView& out = context.output();
  const std::int64_t count = out.numel();
  if (count == 0) return;
  char* data[kMaxOperands] = {out.as<char>()};
  std::int64_t steps[kMaxOperands] = {item_size(out.dtype())};
  int operands = 1;
  for (const TensorView& input : inputs) {
    std::int64_t input_count = input.numel();
    if (input_count == count && input.is_contiguous()) {
      steps[operands] = item_size(input.dtype());
    } else if (input_count == 1) {
      steps[operands] = 0;
    } else {
      return run_strided(context, loop, out, inputs);
    }
    data[operands++] = input.as<char>();
  }
  for_ranges(context, count, [&](std::int64_t begin, std::int64_t end) {
    char* at[kMaxOperands];
    for (int k = 0; k < operands; ++k) at[k] = data[k] + begin * steps[k];
    loop(at, steps, end - begin);
  });
}

}  // namespace

std::int64_t chunk_elements(float ns_per_element) noexcept {
  constexpr float chunk_ns = 10'000;
  float elements = chunk_ns / std::max(ns_per_element, 0.1f);
  auto floor = std::bit_floor(static_cast<std::uint64_t>(elements));
  return std::clamp<std::int64_t>(static_cast<std::int64_t>(floor), 256, 32768);
}

void run_loop(const KernelContext& context, Loop loop, std::span<const TensorView> inputs) {
  run_broadcast(context, loop, inputs);
}

void run_copy(const KernelContext& context) {
  run_broadcast(context, CopyLoop(item_size(context.output().dtype())), context.inputs());
}

void run_half_loop(const KernelContext& context, Loop loop, std::span<const TensorView> inputs) {
  run_broadcast(context, HalfLoop(loop, context.output(), inputs), inputs);
}

}  // namespace thalweg::cpu
