// decomposition.cpp: Ops that solve, invert and decompose matrices: cholesky, det, slogdet, inv, solve, qr,
// svd, svdvals, eigh, eigvalsh, eig, eigvals.
#include <algorithm>
#include <string>
#include <utility>

#include <thalweg/errors.h>
#include <thalweg/op.h>

#include "ops/builtin.h"
#include "ops/decomposition_gradient.h"

namespace thalweg {
namespace {

/// The axes in front of the last two.
Shape batch_shape(const Shape& shape) {
  return Shape(std::span<const std::int64_t>(shape.data(), shape.size() - 2));
}

void require_inexact(const InferContext& ctx, std::size_t i) {
  const DType dtype = ctx.input(i).dtype;
  if (is_half(dtype)) {
    throw DTypeError(std::string(ctx.name()) + ": does not compute in " + std::string(name(dtype)) +
                     "; cast with astype(" + ctx.op().inputs[i] + ", \"float32\")");
  }
  if (is_inexact(dtype)) return;
  throw DTypeError(std::string(ctx.name()) + ": needs a floating or complex dtype, not " +
                   std::string(name(dtype)) + "; cast with astype(" + ctx.op().inputs[i] + ", \"float64\")");
}

/// The shape of input `i`, a stack of matrices.
const Shape& matrices(const InferContext& ctx, std::size_t i = 0) {
  require_inexact(ctx, i);
  const Shape& shape = ctx.input(i).shape;
  if (shape.size() >= 2) return shape;
  throw ShapeError(std::string(ctx.name()) + ": needs at least 2 dimensions, shape " + to_string(shape) +
                   " has " + std::to_string(shape.size()));
}

/// As `matrices`; they must be square.
const Shape& square_matrices(const InferContext& ctx, std::size_t i = 0) {
  const Shape& shape = matrices(ctx, i);
  if (shape[shape.size() - 2] == shape.back()) return shape;
  throw ShapeError(std::string(ctx.name()) + ": the last two axes of shape " + to_string(shape) +
                   " differ in size; the matrices must be square");
}

/// `batch` followed by further axes.
Shape with_axes(Shape batch, std::initializer_list<std::int64_t> axes) {
  for (std::int64_t size : axes) batch.push_back(size);
  return batch;
}

void infer_same(InferContext& ctx) {
  const Shape shape = square_matrices(ctx);
  ctx.set_contiguous(0, shape, ctx.input(0).dtype);
}

void infer_det(InferContext& ctx) {
  ctx.set_contiguous(0, batch_shape(square_matrices(ctx)), ctx.input(0).dtype);
}

void infer_slogdet(InferContext& ctx) {
  infer_det(ctx);
  ctx.set_contiguous(1, batch_shape(ctx.input(0).shape), real_dtype(ctx.input(0).dtype));
}

void infer_solve(InferContext& ctx) {
  const Shape& a = square_matrices(ctx, 0);
  require_inexact(ctx, 1);
  const Shape& b = ctx.input(1).shape;
  const std::string shapes = std::string(ctx.name()) + ": shapes " + to_string(a) + " and " + to_string(b);
  if (b.empty()) throw ShapeError(shapes + " do not match: x2 needs at least 1 dimension");
  const std::size_t inner = b.size() == 1 ? 0 : b.size() - 2;
  if (a.back() != b[inner]) {
    throw ShapeError(shapes + " do not match: the matrices of x1 have " + std::to_string(a.back()) +
                     " rows, axis " + (b.size() == 1 ? "-1" : "-2") + " of x2 has size " +
                     std::to_string(b[inner]));
  }
  Shape shape = batch_shape(a);
  if (b.size() > 1) shape = broadcast_shapes(ctx.name(), shape, batch_shape(b));
  shape.push_back(a.back());
  if (b.size() > 1) shape.push_back(b.back());
  const DType dtype = promote(ctx.input(0).dtype, ctx.input(1).dtype);
  ctx.cast_input(0, dtype);
  ctx.cast_input(1, dtype);
  ctx.set_contiguous(0, shape, dtype);
}

void infer_qr(InferContext& ctx) {
  const Shape& shape = matrices(ctx);
  const auto& mode = ctx.attributes().get<std::string>(0);
  if (mode != "reduced" && mode != "complete") {
    throw ValueError(std::string(ctx.name()) + ": mode must be 'reduced' or 'complete', not '" + mode + "'");
  }
  const std::int64_t rows = shape[shape.size() - 2];
  const std::int64_t columns = shape.back();
  const std::int64_t inner = mode == "complete" ? rows : std::min(rows, columns);
  const Shape batch = batch_shape(shape);
  const DType dtype = ctx.input(0).dtype;
  ctx.set_contiguous(0, with_axes(batch, {rows, inner}), dtype);
  ctx.set_contiguous(1, with_axes(batch, {inner, columns}), dtype);
}

void infer_svd(InferContext& ctx) {
  const Shape& shape = matrices(ctx);
  const bool full = ctx.attributes().get<bool>(0);
  const std::int64_t rows = shape[shape.size() - 2];
  const std::int64_t columns = shape.back();
  const std::int64_t small = std::min(rows, columns);
  const Shape batch = batch_shape(shape);
  const DType dtype = ctx.input(0).dtype;
  ctx.set_contiguous(0, with_axes(batch, {rows, full ? rows : small}), dtype);
  ctx.set_contiguous(1, with_axes(batch, {small}), real_dtype(dtype));
  ctx.set_contiguous(2, with_axes(batch, {full ? columns : small, columns}), dtype);
}

void infer_svdvals(InferContext& ctx) {
  const Shape& shape = matrices(ctx);
  const std::int64_t small = std::min(shape[shape.size() - 2], shape.back());
  ctx.set_contiguous(0, with_axes(batch_shape(shape), {small}), real_dtype(ctx.input(0).dtype));
}

/// Output 0: a value for each row.
void set_eigenvalues(InferContext& ctx, DType dtype) {
  const Shape& shape = square_matrices(ctx);
  ctx.set_contiguous(0, with_axes(batch_shape(shape), {shape.back()}), dtype);
}

void infer_eigvalsh(InferContext& ctx) { set_eigenvalues(ctx, real_dtype(ctx.input(0).dtype)); }

void infer_eigh(InferContext& ctx) {
  infer_eigvalsh(ctx);
  const Shape shape = ctx.input(0).shape;
  ctx.set_contiguous(1, shape, ctx.input(0).dtype);
}

void infer_eigvals(InferContext& ctx) { set_eigenvalues(ctx, complex_dtype(ctx.input(0).dtype)); }

void infer_eig(InferContext& ctx) {
  infer_eigvals(ctx);
  const Shape shape = ctx.input(0).shape;
  ctx.set_contiguous(1, shape, complex_dtype(ctx.input(0).dtype));
}

/// Time of a decomposition that takes `factor` * rows * columns * min(rows, columns) floating operations a
/// matrix, at 5 a ns (small matrices are slower than what one core can do), 1 µs more for each matrix.
auto cost_of(double factor) {
  return [factor](std::span<const TensorMeta* const> inputs, std::span<const TensorMeta* const>) {
    const TensorMeta& x = *inputs[0];
    const auto rows = static_cast<double>(x.shape[x.shape.size() - 2]);
    const auto columns = static_cast<double>(x.shape.back());
    const auto count = static_cast<double>(numel(batch_shape(x.shape)));
    const double complex_factor = is_complex(x.dtype) ? 4.0 : 1.0;
    return count * (1000.0 + factor * complex_factor * rows * columns * std::min(rows, columns) / 5.0);
  };
}

double solve_cost_ns(std::span<const TensorMeta* const> inputs, std::span<const TensorMeta* const> outputs) {
  // Of the broadcast batch: each matrix is factorized for each right-hand side that it meets.
  const TensorMeta& result = *outputs[0];
  const auto n = static_cast<double>(inputs[0]->shape.back());
  const double columns = inputs[1]->rank() == 1 ? 1.0 : static_cast<double>(result.shape.back());
  const double count = static_cast<double>(result.numel()) / std::max(1.0, n * columns);
  const double complex_factor = is_complex(result.dtype) ? 4.0 : 1.0;
  return count * (1000.0 + complex_factor * n * n * (0.7 * n + 2.0 * columns) / 5.0);
}

const char kErrors[] =
    " Raises ShapeError below 2 dimensions and DTypeError for dtypes that are not floating.";
const char kSquareErrors[] =
    " Raises ShapeError below 2 dimensions and for matrices that are not square, DTypeError for dtypes that "
    "are "
    "not floating.";
const char kSingular[] = " Reading the result raises LinAlgError if a matrix is singular.";
const char kConverges[] =
    " Reading the result raises LinAlgError if a matrix has a nan or an infinity or the iteration does not "
    "converge.";
const char kSource[] =
    "\n\nArray API standard, linear algebra extension. Computed by LAPACK (the LAPACK Users' Guide, SIAM "
    "1999): ";

Op decomposition(std::string name, void (*infer)(InferContext&), double cost_factor, const std::string& text,
                 const char* routines) {
  Op op;
  op.name = std::move(name);
  op.inputs = {"x"};
  op.infer = infer;
  op.cost_ns = cost_of(cost_factor);
  op.doc = text + kSource + routines + ".";
  set_decomposition_derivative(op);
  return op;
}

void register_solvers(OpRegistry& registry) {
  Op cholesky = decomposition(
      "cholesky", infer_same, 0.3,
      std::string(
          "The Cholesky factor of Hermitian positive-definite matrices in the last two axes: lower L, x = "
          "L L^H, or upper U, x = U^H U.\n\nOnly that triangle of x is read. The result has the shape and "
          "dtype of x.") +
          kSquareErrors + " Reading the result raises LinAlgError if a matrix is not positive definite.",
      "potrf");
  cholesky.attributes = {{"upper", AttrKind::boolean, false}};
  cholesky.alias_mask = 1;
  registry.add(std::move(cholesky));

  registry.add(
      decomposition("det", infer_det, 0.7,
                    std::string("The determinants of the matrices in the last two axes.\n\nThe result "
                                "has the dtype of x; a 0 x 0 matrix has determinant 1.") +
                        kSquareErrors,
                    "getrf"));
  Op slogdet = decomposition(
      "slogdet", infer_slogdet, 0.7,
      std::string(
          "The signs of the determinants of the matrices in the last two axes and the logarithms of "
          "their absolute values.\n\nThe sign has the dtype of x, the logarithm the real dtype of its "
          "precision. A singular matrix has sign 0 and logarithm -infinity.") +
          kSquareErrors,
      "getrf");
  slogdet.outputs = 2;
  registry.add(std::move(slogdet));

  Op inv =
      decomposition("inv", infer_same, 2.0,
                    std::string("The inverses of the matrices in the last two axes.\n\nThe result has the "
                                "shape and dtype of x.") +
                        kSquareErrors + kSingular,
                    "getrf, getri");
  inv.alias_mask = 1;
  registry.add(std::move(inv));

  Op solve = decomposition(
      "solve", infer_solve, 0.0,
      std::string(
          "The solutions of x1 @ result = x2, for square matrices in the last two axes of x1.\n\nA 1-D x2 "
          "is one right-hand side for all matrices, else its last axis counts right-hand sides; axes in "
          "front of the last two broadcast. Dtypes are promoted. Raises ShapeError for matrices that are "
          "not square and sizes that do not match, DTypeError for dtypes that are not floating.") +
          kSingular,
      "getrf, getrs");
  solve.inputs = {"x1", "x2"};
  solve.saves_shapes = true;  // a right-hand side of one axis is a column
  solve.cost_ns = solve_cost_ns;
  solve.alias_mask = 2;
  solve.saves_shapes = true;
  registry.add(std::move(solve));

  Op qr = decomposition(
      "qr", infer_qr, 4.0,
      std::string(
          "Matrices Q with orthonormal columns and upper triangular R with x = Q R, for the matrices in "
          "the last two axes of x.\n\nmode: 'reduced' gives Q min(M, N) columns, 'complete' gives it M "
          "(both for M x N matrices). The diagonal of R is real, of any sign. The derivative needs M "
          "independent rows or N independent columns; that of 'complete' needs M <= N.") +
          kErrors + " Raises ValueError for another mode.",
      "geqrf, orgqr");
  qr.attributes = {{"mode", AttrKind::string, std::string("reduced")}};
  qr.outputs = 2;
  registry.add(std::move(qr));
}

void register_spectra(OpRegistry& registry) {
  Op svd = decomposition(
      "svd", infer_svd, 20.0,
      std::string(
          "The singular value decomposition x = U diag(S) Vh of the matrices in the last two axes of x.\n\n"
          "S has min(M, N) values of M x N matrices, in descending order and the real dtype of x's "
          "precision. U is M x M and Vh N x N; without full_matrices they have min(M, N) columns and "
          "rows. The derivative is that of functions of the vectors that depend neither on their signs or "
          "phases nor on columns of U and rows of Vh beyond min(M, N); it needs singular values that "
          "differ.") +
          kErrors + kConverges,
      "gesdd, or gesvd where that does not converge");
  svd.attributes = {{"full_matrices", AttrKind::boolean, true}};
  svd.outputs = 3;
  registry.add(std::move(svd));
  registry.add(decomposition("svdvals", infer_svdvals, 4.0,
                             std::string("The singular values of the matrices in the last two axes of x.\n\n"
                                         "In descending order, in the real dtype of x's precision.") +
                                 kErrors + kConverges,
                             "gesdd, or gesvd where that does not converge"));
  Op eigh = decomposition(
      "eigh", infer_eigh, 9.0,
      std::string(
          "Eigenvalues and eigenvectors of Hermitian matrices in the last two axes of x.\n\nOnly the lower "
          "triangle of x is read. The eigenvalues are in ascending order, in the real dtype of x's "
          "precision; the eigenvectors are orthonormal columns. The derivative is that of functions that "
          "do not depend on their signs or phases; it needs eigenvalues that differ.") +
          kSquareErrors + kConverges,
      "syevd, heevd");
  eigh.outputs = 2;
  registry.add(std::move(eigh));
  registry.add(
      decomposition("eigvalsh", infer_eigvalsh, 3.0,
                    std::string("The eigenvalues of Hermitian matrices in the last two axes of x.\n\n"
                                "Only the lower triangle of x is read. In ascending order, in the real "
                                "dtype of x's precision.") +
                        kSquareErrors + kConverges,
                    "syevd, heevd"));
  Op eig = decomposition(
      "eig", infer_eig, 25.0,
      std::string(
          "Eigenvalues and eigenvectors of the matrices in the last two axes of x.\n\nBoth are complex, of "
          "x's precision. The eigenvalues are in no particular order; the eigenvectors are columns of "
          "length 1. The derivative is that of functions that do not depend on their phases; it needs "
          "eigenvalues that differ.") +
          kSquareErrors + kConverges,
      "geev");
  eig.outputs = 2;
  registry.add(std::move(eig));
  registry.add(
      decomposition("eigvals", infer_eigvals, 10.0,
                    std::string("The eigenvalues of the matrices in the last two axes of x.\n\nComplex, "
                                "of x's precision, in no particular order.") +
                        kSquareErrors + kConverges,
                    "geev"));
}

}  // namespace

void register_decomposition(OpRegistry& registry) {
  register_solvers(registry);
  register_spectra(registry);
}

}  // namespace thalweg
