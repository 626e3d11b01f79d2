// decomposition_gradient.cpp: derivatives of solving, inverting and decomposing matrices (Giles, Collected
// matrix derivative results for forward and reverse mode algorithmic differentiation, 2008).
#include "ops/decomposition_gradient.h"

#include <string>
#include <utility>
#include <vector>

#include "ops/derivative.h"

namespace thalweg {
namespace {

const BuiltinOp matmul_op("matmul");
const BuiltinOp solve_op("solve");
const BuiltinOp inv_op("inv");
const BuiltinOp svd_op("svd");
const BuiltinOp eigh_op("eigh");
const BuiltinOp arange_op("arange");
const BuiltinOp less_op("less");
const BuiltinOp equal_op("equal");
const BuiltinOp real_op("real");

Tensor product(const GradientContext& ctx, const Tensor& x, const Tensor& y) {
  return ctx.call(matmul_op, x, y);
}

/// x with an axis of size 1 put before its last axis (rows) or behind it (columns).
Tensor as_rows(const GradientContext& ctx, const Tensor& x) {
  Shape shape = x.shape();
  shape.insert(shape.size() - 1, 1);
  return ctx.reshape(x, shape);
}
Tensor as_columns(const GradientContext& ctx, const Tensor& x) {
  Shape shape = x.shape();
  shape.push_back(1);
  return ctx.reshape(x, shape);
}
/// A number for each matrix.
Tensor as_scalars(const GradientContext& ctx, const Tensor& x) { return as_columns(ctx, as_columns(ctx, x)); }

/// 0, 1, … as a row or a column, for the masks below.
Tensor counted(const GradientContext& ctx, std::int64_t count, const Tensor& like) {
  return ctx.call(arange_op, std::span<const Tensor>(),
                  attributes_of(Scalar(std::int64_t{0}), Scalar(count), Scalar(std::int64_t{1}), DType::int64,
                                like.device()));
}
Tensor off_diagonal(const GradientContext& ctx, const Tensor& x, bool below) {
  const Tensor place = counted(ctx, x.shape().back(), x);
  const Tensor row = as_columns(ctx, place);
  const Tensor mask = below ? ctx.call(less_op, place, row) : ctx.call(equal_op, place, row);
  const Tensor none = ctx.number(0, x);
  return below ? ctx.where(mask, x, none) : ctx.where(mask, none, x);
}
/// The diagonal of x in a matrix of zeros.
Tensor only_diagonal(const GradientContext& ctx, const Tensor& x) {
  const Tensor place = counted(ctx, x.shape().back(), x);
  return ctx.where(ctx.call(equal_op, place, as_columns(ctx, place)), x, ctx.number(0, x));
}
/// 1 / (right - left) for every two values along the last axis; 0 on the diagonal.
Tensor inverse_gaps(const GradientContext& ctx, const Tensor& values) {
  const Tensor gaps = ctx.subtract(as_rows(ctx, values), as_columns(ctx, values));
  const Tensor place = counted(ctx, values.shape().back(), values);
  const Tensor same = ctx.call(equal_op, place, as_columns(ctx, place));
  const Tensor one = ctx.number(1, values);
  return ctx.where(same, ctx.number(0, values), ctx.divide(one, ctx.where(same, one, gaps)));
}

std::vector<Tensor> several(const GradientContext& ctx, const BuiltinOp& op, const Tensor& x,
                            Attributes attributes = {}) {
  const Tensor* const input = &x;
  return ctx.engine().apply_many(op.in(ctx.engine()), {&input, 1}, std::move(attributes), ctx.site());
}

void inv_gradient(GradientContext& ctx) {
  const Tensor y = adjoint(ctx, ctx.output());
  ctx.set(0, ctx.negative(product(ctx, product(ctx, y, ctx.grad()), y)));
}

/// A right-hand side of one axis is one column.
void solve_gradient(GradientContext& ctx) {
  const Tensor transposed = adjoint(ctx, ctx.input(0));
  const Shape& rhs = ctx.input_shape(1);
  const bool column = rhs.size() == 1;
  const Tensor g = column ? as_columns(ctx, ctx.grad()) : ctx.grad();
  const Tensor back = ctx.call(solve_op, transposed, g);
  if (ctx.needs(1)) {
    Shape shape = back.shape();
    if (column) shape.pop_back();
    ctx.set(1, ctx.reshape(back, shape));
  }
  if (!ctx.needs(0)) return;
  const Tensor x = column ? as_columns(ctx, ctx.output()) : ctx.output();
  ctx.set(0, ctx.negative(product(ctx, back, adjoint(ctx, x))));
}

/// det * inv(x)^H: of a singular matrix the gradient fails as inv does.
void det_gradient(GradientContext& ctx) {
  const Tensor size = as_scalars(ctx, ctx.multiply(ctx.grad(), ctx.conj(ctx.output())));
  ctx.set(0, ctx.multiply(size, adjoint(ctx, ctx.call(inv_op, ctx.input(0)))));
}

/// The sign of a real determinant is constant; that of a complex one turns with it.
void slogdet_gradient(GradientContext& ctx) {
  const Tensor inverse = adjoint(ctx, ctx.call(inv_op, ctx.input(0)));
  Tensor sum;
  if (ctx.grad(1)) sum = ctx.multiply(as_scalars(ctx, ctx.grad(1)), inverse);
  if (ctx.grad(0) && is_complex(ctx.output_meta(0).dtype)) {
    const Tensor turn = ctx.multiply(ctx.grad(0), ctx.conj(ctx.output(0)));
    const Tensor across = ctx.subtract(turn, ctx.call(real_op, turn));
    const Tensor part = ctx.multiply(as_scalars(ctx, across), inverse);
    sum = sum ? ctx.add(sum, part) : part;
  }
  ctx.set(0, sum ? sum : ctx.zeros(ctx.input_meta(0)));
}

/// (S + S^H) / 2 with S = L^-H phi(L^H g) L^-1, phi the lower triangle with half the diagonal.
void cholesky_gradient(GradientContext& ctx) {
  const bool upper = ctx.attributes().get<bool>(0);
  const Tensor lower = upper ? adjoint(ctx, ctx.output()) : ctx.output();
  const Tensor g = upper ? adjoint(ctx, ctx.grad()) : ctx.grad();
  const Tensor inner = product(ctx, adjoint(ctx, lower), g);
  const Tensor phi = ctx.add(off_diagonal(ctx, inner, true), ctx.scale(only_diagonal(ctx, inner), 0.5));
  const Tensor left = ctx.call(solve_op, adjoint(ctx, lower), phi);
  const Tensor s = adjoint(ctx, ctx.call(solve_op, adjoint(ctx, lower), adjoint(ctx, left)));
  ctx.set(0, ctx.scale(ctx.add(s, adjoint(ctx, s)), 0.5));
}

/// V (diag(gw) + V^H gV / gaps) V^H.
void spread_eigenvalues(GradientContext& ctx, const Tensor& values, const Tensor& vectors, const Tensor& gw,
                        const Tensor& gv) {
  const Tensor back = adjoint(ctx, vectors);
  Tensor sum;
  if (gw) sum = product(ctx, ctx.multiply(vectors, as_rows(ctx, gw)), back);
  if (gv) {
    const Tensor turned = ctx.multiply(product(ctx, back, gv), inverse_gaps(ctx, values));
    const Tensor part = product(ctx, product(ctx, vectors, turned), back);
    sum = sum ? ctx.add(sum, part) : part;
  }
  // Of the triangle that counts, as of a symmetric change of the whole.
  ctx.set(0, ctx.scale(ctx.add(sum, adjoint(ctx, sum)), 0.5));
}

void eigh_gradient(GradientContext& ctx) {
  spread_eigenvalues(ctx, ctx.output(0), ctx.output(1), ctx.grad(0), ctx.grad(1));
}

void eigvalsh_gradient(GradientContext& ctx) {
  const std::vector<Tensor> parts = several(ctx, eigh_op, ctx.input(0));
  spread_eigenvalues(ctx, parts[0], parts[1], ctx.grad(), {});
}

void svdvals_gradient(GradientContext& ctx) {
  const std::vector<Tensor> parts = several(ctx, svd_op, ctx.input(0), attributes_of(false));
  ctx.set(0, product(ctx, ctx.multiply(parts[0], as_rows(ctx, ctx.grad())), parts[2]));
}

const Derivative kDerivatives[] = {
    {"inv", inv_gradient, {save_output(0)}},
    {"solve", solve_gradient, {save_input(0), save_output(0, for_input(0))}},
    {"det", det_gradient, {save_input(0), save_output(0)}},
    {"slogdet", slogdet_gradient, {save_input(0), save_output(0)}},
    {"cholesky", cholesky_gradient, {save_output(0)}},
    {"eigh", eigh_gradient, {save_output(0), save_output(1)}},
    {"eigvalsh", eigvalsh_gradient, {save_input(0)}},
    {"svdvals", svdvals_gradient, {save_input(0)}},
};

}  // namespace

void set_decomposition_derivative(Op& op) { set_from(kDerivatives, op); }

}  // namespace thalweg
