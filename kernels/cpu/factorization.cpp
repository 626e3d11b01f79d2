// factorization.cpp: the kernels of cholesky, det, slogdet, inv, solve and qr, on LAPACK.
//
// Tensors are row-major and LAPACK reads columns first, so it sees the transposed matrix: where that serves
// as well (the inverse of the transpose is the transpose of the inverse), nothing is transposed.
#include <cmath>
#include <string>

#include <thalweg/errors.h>

#include "kernels/cpu/lapack.h"
#include "kernels/cpu/matrix_batch.h"
#include "kernels/cpu/register.h"

namespace thalweg::cpu {
namespace {

using functors::Complex;

[[noreturn]] void throw_linalg(const KernelContext& ctx, const Shape& batch, std::int64_t index,
                               const std::string& text) {
  throw LinAlgError(std::string(ctx.op().name) + ": " + matrix_text(batch, index) + " " + text);
}

[[noreturn]] void throw_singular(const KernelContext& ctx, const Shape& batch, const MatrixFailure& failure) {
  throw_linalg(ctx, batch, failure.index,
               "is singular: pivot " + std::to_string(failure.info) + " of its LU factorization is 0");
}

double elements(std::int64_t rows, std::int64_t columns) {
  return static_cast<double>(rows) * static_cast<double>(columns);
}

// ---- cholesky

double real_part(float x) { return x; }
double real_part(double x) { return x; }
template <class T>
double real_part(Complex<T> x) {
  return x.real;
}

template <class T>
void run_cholesky(const KernelContext& ctx) {
  const MatrixBatch<T> matrices(ctx.input(0));
  const std::int64_t n = matrices.rows();
  const bool upper = ctx.attributes().get<bool>(0);
  const Lapack<T> lapack(ctx.op().name, {Routine::potrf}, elements(n, n));
  const auto failure = for_each_matrix(ctx, matrices.count(), 0, [&](std::int64_t index, Room) {
    T* out = ctx.output().as<T>() + index * n * n;
    copy_matrix(matrices[index], row_major(out, n, n));
    // The transpose of a Hermitian matrix is its conjugate: its lower factor, read row by row, is the upper
    // factor of the matrix.
    const std::int64_t info = lapack.potrf(upper ? 'L' : 'U', n, out);
    if (info != 0) return info;
    for (std::int64_t i = 0; i < n; ++i) {
      // A factor with a nan has one on the diagonal, and only some builds of potrf report it.
      if (std::isnan(real_part(out[i * n + i]))) return i + 1;
      std::fill(out + i * n + (upper ? 0 : i + 1), out + i * n + (upper ? i : n), T(0));
    }
    return std::int64_t{0};
  });
  if (!failure) return;
  throw_linalg(ctx, batch_of(ctx.input(0).shape()), failure->index,
               "is not positive definite: its leading minor of order " + std::to_string(failure->info) +
                   " is not positive");
}

void cholesky_kernel(const KernelContext& ctx) {
  if (ctx.output().numel() == 0) return;
  visit_inexact(ctx.output().dtype(), [&]<class T>() { run_cholesky<T>(ctx); });
}

// ---- det and slogdet

/// A product of numbers as mantissa * 2^exponent, which neither overflows nor underflows on the way.
template <class T>
class Product {
 public:
  void multiply(T factor) noexcept {
    mantissa_ = mantissa_ * factor;
    normalize(mantissa_);
  }
  T value() const noexcept { return scaled(mantissa_, exponent_); }

 private:
  static float scaled(float x, int exponent) noexcept { return std::ldexp(x, exponent); }
  static double scaled(double x, int exponent) noexcept { return std::ldexp(x, exponent); }
  template <class R>
  static Complex<R> scaled(Complex<R> x, int exponent) noexcept {
    return {std::ldexp(x.real, exponent), std::ldexp(x.imag, exponent)};
  }
  template <class R>
  static R size(R x) noexcept {
    return std::abs(x);
  }
  template <class R>
  static R size(Complex<R> x) noexcept {
    return std::max(std::abs(x.real), std::abs(x.imag));
  }
  void normalize(T x) noexcept {
    const auto largest = size(x);
    if (largest == 0 || !std::isfinite(largest)) return;
    int power = 0;
    std::frexp(largest, &power);
    mantissa_ = scaled(x, -power);
    exponent_ += power;
  }

