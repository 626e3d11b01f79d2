// elementwise_test.cpp: arithmetic, comparison, logic, bits, where and clip, against independent references.
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "kernels/elementwise_reference.h"

namespace thalweg::testing {
namespace {

template <class Fn>
void for_integer_dtypes(Fn fn) {
  for (DType dtype : kAllDTypes) {
    if (is_integer(dtype)) visit_real_dtype(dtype, fn);
  }
}

template <class T>
Array vector_of(const std::vector<T>& elements) {
  return array_of<T>({static_cast<std::int64_t>(elements.size())}, elements);
}

// std::vector<bool> has no contiguous elements; bool has only four pairs.
Array bools(std::initializer_list<int> bits) {
  Array result = allocate(DType::bool_, {static_cast<std::int64_t>(bits.size())});
  std::copy(bits.begin(), bits.end(), static_cast<bool*>(result.data()));
  return result;
}

TEST(Elementwise, IntegersWrapAndDivideAsInNumPy) {
  for (const IntegerCase& each : integer_cases()) {
    for_integer_dtypes([&]<class T>() {
      auto [a, b] = telling_pairs<T>();
      std::vector<T> result = values<T>(run_op(each.op, {vector_of(a), vector_of(b)}));
      for (std::size_t i = 0; i < a.size(); ++i) {
        T expected =
            static_cast<T>(each.exact(static_cast<Int128>(a[i]), static_cast<Int128>(b[i]), 8 * sizeof(T)));
        ASSERT_EQ(+result[i], +expected)
            << each.op << " " << name(dtype_of<T>()) << " " << +a[i] << " " << +b[i];
      }
    });
  }
}

TEST(Elementwise, IntegerPowersWrap) {
  for_integer_dtypes([&]<class T>() {
    for (T base : telling_values<T>()) {
      for (int exponent = 0; exponent < 70; ++exponent) {
        Array result = run_op("pow", {vector_of<T>({base}), vector_of<T>({T(exponent)})});
        T expected = static_cast<T>(power(static_cast<Int128>(base), exponent));
        ASSERT_EQ(+values<T>(result)[0], +expected) << name(dtype_of<T>()) << " " << +base << " " << exponent;
      }
    }
  });
}

TEST(Elementwise, NegativeIntegerPowersThrow) {
  Array base = vector_of<std::int32_t>({1, 2, 3});
  Array exponent = vector_of<std::int32_t>({1, -1, 2});
  std::string text = error_text<ValueError>([&] { run_op("pow", {base, exponent}); });
  EXPECT_NE(text.find("pow: Integers to negative integer powers are not allowed"), std::string::npos) << text;
  Array reversed = with_layout(exponent, Layout::reversed);
  EXPECT_THROW(run_op("pow", {base, reversed}), ValueError);
  EXPECT_NO_THROW(run_op("pow", {cast(base, DType::float64), exponent}));
  EXPECT_NO_THROW(run_op("pow", {allocate(DType::int64, {0}), vector_of<std::int64_t>({-1})}));
}

TEST(Elementwise, PredicatesOfEveryDType) {
  for (const PredicateCase& each : predicate_cases()) {
    for (DType dtype : kAllDTypes) {
      if (dtype == DType::bool_) continue;
      visit_real_dtype(dtype, [&]<class T>() {
        if constexpr (!std::is_same_v<T, bool>) {
          auto [a, b] = telling_pairs<T>();
          Array result = run_op(each.op, {vector_of(a), vector_of(b)});
          ASSERT_EQ(result.meta.dtype, DType::bool_);
          for (std::size_t i = 0; i < a.size(); ++i) {
            ASSERT_EQ(static_cast<bool*>(result.data())[i], each.holds(a[i], b[i]))
                << each.op << " " << name(dtype) << " " << +a[i] << " " << +b[i];
          }
        }
      });
    }
  }
}

TEST(Elementwise, ComparesUint64WithSignedByValue) {
  for (const PredicateCase& each : predicate_cases()) {
    if (std::string(each.op).starts_with("logical")) continue;
    for (std::uint64_t a : telling_values<std::uint64_t>()) {
      for (std::int64_t b : telling_values<std::int64_t>()) {
        Array left = vector_of<std::uint64_t>({a});
        Array right = vector_of<std::int64_t>({b});
        EXPECT_EQ(*static_cast<bool*>(run_op(each.op, {left, right}).data()), each.holds(a, b))
            << each.op << a << b;
        EXPECT_EQ(*static_cast<bool*>(run_op(each.op, {right, left}).data()), each.holds(b, a))
            << each.op << b << a;
      }
    }
  }
  Array small = vector_of<std::int8_t>({-1});
  EXPECT_FALSE(*static_cast<bool*>(run_op("equal", {vector_of<std::uint64_t>({UINT64_MAX}), small}).data()));
}

TEST(Elementwise, BoolArithmeticIsLogic) {
  Array a = bools({0, 0, 1, 1});
  Array b = bools({0, 1, 0, 1});
  EXPECT_TRUE(same_bits(run_op("add", {a, b}), bools({0, 1, 1, 1})));
  EXPECT_TRUE(same_bits(run_op("multiply", {a, b}), bools({0, 0, 0, 1})));
  EXPECT_TRUE(same_bits(run_op("minimum", {a, b}), bools({0, 0, 0, 1})));
  EXPECT_TRUE(same_bits(run_op("bitwise_xor", {a, b}), bools({0, 1, 1, 0})));
  EXPECT_TRUE(same_bits(run_op("less", {a, b}), bools({0, 1, 0, 0})));
  EXPECT_TRUE(same_bits(run_op("bitwise_invert", {a}), bools({1, 1, 0, 0})));
  EXPECT_EQ(run_op("floor_divide", {a, b}).meta.dtype, DType::int8);
  EXPECT_EQ(run_op("divide", {a, b}).meta.dtype, DType::float64);
}

TEST(Elementwise, RejectsDTypesThatHaveNoMeaning) {
  Array flags = bools({0, 1});
  Array floats = vector_of<float>({1, 2});
  EXPECT_THROW(run_op("subtract", {flags, flags}), DTypeError);
  for (const char* op : {"negative", "positive", "sign"}) EXPECT_THROW(run_op(op, {flags}), DTypeError) << op;
  for (const char* op :
       {"bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift"}) {
    EXPECT_THROW(run_op(op, {floats, floats}), DTypeError) << op;
  }
  EXPECT_THROW(run_op("bitwise_invert", {floats}), DTypeError);
  Array wide = vector_of<std::uint64_t>({1, 2});
  EXPECT_THROW(run_op("bitwise_or", {wide, vector_of<std::int64_t>({1, 2})}), DTypeError);
}

// Python's rule for floats, from the exact remainder.
template <class T>
std::pair<T, T> divmod(T a, T b) {
  T rest = std::fmod(a, b);
  if (b == 0) return {a / b, rest};
  T quotient = (a - rest) / b;
  if (rest == 0) {
    rest = std::copysign(T(0), b);
  } else if (std::signbit(b) != std::signbit(rest)) {
    rest += b;
    quotient -= 1;
  }
  if (quotient == 0) return {std::copysign(T(0), a / b), rest};
  T whole = std::floor(quotient);
  return {quotient - whole > T(0.5) ? whole + 1 : whole, rest};
}

template <class T>
void check_float_arithmetic() {
  auto [a, b] = telling_pairs<T>();
  struct Case {
    const char* op;
    T (*expected)(T, T);
  };
  const Case cases[] = {
      {"add", [](T x, T y) { return x + y; }},
      {"subtract", [](T x, T y) { return x - y; }},
      {"multiply", [](T x, T y) { return x * y; }},
      {"divide", [](T x, T y) { return x / y; }},
      {"floor_divide", [](T x, T y) { return std::isinf(x) || std::isinf(y) ? x / y : divmod(x, y).first; }},
      {"remainder", [](T x, T y) { return divmod(x, y).second; }},
      {"copysign", [](T x, T y) { return std::copysign(x, y); }},
      {"nextafter", [](T x, T y) { return std::nextafter(x, y); }},
      {"minimum", [](T x, T y) { return std::isnan(x)   ? x
                                        : std::isnan(y) ? y
                                        : x <= y        ? x
                                                        : y; }},
      {"maximum", [](T x, T y) { return std::isnan(x)   ? x
                                        : std::isnan(y) ? y
                                        : x >= y        ? x
                                                        : y; }},
  };
  for (const Case& each : cases) {
    std::vector<T> result = values<T>(run_op(each.op, {vector_of(a), vector_of(b)}));
    for (std::size_t i = 0; i < a.size(); ++i) {
      ASSERT_EQ(units_off(result[i], each.expected(a[i], b[i])), 0) << each.op << " " << a[i] << " " << b[i];
    }
  }
}

TEST(Elementwise, FloatArithmetic) {
  check_float_arithmetic<float>();
  check_float_arithmetic<double>();
}

TEST(Elementwise, IntegerUnaryFunctionsWrap) {
  for_integer_dtypes([]<class T>() {
    std::vector<T> x = telling_values<T>();
    std::vector<T> negative = values<T>(run_op("negative", {vector_of(x)}));
    std::vector<T> size = values<T>(run_op("abs", {vector_of(x)}));
    std::vector<T> sign = values<T>(run_op("sign", {vector_of(x)}));
    std::vector<T> floor = values<T>(run_op("floor", {vector_of(x)}));
    for (std::size_t i = 0; i < x.size(); ++i) {
      Int128 value = static_cast<Int128>(x[i]);
      EXPECT_EQ(negative[i], static_cast<T>(-value));
      EXPECT_EQ(size[i], static_cast<T>(value < 0 ? -value : value));
      EXPECT_EQ(sign[i], static_cast<T>((value > 0) - (value < 0)));
      EXPECT_EQ(floor[i], x[i]);
    }
  });
}

TEST(Elementwise, WhereTakesEitherValue) {
  Array condition = bools({1, 0, 1});
  Array result =
      run_op("where", {condition, vector_of<std::int8_t>({1, 2, 3}), vector_of<std::int16_t>({10, 20, 30})});
  EXPECT_EQ(values<std::int16_t>(result), (std::vector<std::int16_t>{1, 20, 3}));
  Array numbers = vector_of<double>({0.5, 0.0, NAN});
  Array fallback = vector_of<float>({7});
  EXPECT_EQ(values<float>(run_op("where", {numbers, vector_of<float>({1, 2, 3}), fallback})),
            (std::vector<float>{1, 7, 3}));
}

TEST(Elementwise, ClipPropagatesNanAndPrefersTheUpperBound) {
  Array x = vector_of<float>({-5, 0.5, 5, NAN});
  Array low = vector_of<float>({-1});
  Array high = vector_of<float>({1});
  std::vector<float> result = values<float>(run_op("clip", {x, low, high}));
  EXPECT_EQ(result[0], -1);
  EXPECT_EQ(result[1], 0.5f);
  EXPECT_EQ(result[2], 1);
  EXPECT_TRUE(std::isnan(result[3]));
  EXPECT_EQ(values<float>(run_op("clip", {x, high, low}))[1], -1);
  EXPECT_TRUE(std::isnan(values<float>(run_op("clip", {x, vector_of<float>({NAN}), high}))[0]));
  EXPECT_EQ(run_op("clip", {vector_of<std::int8_t>({1}), vector_of<std::int16_t>({0}), low}).meta.dtype,
            DType::float32);
}

TEST(Elementwise, MixedDTypesArePromoted) {
  Array result = run_op("add", {vector_of<std::uint8_t>({200}), vector_of<std::int8_t>({-100})});
  EXPECT_EQ(values<std::int16_t>(result), std::vector<std::int16_t>{100});
  EXPECT_EQ(run_op("add", {vector_of<std::int32_t>({1}), vector_of<float>({1})}).meta.dtype, DType::float64);
  EXPECT_EQ(run_op("exp", {vector_of<std::int8_t>({1})}).meta.dtype, DType::float64);
  EXPECT_EQ(run_op("atan2", {vector_of<float>({1}), vector_of<std::int8_t>({1})}).meta.dtype, DType::float32);
}

}  // namespace
}  // namespace thalweg::testing
