// cast_test.cpp: astype, contiguous, to_device and check_nan.
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "kernels/elementwise_reference.h"

namespace thalweg::testing {
namespace {

template <class T>
Array filled(const std::vector<T>& elements) {
  Array result = allocate(dtype_of<T>(), {static_cast<std::int64_t>(elements.size())});
  T* out = static_cast<T*>(result.data());
  for (T element : elements) *out++ = element;
  return result;
}

Array astype(const Array& x, DType dtype) { return run_op("astype", {x}, {{"dtype", dtype}}); }

/// True where C++ defines the conversion of `value` to `To` as truncation towards zero.
template <class To>
bool is_in_range(double value) {
  return value > static_cast<double>(std::numeric_limits<To>::min()) - 1 &&
         value < static_cast<double>(std::numeric_limits<To>::max());
}

TEST(Cast, BetweenAllDTypesAsInCpp) {
  for (DType from : kAllDTypes) {
    for (DType to : kAllDTypes) {
      visit_real_dtype(from, [&]<class From>() {
        visit_real_dtype(to, [&]<class To>() {
          std::vector<From> x = telling_values<From>();
          Array result = astype(filled(x), to);
          ASSERT_EQ(result.meta.dtype, to);
          for (std::size_t i = 0; i < x.size(); ++i) {
            From value = x[i];
            if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To> &&
                          !std::is_same_v<To, bool>) {
              if (!is_in_range<To>(value)) continue;
            }
            To expected =
                std::is_same_v<To, bool> ? static_cast<To>(value != From(0)) : static_cast<To>(value);
            To found = static_cast<To*>(result.data())[i];
            bool both_nan = expected != expected && found != found;
            EXPECT_TRUE(found == expected || both_nan)
                << name(from) << " to " << name(to) << " of " << +value;
          }
        });
      });
    }
  }
}

// NumPy's results on x86 for what C++ leaves undefined; every position of a vector gives the same.
template <class To>
void check_out_of_range(const std::vector<To>& expected) {
  const double inf = std::numeric_limits<double>::infinity();
  const std::vector<double> x = {NAN, inf, -inf, 1e300, -1e300, 3e9, -3e9};
  for (std::size_t i = 0; i < x.size(); ++i) {
    Array result = astype(filled(std::vector<double>(19, x[i])), dtype_of<To>());
    for (To found : values<To>(result)) ASSERT_EQ(+found, +expected[i]) << x[i];
    result = astype(filled(std::vector<float>(19, static_cast<float>(x[i]))), dtype_of<To>());
    for (To found : values<To>(result)) ASSERT_EQ(+found, +expected[i]) << "float32 " << x[i];
  }
}

TEST(Cast, OutOfRangeFloatsGiveNumPysResults) {
  constexpr auto low32 = std::numeric_limits<std::int32_t>::min();
  constexpr auto low64 = std::numeric_limits<std::int64_t>::min();
  check_out_of_range<std::int8_t>({0, 0, 0, 0, 0, 0, 0});
  check_out_of_range<std::uint16_t>({0, 0, 0, 0, 0, 0, 0});
  check_out_of_range<std::int32_t>({low32, low32, low32, low32, low32, low32, low32});
  check_out_of_range<std::int64_t>({low64, low64, low64, low64, low64, 3000000000, -3000000000});
  constexpr std::uint64_t high_bit = std::uint64_t{1} << 63;
  check_out_of_range<std::uint64_t>(
      {high_bit, 0, high_bit, 0, high_bit, 3000000000, std::uint64_t(-3000000000)});
}

TEST(Cast, SmallIntegersWrapThroughInt32) {
  EXPECT_EQ(values<std::int8_t>(astype(filled<double>({300.7, -300.7, -1.0}), DType::int8)),
            (std::vector<std::int8_t>{44, -44, -1}));
  EXPECT_EQ(values<std::uint8_t>(astype(filled<float>({300.7f, -1.0f, 255.9f}), DType::uint8)),
            (std::vector<std::uint8_t>{44, 255, 255}));
}

TEST(Cast, AnythingButZeroIsTrue) {
  Array result = astype(filled<double>({0.0, -0.0, 1e-300, NAN, -3}), DType::bool_);
  const bool* found = static_cast<bool*>(result.data());
  EXPECT_FALSE(found[0]);
  EXPECT_FALSE(found[1]);
  EXPECT_TRUE(found[2] && found[3] && found[4]);
}

TEST(Cast, TakesAnyStrides) {
  Array x = small_integers(DType::float64, {30, 41}, 8);
  Array expected = astype(x, DType::int16);
  for (Layout layout : kAllLayouts)
    EXPECT_TRUE(same_bits(astype(with_layout(x, layout), DType::int16), expected));
}

TEST(Cast, ToDeviceCopiesInCOrder) {
  Array x = small_integers(DType::int32, {30, 41}, 8);
  const Device second{DeviceType::cpu, 1};
  Array result = run_op("to_device", {with_layout(x, Layout::transposed)}, {{"device", second}});
  EXPECT_TRUE(same_bits(result, x));
  EXPECT_EQ(result.meta.device, second);
  EXPECT_EQ(registries().ops.find("to_device").kind, OpKind::copy);
}

TEST(CheckNan, PassesWhatHasNone) {
  const NamedAttributes attributes = {{"function", std::string("F")}, {"input", std::int64_t{1}}};
  for (DType dtype : {DType::float32, DType::float64}) {
    Array x = small_integers(dtype, {30, 41}, 8);
    EXPECT_TRUE(same_bits(run_op("check_nan", {x}, attributes), x));
  }
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(values<double>(run_op("check_nan", {filled<double>({infinity, -infinity, 0})}, attributes)),
            (std::vector<double>{infinity, -infinity, 0}));
}

TEST(CheckNan, FailsWhereverItIs) {
  const NamedAttributes attributes = {{"function", std::string("F")}, {"input", std::int64_t{1}}};
  for (std::size_t place : {0u, 1u, 99'999u, 199'999u}) {
    std::vector<float> x(200'000, 1.0f);
    x[place] = NAN;
    EXPECT_THROW(run_op("check_nan", {filled(x)}, attributes), ValueError);
  }
}

}  // namespace
}  // namespace thalweg::testing
