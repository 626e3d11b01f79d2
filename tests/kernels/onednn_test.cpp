// onednn_test.cpp: products by oneDNN: right, whole, and of bits that depend on values and size alone.
#include "kernels/cpu/onednn.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include <dlfcn.h>
#include <gtest/gtest.h>

namespace thalweg::cpu {
namespace {

class OneDnn : public ::testing::Test {
 protected:
  void SetUp() override {
    load_onednn("test");
    const float one = 1;
    std::vector<float> a(kWide, 1), result(kWide);
    if (!onednn_gemm({1, kWide, 1}, {&one, 1, false}, {a.data(), kWide, false}, result.data(), kWide)) {
      GTEST_SKIP() << "no oneDNN here";
    }
  }

  static constexpr std::int64_t kWide = 1'000'000;
};

/// `rows` of `columns` numbers, `leading` apart, from `offset` on; NaN around them.
struct Matrix {
  Matrix(std::int64_t rows, std::int64_t columns, std::int64_t padding, std::int64_t start)
      : leading(columns + padding),
        offset(start),
        values(static_cast<std::size_t>(offset + rows * leading), std::numeric_limits<float>::quiet_NaN()) {}

  float& at(std::int64_t row, std::int64_t column) {
    return values[static_cast<std::size_t>(offset + row * leading + column)];
  }
  float* data() { return values.data() + offset; }

  std::int64_t leading, offset;
  std::vector<float> values;
};

/// The product of random numbers that `seed` names, from operands that lie as told.
std::vector<float> product(GemmSize size, bool a_transposed, bool b_transposed, std::int64_t padding,
                           std::int64_t offset, std::vector<double>* reference = nullptr) {
  std::mt19937 random(7);
  std::uniform_real_distribution<float> uniform(-1, 1);
  Matrix a(a_transposed ? size.k : size.m, a_transposed ? size.m : size.k, padding, offset);
  Matrix b(b_transposed ? size.n : size.k, b_transposed ? size.k : size.n, padding, offset);
  Matrix c(size.m, size.n, padding, offset);
  auto a_at = [&](std::int64_t i, std::int64_t k) -> float& {
    return a_transposed ? a.at(k, i) : a.at(i, k);
  };
  auto b_at = [&](std::int64_t k, std::int64_t j) -> float& {
    return b_transposed ? b.at(j, k) : b.at(k, j);
  };
  for (std::int64_t i = 0; i < size.m; ++i) {
    for (std::int64_t k = 0; k < size.k; ++k) a_at(i, k) = uniform(random);
  }
  for (std::int64_t k = 0; k < size.k; ++k) {
    for (std::int64_t j = 0; j < size.n; ++j) b_at(k, j) = uniform(random);
  }
  EXPECT_TRUE(onednn_gemm(size, {a.data(), a.leading, a_transposed}, {b.data(), b.leading, b_transposed},
                          c.data(), c.leading));
  std::vector<float> result;
  for (std::int64_t i = 0; i < size.m; ++i) {
    for (std::int64_t j = 0; j < size.n; ++j) {
      result.push_back(c.at(i, j));
      if (reference == nullptr) continue;
      double sum = 0;
      for (std::int64_t k = 0; k < size.k; ++k) sum += static_cast<double>(a_at(i, k)) * b_at(k, j);
      reference->push_back(sum);
    }
    // What lies between the rows of the result is not touched.
    for (std::int64_t j = size.n; j < c.leading && i + 1 < size.m; ++j) EXPECT_TRUE(std::isnan(c.at(i, j)));
  }
  return result;
}

TEST_F(OneDnn, ProductsAreRightForEveryLayout) {
  for (const GemmSize size : {GemmSize{100, 100, 100}, {128, 512, 70}, {3, 700, 500}, {301, 17, 203}}) {
    for (const bool a : {false, true}) {
      for (const bool b : {false, true}) {
        std::vector<double> expected;
        const std::vector<float> got = product(size, a, b, 3, 1, &expected);
        for (std::size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], expected[i], 1e-4) << i;
      }
    }
  }
}

TEST_F(OneDnn, BitsDependOnValuesAndSizeAlone) {
  for (const GemmSize size : {GemmSize{100, 100, 100}, {128, 512, 784}, {257, 130, 64}, {5, 1000, 300}}) {
    for (const bool a : {false, true}) {
      for (const bool b : {false, true}) {
        const std::vector<float> plain = product(size, a, b, 0, 0);
        for (const std::int64_t padding : {0, 1, 16, 240}) {
          for (const std::int64_t offset : {0, 1, 7, 16}) {
            const std::vector<float> moved = product(size, a, b, padding, offset);
            ASSERT_EQ(0, std::memcmp(plain.data(), moved.data(), plain.size() * sizeof(float)))
                << size.m << "x" << size.n << "x" << size.k << " " << a << b << ": padding " << padding
                << ", offset " << offset;
          }
        }
      }
    }
  }
}

TEST_F(OneDnn, TheCallersNumberOfOpenMpThreadsStays) {
  void* openmp = dlopen("libgomp.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (openmp == nullptr) GTEST_SKIP() << "this oneDNN runs on another OpenMP than GCC's";
  const auto threads = reinterpret_cast<int (*)()>(dlsym(openmp, "omp_get_max_threads"));
  const auto set_threads = reinterpret_cast<void (*)(int)>(dlsym(openmp, "omp_set_num_threads"));
  const int before = threads();
  set_threads(3);
  product({100, 100, 100}, false, false, 0, 0);
  EXPECT_EQ(threads(), 3);
  set_threads(before);
}

TEST_F(OneDnn, SmallProductsAreLeftToOpenBlas) {
  const std::vector<float> a(99 * 100, 1), b(100 * 100, 1);
  std::vector<float> result(99 * 100, 5);
  EXPECT_FALSE(
      onednn_gemm({99, 100, 100}, {a.data(), 100, false}, {b.data(), 100, false}, result.data(), 100));
  EXPECT_EQ(result, std::vector<float>(99 * 100, 5));
}

}  // namespace
}  // namespace thalweg::cpu
