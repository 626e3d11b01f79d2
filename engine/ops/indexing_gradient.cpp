// indexing_gradient.cpp: derivatives of the Ops that read or replace chosen elements, masks and orders among
// them.
#include <algorithm>
#include <iterator>
#include <string_view>
#include <vector>

#include "ops/derivative.h"

namespace thalweg {
namespace {

const BuiltinOp slice_op("slice");
const BuiltinOp slice_assign_op("slice_assign");
const BuiltinOp index_op("index");
const BuiltinOp index_assign_op("index_assign");
const BuiltinOp index_add_op("index_add");
const BuiltinOp arange_op("arange");
const BuiltinOp mask_select_op("mask_select");
const BuiltinOp mask_scatter_op("mask_scatter");
const BuiltinOp argsort_op("argsort");
const BuiltinOp take_along_axis_op("take_along_axis");

/// A value may have had more axes, of size 1, than the region.
Tensor with_value_rank(const GradientContext& ctx, const Tensor& gradient) {
  Shape shape = gradient.shape();
  while (shape.size() < ctx.input_shape(1).size()) shape.insert(0, 1);
  return ctx.reshape(gradient, shape);
}

void slice_assign_gradient(GradientContext& ctx) {
  const Tensor& g = ctx.grad();
  if (ctx.needs(0)) ctx.set(0, ctx.call(slice_assign_op, g, ctx.number(0, g), ctx.attributes()));
  if (ctx.needs(1)) ctx.set(1, with_value_rank(ctx, ctx.call(slice_op, g, ctx.attributes())));
}

/// Every position that was named passes its gradient to the value, as in PyTorch; of one named twice, both
/// do.
void index_assign_gradient(GradientContext& ctx) {
  const Tensor& g = ctx.grad();
  std::vector<Tensor> indices;
  for (std::size_t i = 2; i < ctx.input_count(); ++i) indices.push_back(ctx.input(i));
  if (ctx.needs(0)) {
    std::vector<Tensor> inputs{g, ctx.number(0, g)};
    inputs.insert(inputs.end(), indices.begin(), indices.end());
    ctx.set(0, ctx.call(index_assign_op, inputs, ctx.attributes()));
  }
  if (ctx.needs(1)) {
    std::vector<Tensor> inputs{g};
    inputs.insert(inputs.end(), indices.begin(), indices.end());
    ctx.set(1, with_value_rank(ctx, ctx.call(index_op, inputs, ctx.attributes())));
  }
}

/// Zeros of `shape` with the gradient added at the positions that `indices` name on `axes`.
Tensor added_at(const GradientContext& ctx, Shape shape, std::vector<Tensor> indices, Attributes attributes) {
  ValueMeta like = ctx.input_meta(0);
  like.shape = std::move(shape);
  if (is_half(like.dtype)) like.dtype = DType::float32;  // sums with all their digits; cast by backward
  std::vector<Tensor> inputs{ctx.zeros(like), ctx.grad()};
  inputs.insert(inputs.end(), indices.begin(), indices.end());
  return ctx.call(index_add_op, inputs, std::move(attributes));
}

void take_gradient(GradientContext& ctx) {
  const Shape& shape = ctx.input_shape(0);
  if (!ctx.attributes().has(0)) {
    return ctx.set(0,
                   ctx.reshape(added_at(ctx, {numel(shape)}, {ctx.input(1)}, attributes_of(Dims{0})), shape));
  }
  const Dims axes{ctx.attributes().get<std::int64_t>(0)};
  ctx.set(0, added_at(ctx, shape, {ctx.input(1)}, attributes_of(axes)));
}

void index_gradient(GradientContext& ctx) {
  std::vector<Tensor> indices;
  for (std::size_t i = 1; i < ctx.input_count(); ++i) indices.push_back(ctx.input(i));
  ctx.set(0, added_at(ctx, ctx.input_shape(0), std::move(indices), ctx.attributes()));
}

/// Index arrays for the places that `along`, positions on one axis, names: every other axis names itself, or
/// 0 where the input was broadcast.
std::vector<Tensor> all_indices(const GradientContext& ctx, const Tensor& along, std::size_t axis) {
  const Shape& shape = ctx.input_shape(0);
  const Shape& result = ctx.grad().shape();
  std::vector<Tensor> indices;
  for (std::size_t at = 0; at < shape.size(); ++at) {
    if (at == axis) {
      indices.push_back(along);
      continue;
    }
    const std::int64_t size = shape[at] == 1 ? 1 : result[at];
    Shape place(shape.size(), 1);
    place[at] = size;
    const Tensor counted =
        ctx.call(arange_op, std::span<const Tensor>(),
                 attributes_of(Scalar(std::int64_t{0}), Scalar(size), Scalar(std::int64_t{1}), DType::int64,
                               ctx.grad().device()));
    indices.push_back(ctx.reshape(counted, place));
  }
  return indices;
}

Dims all_axes(std::size_t rank) {
  Dims axes;
  for (std::size_t axis = 0; axis < rank; ++axis) axes.push_back(static_cast<std::int64_t>(axis));
  return axes;
}

void add_along(GradientContext& ctx, const Tensor& along, std::int64_t axis) {
  const Shape& shape = ctx.input_shape(0);
  const auto at =
      static_cast<std::size_t>(normalize_axis(ctx.op().name, axis, static_cast<int>(shape.size())));
  ctx.set(0, added_at(ctx, shape, all_indices(ctx, along, at), attributes_of(all_axes(shape.size()))));
}

void take_along_axis_gradient(GradientContext& ctx) {
  add_along(ctx, ctx.input(1), ctx.attributes().get<std::int64_t>(0));
}

void topk_gradient(GradientContext& ctx) {
  add_along(ctx, ctx.output(1), ctx.attributes().get<std::int64_t>(1));
}

void index_add_gradient(GradientContext& ctx) {
  if (ctx.needs(0)) ctx.set(0, ctx.grad());
  if (!ctx.needs(1)) return;
  std::vector<Tensor> inputs{ctx.grad()};
  for (std::size_t i = 2; i < ctx.input_count(); ++i) inputs.push_back(ctx.input(i));
  ctx.set(1, with_value_rank(ctx, ctx.call(index_op, inputs, ctx.attributes())));
}

void mask_select_gradient(GradientContext& ctx) {
  const Tensor zeros = ctx.zeros(ctx.input_meta(0));
  const Tensor mask = ctx.input(1);
  ctx.set(0, ctx.call(mask_scatter_op, {&zeros, &ctx.grad(), &mask}));
}

void mask_assign_gradient(GradientContext& ctx) {
  const Tensor none = ctx.number(0, ctx.grad());
  if (ctx.needs(0)) ctx.set(0, ctx.where(ctx.input(2), none, ctx.grad()));
  if (ctx.needs(1)) ctx.set(1, ctx.where(ctx.input(2), ctx.grad(), none));
}

void mask_scatter_gradient(GradientContext& ctx) {
  const Tensor& g = ctx.grad();
  const Tensor mask = ctx.input(2);
  if (ctx.needs(0)) {
    Shape shape = mask.shape();
    while (shape.size() < g.shape().size()) shape.push_back(1);
    ctx.set(0, ctx.where(ctx.reshape(mask, shape), ctx.number(0, g), g));
  }
  if (ctx.needs(1)) ctx.set(1, ctx.call(mask_select_op, g, mask, attributes_of(ctx.input_shape(1)[0])));
}

/// The order of an order is its inverse.
void sort_gradient(GradientContext& ctx) {
  const AttrValue axis = ctx.attributes()[0];
  const Tensor order = ctx.call(argsort_op, ctx.input(0), ctx.attributes());
  const Tensor places = ctx.call(argsort_op, order, attributes_of(axis, false));
  ctx.set(0, ctx.call(take_along_axis_op, ctx.grad(), places, attributes_of(axis)));
}

const Derivative kDerivatives[] = {
    {"slice_assign", slice_assign_gradient},
    {"index_assign", index_assign_gradient, {save_inputs_from(2)}},
    {"index_add", index_add_gradient, {save_inputs_from(2, for_input(1))}},
    {"take", take_gradient, {save_input(1)}},
    {"take_along_axis", take_along_axis_gradient, {save_input(1)}},
    {"index", index_gradient, {save_inputs_from(1)}},
    {"topk", topk_gradient, {save_output(1)}},
    {"mask_select", mask_select_gradient, {save_input(1)}},
    {"mask_assign", mask_assign_gradient, {save_input(2)}},
    {"mask_scatter", mask_scatter_gradient, {save_input(2)}},
    {"sort", sort_gradient, {save_input(0)}},
};

constexpr std::string_view kNotDifferentiable[] = {"nonzero", "argsort", "searchsorted"};

}  // namespace

void set_indexing_derivative(Op& op) {
  set_from(kDerivatives, op);
  if (op.name == "topk") op.not_differentiable = 1u << 1;
  if (std::find(std::begin(kNotDifferentiable), std::end(kNotDifferentiable), op.name) !=
      std::end(kNotDifferentiable)) {
    op.not_differentiable = kAllOutputs;
  }
}

}  // namespace thalweg
