// readme_test.cpp: the C++ program of README.md; tests/python/test_readme.py sees to it that the lines are
// the same.
#include <gtest/gtest.h>

#include <thalweg/thalweg.h>

using namespace thalweg;

TEST(Readme, TheProgramRuns) {
  Engine engine(EngineOptions::from_environment(), register_cpu_kernels);
  std::int64_t seed = 7;  // attributes stand in the order of the Op's record: shape, low, high, dtype, seed
  Tensor a = engine.apply(engine.op("uniform"), {}, {Dims{512, 512}, 0.0, 1.0, DType::float32, seed});
  Tensor c = engine.apply(engine.op("matmul"), {&a, &a});
  double sum = engine.apply(engine.op("sum"), {&c}).item().to<double>();
  // 512 * 512 elements, each the sum of 512 products of two numbers that are 1/2 on the average.
  EXPECT_NEAR(sum, 512.0 * 512 * 512 / 4, 512.0 * 512 * 512 / 4 * 0.01);
}
