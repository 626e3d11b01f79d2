// linear_algebra_test.cpp: matmul against a triple loop, over dtypes, layouts, ranks and tile boundaries.
#include <atomic>
#include <limits>
#include <thread>

#include <gtest/gtest.h>

#include "kernels/op_runner.h"

namespace thalweg::testing {
namespace {

struct Case {
  Shape a;
  Shape b;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> table = {{{3}, {3}},
                                          {{1}, {1}},
                                          {{0}, {0}},
                                          {{3}, {3, 4}},
                                          {{2, 3}, {3}},
                                          {{2, 3}, {3, 4}},
                                          {{1, 1}, {1, 1}},
                                          {{0, 3}, {3, 4}},
                                          {{2, 0}, {0, 4}},
                                          {{2, 3}, {3, 0}},
                                          {{17, 9}, {9, 33}},
                                          {{9, 1}, {1, 12}},
                                          {{1, 40}, {40, 11}},
                                          {{11, 40}, {40, 1}},
                                          {{40}, {40, 9}},
                                          {{9, 40}, {40}},
                                          {{100}, {100}},
                                          {{5, 2, 3}, {3, 4}},
                                          {{5, 12, 10}, {10, 9}},
                                          {{2, 3}, {5, 3, 4}},
                                          {{5, 2, 3}, {1, 3, 1}},
                                          {{12, 10}, {5, 10, 9}},
                                          {{3, 1, 2, 4}, {5, 4, 2}},
                                          {{2, 1, 11, 9}, {1, 3, 9, 10}},
                                          {{4}, {2, 4, 3}},
                                          {{2, 3, 4}, {4}},
                                          {{0, 2, 3}, {3, 4}},
                                          {{2, 1, 12}, {2, 12, 1}}};
  return table;
}

/// The product in C order by the definition, with row and column added to 1-D operands.
template <class T, class Out>
std::vector<Out> triple_loop(const Array& a, const Array& b) {
  Shape left = a.meta.shape;
  Shape right = b.meta.shape;
  if (left.size() == 1) left.insert(0, 1);
  if (right.size() == 1) right.push_back(1);
  const std::size_t rank = std::max(left.size(), right.size());
  while (left.size() < rank) left.insert(0, 1);
  while (right.size() < rank) right.insert(0, 1);
  Shape batch;
  for (std::size_t i = 0; i + 2 < rank; ++i) batch.push_back(left[i] == 1 ? right[i] : left[i]);
  const std::int64_t m = left[rank - 2];
  const std::int64_t k = left[rank - 1];
  const std::int64_t n = right[rank - 1];
  const std::vector<T> x = values<T>(a);
  const std::vector<T> y = values<T>(b);
  std::vector<Out> result;
  for (std::int64_t index = 0; index < numel(batch); ++index) {
    std::int64_t rest = index;
    std::int64_t in_left = 0;
    std::int64_t in_right = 0;
    std::int64_t left_stride = 1;
    std::int64_t right_stride = 1;
    for (std::size_t axis = batch.size(); axis-- > 0;) {
      const std::int64_t at = rest % batch[axis];
      rest /= batch[axis];
      if (left[axis] != 1) in_left += at * left_stride;
      if (right[axis] != 1) in_right += at * right_stride;
      left_stride *= left[axis];
      right_stride *= right[axis];
    }
    for (std::int64_t i = 0; i < m * n; ++i) {
      Out sum{0};
      for (std::int64_t j = 0; j < k; ++j) {
        sum = static_cast<Out>(sum + static_cast<Out>(static_cast<Out>(x[in_left * m * k + i / n * k + j]) *
                                                      static_cast<Out>(y[in_right * k * n + j * n + i % n])));
      }
      result.push_back(sum);
    }
  }
  return result;
}

std::string describe(DType dtype, const Array& a, const Array& b) {
  return std::string(name(dtype)) + " " + to_string(a.meta.shape) + to_string(a.meta.strides) + " @ " +
         to_string(b.meta.shape) + to_string(b.meta.strides);
}

TEST(Matmul, MatchesTripleLoop) {
  for (DType dtype : kAllDTypes) {
    for (const Case& c : cases()) {
      const Array a = small_integers(dtype, c.a, 1);
      const Array b = small_integers(dtype, c.b, 2);
      visit_real_dtype(dtype, [&]<class T>() {
        const std::vector<T> expected = triple_loop<T, T>(a, b);
        for (Layout left : kAllLayouts) {
          for (Layout right : kAllLayouts) {
            const Array x = with_layout(a, left);
            const Array y = with_layout(b, right);
            ASSERT_EQ(values<T>(run_op("matmul", {x, y})), expected) << describe(dtype, x, y);
          }
        }
      });
    }
  }
}

TEST(Matmul, LargeProductsMatchTripleLoop) {
  // Around the tiles of 256 rows and 1024 columns.
  const Case large[] = {{{255, 70}, {70, 129}},  {{257, 64}, {64, 1025}}, {{600, 300}, {300, 31}},
                        {{1, 300}, {300, 2100}}, {{3000, 90}, {90}},      {{7, 130, 64}, {64, 65}},
                        {{70000}, {70000}}};
  for (const Case& c : large) {
    const Array a = random_floats<double>(c.a, 1);
    const Array b = random_floats<double>(c.b, 2);
    const std::vector<double> expected = triple_loop<double, double>(a, b);
    for (Layout layout : {Layout::contiguous, Layout::transposed, Layout::reversed}) {
      const std::vector<double> result = values<double>(run_op("matmul", {with_layout(a, layout), b}));
      const std::vector<float> single = values<float>(
          run_op("matmul", {cast(a, DType::float32), cast(with_layout(b, layout), DType::float32)}));
      ASSERT_EQ(result.size(), expected.size());
      for (std::size_t i = 0; i < result.size(); ++i) {
        ASSERT_NEAR(result[i], expected[i], 1e-10) << to_string(c.a) << " at " << i;
        ASSERT_NEAR(single[i], expected[i], 2e-3) << to_string(c.a) << " at " << i;
      }
    }
  }
}

TEST(Matmul, BroadcastOperandsAreRead) {
  const Array one =
      run_op("broadcast_to", {small_integers(DType::float32, {1, 9})}, {{"shape", Dims{20, 9}}});
  const Array stack =
      run_op("broadcast_to", {small_integers(DType::float32, {12, 20})}, {{"shape", Dims{4, 12, 20}}});
  EXPECT_EQ(values<float>(run_op("matmul", {stack, one})), (triple_loop<float, float>(stack, one)));
  const Array row = run_op("broadcast_to", {small_integers(DType::float32, {1})}, {{"shape", Dims{20}}});
  EXPECT_EQ(values<float>(run_op("matmul", {row, one})), (triple_loop<float, float>(row, one)));
  EXPECT_EQ(values<float>(run_op("matmul", {stack, row})), (triple_loop<float, float>(stack, row)));
}

TEST(Matmul, NothingOldIsReadFromTheResult) {
  // The output starts as rubbish; 0 * nan would show. Sizes for gemm, gemv and the loops.
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Array a = small_integers(DType::float32, {30, 30});
  const Array vector = small_integers(DType::float32, {30});
  for (const auto& [x, y] : {std::pair(a, a), std::pair(a, vector), std::pair(vector, a)}) {
    const Array output = run_op("matmul", {x, y});
    std::fill_n(static_cast<float*>(output.data()), output.meta.numel(), nan);
    const TensorView views[] = {x.view(), y.view()};
    const TensorView result = output.view();
    const Op& op = registries().ops.find("matmul");
    const Attributes none;
    (*registries().kernels.find(op, DeviceType::cpu))(KernelContext(op, none, views, {&result, 1}));
    EXPECT_EQ(values<float>(output), (triple_loop<float, float>(x, y)));
  }
}

TEST(Matmul, NanAndInfinityPass) {
  const float inf = std::numeric_limits<float>::infinity();
  Array a = allocate(DType::float32, {20, 20});
  std::fill_n(static_cast<float*>(a.data()), 400, 0.0f);
  static_cast<float*>(a.data())[0] = inf;
  const std::vector<float> product = values<float>(run_op("matmul", {a, a}));
  EXPECT_EQ(product[0], inf);
  EXPECT_TRUE(std::isnan(product[1]));
  EXPECT_EQ(product[399], 0.0f);
}

TEST(Matmul, PromotesAndWraps) {
  const Array mixed =
      run_op("matmul", {array_of<std::int8_t>({1, 1}, {-3}), array_of<float>({1, 1}, {0.5f})});
  EXPECT_EQ(values<float>(mixed), std::vector<float>{-1.5f});
  const Array bytes = array_of<std::uint16_t>({2}, {65535, 65535});
  EXPECT_EQ(values<std::uint16_t>(run_op("matmul", {bytes, bytes})), std::vector<std::uint16_t>{2});
}

TEST(Matmul, RefusesShapesThatDoNotMatch) {
  auto text = [](Shape a, Shape b) {
    return error_text<ShapeError>([&] {
      run_op("matmul", {small_integers(DType::float32, a), small_integers(DType::float32, b)});
    });
  };
  EXPECT_EQ(text({3, 4}, {5, 6}),
            "matmul: shapes (3, 4) and (5, 6) do not match: axis -1 of the first has size 4, axis -2 of the "
            "second 5");
  EXPECT_EQ(
      text({3}, {4}),
      "matmul: shapes (3,) and (4,) do not match: axis -1 of the first has size 3, axis -1 of the second 4");
  EXPECT_EQ(
      text({}, {4}),
      "matmul: shapes () and (4,) do not match: both need at least 1 dimension; use multiply for 0-d values");
  EXPECT_NE(text({2, 3, 4}, {3, 4, 5}).find("matmul: shapes (2,) and (3,) do not broadcast"),
            std::string::npos);
}

TEST(Matmul, ChunkOrderDoesNotMatter) {
  for (const Case& c : {Case{{700, 300}, {300, 1500}}, Case{{40, 20, 30}, {40, 30, 20}},
                        Case{{3000, 200}, {200}}, Case{{200}, {200, 3000}}}) {
    EXPECT_TRUE(order_does_not_matter("matmul", {random_floats<float>(c.a), random_floats<float>(c.b)}));
    EXPECT_TRUE(order_does_not_matter("matmul", {random_floats<double>(c.a), random_floats<double>(c.b)}));
  }
}

TEST(Matmul, ChunkOrderDoesNotMatterToIntegers) {
  for (const Case& c : {Case{{100, 70}, {70, 600}}, Case{{40, 20, 30}, {40, 30, 20}}}) {
    EXPECT_TRUE(order_does_not_matter(
        "matmul", {small_integers(DType::int32, c.a), small_integers(DType::int32, c.b)}));
  }
}

TEST(Matmul, ThreadsDoNotDisturbEachOther) {
  const Array a = random_floats<float>({130, 140});
  const Array b = random_floats<float>({140, 150});
  const Array expected = run_op("matmul", {a, b});
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 50; ++round) {
        if (!same_bits(run_op("matmul", {a, b}), expected)) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Matmul, CostFollowsTheWork) {
  const Op& op = registries().ops.find("matmul");
  const Array a = allocate(DType::float32, {100, 50});
  const Array b = allocate(DType::float32, {50, 100});
  const Array c = allocate(DType::float32, {100, 100});
  const TensorMeta* const inputs[] = {&a.meta, &b.meta};
  const TensorMeta* const outputs[] = {&c.meta};
  EXPECT_DOUBLE_EQ(op.cost_ns(inputs, outputs), 2.0 * 100 * 50 * 100 / 50 + 300);
}

}  // namespace
}  // namespace thalweg::testing
