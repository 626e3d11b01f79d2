// elementwise_reference.h: what elementwise Ops must give, written independently of the kernels: integers in
// 128 bits, floating point in long double.
#pragma once

#include <cmath>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "kernels/op_runner.h"

namespace thalweg::testing {

__extension__ typedef __int128 Int128;

/// Edges and small numbers of a dtype.
template <class T>
std::vector<T> telling_values() {
  using Limits = std::numeric_limits<T>;
  if constexpr (std::is_same_v<T, bool>) {
    return {false, true};
  } else if constexpr (std::is_floating_point_v<T>) {
    return {T(0),
            -T(0),
            T(1),
            T(-1),
            T(2),
            T(-2),
            T(0.5),
            T(-0.5),
            T(1.5),
            T(2.5),
            T(-2.5),
            T(3.75),
            T(-3.75),
            T(7),
            T(-7),
            T(1e10),
            T(-1e10),
            Limits::max(),
            Limits::lowest(),
            Limits::min(),
            Limits::denorm_min(),
            Limits::infinity(),
            -Limits::infinity(),
            Limits::quiet_NaN()};
  } else {
    constexpr int bits = 8 * sizeof(T);
    std::vector<T> values = {
        Limits::min(), T(Limits::min() + 1), Limits::max(), T(Limits::max() - 1), T(0), T(1), T(2), T(3),
        T(7),          T(bits - 1),          T(bits)};
    if (std::is_signed_v<T>) {
      for (int value : {-1, -2, -3, -7}) values.push_back(T(value));
    }
    return values;
  }
}

/// Every pair of telling values, as two arrays.
template <class T>
std::pair<std::vector<T>, std::vector<T>> telling_pairs() {
  std::pair<std::vector<T>, std::vector<T>> result;
  for (T a : telling_values<T>()) {
    for (T b : telling_values<T>()) {
      result.first.push_back(a);
      result.second.push_back(b);
    }
  }
  return result;
}

inline Int128 floor_divide(Int128 a, Int128 b) {
  if (b == 0) return 0;
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

inline Int128 power(Int128 base, Int128 exponent) {
  // Modulo 2^64: the low bits are all that remain.
  std::uint64_t result = 1;
  for (Int128 i = 0; i < (exponent > 300 ? exponent % 64 + 256 : exponent); ++i) {
    result *= static_cast<std::uint64_t>(base);
  }
  return static_cast<Int128>(result);
}

inline Int128 shift_left(Int128 a, Int128 count, int bits) {
  return count < 0 || count >= bits
             ? 0
             : static_cast<Int128>(static_cast<std::uint64_t>(a) << static_cast<int>(count));
}

inline Int128 shift_right(Int128 a, Int128 count, int bits) {
  if (count < 0 || count >= bits) return a < 0 ? -1 : 0;
  return a >> static_cast<int>(count);
}

/// Operators of integers: the exact result, which wraps into the dtype.
struct IntegerCase {
  const char* op;
  Int128 (*exact)(Int128 a, Int128 b, int bits);
};
inline const std::vector<IntegerCase>& integer_cases() {
  static const std::vector<IntegerCase> cases = {
      {"add", [](Int128 a, Int128 b, int) { return a + b; }},
      {"subtract", [](Int128 a, Int128 b, int) { return a - b; }},
      {"multiply",
       [](Int128 a, Int128 b, int) -> Int128 {
         return static_cast<Int128>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
       }},
      {"floor_divide", [](Int128 a, Int128 b, int) { return floor_divide(a, b); }},
      {"remainder", [](Int128 a, Int128 b, int) { return b == 0 ? 0 : a - floor_divide(a, b) * b; }},
      {"minimum", [](Int128 a, Int128 b, int) { return a < b ? a : b; }},
      {"maximum", [](Int128 a, Int128 b, int) { return a > b ? a : b; }},
      {"bitwise_and", [](Int128 a, Int128 b, int) { return a & b; }},
      {"bitwise_or", [](Int128 a, Int128 b, int) { return a | b; }},
      {"bitwise_xor", [](Int128 a, Int128 b, int) { return a ^ b; }},
      {"bitwise_left_shift", shift_left},
      {"bitwise_right_shift", shift_right},
  };
  return cases;
}

/// Operators that give bool, of any dtype; long double holds every element exactly.
struct PredicateCase {
  const char* op;
  bool (*holds)(long double a, long double b);
};
inline const std::vector<PredicateCase>& predicate_cases() {
  static const std::vector<PredicateCase> cases = {
      {"equal", [](long double a, long double b) { return a == b; }},
      {"not_equal", [](long double a, long double b) { return a != b; }},
      {"less", [](long double a, long double b) { return a < b; }},
      {"less_equal", [](long double a, long double b) { return a <= b; }},
      {"greater", [](long double a, long double b) { return a > b; }},
      {"greater_equal", [](long double a, long double b) { return a >= b; }},
      {"logical_and", [](long double a, long double b) { return a != 0 && b != 0; }},
      {"logical_or", [](long double a, long double b) { return a != 0 || b != 0; }},
      {"logical_xor", [](long double a, long double b) { return (a != 0) != (b != 0); }},
  };
  return cases;
}

/// Functions of floating numbers with an accuracy of one unit in the last place.
struct MathCase {
  const char* op;
  long double (*exact)(long double x);
};
inline const std::vector<MathCase>& math_cases() {
  static const std::vector<MathCase> cases = {
      {"exp", std::exp},     {"expm1", std::expm1}, {"log", std::log},   {"log1p", std::log1p},
      {"log2", std::log2},   {"log10", std::log10}, {"sin", std::sin},   {"cos", std::cos},
      {"tan", std::tan},     {"asin", std::asin},   {"acos", std::acos}, {"atan", std::atan},
      {"sinh", std::sinh},   {"cosh", std::cosh},   {"tanh", std::tanh}, {"asinh", std::asinh},
      {"acosh", std::acosh}, {"atanh", std::atanh}, {"erf", std::erf},   {"erfc", std::erfc},
  };
  return cases;
}

/// Functions with one right answer.
inline const std::vector<MathCase>& exact_cases() {
  static const std::vector<MathCase> cases = {
      {"sqrt", std::sqrt},
      {"floor", std::floor},
      {"ceil", std::ceil},
      {"trunc", std::trunc},
      {"round", std::nearbyint},
      {"abs", std::fabs},
      {"negative", [](long double x) { return -x; }},
      {"positive", [](long double x) { return x; }},
      {"square", [](long double x) { return x * x; }},
      {"reciprocal", [](long double x) { return 1 / x; }},
      {"sign", [](long double x) { return std::isnan(x) ? x : (x > 0) - (x < 0) + 0.0L; }},
  };
  return cases;
}

/// How many units in the last place of `exact`, rounded to T, `value` is away from `exact`; 0 for equal
/// values and for two NaNs, infinite if only one is NaN or infinite or if zeros differ in sign.
template <class T>
double units_off(T value, long double exact) {
  T nearest = static_cast<T>(exact);
  if (std::isnan(value) || std::isnan(nearest))
    return std::isnan(value) == std::isnan(nearest) ? 0 : INFINITY;
  if (value == nearest) return std::signbit(value) == std::signbit(nearest) ? 0 : INFINITY;
  if (std::isinf(value) || std::isinf(nearest)) return INFINITY;
  long double unit = std::fabs(static_cast<long double>(std::nextafter(nearest, T(0))) - nearest);
  if (nearest == 0) unit = std::numeric_limits<T>::denorm_min();
  return static_cast<double>(std::fabs(static_cast<long double>(value) - exact) / unit);
}

}  // namespace thalweg::testing
