// vector_math.h: SIMD lanes and loops over them, for functions that SLEEF or the processor computes on whole
// vectors.
#pragma once

#include <math.h>
#include <sleef.h>
#include <stdint.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "kernels/cpu/elementwise_table.h"
#include "kernels/functors.h"

// The functions of SLEEF used here are its reproducible ones (cinz, finz: without and with fused
// multiply-add): a lane's bits do not depend on its neighbours, so body, tail and strided loops agree.
#if defined(__AVX512F__)
#define THALWEG_SLEEF_F32(name, accuracy) Sleef_finz_##name##f16_##accuracy##avx512f
#define THALWEG_SLEEF_F64(name, accuracy) Sleef_finz_##name##d8_##accuracy##avx512f
#elif defined(__AVX2__)
#define THALWEG_SLEEF_F32(name, accuracy) Sleef_finz_##name##f8_##accuracy##avx2
#define THALWEG_SLEEF_F64(name, accuracy) Sleef_finz_##name##d4_##accuracy##avx2
#elif defined(__SSE2__)
#define THALWEG_SLEEF_F32(name, accuracy) Sleef_cinz_##name##f4_##accuracy##sse2
#define THALWEG_SLEEF_F64(name, accuracy) Sleef_cinz_##name##d2_##accuracy##sse2
#else
#define THALWEG_SLEEF_F32(name, accuracy) Sleef_cinz_##name##f1_##accuracy##purec
#define THALWEG_SLEEF_F64(name, accuracy) Sleef_cinz_##name##d1_##accuracy##purec
#endif

namespace thalweg::cpu {
// Unnamed, so that each instruction set keeps its own copy.
namespace {

/// A vector of T of that many bytes, or a T where that is one number.
template <class T, int bytes, bool is_one = bytes == int{sizeof(T)}>
struct VectorOf {
  typedef T type __attribute__((vector_size(bytes)));
};
template <class T, int bytes>
struct VectorOf<T, bytes, true> {
  using type = T;
};

/// A vector of float32: its type, a * b + c (fused where the processor can), and whether any lane's size is
/// above a limit (NaN is not).
struct Float32Lanes {
  using Element = float;
#if defined(__AVX512F__)
  using Vector = __m512;
  static THALWEG_HD Vector splat(float x) { return _mm512_set1_ps(x); }
  static THALWEG_HD Vector multiply_add(Vector a, Vector b, Vector c) { return _mm512_fmadd_ps(a, b, c); }
  /// To 2^-27 of its value, at a third of a division's cost.
  static THALWEG_HD Vector reciprocal(Vector x) {
    const Vector near = _mm512_maskz_rcp14_ps(0xffff, x);
    return near * _mm512_fnmadd_ps(x, near, splat(2));
  }
  /// The smaller one, or x where that is NaN.
  static THALWEG_HD Vector at_most(Vector limit, Vector x) { return _mm512_maskz_min_ps(0xffff, limit, x); }
  static THALWEG_HD bool any_beyond(Vector x, float limit) {
    return _mm512_cmp_ps_mask(_mm512_abs_ps(x), splat(limit), _CMP_GT_OQ) != 0;
  }
  static THALWEG_HD Vector load_first(const float* source, int64_t count) {
    return _mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << count) - 1), source);
  }
  static THALWEG_HD void store_first(float* target, int64_t count, Vector x) {
    _mm512_mask_storeu_ps(target, static_cast<__mmask16>((1u << count) - 1), x);
  }
#elif defined(__AVX2__)
  using Vector = __m256;
  static THALWEG_HD Vector splat(float x) { return _mm256_set1_ps(x); }
  static THALWEG_HD Vector multiply_add(Vector a, Vector b, Vector c) { return _mm256_fmadd_ps(a, b, c); }
  static THALWEG_HD Vector reciprocal(Vector x) { return splat(1) / x; }
  static THALWEG_HD Vector at_most(Vector limit, Vector x) { return _mm256_min_ps(limit, x); }
  static THALWEG_HD bool any_beyond(Vector x, float limit) {
    Vector size = _mm256_andnot_ps(splat(-0.0f), x);
    return _mm256_movemask_ps(_mm256_cmp_ps(size, splat(limit), _CMP_GT_OQ)) != 0;
  }
  static THALWEG_HD __m256i first(int64_t count) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)),
                              _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
  static THALWEG_HD Vector load_first(const float* source, int64_t count) {
    return _mm256_maskload_ps(source, first(count));
  }
  static THALWEG_HD void store_first(float* target, int64_t count, Vector x) {
    _mm256_maskstore_ps(target, first(count), x);
  }
