// random_isa.cpp: inner loops of the random kernels, compiled once per instruction set.
#include <sleef.h>
#include <stdint.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "kernels/cpu/random_table.h"
#include "kernels/philox.h"

namespace thalweg::cpu::THALWEG_ISA {
namespace {

using functors::double_bits;
using functors::double_of_bits;
using functors::first_number;
using functors::philox_rounds;
using functors::random_pair;
using functors::RandomPair;
using functors::second_number;
using functors::unit_interval;

// What differs between the instruction sets: a register of 64-bit lanes, the product of the lower halves of
// its lanes (one instruction, which GCC does not find), and SLEEF's functions. Those without fused
// multiply-add agree bit for bit in all widths, so that random numbers do not depend on the processor.
#if defined(__AVX512F__)
constexpr int kLanes = 8;
typedef uint64_t Lanes __attribute__((vector_size(64)));
// Masked forms: the plain ones of GCC 12 warn of an uninitialised variable.
inline Lanes low_product(Lanes a, Lanes b) {
  return reinterpret_cast<Lanes>(
      _mm512_maskz_mul_epu32(0xff, reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b)));
}
inline void log_lanes(double* x) {
  _mm512_storeu_pd(x, Sleef_cinz_logd8_u10avx512fnofma(_mm512_loadu_pd(x)));
}
inline void sqrt_lanes(double* x) { _mm512_storeu_pd(x, _mm512_maskz_sqrt_pd(0xff, _mm512_loadu_pd(x))); }
inline void sincospi_lanes(const double* x, double* sine, double* cosine) {
  auto both = Sleef_cinz_sincospid8_u05avx512fnofma(_mm512_loadu_pd(x));
  _mm512_storeu_pd(sine, both.x);
  _mm512_storeu_pd(cosine, both.y);
}
#elif defined(__AVX2__)
constexpr int kLanes = 4;
typedef uint64_t Lanes __attribute__((vector_size(32)));
inline Lanes low_product(Lanes a, Lanes b) {
  return reinterpret_cast<Lanes>(
      _mm256_mul_epu32(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b)));
}
inline void log_lanes(double* x) { _mm256_storeu_pd(x, Sleef_cinz_logd4_u10avx(_mm256_loadu_pd(x))); }
inline void sqrt_lanes(double* x) { _mm256_storeu_pd(x, _mm256_sqrt_pd(_mm256_loadu_pd(x))); }
inline void sincospi_lanes(const double* x, double* sine, double* cosine) {
  auto both = Sleef_cinz_sincospid4_u05avx(_mm256_loadu_pd(x));
  _mm256_storeu_pd(sine, both.x);
  _mm256_storeu_pd(cosine, both.y);
}
#elif defined(__SSE2__)
constexpr int kLanes = 2;
typedef uint64_t Lanes __attribute__((vector_size(16)));
inline Lanes low_product(Lanes a, Lanes b) {
  return reinterpret_cast<Lanes>(_mm_mul_epu32(reinterpret_cast<__m128i>(a), reinterpret_cast<__m128i>(b)));
}
inline void log_lanes(double* x) { _mm_storeu_pd(x, Sleef_cinz_logd2_u10sse2(_mm_loadu_pd(x))); }
inline void sqrt_lanes(double* x) { _mm_storeu_pd(x, _mm_sqrt_pd(_mm_loadu_pd(x))); }
inline void sincospi_lanes(const double* x, double* sine, double* cosine) {
  auto both = Sleef_cinz_sincospid2_u05sse2(_mm_loadu_pd(x));
  _mm_storeu_pd(sine, both.x);
  _mm_storeu_pd(cosine, both.y);
}
#else
constexpr int kLanes = 1;
typedef uint64_t Lanes __attribute__((vector_size(8)));
inline Lanes low_product(Lanes a, Lanes b) { return (a & 0xffffffffu) * (b & 0xffffffffu); }
inline void log_lanes(double* x) { *x = Sleef_cinz_logd1_u10purec(*x); }
inline void sqrt_lanes(double* x) { *x = sqrt(*x); }
inline void sincospi_lanes(const double* x, double* sine, double* cosine) {
  *sine = Sleef_cinz_sinpid1_u05purec(*x);
  *cosine = Sleef_cinz_cospid1_u05purec(*x);
}
#endif

