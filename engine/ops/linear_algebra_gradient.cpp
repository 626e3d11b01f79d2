// linear_algebra_gradient.cpp: the derivative of matmul.
#include <utility>

#include "ops/derivative.h"

namespace thalweg {

namespace {

const BuiltinOp matmul_op("matmul");
const BuiltinOp permute_dims_op("permute_dims");

/// `shape` with an axis of size 1 at `place`, counted from the end (1: behind the last).
Shape with_axis(Shape shape, std::size_t place) {
  shape.insert(shape.size() + 1 - place, 1);
  return shape;
}

/// One matrix of all the batch's rows.
Tensor as_matrix(const GradientContext& ctx, const Tensor& x) {
  const std::int64_t columns = x.shape().back();
  std::int64_t rows = 1;
  for (std::size_t axis = 0; axis + 1 < x.shape().size(); ++axis) rows *= x.shape()[axis];
  return ctx.reshape(x, Shape{rows, columns});
}

}  // namespace

Tensor adjoint(const GradientContext& ctx, const Tensor& x) {
  Dims order;
  for (std::size_t axis = 0; axis < x.shape().size(); ++axis)
    order.push_back(static_cast<std::int64_t>(axis));
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return ctx.conj(ctx.call(permute_dims_op, x, attributes_of(order)));
}

/// G @ B^H and A^H @ G, where 1-D operands are a row and a column.
void matmul_gradient(GradientContext& ctx) {
  const bool has_row = ctx.needs(0) && ctx.input_shape(0).size() == 1;
  const bool has_column = ctx.needs(1) && ctx.input_shape(1).size() == 1;
  Tensor a = ctx.needs(1) ? ctx.input(0) : Tensor();
  Tensor b = ctx.needs(0) ? ctx.input(1) : Tensor();
  const bool row = has_row || (a && a.rank() == 1);
  const bool column = has_column || (b && b.rank() == 1);
  Tensor g = ctx.grad();
  if (row && column) {
    g = ctx.reshape(g, {1, 1});
  } else if (row) {
    g = ctx.reshape(g, with_axis(g.shape(), 2));
  } else if (column) {
    g = ctx.reshape(g, with_axis(g.shape(), 1));
  }
  if (a && a.rank() == 1) a = ctx.reshape(a, {1, a.shape()[0]});
  if (b && b.rank() == 1) b = ctx.reshape(b, {b.shape()[0], 1});
  if (ctx.needs(0)) {
    Tensor gradient = ctx.call(matmul_op, g, adjoint(ctx, b));
    if (row) {
      Shape shape = gradient.shape();
      shape.erase(shape.size() - 2);
      gradient = ctx.reshape(gradient, shape);
    }
    ctx.set(0, gradient);
  }
  if (ctx.needs(1)) {
    // One product instead of a batch of products and their sum.
    const bool shared = ctx.input_shape(1).size() <= 2 && a.rank() > 2;
    Tensor gradient = shared ? ctx.call(matmul_op, adjoint(ctx, as_matrix(ctx, a)), as_matrix(ctx, g))
                             : ctx.call(matmul_op, adjoint(ctx, a), g);
    if (column) {
      Shape shape = gradient.shape();
      shape.pop_back();
      gradient = ctx.reshape(gradient, shape);
    }
    ctx.set(1, gradient);
  }
}

}  // namespace thalweg
