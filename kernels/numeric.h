// numeric.h: what the scalar formulas need of their types: wrapping arithmetic and NumPy's conversions.
#pragma once

#include <math.h>
#include <stdint.h>

// Always inlined: files compiled for several instruction sets share these, and an out-of-line copy that the
// linker merged would hand AVX code to a processor without it.
#if defined(__CUDACC__)
#define THALWEG_HD __host__ __device__ __forceinline__
#else
#define THALWEG_HD inline __attribute__((always_inline))
#endif

namespace thalweg::functors {

/// Sixteen bytes that are moved, whatever they mean.
struct Item16 {
  uint64_t low, high;
};

// Unnamed for the same reason as THALWEG_HD: one copy per object file.
namespace {

template <class T>
struct Properties {
  using Wrapping = uint32_t;  // the unsigned type in which arithmetic wraps without undefined behaviour
  static constexpr bool is_floating = false;
  static constexpr bool is_complex = false;
  static constexpr bool is_signed = static_cast<T>(-1) < static_cast<T>(0);
  static constexpr int bits = 8 * sizeof(T);
};
template <>
struct Properties<int64_t> {
  using Wrapping = uint64_t;
  static constexpr bool is_floating = false;
  static constexpr bool is_complex = false;
  static constexpr bool is_signed = true;
  static constexpr int bits = 64;
};
template <>
struct Properties<uint64_t> {
  using Wrapping = uint64_t;
  static constexpr bool is_floating = false;
  static constexpr bool is_complex = false;
  static constexpr bool is_signed = false;
  static constexpr int bits = 64;
};
template <>
struct Properties<float> {
  using Wrapping = float;
  static constexpr bool is_floating = true;
  static constexpr bool is_complex = false;
  static constexpr bool is_signed = true;
  static constexpr int bits = 32;
};
template <>
struct Properties<double> {
  using Wrapping = double;
  static constexpr bool is_floating = true;
  static constexpr bool is_complex = false;
  static constexpr bool is_signed = true;
  static constexpr int bits = 64;
};
template <class T>
using Wrapping = typename Properties<T>::Wrapping;
template <class T>
inline constexpr bool kIsFloating = Properties<T>::is_floating;
template <class T>
inline constexpr bool kIsComplex = Properties<T>::is_complex;

THALWEG_HD float modulo(float a, float b) { return fmodf(a, b); }
THALWEG_HD double modulo(double a, double b) { return fmod(a, b); }
THALWEG_HD float with_sign(float size, float sign) { return copysignf(size, sign); }
THALWEG_HD double with_sign(double size, double sign) { return copysign(size, sign); }
THALWEG_HD float round_down(float x) { return floorf(x); }
THALWEG_HD double round_down(double x) { return floor(x); }

/// A floating value as an integer, as NumPy gets it on x86: out of range, infinite and NaN give the smallest
/// int32 or int64, and narrower types the low bits of that. Written as a choice of inputs, so that it
/// vectorises.
THALWEG_HD int32_t to_int32(float x) {
  return static_cast<int32_t>(x >= -2147483648.0f && x < 2147483648.0f ? x : -2147483648.0f);
}
THALWEG_HD int32_t to_int32(double x) {
  return static_cast<int32_t>(x > -2147483649.0 && x < 2147483648.0 ? x : -2147483648.0);
}
template <class T>
THALWEG_HD int64_t to_int64(T x) {
  constexpr T limit = static_cast<T>(9223372036854775808.0);
  return static_cast<int64_t>(x >= -limit && x < limit ? x : -limit);
}
template <class T>
THALWEG_HD uint64_t to_uint64(T x) {
  constexpr T limit = static_cast<T>(9223372036854775808.0);
  uint64_t upper = static_cast<uint64_t>(to_int64(x - limit)) ^ (uint64_t{1} << 63);
  return x >= limit ? upper : static_cast<uint64_t>(to_int64(x));
}

template <class To, class From>
struct Convert {
  THALWEG_HD To operator()(From x) const {
    if constexpr (!kIsFloating<From> || kIsFloating<To>) {
      return static_cast<To>(x);
    } else if constexpr (sizeof(To) < 4 || (sizeof(To) == 4 && Properties<To>::is_signed)) {
      return static_cast<To>(to_int32(x));
    } else if constexpr (sizeof(To) == 4 || Properties<To>::is_signed) {
      return static_cast<To>(to_int64(x));
    } else {
      return static_cast<To>(to_uint64(x));
    }
  }
};
template <class From>
struct Convert<bool, From> {
  THALWEG_HD bool operator()(From x) const { return x != From(0); }
};

}  // namespace
}  // namespace thalweg::functors