constexpr int kPairs = 64;  // pairs made at a time; a multiple of every kLanes

/// The numbers of `kPairs` counters: `random_pair`, a register of counters at a time.
void make_pairs(uint64_t seed, uint64_t counter, uint64_t* firsts, uint64_t* seconds) {
  Lanes counters;
  for (int lane = 0; lane < kLanes; ++lane) counters[lane] = counter + static_cast<uint64_t>(lane);
  for (int i = 0; i < kPairs; i += kLanes) {
    Lanes words[4] = {counters, counters >> 32, {}, {}};
    philox_rounds(words, seed, seed >> 32,
                  [](uint32_t factor, Lanes word) { return low_product(Lanes{} + factor, word); });
    const Lanes first = first_number(words);
    const Lanes second = second_number(words);
    memcpy(firsts + i, &first, sizeof first);
    memcpy(seconds + i, &second, sizeof second);
    counters += kLanes;
  }
}

/// Fills the range by `fill(firsts, seconds, counter, block)`, which makes a block of 2 * kPairs elements of
/// the numbers of the kPairs counters that begin with `counter`.
template <class T, class Fill>
void fill_blocks(T* out, const RandomRange& range, Fill fill) {
  uint64_t firsts[kPairs];
  uint64_t seconds[kPairs];
  T last[2 * kPairs];
  for (int64_t at = range.begin; at < range.end; at += 2 * kPairs) {
    const uint64_t counter = range.counter + static_cast<uint64_t>(at) / 2;
    make_pairs(range.seed, counter, firsts, seconds);
    const int64_t left = range.end - at;
    T* block = left < 2 * kPairs ? last : out + at;
    fill(firsts, seconds, counter, block);
    if (block == last) memcpy(out + at, last, static_cast<size_t>(left) * sizeof(T));
  }
}

/// As fill_blocks, element by element: `number(bits, counter, second)`, `second` for the second number of a
/// counter.
template <class T, class Number>
void fill_numbers(T* out, const RandomRange& range, Number number) {
  fill_blocks(out, range, [=](const uint64_t* firsts, const uint64_t* seconds, uint64_t counter, T* block) {
    for (int i = 0; i < kPairs; ++i) {
      block[2 * i] = number(firsts[i], counter + static_cast<uint64_t>(i), false);
      block[2 * i + 1] = number(seconds[i], counter + static_cast<uint64_t>(i), true);
    }
  });
}

void uniform_float64(double* out, const RandomRange& range, const UniformBounds& bounds) {
  fill_numbers(out, range, [bounds](uint64_t bits, uint64_t, bool) {
    const double value = bounds.low + unit_interval(bits) * (bounds.high - bounds.low);
    return value < bounds.high ? value : bounds.below_high;
  });
}

void uniform_float32(float* out, const RandomRange& range, const UniformBounds& bounds) {
  const float high = static_cast<float>(bounds.high);
  const float below_high = static_cast<float>(bounds.below_high);
  fill_numbers(out, range, [=](uint64_t bits, uint64_t, bool) {
    // By way of int32_t, which vectors of every instruction set convert.
    const double unit = static_cast<double>(static_cast<int32_t>(bits >> 40)) * 0x1p-24;
    const float value = static_cast<float>(bounds.low + unit * (bounds.high - bounds.low));
    return value < high ? value : below_high;
  });
}

// For float32 results: logarithm, sine and cosine to 2^-37 of their size, in plain arithmetic that GCC turns
// into vectors of any instruction set, with the same bits. The polynomials are those of the least greatest
// relative error, found by Remez's exchange in 60 digits and rounded to double: 4 atanh(s) / s in s^2 up to
// the s of sqrt(1/2), sin(pi x / 2) / x and cos(pi x / 2) in x^2 up to x = 1/2.

