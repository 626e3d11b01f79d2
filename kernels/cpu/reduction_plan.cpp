// reduction_plan.cpp: chooses the loop order of a reduction from shape and strides.
#include "kernels/cpu/reduction_plan.h"

#include <algorithm>
#include <cstdlib>

namespace thalweg::cpu {
namespace {

struct Dimension {
  std::int64_t size;
  std::int64_t input_stride;
  std::int64_t output_stride;
};

struct DimensionList {
  Dimension items[kMaxRank];
  int count = 0;

  void add(Dimension dimension) noexcept { items[count++] = dimension; }
  /// Largest stride outermost, so that memory is walked forwards; equal ones keep their order.
  void sort() noexcept {
    for (int i = 1; i < count; ++i) {
      const Dimension moving = items[i];
      int at = i;
      for (; at > 0 && std::abs(items[at - 1].input_stride) < std::abs(moving.input_stride); --at) {
        items[at] = items[at - 1];
      }
      items[at] = moving;
    }
  }
};

/// Rows shorter than this are reduced side by side: a loop per output would cost more than the elements.
constexpr std::int64_t kShortRow = 16;

bool prefers_columns(const ReductionPlan& plan) noexcept {
  if (plan.kept.rank() == 0 || plan.kept.inner_size() < 4) return false;
  const std::int64_t column_stride = std::abs(plan.kept.inner_stride(0));
  const std::int64_t row_stride = std::abs(plan.reduced.inner_stride(0));
  return column_stride < row_stride || plan.reduced.total() < kShortRow;
}

}  // namespace

std::uint64_t reduced_axes(const KernelContext& ctx) {
  if (!ctx.attributes().has(0)) return ~std::uint64_t{0};
  std::uint64_t axes = 0;
  for (int axis : normalize_axes(ctx.op().name, ctx.attributes().get<Dims>(0), ctx.input(0).rank())) {
    axes |= std::uint64_t{1} << axis;
  }
  return axes;
}

ReductionPlan plan_reduction(const TensorView& input, std::uint64_t reduced, VisitOrder order) {
  DimensionList kept_list;
  DimensionList reduced_list;
  std::int64_t output_stride = 1;
  for (int axis = input.rank() - 1; axis >= 0; --axis) {
    const std::int64_t size = input.shape()[axis];
    if ((reduced >> axis & 1) != 0) {
      reduced_list.add({size, input.strides()[axis], 0});
    } else {
      kept_list.add({size, input.strides()[axis], output_stride});
      output_stride *= size;
    }
  }
  std::reverse(kept_list.items, kept_list.items + kept_list.count);
  std::reverse(reduced_list.items, reduced_list.items + reduced_list.count);
  kept_list.sort();
  if (order == VisitOrder::any) reduced_list.sort();

  ReductionPlan plan;
  for (int i = 0; i < kept_list.count; ++i) {
    const Dimension& dimension = kept_list.items[i];
    plan.kept.add(dimension.size, {dimension.input_stride, dimension.output_stride});
  }
  for (int i = 0; i < reduced_list.count; ++i) {
    plan.reduced.add(reduced_list.items[i].size, {reduced_list.items[i].input_stride});
  }
  if (plan.kept.total() == 0 || plan.reduced.total() == 0 || !prefers_columns(plan)) return plan;
  plan.by_column = true;
  plan.columns = plan.kept.inner_size();
  plan.column_stride = plan.kept.inner_stride(0);
  plan.output_stride = plan.kept.inner_stride(1);
  plan.kept.pop();
  return plan;
}

}  // namespace thalweg::cpu
