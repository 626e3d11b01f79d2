// lapack.cpp: finds LAPACK's routines and calls them as Fortran does: everything by address, and the lengths
// of character arguments behind all others.
#include "kernels/cpu/lapack.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <mutex>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include <thalweg/errors.h>

#include "kernels/cpu/blas.h"

namespace thalweg::cpu {
namespace {

using functors::Complex;

constexpr const char* kRealNames[kRoutineCount] = {"potrf", "getrf", "getrs", "getri", "geqrf",
                                                   "orgqr", "gesdd", "gesvd", "syevd", "geev"};
constexpr const char* kComplexNames[kRoutineCount] = {"potrf", "getrf", "getrs", "getri", "geqrf",
                                                      "ungqr", "gesdd", "gesvd", "heevd", "geev"};

template <class T>
constexpr bool kComplex = functors::kIsComplex<T>;

/// The letter that LAPACK's names begin with.
template <class T>
constexpr char kLetter = std::is_same_v<T, float>            ? 's'
                         : std::is_same_v<T, double>         ? 'd'
                         : std::is_same_v<T, Complex<float>> ? 'c'
                                                             : 'z';

template <class T>
std::string routine_name(int routine) {
  return kLetter<T> + std::string(kComplex<T> ? kComplexNames[routine] : kRealNames[routine]) + "_";
}

/// The routines of one element type; nullptr for those that the library lacks.
template <class T>
void* const* find_entries() {
  static void* entries[kRoutineCount];
  static std::once_flag found;
  std::call_once(found, [] {
    for (int i = 0; i < kRoutineCount; ++i) entries[i] = blas_symbol(routine_name<T>(i).c_str());
  });
  return entries;
}

// What a Fortran routine is given for an argument: numbers and characters by address, arrays as they are.
template <class Int>
const void* address(const Int& value) {
  return &value;
}
template <class T>
const void* address(T* const& array) {
  return array;
}

template <class Int, class Arg>
auto stored(const Arg& value) {
  if constexpr (std::is_same_v<Arg, std::int64_t>) {
    return static_cast<Int>(value);
  } else {
    return value;
  }
}

template <class>
using Address = const void*;
template <std::size_t>
using Length = std::size_t;

template <class... Args, std::size_t... characters>
void call_fortran(void* entry, std::index_sequence<characters...>, const Args&... args) {
  using Function = void (*)(Address<Args>..., Length<characters>...);
  reinterpret_cast<Function>(entry)(address(args)..., (void(characters), std::size_t{1})...);
}

/// Calls a routine whose last argument is info; returns that.
template <class Int, class... Args>
std::int64_t call_with(void* entry, const Args&... args) {
  constexpr std::size_t characters = (std::size_t{0} + ... + (std::is_same_v<Args, char> ? 1 : 0));
  const std::tuple values(stored<Int>(args)...);
  Int info = 0;
  std::apply(
      [&](const auto&... each) {
        call_fortran(entry, std::make_index_sequence<characters>{}, each..., &info);
      },
      values);
  return info;
}

/// A length that a workspace query gave; a float holds one above 2^24 rounded.
std::int64_t length(double reported) {
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(reported * (1 + 0x1p-23))));
}
template <class T>
std::int64_t length(const Complex<T>& reported) {
  return length(static_cast<double>(reported.real));
}

constexpr std::int64_t kQuery = -1;

}  // namespace

template <class T>
Lapack<T>::Lapack(std::string_view op, std::initializer_list<Routine> routines, double elements) {
  load_blas(op);
  entries_ = find_entries<T>();
  wide_ = blas_integers_are_wide();
  for (Routine routine : routines) {
    const int index = static_cast<int>(routine);
    if (entries_[index] != nullptr) continue;
    throw EngineError(std::string(op) + ": the OpenBLAS in use has no " + routine_name<T>(index) +
                      "; use one that is built with LAPACK (Debian, Ubuntu: libopenblas0-pthread)");
  }
  if (wide_ || elements <= std::numeric_limits<int>::max()) return;
  throw EngineError(std::string(op) +
                    ": the matrix is too large for an OpenBLAS with 32-bit integers; let "
                    "THALWEG_BLAS name one with 64-bit ones (Debian, Ubuntu: libopenblas64-0-pthread)");
}

