// random_test.cpp: Philox's published vectors, the stream's layout, and the distributions.
#include "kernels/cpu/random.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>
#include <set>

#include <gtest/gtest.h>

#include <thalweg/generator.h>

#include "kernels/op_runner.h"
#include "kernels/philox.h"

namespace thalweg::testing {
namespace {

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
  std::uint64_t counter[4];
  std::uint64_t key[2];
  std::uint32_t answer[4];
};

// From the authors' test vectors (Random123, kat_vectors, "philox4x32 10").
TEST(Philox, KnownAnswers) {
  const KnownAnswer cases[] = {
      {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
      {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
       {0xffffffff, 0xffffffff},
       {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
      {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
       {0xa4093822, 0x299f31d0},
       {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
  };
  for (KnownAnswer each : cases) {
    functors::philox_rounds(each.counter, each.key[0], each.key[1], functors::LowProduct{});
    for (int i = 0; i < 4; ++i) EXPECT_EQ(static_cast<std::uint32_t>(each.counter[i]), each.answer[i]);
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
  EXPECT_TRUE(order_does_not_matter("normal", {}, stream({100001}, DType::float32, 1, 0)));
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

/// sin(2 pi turn) by the angle to the nearest quarter: near its zeros pi's rounding would show.
long double sine_of_turn(long double turn) {
  const long double quarters = std::round(4 * turn);
  const long double angle = 2 * std::numbers::pi_v<long double> * (turn - quarters / 4);
  const int quadrant = static_cast<int>(quarters) % 4;
  const long double size = quadrant % 2 == 0 ? std::sin(angle) : std::cos(angle);
  return quadrant < 2 ? size : -size;
}

/// Box and Muller's formula on the stream's bits, in long double.
std::vector<long double> normal_reference(std::int64_t count, std::uint64_t seed, std::uint64_t counter) {
  std::vector<long double> result;
  for (; std::ssize(result) < count; ++counter) {
    const functors::RandomPair pair = functors::random_pair(seed, counter, 0);
    const long double u = static_cast<long double>((pair.first >> 11) + 1) * 0x1p-53L;
    const long double turn = static_cast<long double>(pair.second >> 11) * 0x1p-53L;
    const long double radius = std::sqrt(-2 * std::log(u));
    result.push_back(radius * sine_of_turn(turn + 0.25L));
    result.push_back(radius * sine_of_turn(turn));
  }
  return result;
}

/// The greatest distance from the reference in units of the spacing of T there.
template <class T>
double greatest_error(const std::vector<T>& found, const std::vector<long double>& reference) {
  double result = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const int exponent = std::ilogb(reference[i]) + 1 - std::numeric_limits<T>::digits;
    const long double error =
        (static_cast<long double>(found[i]) - reference[i]) / std::ldexp(1.0L, exponent);
    result = std::max(result, static_cast<double>(std::abs(error)));
  }
  return result;
}

TEST(Random, NormalIsTheFormulasValue) {
  const std::vector<long double> reference = normal_reference(1000000, 5, 77);
  const Shape shape = {1000000};
  // float32 takes shorter polynomials, but is all but correctly rounded.
  EXPECT_LE(
      greatest_error(values<float>(run_op("normal", {}, stream(shape, DType::float32, 5, 77))), reference),
      0.51);
  EXPECT_LE(
      greatest_error(values<double>(run_op("normal", {}, stream(shape, DType::float64, 5, 77))), reference),
      3.0);
}

double normal_cdf(double x) { return std::erfc(-x / std::numbers::sqrt2) / 2; }

// The bounds are those of five standard deviations; Kolmogorov's, of one sample in a thousand.
TEST(Random, Float32NormalHasItsDistribution) {
  constexpr double count = 1000000;
  std::vector<double> sample =
      values<double>(cast(run_op("normal", {}, stream({1000000}, DType::float32, 8, 0)), DType::float64));
  double power[5] = {};
  for (double x : sample) {
    for (int k = 1; k <= 4; ++k) power[k] += std::pow(x, k) / count;
  }
  EXPECT_NEAR(power[1], 0, 5 / std::sqrt(count));
  EXPECT_NEAR(power[2], 1, 5 * std::sqrt(2 / count));
  EXPECT_NEAR(power[3], 0, 5 * std::sqrt(15 / count));
  EXPECT_NEAR(power[4], 3, 5 * std::sqrt(96 / count));
  for (double bound : {1.0, 2.0, 3.0, 4.0}) {
    const double expected = count * normal_cdf(-bound);
    const auto below = std::count_if(sample.begin(), sample.end(), [=](double x) { return x < -bound; });
    const auto above = std::count_if(sample.begin(), sample.end(), [=](double x) { return x > bound; });
    EXPECT_NEAR(static_cast<double>(below), expected, 5 * std::sqrt(expected)) << bound;
    EXPECT_NEAR(static_cast<double>(above), expected, 5 * std::sqrt(expected)) << bound;
  }
  // The two numbers of a counter share a radius, but are independent.
  double products = 0;
  for (std::size_t i = 0; i < sample.size(); i += 2) products += sample[i] * sample[i + 1] / (count / 2);
  EXPECT_NEAR(products, 0, 5 / std::sqrt(count / 2));
  std::sort(sample.begin(), sample.end());
  double distance = 0;
  for (std::size_t i = 0; i < sample.size(); ++i) {
    const double p = normal_cdf(sample[i]);
    distance =
        std::max({distance, p - static_cast<double>(i) / count, static_cast<double>(i + 1) / count - p});
  }
  EXPECT_LT(distance * std::sqrt(count), 1.95);
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

/// What `fill(table, out, range)` writes with each instruction set's table is what it writes with the
/// baseline's.
template <class T, class Fill>
void expect_same_bits(const char* what, Fill fill) {
  const cpu::RandomRange range{.seed = 9, .counter = 4, .begin = 0, .end = 100777};
  std::vector<T> expected(100777);
  fill(cpu::random_table(cpu::Isa::baseline), expected.data(), range);
  for (cpu::Isa isa : cpu::kIsas) {
    if (!cpu::is_supported(isa)) continue;
    std::vector<T> found(expected.size() + 1, T(77));
    fill(cpu::random_table(isa), found.data(), range);
    EXPECT_EQ(std::memcmp(expected.data(), found.data(), expected.size() * sizeof(T)), 0)
        << what << ' ' << cpu::name(isa);
    EXPECT_EQ(found.back(), T(77)) << what << " writes beyond its range, " << cpu::name(isa);
  }
}

TEST(Random, InstructionSetsAgree) {
  using cpu::RandomRange;
  using cpu::RandomTable;
  expect_same_bits<float>("normal_float32",
                          [](const RandomTable& table, float* out, const RandomRange& range) {
                            table.normal_float32(out, range, 0.1, 1.7);
                          });
  expect_same_bits<double>("normal_float64",
                           [](const RandomTable& table, double* out, const RandomRange& range) {
                             table.normal_float64(out, range, 0.1, 1.7);
                           });
  expect_same_bits<float>("uniform_float32",
                          [](const RandomTable& table, float* out, const RandomRange& range) {
                            table.uniform_float32(out, range, {-0.3, 1.1, 1.0});
                          });
  expect_same_bits<double>("uniform_float64",
                           [](const RandomTable& table, double* out, const RandomRange& range) {
                             table.uniform_float64(out, range, {-0.3, 1.1, 1.0});
                           });
  // 2^64 mod 1000 is 616.
  expect_same_bits<std::uint16_t>("randint",
                                  [](const RandomTable& table, std::uint16_t* out, const RandomRange& range) {
                                    table.randint[1](out, range, {3, 1000, 616});
                                  });
}

// A range of vectors holds the numbers of `random_pair`, which is Philox as published.
TEST(Random, VectorsAreThePairsOfTheirCounters) {
  for (std::uint64_t counter : {std::uint64_t{0}, (std::uint64_t{1} << 32) - 20, ~std::uint64_t{0} - 30}) {
    const cpu::RandomRange range{.seed = 0x299f31d0a4093822u, .counter = counter, .begin = 0, .end = 301};
    for (cpu::Isa isa : cpu::kIsas) {
      if (!cpu::is_supported(isa)) continue;
      std::vector<std::uint64_t> found(301);
      cpu::random_table(isa).randint[3](found.data(), range, {0, 0, 0});
      for (std::size_t i = 0; i < found.size(); ++i) {
        const functors::RandomPair pair = functors::random_pair(range.seed, counter + i / 2, 0);
        ASSERT_EQ(found[i], i % 2 == 0 ? pair.first : pair.second) << i << ' ' << cpu::name(isa);
      }
    }
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
