// copy_loop_test.cpp: copies of reversed rows and of crossed axes, of every item size.
#include <complex>
#include <cstdint>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/op_runner.h"

namespace thalweg::testing {
namespace {

template <class T>
class Copy : public ::testing::Test {
 protected:
  /// Elements that all differ where the type has room for it.
  static Array numbered(const Shape& shape) {
    std::vector<T> elements;
    for (std::int64_t i = 0; i < numel(shape); ++i) elements.push_back(static_cast<T>(i % 251));
    return array_of<T>(shape, elements);
  }

  static void check(const Shape& shape, Layout layout) {
    const Array array = numbered(shape);
    const Array copy = run_op("contiguous", {with_layout(array, layout)});
    ASSERT_TRUE(same_bits(copy, array)) << to_string(shape) << " " << static_cast<int>(layout);
  }

  /// The axes in another order, the last one backwards.
  static Array crossed_and_reversed(const Array& array) {
    Array result = with_layout(array, Layout::transposed);
    const int last = result.meta.rank() - 1;
    result.meta.offset += (result.meta.shape[last] - 1) * result.meta.strides[last];
    result.meta.strides[last] = -result.meta.strides[last];
    return result;
  }
};
using Items = ::testing::Types<std::uint8_t, std::int16_t, std::int32_t, double, std::complex<double>>;
TYPED_TEST_SUITE(Copy, Items);

TYPED_TEST(Copy, OfReversedRowsOfAnyLength) {
  for (std::int64_t length = 1; length < 200; length += length < 70 ? 1 : 13) {
    this->check({length}, Layout::reversed);
    this->check({3, length}, Layout::reversed);
  }
  this->check({100'001}, Layout::reversed);
}

TYPED_TEST(Copy, OfCrossedAxesOfAnySize) {
  for (std::int64_t rows = 1; rows < 40; ++rows) {
    for (std::int64_t columns : {1, 2, 3, 4, 7, 8, 15, 16, 17, 31, 33}) {
      this->check({rows, columns}, Layout::transposed);
    }
  }
  for (const Shape& shape :
       {Shape{64, 64}, {65, 129}, {130, 70}, {3, 40, 50}, {5, 6, 7, 8}, {256, 256}, {9, 1024}}) {
    for (Layout layout : kAllLayouts) this->check(shape, layout);
  }
}

TYPED_TEST(Copy, OfCrossedAndReversedAxes) {
  const Array array = this->numbered({37, 45});
  const Array seen = this->crossed_and_reversed(array);
  const std::vector<TypeParam> given = values<TypeParam>(array);
  const std::vector<TypeParam> copied = values<TypeParam>(run_op("contiguous", {seen}));
  for (std::int64_t row = 0; row < 37; ++row) {
    for (std::int64_t column = 0; column < 45; ++column) {
      ASSERT_EQ(copied[row * 45 + column], given[row * 45 + 44 - column]);
    }
  }
}

TYPED_TEST(Copy, OfReversedRowsIntoAnotherTensor) {
  const Array array = this->numbered({5, 83});
  const Array reversed = with_layout(array, Layout::reversed);
  const Array joined = run_op("concat", {reversed, array}, {{"axis", Dims{0}}});
  const std::vector<TypeParam> given = values<TypeParam>(array);
  std::vector<TypeParam> expected = given;
  expected.insert(expected.end(), given.begin(), given.end());
  EXPECT_EQ(values<TypeParam>(joined), expected);
}

}  // namespace
}  // namespace thalweg::testing
