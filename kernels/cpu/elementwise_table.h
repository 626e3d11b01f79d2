// elementwise_table.h: the inner loops of the elementwise kernels, one table for each instruction set.
#pragma once

#include <stdint.h>

#include "kernels/complex_number.h"

// Included by files that are compiled for several instruction sets: no standard C++ headers, no inline
// functions.

namespace thalweg::cpu {

/// One inner loop: operand 0 is the output, the others are the inputs; steps count bytes and may be 0 or
/// negative for inputs. The output may be the very bytes of an input, element for element.
using Loop = void (*)(char* const* data, const int64_t* steps, int64_t count);

inline constexpr int kLoopDTypes = 13;

/// The place of a C++ type in a row of a table: the number of its DType.
template <class T>
inline constexpr int kLoopIndex = -1;
template <>
inline constexpr int kLoopIndex<bool> = 0;
template <>
inline constexpr int kLoopIndex<int8_t> = 1;
template <>
inline constexpr int kLoopIndex<int16_t> = 2;
template <>
inline constexpr int kLoopIndex<int32_t> = 3;
template <>
inline constexpr int kLoopIndex<int64_t> = 4;
template <>
inline constexpr int kLoopIndex<uint8_t> = 5;
template <>
inline constexpr int kLoopIndex<uint16_t> = 6;
template <>
inline constexpr int kLoopIndex<uint32_t> = 7;
template <>
inline constexpr int kLoopIndex<uint64_t> = 8;
template <>
inline constexpr int kLoopIndex<float> = 9;
template <>
inline constexpr int kLoopIndex<double> = 10;
template <>
inline constexpr int kLoopIndex<functors::Complex<float>> = 11;
template <>
inline constexpr int kLoopIndex<functors::Complex<double>> = 12;

/// The elementwise functions by their Ops' names.
// clang-format off
#define THALWEG_UNARY_FNS(X)                                                                                 \
  X(negative) X(positive) X(abs) X(sign) X(square) X(reciprocal) X(logical_not) X(bitwise_invert) X(isnan)   \
  X(isinf) X(isfinite) X(signbit) X(sqrt) X(floor) X(ceil) X(trunc) X(round) X(exp) X(expm1) X(log)          \
  X(log1p) X(log2) X(log10) X(sin) X(cos) X(tan) X(asin) X(acos) X(atan) X(sinh) X(cosh) X(tanh) X(asinh)    \
  X(acosh) X(atanh) X(erf) X(erfc) X(sigmoid) X(silu) X(gelu) X(conj)        \
  X(relu)
#define THALWEG_BINARY_FNS(X)                                                                                \
  X(add) X(subtract) X(multiply) X(divide) X(floor_divide) X(remainder) X(pow) X(minimum) X(maximum)         \
  X(copysign) X(nextafter) X(atan2) X(hypot) X(logaddexp) X(logical_and) X(logical_or) X(logical_xor)        \
  X(bitwise_and) X(bitwise_or) X(bitwise_xor) X(bitwise_left_shift) X(bitwise_right_shift)         \
  X(relu_gradient) X(tanh_gradient) X(sigmoid_gradient) X(silu_gradient) X(gelu_gradient)
#define THALWEG_COMPARE_FNS(X) X(equal) X(not_equal) X(less) X(less_equal) X(greater) X(greater_equal)
// clang-format on

#define THALWEG_ENUMERATOR(name) name,
enum class UnaryFn { THALWEG_UNARY_FNS(THALWEG_ENUMERATOR) count };
enum class BinaryFn { THALWEG_BINARY_FNS(THALWEG_ENUMERATOR) count };
enum class CompareFn { THALWEG_COMPARE_FNS(THALWEG_ENUMERATOR) count };
#undef THALWEG_ENUMERATOR

/// Loops by function and dtype of the inputs; null where inference lets no such operator through.
struct ElementwiseTable {
  Loop unary[static_cast<int>(UnaryFn::count)][kLoopDTypes];
  Loop binary[static_cast<int>(BinaryFn::count)][kLoopDTypes];
  Loop compare[static_cast<int>(CompareFn::count)][kLoopDTypes];
  Loop compare_uint64_int64[static_cast<int>(CompareFn::count)];
  Loop compare_int64_uint64[static_cast<int>(CompareFn::count)];
  Loop clip[kLoopDTypes];
  /// x^3 and x^0.5, of floating dtypes.
  Loop cube[kLoopDTypes];
  Loop half_power[kLoopDTypes];
  /// By log2 of the item size: condition ? x : y, whatever the bits mean.
  Loop where[5];
  /// By dtype of the input, then of the output.
  Loop cast[kLoopDTypes][kLoopDTypes];
};

}  // namespace thalweg::cpu
