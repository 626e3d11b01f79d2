// rings.h: what sums of products mean for each dtype.
#pragma once

#include <cstdint>
#include <type_traits>

#include <thalweg/dtype.h>

#include "kernels/complex_number.h"
#include "kernels/cpu/dense_table.h"
#include "kernels/cpu/nd_copy.h"

namespace thalweg::cpu {

/// Numbers; integers wrap.
template <class T>
struct PlusTimes {
  // Narrow unsigned factors would be promoted to int and overflow.
  using Wide = std::conditional_t<std::is_floating_point_v<T> || sizeof(T) >= 4, T, std::uint32_t>;
  static T apply(T sum, T a, T b) noexcept {
    return static_cast<T>(static_cast<Wide>(sum) + static_cast<Wide>(a) * static_cast<Wide>(b));
  }
  static T add(T a, T b) noexcept { return static_cast<T>(static_cast<Wide>(a) + static_cast<Wide>(b)); }
  /// Combines a row of b, times `factor`, with a row of the result; both contiguous.
  static void apply_row(T* out, const T* in, T factor, std::int64_t count) noexcept {
    if constexpr (std::is_same_v<T, std::uint8_t>) {
      dense_table().add_multiple_uint8(out, in, factor, count);
    } else if constexpr (std::is_same_v<T, std::uint16_t>) {
      dense_table().add_multiple_uint16(out, in, factor, count);
    } else if constexpr (std::is_same_v<T, std::uint32_t>) {
      dense_table().add_multiple_uint32(out, in, factor, count);
    } else if constexpr (std::is_same_v<T, std::uint64_t>) {
      dense_table().add_multiple_uint64(out, in, factor, count);
    } else {
      for (std::int64_t j = 0; j < count; ++j) out[j] = apply(out[j], factor, in[j]);
    }
  }
};

template <class T>
struct PlusTimes<functors::Complex<T>> {
  using Number = functors::Complex<T>;
  static Number apply(Number sum, Number a, Number b) noexcept { return sum + a * b; }
  static Number add(Number a, Number b) noexcept { return a + b; }
  static void apply_row(Number* out, const Number* in, Number factor, std::int64_t count) noexcept {
    for (std::int64_t j = 0; j < count; ++j) out[j] = apply(out[j], factor, in[j]);
  }
};

/// bool.
struct AnyAnd {
  static std::uint8_t apply(std::uint8_t sum, std::uint8_t a, std::uint8_t b) noexcept {
    return sum | (a & b);
  }
  static std::uint8_t add(std::uint8_t a, std::uint8_t b) noexcept { return a | b; }
  static void apply_row(std::uint8_t* out, const std::uint8_t* in, std::uint8_t factor,
                        std::int64_t count) noexcept {
    for (std::int64_t j = 0; j < count; ++j) out[j] = apply(out[j], factor, in[j]);
  }
};

/// Calls `fn.template operator()<T, Ring>()` with the type and the sums of products of a dtype.
template <class Fn>
decltype(auto) visit_ring(DType dtype, Fn&& fn) {
  using functors::Complex;
  if (dtype == DType::float32) return fn.template operator()<float, PlusTimes<float>>();
  if (dtype == DType::float64) return fn.template operator()<double, PlusTimes<double>>();
  if (dtype == DType::complex64) return fn.template operator()<Complex<float>, PlusTimes<Complex<float>>>();
  if (dtype == DType::complex128) {
    return fn.template operator()<Complex<double>, PlusTimes<Complex<double>>>();
  }
  if (dtype == DType::bool_) return fn.template operator()<std::uint8_t, AnyAnd>();
  // Signed and unsigned integers wrap to the same bits.
  return visit_unsigned(item_size(dtype),
                        [&]<class T>() { return fn.template operator()<T, PlusTimes<T>>(); });
}

}  // namespace thalweg::cpu