#elif defined(__SSE2__)
  using Vector = __m128;
  static THALWEG_HD Vector splat(float x) { return _mm_set1_ps(x); }
  static THALWEG_HD Vector multiply_add(Vector a, Vector b, Vector c) { return a * b + c; }
  static THALWEG_HD Vector reciprocal(Vector x) { return splat(1) / x; }
  static THALWEG_HD Vector at_most(Vector limit, Vector x) { return _mm_min_ps(limit, x); }
  static THALWEG_HD bool any_beyond(Vector x, float limit) {
    Vector size = _mm_andnot_ps(splat(-0.0f), x);
    return _mm_movemask_ps(_mm_cmpgt_ps(size, splat(limit))) != 0;
  }
#else
  using Vector = float;
  static THALWEG_HD Vector splat(float x) { return x; }
  static THALWEG_HD Vector multiply_add(Vector a, Vector b, Vector c) { return a * b + c; }
  static THALWEG_HD Vector reciprocal(Vector x) { return 1 / x; }
  static THALWEG_HD Vector at_most(Vector limit, Vector x) { return limit < x ? limit : x; }
  static THALWEG_HD bool any_beyond(Vector x, float limit) { return fabsf(x) > limit; }
#endif
  static constexpr int width = sizeof(Vector) / sizeof(float);
  using Bits = VectorOf<uint32_t, sizeof(Vector)>::type;
};

/// As Float32Lanes, of float64.
struct Float64Lanes {
  using Element = double;
#if defined(__AVX512F__)
  using Vector = __m512d;
  static THALWEG_HD Vector splat(double x) { return _mm512_set1_pd(x); }
  static THALWEG_HD Vector multiply_add(Vector a, Vector b, Vector c) { return _mm512_fmadd_pd(a, b, c); }
  static THALWEG_HD bool any_beyond(Vector x, double limit) {
    return _mm512_cmp_pd_mask(_mm512_abs_pd(x), splat(limit), _CMP_GT_OQ) != 0;
  }
  static THALWEG_HD Vector load_first(const double* source, int64_t count) {
    return _mm512_maskz_loadu_pd(static_cast<__mmask8>((1u << count) - 1), source);
  }
  static THALWEG_HD void store_first(double* target, int64_t count, Vector x) {
    _mm512_mask_storeu_pd(target, static_cast<__mmask8>((1u << count) - 1), x);
  }
#elif defined(__AVX2__)
  using Vector = __m256d;
  static THALWEG_HD Vector splat(double x) { return _mm256_set1_pd(x); }
  static THALWEG_HD Vector multiply_add(Vector a, Vector b, Vector c) { return _mm256_fmadd_pd(a, b, c); }
  static THALWEG_HD bool any_beyond(Vector x, double limit) {
    Vector size = _mm256_andnot_pd(splat(-0.0), x);
    return _mm256_movemask_pd(_mm256_cmp_pd(size, splat(limit), _CMP_GT_OQ)) != 0;
  }
  static THALWEG_HD __m256i first(int64_t count) {
    return _mm256_cmpgt_epi64(_mm256_set1_epi64x(count), _mm256_setr_epi64x(0, 1, 2, 3));
  }
  static THALWEG_HD Vector load_first(const double* source, int64_t count) {
    return _mm256_maskload_pd(source, first(count));
  }
  static THALWEG_HD void store_first(double* target, int64_t count, Vector x) {
    _mm256_maskstore_pd(target, first(count), x);
  }
#elif defined(__SSE2__)
  using Vector = __m128d;
  static THALWEG_HD Vector splat(double x) { return _mm_set1_pd(x); }
  static THALWEG_HD Vector multiply_add(Vector a, Vector b, Vector c) { return a * b + c; }
  static THALWEG_HD bool any_beyond(Vector x, double limit) {
    Vector size = _mm_andnot_pd(splat(-0.0), x);
    return _mm_movemask_pd(_mm_cmpgt_pd(size, splat(limit))) != 0;
  }
#else
  using Vector = double;
  static THALWEG_HD Vector splat(double x) { return x; }
  static THALWEG_HD Vector multiply_add(Vector a, Vector b, Vector c) { return a * b + c; }
  static THALWEG_HD bool any_beyond(Vector x, double limit) { return fabs(x) > limit; }
#endif
  static constexpr int width = sizeof(Vector) / sizeof(double);
  using Bits = VectorOf<uint64_t, sizeof(Vector)>::type;
};

template <class Lanes>
THALWEG_HD typename Lanes::Vector load(const typename Lanes::Element* source) {
  typename Lanes::Vector vector;
  __builtin_memcpy(&vector, source, sizeof vector);
  return vector;
}
template <class Lanes>
THALWEG_HD void store(typename Lanes::Element* target, typename Lanes::Vector vector) {
  __builtin_memcpy(target, &vector, sizeof vector);
}

