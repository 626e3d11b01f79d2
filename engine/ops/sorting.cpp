// sorting.cpp: Ops that order elements or find places in an order: sort, argsort, topk, searchsorted.
#include <string>
#include <utility>

#include <thalweg/errors.h>
#include <thalweg/op.h>

#include "ops/builtin.h"
#include "ops/derivative.h"

namespace thalweg {
namespace {

/// Throws DTypeError unless the values of input `i` have an order.
void require_order(const InferContext& ctx, std::size_t i) {
  const DType dtype = ctx.input(i).dtype;
  if (kind(dtype) <= DTypeKind::floating) return;
  throw DTypeError(std::string(ctx.name()) + ": values of " + std::string(name(dtype)) + " have no order");
}

void check_sorted_axis(const InferContext& ctx) {
  require_order(ctx, 0);
  normalize_axis(ctx.name(), ctx.attributes().get<std::int64_t>(0), ctx.input(0).rank());
}

void infer_sort(InferContext& ctx) {
  check_sorted_axis(ctx);
  ctx.set_contiguous(0, ctx.input(0).shape, ctx.input(0).dtype);
}

void infer_argsort(InferContext& ctx) {
  check_sorted_axis(ctx);
  ctx.set_contiguous(0, ctx.input(0).shape, DType::int64);
}

void infer_topk(InferContext& ctx) {
  const TensorMeta& x = ctx.input(0);
  const int axis = normalize_axis(ctx.name(), ctx.attributes().get<std::int64_t>(1), x.rank());
  const std::int64_t k = ctx.attributes().get<std::int64_t>(0);
  Shape shape = x.shape;
  if (k < 0 || k > shape[axis]) {
    throw ValueError(std::string(ctx.name()) + ": k is " + std::to_string(k) + "; it must be from 0 to " +
                     std::to_string(shape[axis]) + ", the size of axis " + std::to_string(axis));
  }
  require_order(ctx, 0);
  shape[axis] = k;
  ctx.set_contiguous(0, shape, x.dtype);
  ctx.set_contiguous(1, shape, DType::int64);
}

/// Few elements are found by scanning, many by sorting all.
double topk_cost_ns(std::span<const TensorMeta* const> inputs, std::span<const TensorMeta* const> outputs) {
  const bool is_few = outputs[0]->numel() <= inputs[0]->numel() / 8;
  return static_cast<double>(inputs[0]->numel()) * (is_few ? 1.5 : 25.0);
}

void infer_searchsorted(InferContext& ctx) {
  const TensorMeta& sorted = ctx.input(0);
  require_order(ctx, 0);
  require_order(ctx, 1);
  if (sorted.rank() != 1) {
    throw ShapeError(std::string(ctx.name()) + ": x1 must have 1 dimension, shape " +
                     to_string(sorted.shape) + " has " + std::to_string(sorted.rank()));
  }
  const auto& side = ctx.attributes().get<std::string>(0);
  if (side != "left" && side != "right") {
    throw ValueError(std::string(ctx.name()) + ": side must be 'left' or 'right', not '" + side + "'");
  }
  const DType dtype = promote(sorted.dtype, ctx.input(1).dtype);
  ctx.cast_input(0, dtype);
  ctx.cast_input(1, dtype);
  ctx.set_contiguous(0, ctx.input(1).shape, DType::int64);
}

const char kOrderDoc[] =
    "\n\nNaNs come last, in descending order too; -0.0 equals 0.0. Equal elements keep their order. Raises "
    "IndexError for an axis out of range and DTypeError for complex dtypes.\n\nArray API standard, sorting "
    "functions.";

Op ordering(std::string name, void (*infer)(InferContext&), float ns_per_element, const std::string& doc) {
  Op op;
  op.name = std::move(name);
  op.inputs = {"x"};
  op.attributes = {{"axis", AttrKind::integer, std::int64_t{-1}}, {"descending", AttrKind::boolean, false}};
  op.infer = infer;
  op.ns_per_element = ns_per_element;
  op.doc = doc + kOrderDoc;
  set_indexing_derivative(op);
  return op;
}

}  // namespace

void register_sorting(OpRegistry& registry) {
  registry.add(
      ordering("sort", infer_sort, 15.0f,
               "The elements in ascending (or descending) order along an axis.\n\nThe result has the "
               "shape and dtype of x."));
  registry.add(ordering("argsort", infer_argsort, 25.0f,
                        "The positions that put the elements in ascending (or descending) order along an "
                        "axis.\n\nThe result has the shape of x and dtype int64."));
  Op topk;
  topk.name = "topk";
  topk.inputs = {"x"};
  topk.attributes = {{"k", AttrKind::integer, {}, true},
                     {"axis", AttrKind::integer, std::int64_t{-1}},
                     {"largest", AttrKind::boolean, true}};
  topk.infer = infer_topk;
  topk.outputs = 2;
  topk.cost_ns = topk_cost_ns;
  topk.doc =
      "The k largest (or smallest) elements along an axis, in descending (or ascending) order, and where "
      "they "
      "stand.\n\nBoth have size k along the axis; values has the dtype of x and indices int64. nan comes "
      "last, whichever end is asked for, and equal elements keep their order. Raises IndexError for an axis "
      "out of range, ValueError for a k that is not from 0 to the size of the axis and DTypeError for "
      "complex "
      "dtypes.\n\nPyTorch's topk, but for nan.";
  set_indexing_derivative(topk);
  registry.add(std::move(topk));
  Op search;
  search.name = "searchsorted";
  search.inputs = {"x1", "x2"};
  search.attributes = {{"side", AttrKind::string, std::string("left")}};
  search.infer = infer_searchsorted;
  search.ns_per_element = 20.0f;
  search.doc =
      "The positions at which the elements of x2 would go into x1 so that it stays sorted.\n\nx1: 1-d and in "
      "ascending order, NaNs last. side: 'left' gives the first such position, 'right' the last. The result "
      "has the shape of x2 and dtype int64; both inputs are promoted to a common dtype. Raises ShapeError if "
      "x1 is not 1-d and DTypeError for complex dtypes.\n\nArray API standard, searching functions.";
  set_indexing_derivative(search);
  registry.add(std::move(search));
}

}  // namespace thalweg
