// decomposition_test.cpp: kernels on LAPACK: threads and the order of chunks leave no trace; known results.
#include <atomic>
#include <thread>
#include <tuple>

#include <gtest/gtest.h>

#include "kernels/op_runner.h"

namespace thalweg::testing {
namespace {

Array of_doubles(const Shape& shape, const std::vector<double>& numbers) {
  Array result = allocate(DType::float64, shape);
  std::copy(numbers.begin(), numbers.end(), static_cast<double*>(result.data()));
  return result;
}

TEST(Decomposition, ChunkOrderDoesNotMatter) {
  for (const char* name : {"inv", "det", "svdvals", "eigvals", "eigvalsh"}) {
    EXPECT_TRUE(order_does_not_matter(name, {random_floats<float>({60, 20, 20})})) << name;
    EXPECT_TRUE(order_does_not_matter(name, {random_floats<double>({60, 20, 20})})) << name;
  }
  EXPECT_TRUE(order_does_not_matter(
      "solve", {random_floats<double>({60, 20, 20}), random_floats<double>({60, 20, 3}, 2)}));
}

TEST(Decomposition, ThreadsDoNotDisturbEachOther) {
  for (const auto& [name, n, rounds] : {std::tuple("inv", 24, 1000), std::tuple("det", 150, 50),
                                        std::tuple("svdvals", 90, 10), std::tuple("eigvals", 90, 10)}) {
    const Array a = random_floats<double>({n, n});
    const Array expected = run_op(name, {a});
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&, name = name, rounds = rounds] {
        for (int round = 0; round < rounds; ++round) {
          if (!same_bits(run_op(name, {a}), expected)) ++wrong;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0) << name;
  }
}

TEST(Decomposition, ResultsMayTakeTheBytesOfDeadInputs) {
  for (const char* name : {"inv", "cholesky"}) {
    const std::vector<double> numbers = {4, 1, 0, 1, 5, 2, 0, 2, 6};
    const Array expected = run_op(name, {of_doubles({3, 3}, numbers)});
    const Array donated = run_op(name, {of_doubles({3, 3}, numbers)}, {}, {.donate = true});
    EXPECT_TRUE(same_bits(donated, expected)) << name;
  }
}

TEST(Decomposition, KnownResults) {
  const Array a = of_doubles({2, 2}, {0, 2, 4, 0});
  EXPECT_EQ(values<double>(run_op("inv", {a})), (std::vector<double>{0, 0.25, 0.5, 0}));
  EXPECT_EQ(values<double>(run_op("det", {a})), std::vector<double>{-8});
  EXPECT_EQ(values<double>(run_op("solve", {a, of_doubles({2}, {2, 4})})), (std::vector<double>{1, 1}));
  EXPECT_EQ(values<double>(run_op("cholesky", {of_doubles({2, 2}, {4, 2, 2, 5})})),
            (std::vector<double>{2, 0, 1, 2}));
  EXPECT_NEAR(values<double>(run_op("svdvals", {of_doubles({1, 2}, {3, 4})}))[0], 5, 1e-14);
}

TEST(Decomposition, SmallestFailingMatrixIsNamed) {
  Array stack = random_floats<double>({200, 8, 8});
  double* data = static_cast<double*>(stack.data());
  for (std::int64_t index : {30, 90, 170}) std::fill_n(data + index * 64, 64, 0.0);
  for (Schedule schedule : {Schedule::serial, Schedule::backwards, Schedule::shuffled}) {
    EXPECT_EQ(error_text<LinAlgError>([&] { run_op("inv", {stack}, {}, {.schedule = schedule}); }),
              "inv: the matrix at batch index (30,) is singular: pivot 1 of its LU factorization is 0");
  }
}

}  // namespace
}  // namespace thalweg::testing