/// The same bytes as another type.
template <class To, class From>
THALWEG_HD To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  __builtin_memcpy(&to, &from, sizeof to);
  return to;
}

/// c[0] + c[1] x + c[2] x^2 + ...
template <class Lanes, int N>
THALWEG_HD typename Lanes::Vector polynomial(typename Lanes::Vector x,
                                             const typename Lanes::Element (&coefficients)[N]) {
  auto sum = Lanes::splat(coefficients[N - 1]);
  for (int i = N - 2; i >= 0; --i) sum = Lanes::multiply_add(sum, x, Lanes::splat(coefficients[i]));
  return sum;
}

/// Up to a vector's worth of elements at `step` bytes; nobody reads what becomes of the other lanes.
template <class Lanes>
THALWEG_HD typename Lanes::Vector gather(const char* source, int64_t step, int64_t count) {
  using Element = typename Lanes::Element;
#if defined(__AVX2__)
  if (step == sizeof(Element)) return Lanes::load_first(reinterpret_cast<const Element*>(source), count);
#endif
  Element lanes[Lanes::width];
  for (int i = 0; i < Lanes::width; ++i) {
    __builtin_memcpy(&lanes[i], source + (i < count ? i * step : 0), sizeof lanes[i]);
  }
  return load<Lanes>(lanes);
}
template <class Lanes>
THALWEG_HD void scatter(char* target, int64_t step, int64_t count, typename Lanes::Vector vector) {
  using Element = typename Lanes::Element;
#if defined(__AVX2__)
  if (step == sizeof(Element)) return Lanes::store_first(reinterpret_cast<Element*>(target), count, vector);
#endif
  Element lanes[Lanes::width];
  store<Lanes>(lanes, vector);
  for (int64_t i = 0; i < count; ++i) __builtin_memcpy(target + i * step, &lanes[i], sizeof lanes[i]);
}

/// Loops over `F::apply`, one vector at a time; the last vector of a run is padded, never computed by other
/// code.
template <class F>
void vector_unary_loop(char* const* data, const int64_t* steps, int64_t count) {
  using Lanes = typename F::Lanes;
  using Element = typename Lanes::Element;
  constexpr int64_t item = sizeof(Element);
  int64_t done = 0;
  if (steps[0] == item && steps[1] == item) {
    Element* out = reinterpret_cast<Element*>(data[0]);
    const Element* in = reinterpret_cast<const Element*>(data[1]);
    for (; done + Lanes::width <= count; done += Lanes::width) {
      store<Lanes>(out + done, F::apply(load<Lanes>(in + done)));
    }
  }
  while (done < count) {
    int64_t part = count - done < Lanes::width ? count - done : Lanes::width;
    auto result = F::apply(gather<Lanes>(data[1] + done * steps[1], steps[1], part));
    scatter<Lanes>(data[0] + done * steps[0], steps[0], part, result);
    done += part;
  }
}

template <class F>
void vector_binary_loop(char* const* data, const int64_t* steps, int64_t count) {
  using Lanes = typename F::Lanes;
  using Element = typename Lanes::Element;
  constexpr int64_t item = sizeof(Element);
  int64_t done = 0;
  // A dense operand, or one number for all.
  const bool dense_a = steps[1] == item;
  const bool dense_b = steps[2] == item;
  if (steps[0] == item && (dense_a || steps[1] == 0) && (dense_b || steps[2] == 0)) {
    Element* out = reinterpret_cast<Element*>(data[0]);
    const Element* a = reinterpret_cast<const Element*>(data[1]);
    const Element* b = reinterpret_cast<const Element*>(data[2]);
    const auto fixed_a = Lanes::splat(*a);
    const auto fixed_b = Lanes::splat(*b);
    for (; done + Lanes::width <= count; done += Lanes::width) {
      store<Lanes>(out + done, F::apply(dense_a ? load<Lanes>(a + done) : fixed_a,
                                        dense_b ? load<Lanes>(b + done) : fixed_b));
    }
  }
  while (done < count) {
    int64_t part = count - done < Lanes::width ? count - done : Lanes::width;
    auto a = gather<Lanes>(data[1] + done * steps[1], steps[1], part);
    auto b = gather<Lanes>(data[2] + done * steps[2], steps[2], part);
    scatter<Lanes>(data[0] + done * steps[0], steps[0], part, F::apply(a, b));
    done += part;
  }
}

}  // namespace
}  // namespace thalweg::cpu