/// -2 log(u) for u in (0, 1]: u = m * 2^-n with m in [sqrt(1/2), sqrt(2)) and log(m) = -2 atanh(s).
inline double minus_two_log(double u) {
  const uint64_t sqrt_half = double_bits(0x1.6a09e667f3bcdp-1);
  const uint64_t above = double_bits(u) - sqrt_half + double_bits(1);
  const double n = (0x1p52 + 1023) - double_of_bits(double_bits(0x1p52) | above >> 52);
  const double m = double_of_bits((above & 0x000fffffffffffffu) + sqrt_half);
  const double s = (1 - m) / (1 + m);
  const double z = s * s;
  double p = 0x1.e3af8a088df83p-2;
  p = p * z + 0x1.2432c0e8c37d9p-1;
  p = p * z + 0x1.999a9c8d481fbp-1;
  p = p * z + 0x1.555554dad2ba2p+0;
  p = p * z + 0x1.0000000004a19p+2;
  return n * 0x1.62e42fefa39efp+0 + s * p;
}

/// The sine and cosine of 2 pi * turn, turn in [0, 1): those of the angle to the nearest quarter, exchanged
/// after an odd number of quarters, with the signs of the quadrant.
inline void sincos_turn(double turn, double* sine, double* cosine) {
  const double shifted = 4 * turn + 0x1.8p52;  // its lowest bits are the nearest integer
  const double x = 4 * turn - (shifted - 0x1.8p52);
  const uint64_t quarters = double_bits(shifted);
  const double z = x * x;
  double p = 0x1.4bc2557837901p-13;
  p = p * z - 0x1.32ca854cef88bp-8;
  p = p * z + 0x1.466bba8bfd60fp-4;
  p = p * z - 0x1.4abbce564cdcfp-1;
  p = p * z + 0x1.921fb5443af60p+0;
  double q = -0x1.a0d8a8008568cp-16;
  q = q * z + 0x1.e1e7611bb3934p-11;
  q = q * z - 0x1.55d3b9723d75ap-6;
  q = q * z + 0x1.03c1f073cd14fp-2;
  q = q * z - 0x1.3bd3cc9bd0989p+0;
  q = q * z + 0x1.ffffffffffdb1p-1;
  const uint64_t s = double_bits(x * p);
  const uint64_t c = double_bits(q);
  const uint64_t exchange = (s ^ c) & (0 - (quarters & 1));
  *sine = double_of_bits(s ^ exchange ^ (quarters & 2) << 62);
  *cosine = double_of_bits(c ^ exchange ^ ((quarters + 1) & 2) << 62);
}

/// Box and Muller (1958): two uniform numbers become two normal ones. The first is taken from (0, 1], as its
/// logarithm must be finite, with all 53 bits, as the last ones make the tail.
template <class T>
void box_muller(const uint64_t* firsts, const uint64_t* seconds, double* sines, double* cosines) {
  double radius[kPairs];
  if constexpr (sizeof(T) == sizeof(float)) {
    for (int i = 0; i < kPairs; ++i) radius[i] = minus_two_log(unit_interval(firsts[i]) + 0x1p-53);
    for (int i = 0; i < kPairs; ++i) sincos_turn(unit_interval(seconds[i]), sines + i, cosines + i);
  } else {
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
  }
  for (int i = 0; i < kPairs; i += kLanes) sqrt_lanes(radius + i);
  for (int i = 0; i < kPairs; ++i) {
    sines[i] *= radius[i];
    cosines[i] *= radius[i];
  }
}

template <class T>
void normal(T* out, const RandomRange& range, double mean, double deviation) {
  fill_blocks(out, range, [=](const uint64_t* firsts, const uint64_t* seconds, uint64_t, T* block) {
    double sines[kPairs];
    double cosines[kPairs];
    box_muller<T>(firsts, seconds, sines, cosines);
    for (int i = 0; i < kPairs; ++i) {
      block[2 * i] = static_cast<T>(mean + deviation * cosines[i]);
      block[2 * i + 1] = static_cast<T>(mean + deviation * sines[i]);
    }
  });
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
  const uint64_t seed = range.seed;
  fill_numbers(static_cast<T*>(out), range, [seed, bounds](uint64_t bits, uint64_t counter, bool second) {
    return static_cast<T>(bounds.low + below(bits, seed, counter, second, bounds));
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
