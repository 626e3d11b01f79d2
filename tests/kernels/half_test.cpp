// half_test.cpp: conversions of float16 and bfloat16, against the formats' definitions.
#include "kernels/cpu/half.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include <thalweg/half.h>
#include <thalweg/scalar.h>

#include "kernels/op_runner.h"

namespace thalweg::testing {
namespace {

struct Format {
  DType dtype;
  int fraction_bits;
  int bias;
};
constexpr Format kFormats[] = {{DType::float16, 10, 15}, {DType::bfloat16, 7, 127}};

/// The value of the bits without their sign, by IEEE 754's definition; infinity comes out as the number that
/// would follow the largest.
double size_of(int bits, const Format& format) {
  const int fraction = bits & ((1 << format.fraction_bits) - 1);
  const int exponent = bits >> format.fraction_bits;
  const int whole = exponent == 0 ? fraction : fraction | 1 << format.fraction_bits;
  return std::ldexp(whole, std::max(exponent, 1) - format.bias - format.fraction_bits);
}

int infinity_of(const Format& format) { return 0x7fff & ~((1 << format.fraction_bits) - 1); }

int bits_after_rounding(double value, const Format& format) { return to_half(Scalar(value), format.dtype); }

TEST(Half, WidensEveryValue) {
  for (const Format& format : kFormats) {
    const int infinity = infinity_of(format);
    for (int bits = 0; bits < 0x10000; ++bits) {
      const int size = bits & 0x7fff;
      const float found = from_half(static_cast<std::uint16_t>(bits), format.dtype);
      ASSERT_EQ(std::signbit(found), bits >= 0x8000) << bits;
      if (size > infinity) {
        ASSERT_TRUE(std::isnan(found)) << bits;
      } else if (size == infinity) {
        ASSERT_TRUE(std::isinf(found)) << bits;
      } else {
        ASSERT_EQ(std::abs(found), size_of(size, format)) << bits;
      }
    }
  }
}

TEST(Half, EveryValueSurvivesTheWayThroughFloat) {
  for (const Format& format : kFormats) {
    const int quiet = 1 << (format.fraction_bits - 1);
    for (int bits = 0; bits < 0x10000; ++bits) {
      const float wide = from_half(static_cast<std::uint16_t>(bits), format.dtype);
      const int again = format.dtype == DType::float16 ? narrow_float16(wide) : narrow_bfloat16(wide);
      const bool is_nan = (bits & 0x7fff) > infinity_of(format);
      ASSERT_EQ(again, is_nan ? bits | quiet : bits);
    }
  }
}

// Every midpoint of neighbours, and the doubles next to it: a tie goes to the even one, and a rounding to
// float in between would make ties of its neighbours.
TEST(Half, RoundsDoublesOnceToTheNearest) {
  for (const Format& format : kFormats) {
    for (int lower = 0; lower < infinity_of(format); ++lower) {
      const double middle = (size_of(lower, format) + size_of(lower + 1, format)) / 2;
      const int even = lower + (lower & 1);
      ASSERT_EQ(bits_after_rounding(middle, format), even);
      ASSERT_EQ(bits_after_rounding(std::nextafter(middle, 0.0), format), lower);
      ASSERT_EQ(bits_after_rounding(std::nextafter(middle, INFINITY), format), lower + 1);
      ASSERT_EQ(bits_after_rounding(-middle, format), even | 0x8000);
      ASSERT_EQ(bits_after_rounding(std::nextafter(-middle, -INFINITY), format), (lower + 1) | 0x8000);
    }
    for (double huge : {1e39, 1e300, double{INFINITY}}) {
      ASSERT_EQ(bits_after_rounding(huge, format), infinity_of(format));
      ASSERT_EQ(bits_after_rounding(-huge, format), infinity_of(format) | 0x8000);
    }
    for (double tiny : {1e-50, std::numeric_limits<double>::denorm_min(), 0.0}) {
      ASSERT_EQ(bits_after_rounding(tiny, format), 0);
      ASSERT_EQ(bits_after_rounding(-tiny, format), 0x8000);
    }
  }
}

TEST(Half, RoundsIntegersOnce) {
  // One above halfway between neighbours of 8 bits, which a float's 24 bits would lose.
  for (int exponent = 26; exponent < 63; ++exponent) {
    const std::int64_t base = std::int64_t{1} << exponent;
    const std::int64_t half = base >> 8;
    const double above = std::ldexp(1.0 + 0x1p-7, exponent);
    for (std::int64_t sign : {1, -1}) {
      auto value = [&](std::int64_t x) {
        return double{from_half(to_half(Scalar(sign * x), DType::bfloat16), DType::bfloat16)};
      };
      EXPECT_EQ(value(base + half), static_cast<double>(sign) * std::ldexp(1.0, exponent));
      EXPECT_EQ(value(base + half + 1), static_cast<double>(sign) * above);
    }
  }
  EXPECT_EQ(from_half(to_half(Scalar(~std::uint64_t{0}), DType::bfloat16), DType::bfloat16), 0x1p64f);
  EXPECT_EQ(from_half(to_half(Scalar(std::int64_t{65519}), DType::float16), DType::float16), 65504.0f);
  EXPECT_TRUE(std::isinf(from_half(to_half(Scalar(std::int64_t{65520}), DType::float16), DType::float16)));
}

template <class From, class To>
std::vector<To> converted(cpu::Loop loop, const std::vector<From>& from) {
  std::vector<To> to(from.size());
  char* const data[] = {reinterpret_cast<char*>(to.data()),
                        reinterpret_cast<char*>(const_cast<From*>(from.data()))};
  const std::int64_t steps[] = {sizeof(To), sizeof(From)};
  loop(data, steps, static_cast<std::int64_t>(from.size()));
  return to;
}

template <class T>
void expect_same_bits(const std::vector<T>& a, const std::vector<T>& b, cpu::Isa isa) {
  EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size() * sizeof(T)), 0) << cpu::name(isa);
}

TEST(Half, InstructionSetsGiveTheSameBits) {
  const cpu::HalfTable baseline = cpu::half_table(cpu::Isa::baseline);
  std::vector<std::uint16_t> halves(0x10000 + 3);
  for (std::size_t i = 0; i < halves.size(); ++i) halves[i] = static_cast<std::uint16_t>(i);
  std::vector<float> floats;
  std::vector<double> doubles;
  for (std::uint64_t i = 0; i < 1'000'003; ++i) {
    const std::uint64_t bits = i * 0x9e3779b97f4a7c15u;
    float x;
    const auto upper = static_cast<std::uint32_t>(bits >> 32);
    std::memcpy(&x, &upper, sizeof x);
    floats.push_back(x);
    double y = x;
    if (i % 2 == 1) std::memcpy(&y, &bits, sizeof y);
    doubles.push_back(y);
  }
  for (cpu::Isa isa : cpu::kIsas) {
    if (!cpu::is_supported(isa)) continue;
    const cpu::HalfTable table = cpu::half_table(isa);
    for (int format : {0, 1}) {
      expect_same_bits(converted<std::uint16_t, float>(baseline.widen[format], halves),
                       converted<std::uint16_t, float>(table.widen[format], halves), isa);
      expect_same_bits(converted<float, std::uint16_t>(baseline.narrow[format], floats),
                       converted<float, std::uint16_t>(table.narrow[format], floats), isa);
    }
    const int row = cpu::kLoopIndex<double>;
    expect_same_bits(converted<double, float>(baseline.to_odd[row], doubles),
                     converted<double, float>(table.to_odd[row], doubles), isa);
  }
}

}  // namespace
}  // namespace thalweg::testing
