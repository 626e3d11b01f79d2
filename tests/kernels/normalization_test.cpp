// normalization_test.cpp: the loops over rows of every instruction set against plain ones in double.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cpu/isa.h"
#include "kernels/cpu/normalization_table.h"

namespace thalweg::cpu {

THALWEG_DECLARE_PER_ISA(fill_normalization, NormalizationTable)

namespace {

template <class T>
class RowLoopsTest : public ::testing::Test {
 protected:
  static constexpr double kRounding = double{std::numeric_limits<T>::epsilon()};
  static constexpr T kInfinity = std::numeric_limits<T>::infinity();

  /// Calls `check(loops, row)` for every instruction set and rows of many lengths.
  template <class Check>
  void for_each_row(Check check) {
    std::mt19937 random(3);
    std::uniform_real_distribution<T> uniform(-9, 9);
    for (Isa isa : kIsas) {
      if (!is_supported(isa)) continue;
      NormalizationTable table{};
      fill_normalization(isa, table);
      const RowLoops<T>& loops = table;
      for (std::int64_t count = 1; count < 300; count += count < 140 ? 1 : 37) {
        std::vector<T> row(static_cast<std::size_t>(count));
        for (T& x : row) x = uniform(random);
        check(loops, row);
      }
    }
  }
};
using Numbers = ::testing::Types<float, double>;
TYPED_TEST_SUITE(RowLoopsTest, Numbers);

TYPED_TEST(RowLoopsTest, LargestIsThatOfNumbers) {
  using T = TypeParam;
  this->for_each_row([&](const RowLoops<T>& loops, std::vector<T> row) {
    const auto count = std::ssize(row);
    EXPECT_EQ(loops.largest(row.data(), count), *std::max_element(row.begin(), row.end()));
    for (std::int64_t i = 0; i < count; i += 3) row[i] = std::numeric_limits<T>::quiet_NaN();
    T expected = -this->kInfinity;
    for (T x : row) expected = x > expected ? x : expected;
    EXPECT_EQ(loops.largest(row.data(), count), expected);
  });
}

TYPED_TEST(RowLoopsTest, SumsAreThoseOfPlainLoops) {
  using T = TypeParam;
  this->for_each_row([&](const RowLoops<T>& loops, const std::vector<T>& row) {
    const auto count = std::ssize(row);
    double sum = 0;
    double size = 0;
    double squares = 0;
    double powers = 0;
    for (double x : row) {
      sum += x;
      size += std::abs(x);
      squares += (x - 0.5) * (x - 0.5);
      powers += std::exp(x - 9);
    }
    EXPECT_NEAR(loops.sum(row.data(), count), sum, 10 * this->kRounding * size);
    EXPECT_NEAR(loops.square_sum(row.data(), T(0.5), count), squares, 10 * this->kRounding * squares);
    // The difference x - 9 is rounded before.
    EXPECT_NEAR(loops.exp_sum(row.data(), T(9), count), powers, 20 * this->kRounding * powers);
    std::vector<T> out(row.size() + 1, T(77));
    EXPECT_EQ(loops.exp(row.data(), T(9), out.data(), count), loops.exp_sum(row.data(), T(9), count));
    EXPECT_EQ(out.back(), T(77));
    for (std::size_t i = 0; i < row.size(); ++i) {
      const double expected = std::exp(double{row[i] - T(9)});
      EXPECT_NEAR(out[i], expected, 1.2 * this->kRounding * expected);
    }
  });
}

TYPED_TEST(RowLoopsTest, ResultsAreThoseOfPlainLoops) {
  using T = TypeParam;
  this->for_each_row([&](const RowLoops<T>& loops, const std::vector<T>& row) {
    const auto count = std::ssize(row);
    std::vector<T> weight(row.rbegin(), row.rend());
    std::vector<T> out(row.size() + 1, T(77));
    const auto check = [&](auto expected) {
      for (std::size_t i = 0; i < row.size(); ++i) ASSERT_EQ(out[i], expected(i)) << i << " of " << count;
      ASSERT_EQ(out.back(), T(77));
    };
    loops.subtract(row.data(), T(3), T(0.7), out.data(), count);
    check([&](std::size_t i) { return (row[i] - T(3)) - T(0.7); });
    loops.normalize(row.data(), T(3), T(0.7), nullptr, nullptr, out.data(), count);
    check([&](std::size_t i) { return (row[i] - T(3)) * T(0.7); });
    loops.normalize(row.data(), T(3), T(0.7), weight.data(), nullptr, out.data(), count);
    check([&](std::size_t i) { return (row[i] - T(3)) * T(0.7) * weight[i]; });
    loops.normalize(row.data(), T(3), T(0.7), weight.data(), row.data(), out.data(), count);
    check([&](std::size_t i) { return (row[i] - T(3)) * T(0.7) * weight[i] + row[i]; });
    std::vector<T> in_place = row;
    loops.normalize(in_place.data(), T(3), T(0.7), nullptr, nullptr, in_place.data(), count);
    std::copy(in_place.begin(), in_place.end(), out.begin());
    check([&](std::size_t i) { return (row[i] - T(3)) * T(0.7); });
  });
}

TYPED_TEST(RowLoopsTest, ColumnsAreTakenLikeRows) {
  using T = TypeParam;
  constexpr std::int64_t rows = 7;
  this->for_each_row([&](const RowLoops<T>& loops, const std::vector<T>& row) {
    const auto count = std::ssize(row) / 2 + 1;
    const std::int64_t step = count + 3;
    std::vector<T> in(static_cast<std::size_t>(rows * step));
    for (std::size_t i = 0; i < in.size(); ++i) in[i] = row[i * 11 % row.size()];
    std::vector<T> best(static_cast<std::size_t>(count), T(-8.5));
    std::vector<T> sums(best.size(), T(1));
    std::vector<T> same_sums(best.size(), T(1));
    std::vector<T> powers(in.size(), T(77));
    std::vector<T> shifted(in.size(), T(77));
    std::vector<T> scaled = in;
    const std::vector<T> shifts(best.size(), T(9));
    loops.largest_down(in.data(), rows, step, best.data(), count);
    loops.exp_down(in.data(), rows, step, shifts.data(), powers.data(), sums.data(), count);
    loops.exp_down(in.data(), rows, step, shifts.data(), nullptr, same_sums.data(), count);
    loops.subtract_down(in.data(), rows, step, best.data(), shifts.data(), shifted.data(), count);
    loops.scale_down(scaled.data(), rows, step, best.data(), count);
    EXPECT_EQ(sums, same_sums);
    for (std::int64_t column = 0; column < step; ++column) {
      double sum = 1;
      T largest = T(-8.5);
      for (std::int64_t at = column; at < rows * step; at += step) {
        if (column >= count) {
          ASSERT_EQ(powers[at], T(77));
          ASSERT_EQ(shifted[at], T(77));
          ASSERT_EQ(scaled[at], in[at]);
          continue;
        }
        const double power = std::exp(double{in[at] - T(9)});
        sum += power;
        largest = std::max(largest, in[at]);
        ASSERT_NEAR(powers[at], power, 1.2 * this->kRounding * power);
        ASSERT_EQ(shifted[at], (in[at] - best[column]) - T(9));
        ASSERT_EQ(scaled[at], in[at] * best[column]);
      }
      if (column >= count) continue;
      ASSERT_EQ(best[column], largest);
      ASSERT_NEAR(sums[column], sum, 20 * this->kRounding * sum);
    }
  });
}

TYPED_TEST(RowLoopsTest, ExpOfFarAwayNumbersIsRight) {
  using T = TypeParam;
  std::vector<T> row{-this->kInfinity, T(-1e30), T(-800),   T(-104.5), T(-103.9), T(-103), T(-95),
                     T(-88),           T(-87),   T(-1e-30), T(-0.0),   T(0),      T(-1),   T(-0.34657),
                     T(-0.34658),      T(-50)};
  for (Isa isa : kIsas) {
    if (!is_supported(isa)) continue;
    NormalizationTable table{};
    fill_normalization(isa, table);
    const RowLoops<T>& loops = table;
    std::vector<T> out(row.size());
    loops.exp(row.data(), T(0), out.data(), std::ssize(row));
    for (std::size_t i = 0; i < row.size(); ++i) {
      const double expected = std::exp(double{row[i]});
      const double spacing =
          std::max(expected * this->kRounding, double{std::numeric_limits<T>::denorm_min()});
      EXPECT_LE(std::abs(out[i] - expected), 1.1 * spacing) << row[i];
    }
    for (T x : {this->kInfinity, std::numeric_limits<T>::quiet_NaN()}) {
      const std::vector<T> with{T(0), x};
      EXPECT_TRUE(std::isnan(loops.exp_sum(with.data(), x == x ? x : T(0), 2)));
    }
  }
}

}  // namespace
}  // namespace thalweg::cpu
