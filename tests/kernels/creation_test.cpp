// creation_test.cpp: empty, full, arange, linspace, eye.
#include <cmath>

#include <gtest/gtest.h>

#include "kernels/op_runner.h"

namespace thalweg::testing {
namespace {

NamedAttributes range(Scalar start, Scalar stop, Scalar step) {
  return {{"start", start}, {"stop", stop}, {"step", step}};
}
NamedAttributes range(Scalar start, Scalar stop, Scalar step, DType dtype) {
  return {{"start", start}, {"stop", stop}, {"step", step}, {"dtype", dtype}};
}

TEST(Creation, FullOfEveryDType) {
  for (DType dtype : kAllDTypes) {
    visit_real_dtype(dtype, [&]<class T>() {
      Array result = run_op("full", {}, {{"shape", Shape{3, 5}}, {"value", Scalar(1)}, {"dtype", dtype}});
      ASSERT_EQ(result.meta.dtype, dtype);
      for (T x : values<T>(result)) EXPECT_EQ(x, T(1));
    });
  }
}

TEST(Creation, FullTakesTheValuesDType) {
  auto dtype_of_full = [](Scalar value) {
    return run_op("full", {}, {{"shape", Shape{2}}, {"value", value}}).meta.dtype;
  };
  EXPECT_EQ(dtype_of_full(true), DType::bool_);
  EXPECT_EQ(dtype_of_full(3), DType::int64);
  EXPECT_EQ(dtype_of_full(UINT64_MAX), DType::uint64);
  EXPECT_EQ(dtype_of_full(0.5), DType::float64);
}

TEST(Creation, FullRejectsIntegersThatDoNotFit) {
  auto full = [](Scalar value, DType dtype) {
    return run_op("full", {}, {{"shape", Shape{2}}, {"value", value}, {"dtype", dtype}});
  };
  EXPECT_EQ(error_text<ValueError>([&] { full(300, DType::uint8); }),
            "full: 300 does not fit uint8, which holds 0 to 255");
  EXPECT_THROW(full(-1, DType::uint64), ValueError);
  EXPECT_THROW(full(UINT64_MAX, DType::int64), ValueError);
  EXPECT_NO_THROW(full(-128, DType::int8));
  EXPECT_EQ(values<std::int32_t>(full(2.9, DType::int32))[0], 2);
}

TEST(Creation, FullOfAParallelSize) {
  Array result = run_op("full", {}, {{"shape", Shape{300001}}, {"value", Scalar(2.5)}},
                        {.schedule = Schedule::shuffled});
  for (double x : values<double>(result)) ASSERT_EQ(x, 2.5);
}

TEST(Creation, ArangeOfIntegers) {
  EXPECT_EQ(values<std::int64_t>(run_op("arange", {}, range(0, 5, 2))), (std::vector<std::int64_t>{0, 2, 4}));
  EXPECT_EQ(values<std::int64_t>(run_op("arange", {}, range(5, -1, -2))),
            (std::vector<std::int64_t>{5, 3, 1}));
  EXPECT_EQ(run_op("arange", {}, range(3, 3, 1)).meta.numel(), 0);
  EXPECT_EQ(run_op("arange", {}, range(3, 0, 1)).meta.numel(), 0);
  EXPECT_EQ(values<std::uint8_t>(run_op("arange", {}, range(250, 256, 1, DType::uint8))),
            (std::vector<std::uint8_t>{250, 251, 252, 253, 254, 255}));
  const std::int64_t high = INT64_MAX - 2;
  EXPECT_EQ(
      values<std::int64_t>(run_op("arange", {}, range(Scalar(high), Scalar(std::int64_t{INT64_MAX}), 1))),
      (std::vector<std::int64_t>{high, high + 1}));
}

TEST(Creation, ArangeOfFloats) {
  std::vector<double> found = values<double>(run_op("arange", {}, range(0.0, 1.0, 0.1)));
  ASSERT_EQ(found.size(), 10u);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(found[static_cast<std::size_t>(i)], i * 0.1);
  EXPECT_EQ(values<float>(run_op("arange", {}, range(1, 3, 0.5, DType::float32))),
            (std::vector<float>{1, 1.5f, 2, 2.5f}));
}

TEST(Creation, ArangeChunksMayRunInAnyOrder) {
  EXPECT_TRUE(order_does_not_matter("arange", {}, range(0, 200001, 1)));
  EXPECT_TRUE(order_does_not_matter("arange", {}, range(0.0, 2000.0, 0.01)));
}

TEST(Creation, ArangeRejectsWhatNeverEnds) {
  EXPECT_EQ(error_text<ValueError>([] { run_op("arange", {}, range(0, 5, 0)); }),
            "arange: step is 0; it must go up or down");
  EXPECT_THROW(run_op("arange", {}, range(0.0, INFINITY, 1.0)), ValueError);
  EXPECT_THROW(run_op("arange", {}, range(0.0, NAN, 1.0)), ValueError);
  EXPECT_THROW(run_op("arange", {}, range(0, 2, 1, DType::bool_)), DTypeError);
}

NamedAttributes space(double start, double stop, std::int64_t num, bool endpoint = true,
                      DType dtype = DType::float64) {
  return {{"start", Scalar(start)},
          {"stop", Scalar(stop)},
          {"num", num},
          {"endpoint", endpoint},
          {"dtype", dtype}};
}

TEST(Creation, Linspace) {
  EXPECT_EQ(values<double>(run_op("linspace", {}, space(0, 1, 5))),
            (std::vector<double>{0, 0.25, 0.5, 0.75, 1}));
  EXPECT_EQ(values<double>(run_op("linspace", {}, space(0, 1, 4, false))),
            (std::vector<double>{0, 0.25, 0.5, 0.75}));
  EXPECT_EQ(values<double>(run_op("linspace", {}, space(3, 7, 1))), std::vector<double>{3});
  EXPECT_EQ(run_op("linspace", {}, space(3, 7, 0)).meta.numel(), 0);
  EXPECT_EQ(values<std::int32_t>(run_op("linspace", {}, space(-1, 1, 4, true, DType::int32))),
            (std::vector<std::int32_t>{-1, -1, 0, 1}));
  EXPECT_EQ(values<double>(run_op("linspace", {}, space(0.1, 0.7, 77))).back(), 0.7);
  EXPECT_THROW(run_op("linspace", {}, space(0, 1, -1)), ValueError);
}

TEST(Creation, EyeOnAnyDiagonal) {
  for (std::int64_t rows : {0, 1, 3, 5}) {
    for (std::int64_t columns : {0, 1, 4}) {
      for (std::int64_t k = -6; k <= 6; ++k) {
        Array result =
            run_op("eye", {}, {{"n_rows", rows}, {"n_cols", columns}, {"k", k}, {"dtype", DType::int8}});
        std::vector<std::int8_t> found = values<std::int8_t>(result);
        for (std::int64_t i = 0; i < rows * columns; ++i) {
          bool on_diagonal = i % columns - i / columns == k;
          ASSERT_EQ(found[static_cast<std::size_t>(i)], on_diagonal) << rows << columns << k;
        }
      }
    }
  }
  EXPECT_EQ(run_op("eye", {}, {{"n_rows", std::int64_t{3}}}).meta.shape, (Shape{3, 3}));
}

TEST(Creation, RejectsBadShapes) {
  EXPECT_THROW(run_op("empty", {}, {{"shape", Shape{-1}}}), ShapeError);
  EXPECT_THROW(run_op("empty", {}, {{"shape", Shape{std::int64_t{1} << 62}}}), ShapeError);
  EXPECT_THROW(run_op("eye", {}, {{"n_rows", std::int64_t{-1}}}), ShapeError);
}

}  // namespace
}  // namespace thalweg::testing
