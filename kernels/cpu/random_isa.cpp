// random_isa.cpp: inner loops of the random kernels, compiled once per instruction set.
#include <sleef.h>
#include <stdint.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "kernels/cpu/random_table.h"
#include "kernels/philox.h"

namespace thalweg::cpu::THALWEG_ISA {
namespace {

using functors::random_pair;
using functors::RandomPair;
using functors::unit_interval;

// SLEEF's functions without fused multiply-add in two widths that agree bit for bit, so that random numbers
// do not depend on the processor. (The 8-lane logarithm does not agree, so AVX-512 uses 4 lanes as well.)
#if defined(__AVX__)
constexpr int kLanes = 4;
inline void log_lanes(double* x) { _mm256_storeu_pd(x, Sleef_cinz_logd4_u10avx(_mm256_loadu_pd(x))); }
inline void sqrt_lanes(double* x) { _mm256_storeu_pd(x, _mm256_sqrt_pd(_mm256_loadu_pd(x))); }
inline void sincospi_lanes(const double* x, double* sine, double* cosine) {
  auto both = Sleef_cinz_sincospid4_u05avx(_mm256_loadu_pd(x));
  _mm256_storeu_pd(sine, both.x);
  _mm256_storeu_pd(cosine, both.y);
}
#elif defined(__SSE2__)
constexpr int kLanes = 2;
inline void log_lanes(double* x) { _mm_storeu_pd(x, Sleef_cinz_logd2_u10sse2(_mm_loadu_pd(x))); }
inline void sqrt_lanes(double* x) { _mm_storeu_pd(x, _mm_sqrt_pd(_mm_loadu_pd(x))); }
inline void sincospi_lanes(const double* x, double* sine, double* cosine) {
  auto both = Sleef_cinz_sincospid2_u05sse2(_mm_loadu_pd(x));
  _mm_storeu_pd(sine, both.x);
  _mm_storeu_pd(cosine, both.y);
}
#else
constexpr int kLanes = 1;
inline void log_lanes(double* x) { *x = Sleef_cinz_logd1_u10purec(*x); }
inline void sqrt_lanes(double* x) { *x = sqrt(*x); }
inline void sincospi_lanes(const double* x, double* sine, double* cosine) {
  *sine = Sleef_cinz_sinpid1_u05purec(*x);
  *cosine = Sleef_cinz_cospid1_u05purec(*x);
}
#endif

constexpr int kPairs = 64;  // pairs made at a time; a multiple of every kLanes

/// The numbers of `kPairs` counters.
void make_pairs(uint64_t seed, uint64_t counter, uint64_t* firsts, uint64_t* seconds) {
  for (int i = 0; i < kPairs; ++i) {
    RandomPair pair = random_pair(seed, counter + static_cast<uint64_t>(i), 0);
    firsts[i] = pair.first;
    seconds[i] = pair.second;
  }
}

/// Calls `element(i, bits, counter)` for each element of the range with its 64 random bits and its counter.
template <class Element>
THALWEG_HD void for_elements(const RandomRange& range, Element element) {
  uint64_t firsts[kPairs];
  uint64_t seconds[kPairs];
  for (int64_t at = range.begin; at < range.end; at += 2 * kPairs) {
    uint64_t counter = range.counter + static_cast<uint64_t>(at) / 2;
    make_pairs(range.seed, counter, firsts, seconds);
    int64_t left = range.end - at;
    int full = left >= 2 * kPairs ? kPairs : static_cast<int>(left / 2);
    for (int i = 0; i < full; ++i) {
      element(at + 2 * i, firsts[i], counter + static_cast<uint64_t>(i));
      element(at + 2 * i + 1, seconds[i], counter + static_cast<uint64_t>(i));
    }
    if (full < kPairs && left % 2 == 1)
      element(range.end - 1, firsts[full], counter + static_cast<uint64_t>(full));
  }
}

void uniform_float64(double* out, const RandomRange& range, const UniformBounds& bounds) {
  const double span = bounds.high - bounds.low;
  for_elements(range, [&](int64_t i, uint64_t bits, uint64_t) {
    double value = bounds.low + unit_interval(bits) * span;
    out[i] = value < bounds.high ? value : bounds.below_high;
  });
}

void uniform_float32(float* out, const RandomRange& range, const UniformBounds& bounds) {
  const double span = bounds.high - bounds.low;
  const float high = static_cast<float>(bounds.high);
  const float below_high = static_cast<float>(bounds.below_high);
  for_elements(range, [&](int64_t i, uint64_t bits, uint64_t) {
    double unit = static_cast<double>(bits >> 40) * 0x1p-24;
    float value = static_cast<float>(bounds.low + unit * span);
    out[i] = value < high ? value : below_high;
  });
}

/// Box and Muller (1958): two uniform numbers become two normal ones. The first is taken from (0, 1], as its
/// logarithm must be finite.
void box_muller(const uint64_t* firsts, const uint64_t* seconds, double* sines, double* cosines) {
  double radius[kPairs];
  double turn[kPairs];
  for (int i = 0; i < kPairs; ++i) {
    radius[i] = unit_interval(firsts[i]) + 0x1p-53;
    turn[i] = 2 * unit_interval(seconds[i]);
  }
  for (int i = 0; i < kPairs; i += kLanes) {
    log_lanes(radius + i);
    sincospi_lanes(turn + i, sines + i, cosines + i);
  }
  for (int i = 0; i < kPairs; ++i) radius[i] *= -2;
  for (int i = 0; i < kPairs; i += kLanes) sqrt_lanes(radius + i);
  for (int i = 0; i < kPairs; ++i) {
    sines[i] *= radius[i];
    cosines[i] *= radius[i];
  }
}

template <class T>
void normal(T* out, const RandomRange& range, double mean, double deviation) {
  uint64_t firsts[kPairs];
  uint64_t seconds[kPairs];
  double sines[kPairs];
  double cosines[kPairs];
  for (int64_t at = range.begin; at < range.end; at += 2 * kPairs) {
    make_pairs(range.seed, range.counter + static_cast<uint64_t>(at) / 2, firsts, seconds);
    box_muller(firsts, seconds, sines, cosines);
    int64_t left = range.end - at < 2 * kPairs ? range.end - at : 2 * kPairs;
    for (int64_t i = 0; i < left; ++i) {
      double value = i % 2 == 0 ? cosines[i / 2] : sines[i / 2];
      out[at + i] = static_cast<T>(mean + deviation * value);
    }
  }
}

__extension__ typedef unsigned __int128 UInt128;

/// Lemire: Fast random integer generation in an interval (ACM TOMACS 29, 2019). `second` tells the two
/// numbers of a counter apart when a rejected one is drawn again.
THALWEG_HD uint64_t below(uint64_t bits, uint64_t seed, uint64_t counter, bool second,
                          const IntegerBounds& bounds) {
  if (bounds.count == 0) return bits;
  UInt128 product = UInt128{bits} * bounds.count;
  for (uint32_t attempt = 1; static_cast<uint64_t>(product) < bounds.threshold; ++attempt) {
    RandomPair again = random_pair(seed, counter, attempt);
    product = UInt128{second ? again.second : again.first} * bounds.count;
  }
  return static_cast<uint64_t>(product >> 64);
}

template <class T>
void randint(void* out, const RandomRange& range, const IntegerBounds& bounds) {
  T* numbers = static_cast<T*>(out);
  for_elements(range, [&](int64_t i, uint64_t bits, uint64_t counter) {
    numbers[i] = static_cast<T>(bounds.low + below(bits, range.seed, counter, i % 2 == 1, bounds));
  });
}

}  // namespace

void fill_random(RandomTable& table) {
  table.uniform_float32 = uniform_float32;
  table.uniform_float64 = uniform_float64;
  table.normal_float32 = normal<float>;
  table.normal_float64 = normal<double>;
  table.randint[0] = randint<uint8_t>;
  table.randint[1] = randint<uint16_t>;
  table.randint[2] = randint<uint32_t>;
  table.randint[3] = randint<uint64_t>;
}

}  // namespace thalweg::cpu::THALWEG_ISA
