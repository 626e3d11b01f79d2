// convolution_test.cpp: the sums of every instruction set against plain ones, and what conv1d and conv2d
// refuse.
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cpu/convolution_table.h"
#include "kernels/cpu/isa.h"
#include "kernels/op_runner.h"

namespace thalweg::cpu {

THALWEG_DECLARE_PER_ISA(fill_convolution, ConvolutionTable)

namespace {

using namespace thalweg::testing;

template <class T>
TermSumsLoop<T> loop_of(const ConvolutionTable& table) {
  if constexpr (sizeof(T) == 4)
    return table.term_sums_float;
  else
    return table.term_sums_double;
}

template <class T>
class TermSumsTest : public ::testing::Test {};
using Numbers = ::testing::Types<float, double>;
TYPED_TEST_SUITE(TermSumsTest, Numbers);

template <class T>
void check_sums(TermSumsLoop<T> loop, std::int64_t outputs, std::int64_t terms, std::int64_t places) {
  std::mt19937 random(5);
  std::normal_distribution<T> normal;
  std::vector<T> data(static_cast<std::size_t>(2 * terms + places + kPlacesRoom));
  std::vector<T> weights(static_cast<std::size_t>(outputs * terms));
  for (T& x : data) x = normal(random);
  for (T& x : weights) x = normal(random);
  std::vector<std::int64_t> offsets;
  for (std::int64_t t = 0; t < terms; ++t) offsets.push_back((7 * t) % (2 * terms));
  const std::int64_t step = places + kPlacesRoom;
  std::vector<T> result(static_cast<std::size_t>(outputs * step), T(99));
  loop({data.data(), offsets.data(), terms, weights.data(), terms, result.data(), step, outputs, places});
  for (std::int64_t o = 0; o < outputs; ++o) {
    for (std::int64_t p = 0; p < places; ++p) {
      double sum = 0;
      double size = 0;
      for (std::int64_t t = 0; t < terms; ++t) {
        const double term = double{weights[o * terms + t]} * double{data[offsets[t] + p]};
        sum += term;
        size += std::abs(term);
      }
      const double bound = size * static_cast<double>(terms) * double{std::numeric_limits<T>::epsilon()};
      ASSERT_NEAR(result[o * step + p], sum, bound) << outputs << " " << terms << " " << o << " " << p;
    }
  }
}

TYPED_TEST(TermSumsTest, OfEveryInstructionSetAreThoseOfPlainLoops) {
  for (Isa isa : kIsas) {
    if (!is_supported(isa)) continue;
    ConvolutionTable table{};
    fill_convolution(isa, table);
    for (std::int64_t outputs : {1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 19}) {
      for (std::int64_t places : {1, 2, 7, 16, 17, 47, 48, 49, 64, 65, 129, 200}) {
        check_sums<TypeParam>(loop_of<TypeParam>(table), outputs, 5, places);
      }
      for (std::int64_t terms : {0, 1, 127, 128, 129, 300}) {
        check_sums<TypeParam>(loop_of<TypeParam>(table), outputs, terms, 50);
      }
    }
  }
}

NamedAttributes attributes(Dims stride, Dims padding, Dims dilation, std::int64_t groups = 1) {
  return {{"stride", stride}, {"padding", padding}, {"dilation", dilation}, {"groups", groups}};
}

Array ones(const Shape& shape) {
  return array_of<float>(shape, std::vector<float>(static_cast<std::size_t>(numel(shape)), 1.0f));
}

TEST(Convolution, CountsWhatEachWindowSees) {
  const Array out = run_op("conv2d", {ones({1, 2, 3, 3}), ones({1, 2, 2, 2}), ones({1})},
                           attributes({1, 2}, {1, 0, 0, 1}, {1, 1}));
  EXPECT_EQ(values<float>(out), (std::vector<float>{5, 3, 9, 5, 9, 5}));
}

template <class Error>
void expect_error(const std::string& name, const std::vector<Array>& inputs, const NamedAttributes& given,
                  const std::string& message) {
  try {
    run_op(name, inputs, given);
    ADD_FAILURE() << "no error: " << message;
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(message), std::string::npos) << error.what();
  }
}

TEST(Convolution, RefusesWhatDoesNotFit) {
  const Array x = ones({1, 4, 6});
  const Array weight = ones({6, 4, 3});
  const NamedAttributes usual = attributes({1}, {0, 0}, {1});
  expect_error<ShapeError>("conv1d", {ones({6}), weight}, usual, "conv1d: x must be (N, C, L) or (C, L)");
  expect_error<ShapeError>("conv1d", {x, ones({6, 4})}, usual, "weight must be (outputs, inputs / groups");
  expect_error<ShapeError>("conv1d", {x, ones({6, 4, 0})}, usual,
                           "kernel of 1 axes), its shape is (6, 4, 0)");
  expect_error<ShapeError>("conv1d", {x, ones({6, 3, 3})}, usual, "needs 3 channels, x of shape");
  expect_error<ShapeError>("conv1d", {x, weight, ones({4})}, usual, "bias has shape (4,); it must be (6,)");
  expect_error<ValueError>("conv1d", {x, weight, ones({6}), ones({6})}, usual, "takes one bias, not 2");
  expect_error<ValueError>("conv1d", {x, weight}, attributes({1}, {0, 0}, {1}, 4),
                           "groups is 4; it must divide");
  expect_error<ValueError>("conv1d", {x, weight}, attributes({1, 1}, {0, 0}, {1}), "stride has 2 numbers");
  expect_error<ValueError>("conv1d", {x, weight}, attributes({0}, {0, 0}, {1}),
                           "stride is 0; it must be at least 1");
  expect_error<ValueError>("conv1d", {x, weight}, attributes({1}, {0, -1}, {1}), "padding is -1");
  expect_error<ShapeError>("conv1d", {x, weight}, attributes({1}, {0, 0}, {3}),
                           "a window of 7 does not fit into an axis of size 6 with padding 0 and 0");
  expect_error<ShapeError>("conv1d", {x, weight},
                           attributes({1}, {0, 0}, {std::numeric_limits<std::int64_t>::max()}),
                           "a window of 9223372036854775807 does not fit");
}

}  // namespace
}  // namespace thalweg::cpu
