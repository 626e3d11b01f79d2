// blas.h: the matrix products of an OpenBLAS that is opened at the first use, one thread per call. Large
// float32 ones are oneDNN's (onednn.h).
#pragma once

#include <cstdint>
#include <mutex>
#include <string_view>

#include "kernels/complex_number.h"

namespace thalweg::cpu {

/// A matrix that BLAS can read as it lies: one of its strides is 1 (or does not matter), the other,
/// `leading`, is large enough.
template <class T>
struct BlasMatrix {
  const T* data;
  std::int64_t leading;
  bool transposed;  ///< rows are 1 apart, columns `leading`
};

/// A vector of elements `stride` apart; the stride is positive.
template <class T>
struct BlasVector {
  const T* data;
  std::int64_t stride;
};

struct GemmSize {
  std::int64_t m, n, k;
};

/// Loads OpenBLAS, and oneDNN where there is one, unless that has happened. Looks for, in this order: the
/// file named by $THALWEG_BLAS; the pthread build beside the C library (Debian keeps it in
/// openblas-pthread/); libopenblas.so.0 on the loader's path; an OpenBLAS of NumPy's or SciPy's wheel that
/// the process has loaded. Throws EngineError, led by `op`, naming what to install if there is none. Any
/// thread; a failed attempt is repeated by the next call.
void load_blas(std::string_view op);

/// The function of the loaded library that has this name in Debian's builds, or nullptr; and whether the
/// integers that functions take are 64 bits wide. `load_blas` has succeeded.
void* blas_symbol(const char* name);
bool blas_integers_are_wide() noexcept;

/// To be held during a call of any function of the library. Locked where the library cannot be called by two
/// threads at once, else empty.
std::unique_lock<std::mutex> blas_call_lock();

/// Rows `result_leading` apart of a row-major (m, n) result = a (m, k) times b (k, n). `load_blas` has
/// succeeded; sizes and strides fit 31 bits.
void gemm(GemmSize size, BlasMatrix<float> a, BlasMatrix<float> b, float* result,
          std::int64_t result_leading) noexcept;
void gemm(GemmSize size, BlasMatrix<double> a, BlasMatrix<double> b, double* result,
          std::int64_t result_leading) noexcept;
void gemm(GemmSize size, BlasMatrix<functors::Complex<float>> a, BlasMatrix<functors::Complex<float>> b,
          functors::Complex<float>* result, std::int64_t result_leading) noexcept;
void gemm(GemmSize size, BlasMatrix<functors::Complex<double>> a, BlasMatrix<functors::Complex<double>> b,
          functors::Complex<double>* result, std::int64_t result_leading) noexcept;

/// Contiguous result (rows) = a (rows, columns) times x (columns), under the same conditions.
void gemv(std::int64_t rows, std::int64_t columns, BlasMatrix<float> a, BlasVector<float> x,
          float* result) noexcept;
void gemv(std::int64_t rows, std::int64_t columns, BlasMatrix<double> a, BlasVector<double> x,
          double* result) noexcept;
void gemv(std::int64_t rows, std::int64_t columns, BlasMatrix<functors::Complex<float>> a,
          BlasVector<functors::Complex<float>> x, functors::Complex<float>* result) noexcept;
void gemv(std::int64_t rows, std::int64_t columns, BlasMatrix<functors::Complex<double>> a,
          BlasVector<functors::Complex<double>> x, functors::Complex<double>* result) noexcept;

}  // namespace thalweg::cpu