template <class T>
template <class... Args>
std::int64_t Lapack<T>::call(Routine routine, const Args&... args) const noexcept {
  void* entry = entries_[static_cast<int>(routine)];
  const auto lock = blas_call_lock();
  return wide_ ? call_with<std::int64_t>(entry, args...) : call_with<std::int32_t>(entry, args...);
}

namespace {

/// The distance of columns; LAPACK takes none below 1.
std::int64_t leading(std::int64_t rows) { return std::max<std::int64_t>(1, rows); }

}  // namespace

template <class T>
std::int64_t Lapack<T>::integer_at(const std::int64_t* integers, Size i) const noexcept {
  if (wide_) return integers[i];
  std::int32_t narrow = 0;
  std::memcpy(&narrow, reinterpret_cast<const char*>(integers) + i * Size{sizeof narrow}, sizeof narrow);
  return narrow;
}

template <class T>
std::int64_t Lapack<T>::potrf(char triangle, Size n, T* a) const noexcept {
  return call(Routine::potrf, triangle, n, a, leading(n));
}

template <class T>
std::int64_t Lapack<T>::getrf(Size n, T* a, std::int64_t* pivots) const noexcept {
  return call(Routine::getrf, n, n, a, leading(n), pivots);
}

template <class T>
bool Lapack<T>::is_odd(Size n, const std::int64_t* pivots) const noexcept {
  bool odd = false;
  for (Size i = 0; i < n; ++i) odd ^= integer_at(pivots, i) != i + 1;
  return odd;
}

template <class T>
void Lapack<T>::getrs_transposed(Size n, Size columns, const T* a, const std::int64_t* pivots,
                                 T* b) const noexcept {
  call(Routine::getrs, 'T', n, columns, a, leading(n), pivots, b, leading(n));
}

template <class T>
WorkSize Lapack<T>::getri_work(Size n) const noexcept {
  T reported(1);
  call(Routine::getri, n, &reported, leading(n), &reported, &reported, kQuery);
  return {.work = length(reported)};
}

template <class T>
std::int64_t Lapack<T>::getri(Size n, T* a, const std::int64_t* pivots, const Work<T>& work) const noexcept {
  return call(Routine::getri, n, a, leading(n), pivots, work.work, work.size.work);
}

template <class T>
WorkSize Lapack<T>::geqrf_work(Size rows, Size columns) const noexcept {
  T reported(1);
  call(Routine::geqrf, rows, columns, &reported, leading(rows), &reported, &reported, kQuery);
  return {.work = length(reported)};
}

template <class T>
void Lapack<T>::geqrf(Size rows, Size columns, T* a, T* tau, const Work<T>& work) const noexcept {
  call(Routine::geqrf, rows, columns, a, leading(rows), tau, work.work, work.size.work);
}

template <class T>
WorkSize Lapack<T>::orgqr_work(Size rows, Size columns, Size reflectors) const noexcept {
  T reported(1);
  call(Routine::orgqr, rows, columns, reflectors, &reported, leading(rows), &reported, &reported, kQuery);
  return {.work = length(reported)};
}

template <class T>
void Lapack<T>::orgqr(Size rows, Size columns, Size reflectors, T* a, const T* tau,
                      const Work<T>& work) const noexcept {
  call(Routine::orgqr, rows, columns, reflectors, a, leading(rows), tau, work.work, work.size.work);
}

template <class T>
std::int64_t Lapack<T>::svd(Routine routine, char job, Size rows, Size columns, T* a, Real* s, T* u, T* vh,
                            const Work<T>& work) const noexcept {
  const Size vh_leading = leading(job == 'A' ? columns : std::min(rows, columns));
  const auto run = [&](const auto&... rest) {
    if (routine == Routine::gesdd) {
      return call(routine, job, rows, columns, a, leading(rows), s, u, leading(rows), vh, vh_leading,
                  work.work, work.size.work, rest..., work.integers);
    }
    return call(routine, job, job, rows, columns, a, leading(rows), s, u, leading(rows), vh, vh_leading,
                work.work, work.size.work, rest...);
  };
  if constexpr (kComplex<T>) {
    return run(work.real);
  } else {
    return run();
  }
}

