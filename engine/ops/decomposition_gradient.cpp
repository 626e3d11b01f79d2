// decomposition_gradient.cpp: derivatives of solving, inverting and decomposing matrices (Giles, Collected
// matrix derivative results for forward and reverse mode algorithmic differentiation, 2008).
#include "ops/decomposition_gradient.h"

#include <string>
#include <utility>
#include <vector>

#include <thalweg/errors.h>

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
const BuiltinOp eig_op("eig");
const BuiltinOp abs_op("abs");
const BuiltinOp min_op("min");
const BuiltinOp sum_op("sum");
const BuiltinOp astype_op("astype");
const BuiltinOp slice_op("slice");
const BuiltinOp concat_op("concat");

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
/// `values` in the diagonals of matrices of zeros.
Tensor in_diagonal(const GradientContext& ctx, const Tensor& values) {
  return only_diagonal(ctx, as_rows(ctx, values));
}
/// 1 / gaps; 0 on the diagonal.
Tensor inverse_off_diagonal(const GradientContext& ctx, const Tensor& gaps) {
  const Tensor place = counted(ctx, gaps.shape().back(), gaps);
  const Tensor same = ctx.call(equal_op, place, as_columns(ctx, place));
  const Tensor one = ctx.number(1, gaps);
  return ctx.where(same, ctx.number(0, gaps), ctx.divide(one, ctx.where(same, one, gaps)));
}
/// right - left for every two values along the last axis.
Tensor gaps_of(const GradientContext& ctx, const Tensor& values) {
  return ctx.subtract(as_rows(ctx, values), as_columns(ctx, values));
}
Tensor inverse_gaps(const GradientContext& ctx, const Tensor& values) {
  return inverse_off_diagonal(ctx, gaps_of(ctx, values));
}
/// `count` elements from `start` on along an axis counted from the end.
Tensor part_of(const GradientContext& ctx, const Tensor& x, std::size_t axis, std::int64_t start,
               std::int64_t count) {
  Dims starts(x.shape().size(), 0);
  Dims sizes = x.shape();
  const std::size_t at = sizes.size() - axis;
  if (sizes[at] == count) return x;
  starts[at] = start;
  sizes[at] = count;
  return ctx.call(slice_op, x, attributes_of(starts, Dims(sizes.size(), 1), sizes));
}
Tensor columns_of(const GradientContext& ctx, const Tensor& x, std::int64_t start, std::int64_t count) {
  return part_of(ctx, x, 1, start, count);
}
/// x + y, either of which may be undefined.
Tensor sum_of(const GradientContext& ctx, const Tensor& x, const Tensor& y) {
  return !x ? y : !y ? x : ctx.add(x, y);
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

/// Of Q and a square R (Walter and Lehmann, Algorithmic differentiation of linear algebra functions, 2010):
/// (gQ + Q N) R^-H, where N is Hermitian and has the upper triangle of M = gR R^H - Q^H gQ.
Tensor square_qr_gradient(const GradientContext& ctx, const Tensor& q, const Tensor& r, const Tensor& gq,
                          const Tensor& gr) {
  Tensor m;
  if (gr) m = product(ctx, gr, adjoint(ctx, r));
  if (gq) m = sum_of(ctx, m, ctx.negative(product(ctx, adjoint(ctx, q), gq)));
  const Tensor lower = off_diagonal(ctx, adjoint(ctx, m), true);
  // The diagonal of R is real, so that only real changes of it count.
  const Tensor diagonal = only_diagonal(ctx, is_complex(m.dtype()) ? ctx.call(real_op, m) : m);
  const Tensor n = ctx.add(ctx.add(lower, adjoint(ctx, lower)), diagonal);
  const Tensor inner = sum_of(ctx, gq, product(ctx, q, n));
  return adjoint(ctx, ctx.call(solve_op, r, adjoint(ctx, inner)));
}

/// Of more columns than rows, Q is that of the first ones, and those behind are Q times their part of R.
void qr_gradient(GradientContext& ctx) {
  const Tensor q = ctx.output(0);
  const Tensor r = ctx.output(1);
  const std::int64_t rows = q.shape()[q.shape().size() - 2];
  const std::int64_t columns = r.shape().back();
  const std::int64_t inner = q.shape().back();
  if (inner > columns) {
    throw EngineError(ctx.op().name + ": mode 'complete' has no derivative for matrices of " +
                      std::to_string(rows) + " rows and " + std::to_string(columns) +
                      " columns, as the further columns of Q may be any; pass mode='reduced'");
  }
  Tensor gq = ctx.grad(0);
  const Tensor& gr = ctx.grad(1);
  if (columns == inner) return ctx.set(0, square_qr_gradient(ctx, q, r, gq, gr));
  Tensor gr_square;
  Tensor behind = ctx.zeros({q.dtype(), q.device(), Shape{rows, columns - inner}});
  if (gr) {
    const Tensor gr_behind = columns_of(ctx, gr, inner, columns - inner);
    const Tensor r_behind = columns_of(ctx, r, inner, columns - inner);
    gr_square = columns_of(ctx, gr, 0, inner);
    behind = product(ctx, q, gr_behind);
    gq = sum_of(ctx, gq, product(ctx, product(ctx, q, r_behind), adjoint(ctx, gr_behind)));
  }
  const Tensor front = square_qr_gradient(ctx, q, columns_of(ctx, r, 0, inner), gq, gr_square);
  Shape shape = front.shape();
  shape.back() = columns - inner;
  const Tensor parts[] = {front, ctx.broadcast_to(behind, shape)};
  ctx.set(0, ctx.call(concat_op, parts, attributes_of(Dims{-1})));
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

/// x - x^H.
Tensor skew(const GradientContext& ctx, const Tensor& x) { return ctx.subtract(x, adjoint(ctx, x)); }

/// The part of g that is orthogonal to the columns of `basis`.
Tensor orthogonal_part(const GradientContext& ctx, const Tensor& basis, const Tensor& g) {
  return ctx.subtract(g, product(ctx, basis, product(ctx, adjoint(ctx, basis), g)));
}

/// U (skew(U^H gU) / E S + S skew(V^H gV) / E + diag(gS)) V^H with E[j, k] = S[k]^2 - S[j]^2, and what of gU
/// and gV is orthogonal to U and V, over S (Townsend, Differentiating the singular value decomposition,
/// 2016). Complex vectors come in pairs with any phase, that of u also in v: the imaginary parts of the
/// diagonal, where that of U^H gU counts for both (Wan and Zhang, Automatic differentiation for complex
/// valued SVD, 2019). What further columns of full matrices are is arbitrary: their gradients do not count.
void svd_gradient(GradientContext& ctx) {
  const Tensor s = ctx.output(1);
  const std::int64_t count = s.shape().back();
  const Tensor u = columns_of(ctx, ctx.output(0), 0, count);
  const Tensor vh = part_of(ctx, ctx.output(2), 2, 0, count);
  const std::int64_t rows = u.shape()[u.shape().size() - 2];
  const std::int64_t columns = vh.shape().back();
  const Tensor v = adjoint(ctx, vh);
  const Tensor gu = ctx.grad(0) ? columns_of(ctx, ctx.grad(0), 0, count) : Tensor();
  const Tensor gv = ctx.grad(2) ? adjoint(ctx, part_of(ctx, ctx.grad(2), 2, 0, count)) : Tensor();
  const Tensor squares = ctx.multiply(gaps_of(ctx, s), ctx.add(as_rows(ctx, s), as_columns(ctx, s)));
  const Tensor inverse = gu || gv ? inverse_off_diagonal(ctx, squares) : Tensor();
  Tensor core = ctx.grad(1) ? in_diagonal(ctx, ctx.grad(1)) : Tensor();
  if (gu) {
    const Tensor turn = skew(ctx, product(ctx, adjoint(ctx, u), gu));
    core = sum_of(ctx, core, ctx.multiply(ctx.multiply(turn, inverse), as_rows(ctx, s)));
    if (is_complex(u.dtype())) {
      const Tensor phases = only_diagonal(ctx, turn);
      core = ctx.add(core, ctx.divide(phases, ctx.scale(as_rows(ctx, s), 2)));
    }
  }
  if (gv) {
    const Tensor turn = skew(ctx, product(ctx, vh, gv));
    core = sum_of(ctx, core, ctx.multiply(as_columns(ctx, s), ctx.multiply(turn, inverse)));
  }
  Tensor sum = product(ctx, product(ctx, u, core), vh);
  if (gu && rows > count) {
    const Tensor rest = ctx.divide(orthogonal_part(ctx, u, gu), as_rows(ctx, s));
    sum = ctx.add(sum, product(ctx, rest, vh));
  }
  if (gv && columns > count) {
    const Tensor rest = ctx.divide(orthogonal_part(ctx, v, gv), as_rows(ctx, s));
    sum = ctx.add(sum, product(ctx, u, adjoint(ctx, rest)));
  }
  ctx.set(0, sum);
}

/// V^-H (diag(gw) + (V^H gV - V^H V Re diag(V^H gV)) / conj(gaps)) V^H, for columns of V of length 1 and any
/// phase (Boeddeker et al., On the computation of complex-valued gradients with application to statistically
/// optimum beamforming, 2017).
Tensor eig_gradient_of(const GradientContext& ctx, const Tensor& values, const Tensor& vectors,
                       const Tensor& gw, const Tensor& gv) {
  const Tensor back = adjoint(ctx, vectors);
  Tensor core = gw ? in_diagonal(ctx, gw) : Tensor();
  if (gv) {
    const Tensor turn = product(ctx, back, gv);
    const Tensor growth = ctx.call(real_op, only_diagonal(ctx, turn));
    const Tensor across = ctx.subtract(turn, product(ctx, product(ctx, back, vectors), growth));
    core = sum_of(ctx, core, ctx.multiply(across, inverse_gaps(ctx, ctx.conj(values))));
  }
  return ctx.call(solve_op, back, product(ctx, core, back));
}

void eig_gradient(GradientContext& ctx) {
  ctx.set(0, eig_gradient_of(ctx, ctx.output(0), ctx.output(1), ctx.grad(0), ctx.grad(1)));
}

/// The eigenvalues that come with the vectors may be in another order: each takes the gradient of the one
/// that is nearest to it, the mean gradient of equal ones.
void eigvals_gradient(GradientContext& ctx) {
  if (ctx.grad().shape().back() == 0) return ctx.set(0, ctx.zeros(ctx.input_meta(0)));
  const std::vector<Tensor> parts = several(ctx, eig_op, ctx.input(0));
  const Tensor distance =
      ctx.call(abs_op, ctx.subtract(as_rows(ctx, parts[0]), as_columns(ctx, ctx.output())));
  const Tensor least = ctx.call(min_op, distance, attributes_of(Dims{-2}, true));
  const Tensor nearest =
      ctx.call(astype_op, ctx.call(equal_op, distance, least), attributes_of(distance.dtype()));
  const Tensor shares = ctx.divide(nearest, ctx.sum_keeping(nearest, Dims{-2}));
  const Tensor gw =
      ctx.call(sum_op, ctx.multiply(as_columns(ctx, ctx.grad()), shares), attributes_of(Dims{-2}, false));
  ctx.set(0, eig_gradient_of(ctx, parts[0], parts[1], gw, {}));
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
    {"qr", qr_gradient, {save_output(0), save_output(1)}},
    {"svd", svd_gradient, {save_output(0), save_output(1), save_output(2)}},
    {"eig", eig_gradient, {save_output(0), save_output(1)}},
    {"eigvals", eigvals_gradient, {save_input(0), save_output(0)}},
};

}  // namespace

void set_decomposition_derivative(Op& op) { set_from(kDerivatives, op); }

}  // namespace thalweg
