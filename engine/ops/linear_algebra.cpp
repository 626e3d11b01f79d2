// linear_algebra.cpp: Ops of linear algebra: matmul.
#include <string>
#include <utility>

#include <thalweg/errors.h>
#include <thalweg/op.h>

#include "ops/builtin.h"
#include "ops/derivative.h"

namespace thalweg {
namespace {

/// The axes in front of the last two.
Shape batch_shape(const Shape& shape) {
  return shape.size() <= 2 ? Shape{} : Shape(std::span<const std::int64_t>(shape.data(), shape.size() - 2));
}

void infer_matmul(InferContext& ctx) {
  const Shape& a = ctx.input(0).shape;
  const Shape& b = ctx.input(1).shape;
  const std::string shapes = std::string(ctx.name()) + ": shapes " + to_string(a) + " and " + to_string(b);
  if (a.empty() || b.empty()) {
    throw ShapeError(shapes + " do not match: both need at least 1 dimension; use multiply for 0-d values");
  }
  const std::size_t inner = b.size() == 1 ? 0 : b.size() - 2;
  if (a.back() != b[inner]) {
    throw ShapeError(shapes + " do not match: axis -1 of the first has size " + std::to_string(a.back()) +
                     ", axis " + (b.size() == 1 ? "-1" : "-2") + " of the second " +
                     std::to_string(b[inner]));
  }
  Shape shape = broadcast_shapes(ctx.name(), batch_shape(a), batch_shape(b));
  if (a.size() > 1) shape.push_back(a[a.size() - 2]);
  if (b.size() > 1) shape.push_back(b.back());
  const DType dtype = promote(ctx.input(0).dtype, ctx.input(1).dtype);
  ctx.cast_input(0, dtype);
  ctx.cast_input(1, dtype);
  ctx.set_contiguous(0, shape, dtype);
}

double matmul_cost_ns(std::span<const TensorMeta* const> inputs, std::span<const TensorMeta* const> outputs) {
  // 50 floating operations per ns is what one core of today reaches; 300 ns is a call's fixed cost.
  const double multiply_adds =
      static_cast<double>(outputs[0]->numel()) * static_cast<double>(inputs[0]->shape.back());
  // A complex multiply-add is four real ones.
  const double factor = is_complex(outputs[0]->dtype) ? 8.0 : 2.0;
  return factor * multiply_adds / 50.0 + 300.0;
}

}  // namespace

void register_linear_algebra(OpRegistry& registry) {
  Op op;
  op.name = "matmul";
  op.inputs = {"x1", "x2"};
  op.infer = infer_matmul;
  op.cost_ns = matmul_cost_ns;
  op.doc =
      "The matrix product over the last axis of x1 and the last but one of x2.\n\nA 1-D operand is a row "
      "(x1) or "
      "column (x2) whose axis is left out of the result; axes in front of the last two broadcast. Dtypes are "
      "promoted; "
      "floating and complex dtypes go through OpenBLAS, integers wrap, bool is any-of-and. Raises ShapeError "
      "for 0-d "
      "operands "
      "and sizes that do not match.\n\nArray API standard, linear algebra functions.";
  set_derivative(op, matmul_gradient, {save_input(0, for_input(1)), save_input(1, for_input(0))});
  registry.add(std::move(op));
}

}  // namespace thalweg
