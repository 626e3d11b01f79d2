// spectrum.cpp: the kernels of eigh, eigvalsh, eig, eigvals, svd and svdvals, on LAPACK.
//
// Tensors are row-major and LAPACK reads columns first, so it sees the transposed matrix. The decomposition
// x = u diag(s) vh of the transpose is that of the matrix with u and vh exchanged, each transposed: read row
// by row they are what is wanted.
#include <cmath>
#include <string>

#include <thalweg/errors.h>

#include "kernels/cpu/lapack.h"
#include "kernels/cpu/matrix_batch.h"
#include "kernels/cpu/register.h"

namespace thalweg::cpu {
namespace {

using functors::Complex;

/// What a body returns for a matrix that LAPACK is not given: some routines never end on a nan.
constexpr std::int64_t kNotFinite = -2;

bool is_finite(float x) noexcept { return std::isfinite(x); }
bool is_finite(double x) noexcept { return std::isfinite(x); }
template <class T>
bool is_finite(Complex<T> x) noexcept {
  return std::isfinite(x.real) && std::isfinite(x.imag);
}

template <class T>
bool all_finite(const T* data, std::int64_t count) noexcept {
  return std::all_of(data, data + count, [](T x) { return is_finite(x); });
}

void check(const KernelContext& ctx, const std::optional<MatrixFailure>& failure) {
  if (!failure) return;
  const std::string matrix = matrix_text(batch_of(ctx.input(0).shape()), failure->index);
  throw LinAlgError(std::string(ctx.op().name) + ": " +
                    (failure->info == kNotFinite
                         ? matrix + " contains nan or infinity and has no decomposition"
                         : "the iteration for " + matrix + " did not converge (LAPACK's info is " +
                               std::to_string(failure->info) + ")"));
}

double elements(std::int64_t rows, std::int64_t columns) {
  return static_cast<double>(rows) * static_cast<double>(columns);
}

// ---- eigh

/// Of a Hermitian matrix the lower triangle counts: that is the upper one of what LAPACK sees.
template <class T>
void run_eigh(const KernelContext& ctx, bool with_vectors) {
  using Real = typename RealPart<T>::Type;
  const MatrixBatch<T> matrices(ctx.input(0));
  const std::int64_t n = matrices.rows();
  const char job = with_vectors ? 'V' : 'N';
  const Lapack<T> lapack(ctx.op().name, {Routine::syevd}, 2 * elements(n, n));
  const WorkSize work_size = lapack.syevd_work(job, 'U', n);
  const std::int64_t bytes = room_for<T>(n * n) + room_for<T>(work_size) + margin_for<T>(n);
  check(ctx, for_each_matrix(ctx, matrices.count(), bytes, [&](std::int64_t index, Room room) {
          T* a = room.take<T>(n * n);
          copy_matrix(matrices[index], row_major(a, n, n));
          for (std::int64_t i = 0; i < n; ++i) {
            if (!all_finite(a + i * n, i + 1)) return kNotFinite;
          }
          Real* values = ctx.output(0).as<Real>() + index * n;
          const std::int64_t info = lapack.syevd(job, 'U', n, a, values, room.take_work<T>(work_size));
          if (info != 0 || !with_vectors) return info;
          // LAPACK saw the conjugate of the matrix, whose eigenvectors are the conjugate ones.
          copy_matrix<T>({a, n, n, 1, n}, row_major(ctx.output(1).as<T>() + index * n * n, n, n),
                         [](const T& x) { return conjugate(x); });
          return std::int64_t{0};
        }));
}

void eigh_kernel(const KernelContext& ctx) {
  if (ctx.input(0).numel() == 0) return;
  visit_inexact(ctx.input(0).dtype(), [&]<class T>() { run_eigh<T>(ctx, true); });
}

void eigvalsh_kernel(const KernelContext& ctx) {
  if (ctx.input(0).numel() == 0) return;
  visit_inexact(ctx.input(0).dtype(), [&]<class T>() { run_eigh<T>(ctx, false); });
}

// ---- eig

/// Eigenvalues as complex numbers. w: n real parts, then n imaginary ones.
template <class R>
void write_eigenvalues(std::int64_t n, const R* w, Complex<R>* out) noexcept {
  for (std::int64_t i = 0; i < n; ++i) out[i] = {w[i], w[n + i]};
}
template <class R>
void write_eigenvalues(std::int64_t n, const Complex<R>* w, Complex<R>* out) noexcept {
  std::copy_n(w, n, out);
}

/// Row-major eigenvectors from column-major ones. Of a real matrix, columns j and j + 1 are the parts of the
/// vectors of a conjugate pair, whose first eigenvalue has the positive imaginary part.
template <class R>
void write_eigenvectors(std::int64_t n, const R* w, const R* vectors, Complex<R>* out) noexcept {
  for (std::int64_t j = 0; j < n; ++j) {
    const R* real = vectors + j * n;
    if (w[n + j] == 0) {
      for (std::int64_t i = 0; i < n; ++i) out[i * n + j] = {real[i], R(0)};
      continue;
    }
    const R* imag = real + n;
    for (std::int64_t i = 0; i < n; ++i) {
      out[i * n + j] = {real[i], imag[i]};
      out[i * n + j + 1] = {real[i], -imag[i]};
    }
    ++j;
  }
}
template <class R>
void write_eigenvectors(std::int64_t n, const Complex<R>*, const Complex<R>* vectors,
                        Complex<R>* out) noexcept {
  copy_matrix<Complex<R>>({vectors, n, n, 1, n}, row_major(out, n, n));
}

template <class T>
void run_eig(const KernelContext& ctx, bool with_vectors) {
  using Number = Complex<typename RealPart<T>::Type>;
  const MatrixBatch<T> matrices(ctx.input(0));
  const std::int64_t n = matrices.rows();
  const char job = with_vectors ? 'V' : 'N';
  const Lapack<T> lapack(ctx.op().name, {Routine::geev}, elements(n, n));
  const WorkSize work_size = lapack.geev_work(job, n);
  const std::int64_t vector_size = with_vectors ? n * n : 1;
  const std::int64_t bytes = room_for<T>(n * n) + room_for<T>(2 * n) + room_for<T>(vector_size) +
                             room_for<T>(work_size) + margin_for<T>(n);
  check(ctx, for_each_matrix(ctx, matrices.count(), bytes, [&](std::int64_t index, Room room) {
          T* a = room.take<T>(n * n);
          T* w = room.take<T>(2 * n);
          T* vectors = room.take<T>(vector_size);
          copy_matrix(matrices[index], column_major(a, n, n));
          if (!all_finite(a, n * n)) return kNotFinite;
          const std::int64_t info = lapack.geev(job, n, a, w, vectors, room.take_work<T>(work_size));
          if (info != 0) return info;
          write_eigenvalues(n, w, ctx.output(0).as<Number>() + index * n);
          if (with_vectors) write_eigenvectors(n, w, vectors, ctx.output(1).as<Number>() + index * n * n);
          return std::int64_t{0};
        }));
}

void eig_kernel(const KernelContext& ctx) {
  if (ctx.input(0).numel() == 0) return;
  visit_inexact(ctx.input(0).dtype(), [&]<class T>() { run_eig<T>(ctx, true); });
}

void eigvals_kernel(const KernelContext& ctx) {
  if (ctx.input(0).numel() == 0) return;
  visit_inexact(ctx.input(0).dtype(), [&]<class T>() { run_eig<T>(ctx, false); });
}

// ---- svd

/// Outputs U, S and Vh, or S alone.
template <class T>
void run_svd(const KernelContext& ctx, char job) {
  using Real = typename RealPart<T>::Type;
  const MatrixBatch<T> matrices(ctx.input(0));
  // Rows and columns of what LAPACK sees.
  const std::int64_t rows = matrices.columns();
  const std::int64_t columns = matrices.rows();
  const std::int64_t small = std::min(rows, columns);
  const bool with_vectors = job != 'N';
  const std::int64_t u_size = with_vectors ? rows * (job == 'A' ? rows : small) : 0;
  const std::int64_t vh_rows = job == 'A' ? columns : small;
  const std::int64_t vh_size = with_vectors ? vh_rows * columns : 0;
  // LAPACK reads rows of vh, which is not safe at the end of a tensor.
  const std::int64_t vh_room = functors::kIsComplex<T> && with_vectors ? vh_size : 0;
  const Lapack<T> lapack(ctx.op().name, {Routine::gesdd, Routine::gesvd},
                         4 * elements(std::max(rows, columns), job == 'A' ? std::max(rows, columns) : small));
  const WorkSize fast = lapack.gesdd_work(job, rows, columns);
  const WorkSize slow = lapack.gesvd_work(job, rows, columns);
  const WorkSize work_size{std::max(fast.work, slow.work), std::max(fast.real, slow.real), fast.integers};
  const std::int64_t bytes = room_for<T>(rows * columns) + room_for<T>(vh_room) + room_for<T>(work_size) +
                             margin_for<T>(std::max(rows, columns));
  check(ctx, for_each_matrix(ctx, matrices.count(), bytes, [&](std::int64_t index, Room room) {
          T* a = room.take<T>(rows * columns);
          T* vh = room.take<T>(vh_room);
          const Work<T> work = room.take_work<T>(work_size);
          T* u = with_vectors ? ctx.output(2).as<T>() + index * u_size : nullptr;
          T* vh_out = with_vectors ? ctx.output(0).as<T>() + index * vh_size : nullptr;
          if (vh_room == 0) vh = vh_out;
          Real* s = ctx.output(with_vectors ? 1 : 0).as<Real>() + index * small;
          copy_matrix(matrices[index], row_major(a, columns, rows));
          if (!all_finite(a, rows * columns)) return kNotFinite;
          std::int64_t info = lapack.gesdd(job, rows, columns, a, s, u, vh, work);
          if (info != 0) {
            copy_matrix(matrices[index], row_major(a, columns, rows));
            info = lapack.gesvd(job, rows, columns, a, s, u, vh, work);
          }
          if (vh != vh_out) std::copy_n(vh, vh_size, vh_out);
          return info;
        }));
}

void svd_kernel(const KernelContext& ctx) {
  const TensorView& x = ctx.input(0);
  visit_inexact(x.dtype(), [&]<class T>() {
    if (x.numel() != 0) return run_svd<T>(ctx, ctx.attributes().get<bool>(0) ? 'A' : 'S');
    // No singular value: any bases will do.
    for (std::size_t i : {0, 2}) {
      const TensorView& out = ctx.output(i);
      const std::int64_t rows = out.shape()[out.rank() - 2];
      const std::int64_t columns = out.shape().back();
      for (std::int64_t start = 0; start < out.numel(); start += rows * columns) {
        fill_identity(row_major(out.as<T>() + start, rows, columns));
      }
    }
  });
}

void svdvals_kernel(const KernelContext& ctx) {
  if (ctx.input(0).numel() == 0) return;
  visit_inexact(ctx.input(0).dtype(), [&]<class T>() { run_svd<T>(ctx, 'N'); });
}

}  // namespace

void register_spectrum_kernels(KernelRegistry& registry) {
  registry.add("eigh", DeviceType::cpu, eigh_kernel);
  registry.add("eigvalsh", DeviceType::cpu, eigvalsh_kernel);
  registry.add("eig", DeviceType::cpu, eig_kernel);
  registry.add("eigvals", DeviceType::cpu, eigvals_kernel);
  registry.add("svd", DeviceType::cpu, svd_kernel);
  registry.add("svdvals", DeviceType::cpu, svdvals_kernel);
}

}  // namespace thalweg::cpu
