// reduction_arg.cpp: kernels of argmax and argmin: the first best element's position in C order, nan best of
// all.
#include <algorithm>
#include <limits>
#include <type_traits>
#include <vector>

#include "kernels/cpu/dense_table.h"
#include "kernels/cpu/reduction.h"
#include "kernels/cpu/reduction_plan.h"
#include "kernels/cpu/strided_loop.h"

namespace thalweg::cpu {
namespace {

// An order's `above(x, y)` compares numbers. An element beats another if it is above it or the only nan of
// the two; equal elements and a second nan do not, so the first one stays.
struct Larger {
  static float best_of(const DenseTable& table, const float* data, std::int64_t count) noexcept {
    return table.best_of_max_float(data, count);
  }
  static double best_of(const DenseTable& table, const double* data, std::int64_t count) noexcept {
    return table.best_of_max_double(data, count);
  }
  template <class T>
  static bool above(T x, T y) noexcept {
    return x > y;
  }
};

struct Smaller {
  static float best_of(const DenseTable& table, const float* data, std::int64_t count) noexcept {
    return table.best_of_min_float(data, count);
  }
  static double best_of(const DenseTable& table, const double* data, std::int64_t count) noexcept {
    return table.best_of_min_double(data, count);
  }
  template <class T>
  static bool above(T x, T y) noexcept {
    return x < y;
  }
};

template <class Order, class T>
bool beats(T x, T best) noexcept {
  return Order::above(x, best) || (x != x && best == best);
}

/// The better value; as two selections in a row, which compilers turn into SIMD blends.
template <class Order, class T>
T better(T best, T x) noexcept {
  const T number = Order::above(x, best) ? x : best;
  return x != x ? x : number;
}

template <class T>
struct Candidate {
  T value;
  std::int64_t position;
};

/// Elements that are compared side by side; only the block that holds the winner is searched for its
/// position.
constexpr std::int64_t kBlock = 2048;
constexpr std::int64_t kLanes = 32;

/// The best value of `count` elements.
template <class T, class Order>
T best_value(const T* data, std::int64_t count, std::int64_t stride) noexcept {
  if constexpr (std::is_floating_point_v<T>) {
    if (stride == 1) return Order::best_of(dense_table(), data, count);
  }
  T best = data[0];
  std::int64_t i = 1;
  if (stride == 1 && count >= 2 * kLanes) {
    T lanes[kLanes];
    std::copy_n(data, kLanes, lanes);
    for (i = kLanes; i + kLanes <= count; i += kLanes) {
      for (std::int64_t lane = 0; lane < kLanes; ++lane) {
        lanes[lane] = better<Order>(lanes[lane], data[i + lane]);
      }
    }
    for (T value : lanes) best = better<Order>(best, value);
  }
  for (; i < count; ++i) best = better<Order>(best, data[i * stride]);
  return best;
}

/// Position of the first of `count` elements that nothing beats, given that `best` is its value.
template <class T>
std::int64_t find_value(const T* data, std::int64_t count, std::int64_t stride, T best) noexcept {
  if (stride == 1) {
    if constexpr (std::is_same_v<T, float>) return dense_table().find_float(data, count, best);
    if constexpr (std::is_same_v<T, double>) return dense_table().find_double(data, count, best);
  }
  std::int64_t i = 0;
  while (data[i * stride] != best && (best == best || data[i * stride] == data[i * stride])) ++i;
  return i;
}

template <class T, class Order>
Candidate<T> best_of_nest(const T* data, const LoopNest<1>& nest, std::int64_t begin,
                          std::int64_t end) noexcept {
  const std::int64_t stride = nest.inner_stride(0);
  Candidate<T> best{data[nest.offsets(begin)[0]], begin};
  const T* block_of_best = nullptr;
  std::int64_t length_of_best = 0;
  std::int64_t position = begin;
  nest.run(begin, end, [&](const auto& at, std::int64_t count) {
    for (std::int64_t done = 0; done < count; done += kBlock) {
      const T* block = data + at[0] + done * stride;
      const std::int64_t length = std::min(kBlock, count - done);
      const T value = best_value<T, Order>(block, length, stride);
      if (beats<Order>(value, best.value)) {
        best = {value, position};
        block_of_best = block;
        length_of_best = length;
      }
      position += length;
    }
  });
  // Without a block the first element of all was never beaten.
  if (block_of_best != nullptr) {
    best.position += find_value(block_of_best, length_of_best, stride, best.value);
  }
  return best;
}

template <class T, class Order>
void arg_rows(const KernelContext& ctx, const ReductionPlan& plan, const T* data, std::int64_t* output) {
  const std::int64_t length = plan.reduced.total();
  const std::int64_t outputs = plan.kept.total();
  const std::int64_t pieces = ceil_div(length, kReduceChunk);
  if (pieces == 1) {
    const std::int64_t group = std::max<std::int64_t>(1, kReduceChunk / length);
    for_chunks(ctx, outputs * length, ceil_div(outputs, group), [&](std::int64_t chunk) {
      const std::int64_t begin = chunk * group;
      plan.kept.run(begin, std::min(outputs, begin + group), [&](const auto& at, std::int64_t count) {
        for (std::int64_t i = 0; i < count; ++i) {
          const T* row = data + at[0] + i * plan.kept.inner_stride(0);
          output[at[1] + i * plan.kept.inner_stride(1)] =
              best_of_nest<T, Order>(row, plan.reduced, 0, length).position;
        }
      });
    });
    return;
  }
  std::vector<Candidate<T>> partials(static_cast<std::size_t>(outputs * pieces));
  for_chunks(ctx, outputs * length, outputs * pieces, [&](std::int64_t chunk) {
    const std::int64_t begin = chunk % pieces * kReduceChunk;
    partials[chunk] = best_of_nest<T, Order>(data + plan.kept.offsets(chunk / pieces)[0], plan.reduced, begin,
                                             std::min(length, begin + kReduceChunk));
  });
  for (std::int64_t out = 0; out < outputs; ++out) {
    const Candidate<T>* best = &partials[out * pieces];
    for (const Candidate<T>* next = best + 1; next < &partials[out * pieces] + pieces; ++next) {
      if (beats<Order>(next->value, best->value)) best = next;
    }
    output[plan.kept.offsets(out)[1]] = best->position;
  }
}

/// Columns compared side by side.
constexpr std::int64_t kArgTile = 128;

template <class T, class Order, class Index>
void arg_row(const T* row, std::int64_t stride, std::int64_t width, Index row_number, T* best,
             Index* positions) noexcept {
  for (std::int64_t i = 0; i < width; ++i) {
    const T value = row[i * stride];
    const T old = best[i];
    // Masks instead of conditions: random data must not become branches.
    const Index above = -static_cast<Index>(Order::above(value, old));
    const Index first_nan = -static_cast<Index>(value != value) & -static_cast<Index>(old == old);
    const Index wins = above | first_nan;
    positions[i] = (row_number & wins) | (positions[i] & ~wins);
    best[i] = better<Order>(old, value);
  }
}

/// `Index` is as wide as T where the rows allow, so that both fill SIMD registers alike.
template <class T, class Order, class Index>
void arg_tile(const T* data, std::int64_t column_stride, std::int64_t width, const LoopNest<1>& rows,
              std::int64_t* output, std::int64_t output_stride) noexcept {
  T best[kArgTile];
  Index positions[kArgTile] = {};
  for (std::int64_t i = 0; i < width; ++i) best[i] = data[i * column_stride];
  Index row_number = 0;
  rows.run(0, rows.total(), [&](const auto& at, std::int64_t count) {
    for (std::int64_t r = 0; r < count; ++r, ++row_number) {
      const T* row = data + at[0] + r * rows.inner_stride(0);
      if (column_stride == 1) {
        arg_row<T, Order>(row, 1, width, row_number, best, positions);
      } else {
        arg_row<T, Order>(row, column_stride, width, row_number, best, positions);
      }
    }
  });
  for (std::int64_t i = 0; i < width; ++i) output[i * output_stride] = positions[i];
}

template <class T, class Order, class Index>
void arg_columns(const KernelContext& ctx, const ReductionPlan& plan, const T* data, std::int64_t* output) {
  const std::int64_t tiles = ceil_div(plan.columns, kArgTile);
  const std::int64_t units = plan.kept.total() * tiles;
  const std::int64_t width = std::min(kArgTile, plan.columns);
  const std::int64_t group = std::max<std::int64_t>(1, kReduceChunk / width / plan.reduced.total());
  for_chunks(ctx, ctx.input(0).numel(), ceil_div(units, group), [&](std::int64_t chunk) {
    const std::int64_t end = std::min(units, (chunk + 1) * group);
    for (std::int64_t unit = chunk * group; unit < end; ++unit) {
      const auto at = plan.kept.offsets(unit / tiles);
      const std::int64_t first = unit % tiles * kArgTile;
      arg_tile<T, Order, Index>(data + at[0] + first * plan.column_stride, plan.column_stride,
                                std::min(kArgTile, plan.columns - first), plan.reduced,
                                output + at[1] + first * plan.output_stride, plan.output_stride);
    }
  });
}

template <class T, class Order>
void arg_any(const KernelContext& ctx, const ReductionPlan& plan, const T* data, std::int64_t* output) {
  if (!plan.by_column) {
    arg_rows<T, Order>(ctx, plan, data, output);
  } else if (sizeof(T) < 8 && plan.reduced.total() <= std::numeric_limits<std::int32_t>::max()) {
    arg_columns<T, Order, std::int32_t>(ctx, plan, data, output);
  } else {
    arg_columns<T, Order, std::int64_t>(ctx, plan, data, output);
  }
}

template <class Order>
void run_arg(const KernelContext& ctx) {
  const ReductionPlan plan = plan_reduction(ctx.input(0), reduced_axes(ctx), VisitOrder::c_order);
  if (plan.kept.total() == 0) return;
  visit_real_dtype(ctx.input(0).dtype(), [&]<class T>() {
    using Element = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;
    const auto* data = ctx.input(0).as<const Element>();
    auto* output = ctx.output().as<std::int64_t>();
    arg_any<Element, Order>(ctx, plan, data, output);
  });
}

}  // namespace

void argmax_kernel(const KernelContext& ctx) { run_arg<Larger>(ctx); }

void argmin_kernel(const KernelContext& ctx) { run_arg<Smaller>(ctx); }

}  // namespace thalweg::cpu