  T mantissa_ = T(1);
  int exponent_ = 0;
};

template <class R>
R magnitude(R x) noexcept {
  return std::abs(x);
}
template <class R>
R magnitude(Complex<R> x) noexcept {
  return std::hypot(x.real, x.imag);
}

template <class R>
R sign_of(R x, R size) noexcept {
  return x / size;
}
template <class R>
Complex<R> sign_of(Complex<R> x, R size) noexcept {
  return {x.real / size, x.imag / size};
}

/// Calls `use(index, lu, odd)` with the diagonal-bearing LU factors of each matrix.
template <class T, class Use>
void for_each_lu(const KernelContext& ctx, Use use) {
  const MatrixBatch<T> matrices(ctx.input(0));
  const std::int64_t n = matrices.rows();
  const Lapack<T> lapack(ctx.op().name, {Routine::getrf}, elements(n, n));
  const std::int64_t bytes = room_for<T>(n * n) + room_for<std::int64_t>(n) + margin_for<T>(n);
  for_each_matrix(ctx, matrices.count(), bytes, [&](std::int64_t index, Room room) {
    T* lu = room.take<T>(n * n);
    auto* pivots = room.take<std::int64_t>(n);
    copy_matrix(matrices[index], row_major(lu, n, n));
    // A zero pivot is no failure here: the determinant is 0.
    if (n > 0) lapack.getrf(n, lu, pivots);
    use(index, lu, n, lapack.is_odd(n, pivots));
    return std::int64_t{0};
  });
}

void det_kernel(const KernelContext& ctx) {
  if (ctx.output().numel() == 0) return;
  visit_inexact(ctx.output().dtype(), [&]<class T>() {
    for_each_lu<T>(ctx, [&](std::int64_t index, const T* lu, std::int64_t n, bool odd) {
      Product<T> product;
      for (std::int64_t i = 0; i < n; ++i) product.multiply(lu[i * n + i]);
      ctx.output().as<T>()[index] = odd ? -product.value() : product.value();
    });
  });
}

void slogdet_kernel(const KernelContext& ctx) {
  if (ctx.output().numel() == 0) return;
  visit_inexact(ctx.output().dtype(), [&]<class T>() {
    using Real = typename RealPart<T>::Type;
    for_each_lu<T>(ctx, [&](std::int64_t index, const T* lu, std::int64_t n, bool odd) {
      T sign = T(odd ? -1 : 1);
      Real logarithm = 0;
      bool zero = false;
      for (std::int64_t i = 0; i < n; ++i) {
        const Real size = magnitude(lu[i * n + i]);
        zero = zero || size == 0;
        sign = sign * sign_of(lu[i * n + i], size);
        logarithm += std::log(size);
      }
      ctx.output(0).as<T>()[index] = zero ? T(0) : sign;
      ctx.output(1).as<Real>()[index] = zero ? -std::numeric_limits<Real>::infinity() : logarithm;
    });
  });
}

// ---- inv

template <class T>
void run_inv(const KernelContext& ctx) {
  const MatrixBatch<T> matrices(ctx.input(0));
  const std::int64_t n = matrices.rows();
  const Lapack<T> lapack(ctx.op().name, {Routine::getrf, Routine::getri}, elements(n, n));
  const WorkSize work_size = lapack.getri_work(n);
  const std::int64_t bytes = room_for<std::int64_t>(n) + room_for<T>(work_size) + margin_for<T>(n);
  const auto failure = for_each_matrix(ctx, matrices.count(), bytes, [&](std::int64_t index, Room room) {
    T* out = ctx.output().as<T>() + index * n * n;
    auto* pivots = room.take<std::int64_t>(n);
    copy_matrix(matrices[index], row_major(out, n, n));
    const std::int64_t info = lapack.getrf(n, out, pivots);
    return info != 0 ? info : lapack.getri(n, out, pivots, room.take_work<T>(work_size));
  });
  if (failure) throw_singular(ctx, batch_of(ctx.input(0).shape()), *failure);
}

void inv_kernel(const KernelContext& ctx) {
  if (ctx.output().numel() == 0) return;
  visit_inexact(ctx.output().dtype(), [&]<class T>() { run_inv<T>(ctx); });
}

// ---- solve

/// The right-hand sides as a matrices of matrices: a 1-D one is a column for all.
TensorMeta right_side(const TensorView& view) {
  TensorMeta meta = *view.meta;
  if (meta.rank() == 1) {
    meta.shape.push_back(1);
    meta.strides.push_back(1);
  }
  return meta;
}

template <class T>
void run_solve(const KernelContext& ctx) {
  const TensorMeta right = right_side(ctx.input(1));
  const Shape batch = broadcast_shapes(ctx.op().name, batch_of(ctx.input(0).shape()), batch_of(right.shape));
  const MatrixBatch<T> a(ctx.input(0), batch);
  const MatrixBatch<T> b({ctx.input(1).data, &right}, batch);
  const std::int64_t n = a.rows();
  const std::int64_t columns = b.columns();
  const Lapack<T> lapack(ctx.op().name, {Routine::getrf, Routine::getrs},
                         std::max(elements(n, n), elements(n, columns)));
  const std::int64_t bytes = room_for<T>(n * n) + room_for<std::int64_t>(n) +
                             room_for<T>(columns > 1 ? n * columns : 0) + margin_for<T>(n);
  const auto failure = for_each_matrix(ctx, a.count(), bytes, [&](std::int64_t index, Room room) {
    T* out = ctx.output().as<T>() + index * n * columns;
    T* lu = room.take<T>(n * n);
    auto* pivots = room.take<std::int64_t>(n);
    // One column lies the same in both orders.
    T* x = columns > 1 ? room.take<T>(n * columns) : out;
    copy_matrix(a[index], row_major(lu, n, n));
    copy_matrix(b[index], column_major(x, n, columns));
    const std::int64_t info = lapack.getrf(n, lu, pivots);
    if (info != 0) return info;
    lapack.getrs_transposed(n, columns, lu, pivots, x);
    if (columns > 1) copy_matrix<T>({x, n, columns, 1, n}, row_major(out, n, columns));
    return std::int64_t{0};
  });
  if (failure) throw_singular(ctx, batch, *failure);
}

void solve_kernel(const KernelContext& ctx) {
  if (ctx.output().numel() == 0) return;
  visit_inexact(ctx.output().dtype(), [&]<class T>() { run_solve<T>(ctx); });
}

// ---- qr

template <class T>
void run_qr(const KernelContext& ctx) {
  const MatrixBatch<T> matrices(ctx.input(0));
  const std::int64_t rows = matrices.rows();
  const std::int64_t columns = matrices.columns();
  const std::int64_t reflectors = std::min(rows, columns);
  const std::int64_t q_columns = ctx.output(0).shape().back();
  const std::int64_t r_rows = q_columns;
  // Q grows in the first columns of what holds the reflectors.
  const std::int64_t width = std::max(columns, q_columns);
  const Lapack<T> lapack(ctx.op().name, {Routine::geqrf, Routine::orgqr}, elements(rows, width));
  const WorkSize factor_work = lapack.geqrf_work(rows, columns);
  const WorkSize q_work = lapack.orgqr_work(rows, q_columns, reflectors);
  const WorkSize work_size{.work = std::max(factor_work.work, q_work.work)};
  const std::int64_t bytes = room_for<T>(rows * width) + room_for<T>(reflectors) + room_for<T>(work_size) +
                             margin_for<T>(std::max(rows, width));
  for_each_matrix(ctx, matrices.count(), bytes, [&](std::int64_t index, Room room) {
    T* a = room.take<T>(rows * width);
    T* tau = room.take<T>(reflectors);
    const Work<T> work = room.take_work<T>(work_size);
    T* q = ctx.output(0).as<T>() + index * rows * q_columns;
    T* r = ctx.output(1).as<T>() + index * r_rows * columns;
    copy_matrix(matrices[index], column_major(a, rows, columns));
    lapack.geqrf(rows, columns, a, tau, work);
    copy_matrix<T>({a, r_rows, columns, 1, rows}, row_major(r, r_rows, columns));
    for (std::int64_t i = 0; i < r_rows; ++i) {
      std::fill_n(r + i * columns, std::min(i, columns), T(0));
    }
    lapack.orgqr(rows, q_columns, reflectors, a, tau, work);
    copy_matrix<T>({a, rows, q_columns, 1, rows}, row_major(q, rows, q_columns));
    return std::int64_t{0};
  });
}

void qr_kernel(const KernelContext& ctx) {
  const TensorView& q = ctx.output(0);
  if (q.numel() == 0) return;  // then R is empty too, or has no rows
  visit_inexact(q.dtype(), [&]<class T>() {
    if (ctx.input(0).numel() != 0) return run_qr<T>(ctx);
    // No columns: any basis will do.
    const std::int64_t rows = q.shape()[q.rank() - 2];
    const std::int64_t columns = q.shape().back();
    for (std::int64_t start = 0; start < q.numel(); start += rows * columns) {
      fill_identity(row_major(q.as<T>() + start, rows, columns));
    }
  });
}

}  // namespace

void register_factorization_kernels(KernelRegistry& registry) {
  registry.add("cholesky", DeviceType::cpu, cholesky_kernel);
  registry.add("det", DeviceType::cpu, det_kernel);
  registry.add("slogdet", DeviceType::cpu, slogdet_kernel);
  registry.add("inv", DeviceType::cpu, inv_kernel);
  registry.add("solve", DeviceType::cpu, solve_kernel);
  registry.add("qr", DeviceType::cpu, qr_kernel);
}

}  // namespace thalweg::cpu
