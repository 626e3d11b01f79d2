// elementwise_layout_test.cpp: strides, broadcasting, empty and 0-d operands, chunks and donation.
#include <gtest/gtest.h>

#include "kernels/op_runner.h"

namespace thalweg::testing {
namespace {

struct ShapePair {
  Shape a, b;
};

const std::vector<ShapePair>& shape_pairs() {
  static const std::vector<ShapePair> pairs = {
      {{}, {}},
      {{5}, {5}},
      {{5}, {}},
      {{}, {7}},
      {{1}, {1}},
      {{17}, {1}},
      {{3, 4}, {4}},
      {{3, 1}, {1, 4}},
      {{0, 3}, {3}},
      {{2, 0}, {2, 1}},
      {{2, 3, 5}, {3, 1}},
      {{70, 130}, {70, 130}},
      {{70, 1}, {1, 130}},
      {{500, 3}, {3}},
      {{500, 3}, {500, 1}},
      {{2, 1, 3, 1, 2}, {1, 4, 1, 5, 1}},
      {Shape(32, 1), {2, 1, 3}},
      {{2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 3}, {3}},
  };
  return pairs;
}

/// Reads `array` as `shape` with strides of 0, then copies it.
Array spread(const Array& array, const Shape& shape) {
  Array view = array;
  view.meta.shape = shape;
  view.meta.strides = broadcast_strides(array.meta.shape, array.meta.strides, shape);
  return with_layout(view, Layout::contiguous);
}

struct OpCase {
  const char* op;
  DType dtype;
};
constexpr OpCase kBinaryCases[] = {
    {"add", DType::float32},      {"add", DType::int8},           {"multiply", DType::uint64},
    {"subtract", DType::int16},   {"floor_divide", DType::int32}, {"less", DType::float64},
    {"equal", DType::int64},      {"maximum", DType::uint16},     {"logical_and", DType::float32},
    {"bitwise_or", DType::bool_}, {"pow", DType::uint32},         {"atan2", DType::float32},
    {"pow", DType::float64},      {"remainder", DType::float64},
};

TEST(ElementwiseLayout, StridesAndBroadcastingDoNotChangeBits) {
  for (const OpCase& each : kBinaryCases) {
    for (const ShapePair& shapes : shape_pairs()) {
      Array a = small_integers(each.dtype, shapes.a, 1);
      Array b = small_integers(each.dtype, shapes.b, 2);
      Shape shape = broadcast_shapes("test", shapes.a, shapes.b);
      Array expected = run_op(each.op, {spread(a, shape), spread(b, shape)});
      EXPECT_EQ(expected.meta.shape, shape);
      for (Layout layout_a : kAllLayouts) {
        for (Layout layout_b : kAllLayouts) {
          Array result = run_op(each.op, {with_layout(a, layout_a), with_layout(b, layout_b)});
          ASSERT_TRUE(same_bits(result, expected))
              << each.op << to_string(shapes.a) << to_string(shapes.b) << static_cast<int>(layout_a)
              << static_cast<int>(layout_b);
        }
      }
    }
  }
}

constexpr OpCase kUnaryCases[] = {
    {"exp", DType::float32},      {"sin", DType::float64},        {"negative", DType::int8},
    {"sqrt", DType::float32},     {"floor", DType::float64},      {"isnan", DType::float32},
    {"abs", DType::int64},        {"logical_not", DType::uint16}, {"contiguous", DType::bool_},
    {"contiguous", DType::int16}, {"contiguous", DType::float32}, {"contiguous", DType::uint64},
};

TEST(ElementwiseLayout, UnaryOfAnyStrides) {
  for (const OpCase& each : kUnaryCases) {
    for (const ShapePair& shapes : shape_pairs()) {
      Array x = small_integers(each.dtype, shapes.a, 3);
      Array expected = run_op(each.op, {x});
      for (Layout layout : kAllLayouts) {
        ASSERT_TRUE(same_bits(run_op(each.op, {with_layout(x, layout)}), expected))
            << each.op << to_string(shapes.a);
      }
    }
  }
}

TEST(ElementwiseLayout, ContiguousKeepsValues) {
  for (DType dtype : kAllDTypes) {
    Array x = small_integers(dtype, {65, 3, 67}, 4);
    for (Layout layout : kAllLayouts)
      EXPECT_TRUE(same_bits(run_op("contiguous", {with_layout(x, layout)}), x));
  }
}

TEST(ElementwiseLayout, TernaryOfAnyStrides) {
  for (const char* op : {"where", "clip"}) {
    for (const ShapePair& shapes : shape_pairs()) {
      Array x = small_integers(std::string(op) == "where" ? DType::bool_ : DType::float32, shapes.a, 5);
      Array low = small_integers(DType::float32, shapes.b, 6);
      Array high = small_integers(DType::float32, {}, 7);
      Array expected = run_op(op, {x, low, high});
      for (Layout layout : kAllLayouts) {
        Array result = run_op(op, {with_layout(x, layout), with_layout(low, Layout::reversed), high});
        ASSERT_TRUE(same_bits(result, expected)) << op << to_string(shapes.a) << to_string(shapes.b);
      }
    }
  }
}

// Sizes above the threshold of parallel execution, in every kind of loop.
TEST(ElementwiseLayout, ChunksMayRunInAnyOrder) {
  Array large = random_floats<float>({700, 301}, 1);
  Array row = random_floats<float>({301}, 2);
  EXPECT_TRUE(order_does_not_matter("add", {large, large}));
  EXPECT_TRUE(order_does_not_matter("add", {large, row}));
  EXPECT_TRUE(order_does_not_matter("add", {large, with_layout(large, Layout::transposed)}));
  EXPECT_TRUE(order_does_not_matter("exp", {with_layout(large, Layout::gapped)}));
  EXPECT_TRUE(order_does_not_matter("exp", {large}));
  Array tall = random_floats<float>({150000, 2}, 3);
  EXPECT_TRUE(order_does_not_matter("multiply", {tall, random_floats<float>({2}, 4)}));
}

TEST(ElementwiseLayout, OutputMayBeTheFirstInput) {
  for (const OpCase& each : kBinaryCases) {
    for (const Shape& shape : {Shape{}, Shape{3}, Shape{67}, Shape{40, 30}}) {
      if (each.op == std::string("less") || each.op == std::string("equal") ||
          each.op == std::string("logical_and")) {
        continue;
      }
      Array a = small_integers(each.dtype, shape, 1);
      Array b = small_integers(each.dtype, shape, 2);
      Array expected = run_op(each.op, {a, b});
      Array copy = with_layout(a, Layout::contiguous);
      EXPECT_TRUE(same_bits(run_op(each.op, {copy, b}, {}, {.donate = true}), expected)) << each.op;
      copy = with_layout(a, Layout::contiguous);
      Array other = with_layout(b, Layout::transposed);
      EXPECT_TRUE(same_bits(run_op(each.op, {copy, other}, {}, {.donate = true}), expected)) << each.op;
    }
  }
}

TEST(ElementwiseLayout, TooManyDimensionsAndMismatchRaise) {
  Array a = small_integers(DType::float32, {2, 3});
  EXPECT_THROW(run_op("add", {a, small_integers(DType::float32, {4})}), ShapeError);
  EXPECT_THROW(run_op("where", {a, a, small_integers(DType::float32, {2, 2})}), ShapeError);
}

}  // namespace
}  // namespace thalweg::testing
