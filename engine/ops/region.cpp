// region.cpp: checks of the part of a tensor that basic indexing selects.
#include "ops/region.h"

#include <algorithm>
#include <string>

#include <thalweg/errors.h>

namespace thalweg {
namespace {

[[noreturn]] void throw_region(const InferContext& ctx, const std::string& text) {
  throw ShapeError(std::string(ctx.name()) + ": " + text);
}

/// True if start, start + step, … (`size` of them) all lie in [0, dim).
bool fits(std::int64_t start, std::int64_t step, std::int64_t size, std::int64_t dim) {
  if (size <= 0) return size == 0;
  std::int64_t last = 0;
  if (__builtin_mul_overflow(size - 1, step, &last) || __builtin_add_overflow(last, start, &last))
    return false;
  return start >= 0 && start < dim && last >= 0 && last < dim;
}

void check_axis(const InferContext& ctx, int axis, std::int64_t start, std::int64_t step, std::int64_t size) {
  const Shape& shape = ctx.input(0).shape;
  if (step == 0) throw_region(ctx, "step of axis " + std::to_string(axis) + " is 0");
  if (fits(start, step, size, shape[axis])) return;
  throw IndexError(std::string(ctx.name()) + ": start " + std::to_string(start) + ", step " +
                   std::to_string(step) + ", size " + std::to_string(size) + " leaves axis " +
                   std::to_string(axis) + " of shape " + to_string(shape));
}

Dims dims_or_empty(const InferContext& ctx, std::size_t i) {
  return ctx.attributes().has(i) ? ctx.attributes().get<Dims>(i) : Dims{};
}

void drop_axes(const InferContext& ctx, const Dims& drop, Region* region) {
  auto axes = normalize_axes(ctx.name(), drop, ctx.input(0).rank());
  std::sort(axes.begin(), axes.end());
  for (std::size_t i = axes.size(); i-- > 0;) {
    if (region->shape[axes[i]] != 1) {
      throw_region(ctx, "dropped axis " + std::to_string(axes[i]) + " has size " +
                            std::to_string(region->shape[axes[i]]) + ", not 1");
    }
    region->shape.erase(axes[i]);
    region->strides.erase(axes[i]);
  }
}

void insert_axes(const InferContext& ctx, const Dims& insert, Region* region) {
  const int rank = static_cast<int>(region->shape.size() + insert.size());
  if (rank > kMaxRank) {
    throw_region(ctx,
                 std::to_string(rank) + " dimensions are too many, the most are " + std::to_string(kMaxRank));
  }
  auto axes = normalize_axes(ctx.name(), insert, rank);
  std::sort(axes.begin(), axes.end());
  for (int axis : axes) {
    region->shape.insert(axis, 1);
    region->strides.insert(axis, 0);
  }
}

}  // namespace

Region resolve_region(const InferContext& ctx, std::size_t first) {
  const TensorMeta& input = ctx.input(0);
  const Dims& starts = ctx.attributes().get<Dims>(first);
  const Dims& steps = ctx.attributes().get<Dims>(first + 1);
  const Dims& sizes = ctx.attributes().get<Dims>(first + 2);
  const std::size_t rank = input.shape.size();
  if (starts.size() != rank || steps.size() != rank || sizes.size() != rank) {
    throw_region(ctx, "starts " + to_string(starts) + ", steps " + to_string(steps) + " and sizes " +
                          to_string(sizes) + " must have one entry per axis of shape " +
                          to_string(input.shape));
  }
  Region region;
  region.shape = sizes;
  region.strides = input.strides;
  for (std::size_t axis = 0; axis < rank; ++axis) {
    check_axis(ctx, static_cast<int>(axis), starts[axis], steps[axis], sizes[axis]);
    // An axis of one element keeps its stride: the step may be too large to multiply.
    if (sizes[axis] > 1) region.strides[axis] *= steps[axis];
    if (sizes[axis] > 0) region.offset += starts[axis] * input.strides[axis];
  }
  if (numel(region.shape) == 0) region.offset = 0;
  drop_axes(ctx, dims_or_empty(ctx, first + 3), &region);
  insert_axes(ctx, dims_or_empty(ctx, first + 4), &region);
  return region;
}

}  // namespace thalweg
