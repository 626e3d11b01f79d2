// lapack.h: LAPACK's routines in the OpenBLAS that blas.h opens, one thread per call.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "kernels/complex_number.h"

namespace thalweg::cpu {

/// The routines in use. `orgqr` stands for ungqr of complex matrices, `syevd` for heevd.
enum class Routine : std::uint8_t { potrf, getrf, getrs, getri, geqrf, orgqr, gesdd, gesvd, syevd, geev };
inline constexpr int kRoutineCount = 10;

template <class T>
struct RealPart {
  using Type = T;
};
template <class T>
struct RealPart<functors::Complex<T>> {
  using Type = T;
};

/// How much memory a routine needs beside its matrices, in elements.
struct WorkSize {
  std::int64_t work = 0;
  std::int64_t real = 0;
  std::int64_t integers = 0;
};

/// That memory. Integers take up to 64 bits each; LAPACK may use 32 of them.
template <class T>
struct Work {
  WorkSize size;
  T* work = nullptr;
  typename RealPart<T>::Type* real = nullptr;
  std::int64_t* integers = nullptr;
};

/// LAPACK for matrices of T: float, double or Complex of one of them. Matrices are column-major and without
/// gaps: columns are `rows` apart. Methods return LAPACK's info: 0, or a positive number where the routine
/// fails. `*_work` tells the memory that a routine needs. Names and formulas are those of the LAPACK Users'
/// Guide (Anderson et al., 3rd edition, SIAM 1999). Any thread.
template <class T>
class Lapack {
 public:
  using Real = typename RealPart<T>::Type;
  using Size = std::int64_t;

  /// Opens OpenBLAS and finds `routines`. Throws EngineError, led by `op`, if there is no OpenBLAS, if it
  /// lacks one of them, or if its integers cannot count `elements`, the most that one matrix or workspace
  /// has.
  Lapack(std::string_view op, std::initializer_list<Routine> routines, double elements);

  /// a = U^H U in the upper ('U') or L L^H in the lower ('L') triangle; the other one is neither read nor
  /// written. info > 0: not positive definite.
  Size potrf(char triangle, Size n, T* a) const noexcept;

  /// a = P L U. info > 0: that pivot is zero. `pivots` has n integers, for getrs, getri and swaps.
  Size getrf(Size n, T* a, std::int64_t* pivots) const noexcept;
  /// True if the pivots of getrf exchange rows an odd number of times.
  bool is_odd(Size n, const std::int64_t* pivots) const noexcept;
  /// Solves a^T x = b, from the factors of a. b has n rows and becomes x.
  void getrs_transposed(Size n, Size columns, const T* a, const std::int64_t* pivots, T* b) const noexcept;
  /// The inverse, from the factors.
  WorkSize getri_work(Size n) const noexcept;
  Size getri(Size n, T* a, const std::int64_t* pivots, const Work<T>& work) const noexcept;

  /// R in the upper triangle and Householder vectors below it; tau has min(rows, columns) elements.
  WorkSize geqrf_work(Size rows, Size columns) const noexcept;
  void geqrf(Size rows, Size columns, T* a, T* tau, const Work<T>& work) const noexcept;
  /// The first `columns` columns of Q, from `reflectors` Householder vectors in the first columns of a.
  WorkSize orgqr_work(Size rows, Size columns, Size reflectors) const noexcept;
  void orgqr(Size rows, Size columns, Size reflectors, T* a, const T* tau,
             const Work<T>& work) const noexcept;

  /// a = u diag(s) vh. job: 'A' all of u and vh, 'S' their first min(rows, columns) columns and rows, 'N'
  /// none. Overwrites a. gesdd divides and conquers; gesvd iterates, slower, but converges where gesdd may
  /// not.
  WorkSize gesdd_work(char job, Size rows, Size columns) const noexcept;
  Size gesdd(char job, Size rows, Size columns, T* a, Real* s, T* u, T* vh,
             const Work<T>& work) const noexcept;
  WorkSize gesvd_work(char job, Size rows, Size columns) const noexcept;
  Size gesvd(char job, Size rows, Size columns, T* a, Real* s, T* u, T* vh,
             const Work<T>& work) const noexcept;

  /// Ascending eigenvalues w of the Hermitian matrix in one triangle of a; job 'V': a becomes the
  /// eigenvectors, one a column; 'N': a is overwritten.
  WorkSize syevd_work(char job, char triangle, Size n) const noexcept;
  Size syevd(char job, char triangle, Size n, T* a, Real* w, const Work<T>& work) const noexcept;

  /// Eigenvalues of any matrix and, with job 'V', right eigenvectors. Overwrites a. w has n elements of a
  /// complex T; of a real T 2 n: the real parts, then the imaginary ones, and vectors of a conjugate pair are
  /// two columns, the real and the imaginary part of the first of the two.
  WorkSize geev_work(char job, Size n) const noexcept;
  Size geev(char job, Size n, T* a, T* w, T* vectors, const Work<T>& work) const noexcept;

 private:
  template <class... Args>
  Size call(Routine routine, const Args&... args) const noexcept;
  /// Number i of what LAPACK wrote into an array of integers, which are 32 or 64 bits wide.
  Size integer_at(const std::int64_t* integers, Size i) const noexcept;
  Size svd(Routine routine, char job, Size rows, Size columns, T* a, Real* s, T* u, T* vh,
           const Work<T>& work) const noexcept;
  WorkSize svd_work(Routine routine, char job, Size rows, Size columns) const noexcept;

  void* const* entries_;
  bool wide_ = false;
};

extern template class Lapack<float>;
extern template class Lapack<double>;
extern template class Lapack<functors::Complex<float>>;
extern template class Lapack<functors::Complex<double>>;

}  // namespace thalweg::cpu