template <class T>
WorkSize Lapack<T>::svd_work(Routine routine, char job, Size rows, Size columns) const noexcept {
  T reported(1);
  Real real(0);
  std::int64_t integer = 0;
  const Work<T> query{{.work = kQuery}, &reported, &real, &integer};
  svd(routine, job, rows, columns, &reported, &real, &reported, &reported, query);
  const Size small = std::min(rows, columns);
  const Size large = std::max(rows, columns);
  WorkSize size{.work = length(reported), .integers = 8 * small};
  if (kComplex<T>) {
    // What zgesdd's description asks for; releases before 3.7 take 7 min(m, n) without vectors.
    size.real = routine == Routine::gesvd ? 5 * small
                : job == 'N'              ? 7 * small
                                          : small * std::max(5 * small + 7, 2 * large + 2 * small + 1);
    size.real = std::max<Size>(1, size.real);
  }
  return size;
}

template <class T>
WorkSize Lapack<T>::gesdd_work(char job, Size rows, Size columns) const noexcept {
  return svd_work(Routine::gesdd, job, rows, columns);
}

template <class T>
std::int64_t Lapack<T>::gesdd(char job, Size rows, Size columns, T* a, Real* s, T* u, T* vh,
                              const Work<T>& work) const noexcept {
  return svd(Routine::gesdd, job, rows, columns, a, s, u, vh, work);
}

template <class T>
WorkSize Lapack<T>::gesvd_work(char job, Size rows, Size columns) const noexcept {
  return svd_work(Routine::gesvd, job, rows, columns);
}

template <class T>
std::int64_t Lapack<T>::gesvd(char job, Size rows, Size columns, T* a, Real* s, T* u, T* vh,
                              const Work<T>& work) const noexcept {
  return svd(Routine::gesvd, job, rows, columns, a, s, u, vh, work);
}

template <class T>
std::int64_t Lapack<T>::syevd(char job, char triangle, Size n, T* a, Real* w,
                              const Work<T>& work) const noexcept {
  if constexpr (kComplex<T>) {
    return call(Routine::syevd, job, triangle, n, a, leading(n), w, work.work, work.size.work, work.real,
                work.size.real, work.integers, work.size.integers);
  } else {
    return call(Routine::syevd, job, triangle, n, a, leading(n), w, work.work, work.size.work, work.integers,
                work.size.integers);
  }
}

template <class T>
WorkSize Lapack<T>::syevd_work(char job, char triangle, Size n) const noexcept {
  T reported(1);
  Real real(1);
  std::int64_t integer = 0;
  syevd(job, triangle, n, &reported, &real, {{kQuery, kQuery, kQuery}, &reported, &real, &integer});
  return {length(reported), length(static_cast<double>(real)), std::max<Size>(1, integer_at(&integer, 0))};
}

template <class T>
std::int64_t Lapack<T>::geev(char job, Size n, T* a, T* w, T* vectors, const Work<T>& work) const noexcept {
  // Left eigenvectors are not asked for; their array is not looked at.
  if constexpr (kComplex<T>) {
    return call(Routine::geev, 'N', job, n, a, leading(n), w, vectors, leading(n), vectors, leading(n),
                work.work, work.size.work, work.real);
  } else {
    return call(Routine::geev, 'N', job, n, a, leading(n), w, w + n, vectors, leading(n), vectors, leading(n),
                work.work, work.size.work);
  }
}

template <class T>
WorkSize Lapack<T>::geev_work(char job, Size n) const noexcept {
  T reported[2] = {T(1), T(0)};
  Real real(0);
  geev(job, n, reported, reported, reported, {{.work = kQuery}, reported, &real, nullptr});
  return {.work = length(reported[0]), .real = kComplex<T> ? std::max<Size>(1, 2 * n) : 0};
}

template class Lapack<float>;
template class Lapack<double>;
template class Lapack<Complex<float>>;
template class Lapack<Complex<double>>;

}  // namespace thalweg::cpu
