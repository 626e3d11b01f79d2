// random_test.cpp: Philox's published vectors, the stream's layout, and the distributions.
#include "kernels/cpu/random.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <gtest/gtest.h>

#include <thalweg/generator.h>

#include "kernels/op_runner.h"
#include "kernels/philox.h"

namespace thalweg::testing {
namespace {

using functors::philox4x32_10;
using functors::PhiloxBlock;

NamedAttributes stream(const Shape& shape, DType dtype, std::int64_t seed, std::int64_t counter) {
  return {{"shape", shape}, {"dtype", dtype}, {"seed", seed}, {"counter", counter}};
}

NamedAttributes integers(const Shape& shape, Scalar low, Scalar high, DType dtype = DType::int64,
                         std::int64_t counter = 0) {
  NamedAttributes result = stream(shape, dtype, 42, counter);
  result.emplace_back("low", low);
  result.emplace_back("high", high);
  return result;
}

struct KnownAnswer {
  PhiloxBlock counter;
  std::uint32_t key[2];
  PhiloxBlock answer;
};

// From the authors' test vectors (Random123, kat_vectors, "philox4x32 10").
TEST(Philox, KnownAnswers) {
  const KnownAnswer cases[] = {
      {{{0, 0, 0, 0}}, {0, 0}, {{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}}},
      {{{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}},
       {0xffffffff, 0xffffffff},
       {{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}}},
      {{{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}},
       {0xa4093822, 0x299f31d0},
       {{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}},
  };
  for (const KnownAnswer& each : cases) {
    PhiloxBlock block = philox4x32_10(each.counter, each.key[0], each.key[1]);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(block.words[i], each.answer.words[i]);
  }
}

TEST(Random, UniformIsTheBlocksBits) {
  std::vector<double> found = values<double>(run_op("uniform", {}, stream({3}, DType::float64, 0, 0)));
  // Counter 0 under key 0 is the first known answer.
  EXPECT_EQ(found[0], static_cast<double>(0xe169c58d6627e8d5u >> 11) * 0x1p-53);
  EXPECT_EQ(found[1], static_cast<double>(0x9b00dbd8bc57ac4cu >> 11) * 0x1p-53);
}

TEST(Random, AnElementDependsOnItsCounterOnly) {
  for (const char* op : {"uniform", "normal"}) {
    for (DType dtype : {DType::float32, DType::float64}) {
      Array whole = run_op(op, {}, stream({1001}, dtype, 7, 100));
      Array later = run_op(op, {}, stream({601}, dtype, 7, 300));
      const char* from = static_cast<const char*>(whole.data()) + 400 * item_size(dtype);
      EXPECT_EQ(std::memcmp(from, later.data(), static_cast<std::size_t>(601 * item_size(dtype))), 0) << op;
    }
  }
  std::vector<std::int64_t> whole = values<std::int64_t>(run_op("randint", {}, integers({1001}, 0, 1000)));
  std::vector<std::int64_t> later =
      values<std::int64_t>(run_op("randint", {}, integers({401}, 0, 1000, DType::int64, 300)));
  EXPECT_TRUE(std::equal(later.begin(), later.end(), whole.begin() + 600));
}

TEST(Random, CountersWrapAround) {
  std::vector<double> last = values<double>(run_op("uniform", {}, stream({6}, DType::float64, 3, -1)));
  std::vector<double> first = values<double>(run_op("uniform", {}, stream({4}, DType::float64, 3, 0)));
  EXPECT_TRUE(std::equal(first.begin(), first.end(), last.begin() + 2));
}

TEST(Random, ChunksMayRunInAnyOrder) {
  EXPECT_TRUE(order_does_not_matter("uniform", {}, stream({100001}, DType::float32, 1, 0)));
  EXPECT_TRUE(order_does_not_matter("normal", {}, stream({100001}, DType::float64, 1, 0)));
  EXPECT_TRUE(order_does_not_matter("randint", {}, integers({100001}, -5, 17)));
}

TEST(Random, DrawsAreHalfTheElementsRoundedUp) {
  EXPECT_EQ(random_draws(0), 0u);
  EXPECT_EQ(random_draws(1), 1u);
  EXPECT_EQ(random_draws(2), 1u);
  EXPECT_EQ(random_draws(1001), 501u);
}

struct Moments {
  double mean = 0;
  double variance = 0;
};
Moments moments(const std::vector<double>& sample) {
  Moments result;
  for (double x : sample) result.mean += x / static_cast<double>(sample.size());
  for (double x : sample)
    result.variance += (x - result.mean) * (x - result.mean) / static_cast<double>(sample.size());
  return result;
}

TEST(Random, UniformStaysInItsRange) {
  NamedAttributes attributes = stream({200000}, DType::float64, 11, 0);
  attributes.emplace_back("low", -2.0);
  attributes.emplace_back("high", 3.0);
  std::vector<double> sample = values<double>(run_op("uniform", {}, attributes));
  EXPECT_GE(*std::min_element(sample.begin(), sample.end()), -2.0);
  EXPECT_LT(*std::max_element(sample.begin(), sample.end()), 3.0);
  EXPECT_NEAR(moments(sample).mean, 0.5, 0.02);
  EXPECT_NEAR(moments(sample).variance, 25.0 / 12, 0.05);
}

TEST(Random, UniformNeverRoundsUpToHigh) {
  NamedAttributes attributes = stream({200000}, DType::float32, 11, 0);
  attributes.emplace_back("low", 16777216.0);
  attributes.emplace_back("high", 16777218.0);
  for (float x : values<float>(run_op("uniform", {}, attributes))) ASSERT_EQ(x, 16777216.0f);
}

TEST(Random, NormalHasItsMoments) {
  NamedAttributes attributes = stream({200001}, DType::float64, 5, 0);
  attributes.emplace_back("mean", 1.0);
  attributes.emplace_back("std", 2.0);
  std::vector<double> sample = values<double>(run_op("normal", {}, attributes));
  EXPECT_NEAR(moments(sample).mean, 1.0, 0.03);
  EXPECT_NEAR(moments(sample).variance, 4.0, 0.08);
  double fourth = 0;
  for (double x : sample) fourth += std::pow((x - 1) / 2, 4) / static_cast<double>(sample.size());
  EXPECT_NEAR(fourth, 3.0, 0.1);
}

TEST(Random, RandintIsEvenOverAnyRange) {
  std::vector<int> counts(7, 0);
  for (std::int8_t x : values<std::int8_t>(run_op("randint", {}, integers({70000}, -3, 4, DType::int8)))) {
    ASSERT_TRUE(x >= -3 && x < 4);
    ++counts[static_cast<std::size_t>(x + 3)];
  }
  for (int count : counts) EXPECT_NEAR(count, 10000, 500);
}

// Three quarters of 2^64: one number in four is rejected and drawn again.
TEST(Random, RandintRejectsWithoutBias) {
  const std::uint64_t count = std::uint64_t{3} << 62;
  int lower = 0;
  for (std::uint64_t x :
       values<std::uint64_t>(run_op("randint", {}, integers({30000}, 0, count, DType::uint64)))) {
    ASSERT_LT(x, count);
    lower += x < count / 3 ? 1 : 0;
  }
  EXPECT_NEAR(lower, 10000, 400);
}

TEST(Random, RandintTakesTheWholeOfInt64) {
  std::vector<std::int64_t> sample = values<std::int64_t>(run_op(
      "randint", {}, integers({1000}, Scalar(std::int64_t{INT64_MIN}), Scalar(std::int64_t{INT64_MAX}))));
  EXPECT_GT(std::count_if(sample.begin(), sample.end(), [](std::int64_t x) { return x < 0; }), 400);
  EXPECT_EQ(std::set<std::int64_t>(sample.begin(), sample.end()).size(), 1000u);
}

TEST(Random, InstructionSetsAgree) {
  const cpu::RandomRange range{.seed = 9, .counter = 4, .begin = 0, .end = 777};
  cpu::RandomTable baseline = cpu::random_table(cpu::Isa::baseline);
  std::vector<double> expected(777);
  std::vector<double> found(777);
  for (cpu::Isa isa : cpu::kIsas) {
    if (!cpu::is_supported(isa)) continue;
    cpu::RandomTable table = cpu::random_table(isa);
    baseline.normal_float64(expected.data(), range, 0, 1);
    table.normal_float64(found.data(), range, 0, 1);
    EXPECT_EQ(expected, found) << cpu::name(isa);
    baseline.uniform_float64(expected.data(), range, {0, 1, 0.9});
    table.uniform_float64(found.data(), range, {0, 1, 0.9});
    EXPECT_EQ(expected, found) << cpu::name(isa);
  }
}

TEST(Random, RejectsBadRanges) {
  EXPECT_THROW(run_op("randint", {}, integers({2}, 5, 5)), ValueError);
  EXPECT_THROW(run_op("randint", {}, integers({2}, 0, 300, DType::int8)), ValueError);
  EXPECT_THROW(run_op("randint", {}, integers({2}, -1, 3, DType::uint8)), ValueError);
  EXPECT_THROW(run_op("randint", {}, integers({2}, 0, 3, DType::float32)), DTypeError);
  EXPECT_THROW(run_op("uniform", {}, stream({2}, DType::int32, 0, 0)), DTypeError);
  NamedAttributes attributes = stream({2}, DType::float64, 0, 0);
  attributes.emplace_back("std", -1.0);
  EXPECT_THROW(run_op("normal", {}, attributes), ValueError);
}

TEST(Random, EmptyShapesWork) {
  EXPECT_EQ(run_op("uniform", {}, stream({0, 3}, DType::float32, 0, 0)).meta.numel(), 0);
  EXPECT_EQ(run_op("normal", {}, stream({}, DType::float32, 0, 0)).meta.numel(), 1);
}

}  // namespace
}  // namespace thalweg::testing
