// shape_test.cpp: shapes, strides, broadcasting and axes.
#include <string>

#include <gtest/gtest.h>

#include <thalweg/errors.h>
#include <thalweg/shape.h>

namespace thalweg {
namespace {

template <class E, class Fn>
std::string error_text(Fn fn) {
  try {
    fn();
  } catch (const E& error) {
    return error.what();
  }
  return "";
}

struct BroadcastCase {
  Shape a, b, result;
};

TEST(Shape, BroadcastFollowsNumPy) {
  const BroadcastCase cases[] = {
      {{}, {}, {}},
      {{2, 3}, {}, {2, 3}},
      {{2, 3}, {3}, {2, 3}},
      {{2, 1}, {1, 3}, {2, 3}},
      {{8, 1, 6, 1}, {7, 1, 5}, {8, 7, 6, 5}},
      {{0}, {1}, {0}},
      {{1, 0}, {4, 1}, {4, 0}},
      {{2, 3}, {2, 3}, {2, 3}},
  };
  for (const auto& [a, b, result] : cases) {
    EXPECT_EQ(broadcast_shapes("add", a, b), result) << to_string(a) << to_string(b);
    EXPECT_EQ(broadcast_shapes("add", b, a), result) << to_string(a) << to_string(b);
  }
}

TEST(Shape, BroadcastRejectsMismatch) {
  EXPECT_EQ(error_text<ShapeError>([] {
              broadcast_shapes("add", {2, 3}, {4});
            }),
            "add: shapes (2, 3) and (4,) do not broadcast at axis -1 (3 against 4; they must be equal or one "
            "of them "
            "1)");
  EXPECT_NE(error_text<ShapeError>([] {
              broadcast_shapes("add", {2, 3}, {3, 3});
            }).find("at axis -2"),
            std::string::npos);
  EXPECT_THROW(broadcast_shapes("add", {0}, {2}), ShapeError);
}

TEST(Shape, BroadcastStridesAreZeroAlongNewAndStretchedAxes) {
  EXPECT_EQ(broadcast_strides({3}, {1}, {2, 3}), Strides({0, 1}));
  EXPECT_EQ(broadcast_strides({2, 1}, {5, 1}, {2, 4}), Strides({5, 0}));
  EXPECT_EQ(broadcast_strides({}, {}, {2, 2}), Strides({0, 0}));
}

TEST(Shape, ContiguousStrides) {
  EXPECT_EQ(contiguous_strides({2, 3, 4}), Strides({12, 4, 1}));
  EXPECT_EQ(contiguous_strides({}), Strides());
  EXPECT_EQ(contiguous_strides({3, 0, 2}), Strides({2, 2, 1}));
}

TEST(Shape, IsContiguousIgnoresAxesOfSizeOneAndEmptyTensors) {
  EXPECT_TRUE(is_contiguous({2, 3}, {3, 1}));
  EXPECT_TRUE(is_contiguous({2, 1, 3}, {3, 77, 1}));
  EXPECT_TRUE(is_contiguous({}, {}));
  EXPECT_TRUE(is_contiguous({2, 0}, {9, 9}));
  EXPECT_TRUE(is_contiguous({0, 2}, {9, 9}));
  EXPECT_FALSE(is_contiguous({2, 3}, {1, 2}));
  EXPECT_FALSE(is_contiguous({3}, {-1}));
  EXPECT_FALSE(is_contiguous({3}, {0}));
}

TEST(Shape, CheckedNumelCountsAndRejects) {
  EXPECT_EQ(checked_numel("empty", {2, 3}, 8), 6);
  EXPECT_EQ(checked_numel("empty", {}, 8), 1);
  EXPECT_EQ(checked_numel("empty", {4, 0}, 8), 0);
  EXPECT_EQ(error_text<ShapeError>([] {
              checked_numel("empty", {2, -3}, 4);
            }),
            "empty: shape (2, -3) has the negative dimension -3 at axis 1");
  EXPECT_THROW(checked_numel("empty", {std::int64_t{1} << 61}, 8), ShapeError);
  EXPECT_THROW(checked_numel("empty", {std::int64_t{1} << 40, std::int64_t{1} << 40}, 1), ShapeError);
  EXPECT_THROW(checked_numel("empty", Shape(65, 1), 1), ShapeError);
  EXPECT_EQ(checked_numel("empty", Shape(64, 1), 1), 1);
}

TEST(Shape, CheckedNumelRejectsEmptyTensorsWhoseStridesOverflow) {
  EXPECT_THROW(checked_numel("empty", {0, std::int64_t{1} << 40, std::int64_t{1} << 40}, 1), ShapeError);
}

TEST(Shape, PrintsAsPythonTuple) {
  EXPECT_EQ(to_string(Dims{}), "()");
  EXPECT_EQ(to_string(Dims{4}), "(4,)");
  EXPECT_EQ(to_string(Dims{2, -3}), "(2, -3)");
}

TEST(Shape, NormalizeAxis) {
  EXPECT_EQ(normalize_axis("sum", 1, 3), 1);
  EXPECT_EQ(normalize_axis("sum", -1, 3), 2);
  EXPECT_EQ(normalize_axis("sum", -3, 3), 0);
  EXPECT_EQ(error_text<IndexError>([] { normalize_axis("sum", 3, 3); }),
            "sum: axis 3 is out of bounds for 3 dimensions (use -3 to 2)");
  EXPECT_EQ(error_text<IndexError>([] { normalize_axis("sum", 0, 0); }),
            "sum: axis 0 is out of bounds for a 0-d tensor, which has no axes");
  EXPECT_THROW(normalize_axis("sum", INT64_MIN, 3), IndexError);
}

TEST(Shape, NormalizeAxesRejectsRepeats) {
  const Dims axes{0, -1};
  EXPECT_EQ(normalize_axes("sum", axes, 3), (SmallVector<int, 4>{0, 2}));
  const Dims repeated{2, -1};
  EXPECT_EQ(error_text<ShapeError>([&] { normalize_axes("sum", repeated, 3); }),
            "sum: axis 2 is given twice in (2, -1)");
}

}  // namespace
}  // namespace thalweg
