// sort_test.cpp: sort, argsort, searchsorted, the scans and selection by masks against loops and the standard
// library, over dtypes and layouts.
#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "kernels/op_runner.h"

namespace thalweg::testing {
namespace {

template <class T>
bool comes_before(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) return a < b || (std::isnan(b) && !std::isnan(a));
  return a < b;
}

/// The stable order of `elements`.
template <class T>
std::vector<std::int64_t> order_of(const std::vector<T>& elements) {
  std::vector<std::int64_t> order(elements.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    return comes_before<T>(elements[static_cast<std::size_t>(a)], elements[static_cast<std::size_t>(b)]);
  });
  return order;
}

TEST(Sort, OrdersRowsOfEveryLayout) {
  for (DType dtype : kAllDTypes) {
    const Array contiguous = small_integers(dtype, {100});
    visit_real_dtype(dtype, [&]<class T>() {
      const std::vector<T> elements = values<T>(contiguous);
      const std::vector<std::int64_t> order = order_of(elements);
      std::vector<T> expected;
      for (std::int64_t i : order) expected.push_back(elements[static_cast<std::size_t>(i)]);
      for (Layout layout : kAllLayouts) {
        const Array x = with_layout(contiguous, layout);
        EXPECT_EQ(values<T>(run_op("sort", {x})), expected) << name(dtype);
        EXPECT_EQ(values<std::int64_t>(run_op("argsort", {x})), order) << name(dtype);
      }
    });
  }
}

TEST(Sort, LongRowsAreStable) {
  // Long enough for the split into buckets; few values, so that equal elements are many.
  std::vector<double> elements(300'000);
  for (std::size_t i = 0; i < elements.size(); ++i) elements[i] = static_cast<double>(i * 7919 % 1000) - 500;
  elements[77] = std::nan("");
  elements[99] = -0.0;
  const Array x = array_of<double>({300'000}, elements);
  EXPECT_EQ(values<std::int64_t>(run_op("argsort", {x})), order_of(elements));
  const std::vector<double> sorted = values<double>(run_op("sort", {x}));
  EXPECT_TRUE(std::is_sorted(sorted.begin(), sorted.end() - 1));
  EXPECT_TRUE(std::isnan(sorted.back()));
}

TEST(Searchsorted, CountsWhatComesBefore) {
  const Array sorted = array_of<float>({5}, {-1, 0, 0, 2, std::nanf("")});
  const Array wanted = array_of<float>({4}, {0, 3, -5, std::nanf("")});
  using Places = std::vector<std::int64_t>;
  EXPECT_EQ(values<std::int64_t>(run_op("searchsorted", {sorted, wanted})), (Places{1, 4, 0, 4}));
  EXPECT_EQ(values<std::int64_t>(run_op("searchsorted", {sorted, wanted}, {{"side", std::string("right")}})),
            (Places{3, 4, 0, 5}));
}

TEST(Scan, AddsUpFromTheFront) {
  const Array x = array_of<std::int8_t>({2, 3}, {100, 100, 100, 1, 2, 3});
  using Sums = std::vector<std::int64_t>;
  EXPECT_EQ(values<std::int64_t>(run_op("cumulative_sum", {x})), (Sums{100, 200, 300, 1, 3, 6}));
  EXPECT_EQ(values<std::int64_t>(run_op("cumulative_sum", {x}, {{"axis", std::int64_t{0}}})),
            (Sums{100, 100, 100, 101, 102, 103}));
  EXPECT_EQ(values<std::int64_t>(run_op("cumulative_prod", {x}, {{"include_initial", true}})),
            (Sums{1, 100, 10'000, 1'000'000, 1, 1, 2, 6}));
}

TEST(Selection, NonzeroAndMasks) {
  const Array x = array_of<std::int32_t>({2, 3}, {0, 5, 0, 7, 0, 9});
  const Array mask = array_of<bool>({2, 3}, {false, true, false, true, false, true});
  const NamedAttributes three = {{"count", std::int64_t{3}}};
  using Ints = std::vector<std::int32_t>;
  EXPECT_EQ(values<std::int64_t>(run_op("nonzero", {x}, three)),
            (std::vector<std::int64_t>{0, 1, 1, 1, 0, 2}));
  EXPECT_EQ(values<std::int32_t>(run_op("mask_select", {x, mask}, three)), (Ints{5, 7, 9}));
  const Array rows = array_of<std::int32_t>({3}, {-1, -2, -3});
  EXPECT_EQ(values<std::int32_t>(run_op("mask_scatter", {x, rows, mask})), (Ints{0, -1, 0, -2, 0, -3}));
  const Array two = array_of<std::int32_t>({2}, {-1, -2});
  EXPECT_EQ(error_text<ShapeError>([&] {
              run_op("mask_scatter", {x, two, mask});
            }),
            "mask_scatter: the mask selects 3 places, but the value has 2 rows");
}

}  // namespace
}  // namespace thalweg::testing
