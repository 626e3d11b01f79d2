// division_test.cpp: the loops of floor_divide and remainder give the functors' bits, in every instruction
// set.
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/isa.h"
#include "kernels/elementwise_reference.h"
#include "kernels/functors.h"

namespace thalweg::testing {
namespace {

using cpu::BinaryFn;
using functors::FloorDivide;
using functors::Remainder;

/// Calls `check.operator()<F>(loop, name)` for both operators in every instruction set of this processor.
template <class T, class Check>
void for_each_loop(const Check& check) {
  for (cpu::Isa isa : cpu::kIsas) {
    if (!cpu::is_supported(isa)) continue;
    const auto& rows = cpu::elementwise_table(isa).binary;
    const std::string where = " of " + std::string(name(dtype_of<T>())) + ", " + std::string(cpu::name(isa));
    check.template operator()<FloorDivide>(rows[static_cast<int>(BinaryFn::floor_divide)][cpu::kLoopIndex<T>],
                                           "floor_divide" + where);
    check.template operator()<Remainder>(rows[static_cast<int>(BinaryFn::remainder)][cpu::kLoopIndex<T>],
                                         "remainder" + where);
  }
}

/// Which NaN comes of two is the processor's choice.
template <class T>
bool same(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a) && std::isnan(b)) return true;
  }
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}

template <class T>
std::string text(T x) {
  if constexpr (std::is_floating_point_v<T>) {
    char buffer[64];
    std::snprintf(buffer, sizeof buffer, "%a", static_cast<double>(x));
    return buffer;
  } else {
    return std::to_string(x);
  }
}

/// Elements that a loop takes by bytes between them, 0 for one element in place of all.
template <class T>
struct Strided {
  std::vector<T> memory;
  std::int64_t count;
  std::int64_t step;

  Strided(const std::vector<T>& elements, std::int64_t step_in_elements)
      : memory(elements.size() *
               static_cast<std::size_t>(std::max<std::int64_t>(1, std::abs(step_in_elements)))),
        count(static_cast<std::int64_t>(elements.size())),
        step(step_in_elements * static_cast<std::int64_t>(sizeof(T))) {
    for (std::size_t i = elements.size(); i-- > 0;) at(static_cast<std::int64_t>(i)) = elements[i];
  }
  char* data() { return reinterpret_cast<char*>(memory.data()) + (step < 0 ? -step * (count - 1) : 0); }
  T& at(std::int64_t i) { return *reinterpret_cast<T*>(data() + i * step); }
};

enum class Output { apart, over_a, over_b };

template <class F, class T>
void expect_functor(cpu::Loop loop, const std::string& what, Strided<T> a, Strided<T> b,
                    Output output = Output::apart, std::int64_t out_step = 1) {
  std::vector<T> expected;
  for (std::int64_t i = 0; i < a.count; ++i) expected.push_back(F{}(a.at(i), b.at(i)));
  Strided<T> out(std::vector<T>(expected.size()), out_step);
  Strided<T> a_before = a;
  Strided<T> b_before = b;
  Strided<T>& target = output == Output::over_a ? a : output == Output::over_b ? b : out;
  char* data[] = {target.data(), a.data(), b.data()};
  const std::int64_t steps[] = {target.step, a.step, b.step};
  loop(data, steps, a.count);
  for (std::int64_t i = 0; i < a.count; ++i) {
    if (same(target.at(i), expected[static_cast<std::size_t>(i)])) continue;
    FAIL() << what << ": " << text(a_before.at(i)) << " and " << text(b_before.at(i)) << " gave "
           << text(target.at(i)) << ", not " << text(expected[static_cast<std::size_t>(i)]) << ", at " << i
           << " of " << a.count << ", steps " << target.step << " " << a.step << " " << b.step;
  }
}

/// `a` by each of `divisors` alone.
template <class T>
void expect_fixed(const std::vector<T>& a, const std::vector<T>& divisors) {
  for_each_loop<T>([&]<class F>(cpu::Loop loop, const std::string& what) {
    for (T divisor : divisors) {
      ASSERT_NO_FATAL_FAILURE(
          (expect_functor<F, T>(loop, what, {a, 1}, {std::vector<T>(a.size(), divisor), 0})));
    }
  });
}

template <class T>
void expect_pairs(const std::vector<T>& a, const std::vector<T>& b) {
  for_each_loop<T>([&]<class F>(cpu::Loop loop, const std::string& what) {
    ASSERT_NO_FATAL_FAILURE((expect_functor<F, T>(loop, what, {a, 1}, {b, 1})));
  });
}

template <class T>
std::vector<T> all_of_8_bits() {
  std::vector<T> result;
  for (int i = 0; i < 256; ++i) result.push_back(static_cast<T>(i));
  return result;
}

template <class T>
void check_all_pairs_of_8_bits() {
  const std::vector<T> all = all_of_8_bits<T>();
  expect_fixed(all, all);
  std::vector<T> a;
  std::vector<T> b;
  for (T x : all) {
    a.insert(a.end(), all.begin(), all.end());
    b.insert(b.end(), all.size(), x);
  }
  expect_pairs(a, b);
}

TEST(Division, AllPairsOfIntegersOf8Bits) {
  check_all_pairs_of_8_bits<std::int8_t>();
  check_all_pairs_of_8_bits<std::uint8_t>();
}

/// Telling values, powers of two and their neighbours with both signs, and random numbers of every size.
template <class T>
std::vector<T> integers(std::uint64_t seed, int random_count) {
  std::vector<T> result = telling_values<T>();
  for (int shift = 0; shift < static_cast<int>(8 * sizeof(T)); ++shift) {
    const std::uint64_t power = std::uint64_t{1} << shift;
    for (std::uint64_t near : {power - 1, power, power + 1}) {
      result.push_back(static_cast<T>(near));
      result.push_back(static_cast<T>(0 - near));
    }
  }
  std::mt19937_64 random(seed);
  for (int i = 0; i < random_count; ++i) {
    const std::uint64_t number = random() >> (random() % 64);
    result.push_back(static_cast<T>(random() % 2 == 0 ? number : 0 - number));
  }
  return result;
}

/// Products of `divisor` and their neighbours, where a quotient changes, and other numbers.
template <class T>
std::vector<T> dividends(T divisor, std::uint64_t seed) {
  std::vector<T> result = integers<T>(seed, 20);
  std::mt19937_64 random(seed);
  const std::uint64_t size = static_cast<std::uint64_t>(divisor);
  for (int i = 0; i < 40; ++i) {
    const std::uint64_t product = (random() >> (random() % 64)) * size;
    for (std::uint64_t near : {product - 1, product, product + 1}) result.push_back(static_cast<T>(near));
  }
  return result;
}

template <class T>
void check_integers(int random_count) {
  std::uint64_t seed = 1;
  for (T divisor : integers<T>(3, random_count)) {
    const std::vector<T> a = dividends(divisor, ++seed);
    ASSERT_NO_FATAL_FAILURE(expect_fixed<T>(a, {divisor}));
    ASSERT_NO_FATAL_FAILURE(expect_pairs<T>(a, std::vector<T>(a.size(), divisor)));
  }
  std::vector<T> a;
  std::vector<T> b;
  for (T x : integers<T>(5, 300)) {
    for (T y : integers<T>(7, 300)) {
      a.push_back(x);
      b.push_back(y);
    }
  }
  expect_pairs(a, b);
}

TEST(Division, WiderIntegersNearEveryChangeOfTheQuotient) {
  check_integers<std::int16_t>(2000);
  check_integers<std::uint16_t>(2000);
  check_integers<std::int32_t>(500);
  check_integers<std::uint32_t>(500);
  check_integers<std::int64_t>(500);
  check_integers<std::uint64_t>(500);
}

TEST(Division, AllDividendsOf16Bits) {
  std::vector<std::int16_t> all;
  std::vector<std::uint16_t> all_unsigned;
  for (int i = 0; i < 65536; ++i) {
    all.push_back(static_cast<std::int16_t>(i));
    all_unsigned.push_back(static_cast<std::uint16_t>(i));
  }
  expect_fixed<std::int16_t>(all, {1, -1, 2, 3, -3, 7, -7, 10, 641, -999, 16384, 32767, -32767, -32768});
  expect_fixed<std::uint16_t>(all_unsigned, {1, 2, 3, 7, 10, 641, 32767, 32768, 32769, 65534, 65535});
}

/// Numbers of one family: any bits, a few telling ones, small integers, quarters, ordinary numbers, subnormal
/// ones, and sizes from 2^-40 to 2^40.
template <class T>
T draw(std::mt19937_64& random, int family) {
  static const std::vector<T> telling = telling_values<T>();
  const std::uint64_t bits = random();
  const double unit = static_cast<double>(bits >> 11) * 0x1p-53;
  switch (family) {
    case 0: {
      T any;
      std::memcpy(&any, &bits, sizeof any);
      return any;
    }
    case 1: return telling[bits % telling.size()];
    case 2: return static_cast<T>(static_cast<int>(bits % 41) - 20);
    case 3: return static_cast<T>(static_cast<int>(bits % 4001) - 2000) / 4;
    case 4: return static_cast<T>(40 * unit - 20);
    case 5:
      return std::numeric_limits<T>::denorm_min() *
             static_cast<T>(static_cast<int>(bits % 2000001) - 1000000);
    default: break;
  }
  return static_cast<T>(std::ldexp(2 * unit - 1, static_cast<int>(random() % 81) - 40));
}
constexpr int kFamilies = 7;

/// Quotients near integers of every size: a product, rounded, and a few neighbours of it.
template <class T>
std::pair<T, T> near_integer(std::mt19937_64& random, int family) {
  const T b = draw<T>(random, family);
  const auto whole = static_cast<double>(static_cast<std::int64_t>(random() >> (random() % 64)));
  T a = static_cast<T>(whole) * b;
  const int off = static_cast<int>(random() % 7) - 3;
  for (int i = 0; i < std::abs(off); ++i)
    a = std::nextafter(a, static_cast<T>(off > 0 ? INFINITY : -INFINITY));
  return {a, b};
}

template <class T>
void check_floats() {
  std::mt19937_64 random(11);
  for (int family_a = 0; family_a < kFamilies; ++family_a) {
    for (int family_b = 0; family_b < kFamilies; ++family_b) {
      std::vector<T> a;
      std::vector<T> b;
      for (int i = 0; i < 2000; ++i) {
        a.push_back(draw<T>(random, family_a));
        b.push_back(draw<T>(random, family_b));
        const auto [near_a, near_b] = near_integer<T>(random, family_b);
        a.push_back(near_a);
        b.push_back(near_b);
      }
      ASSERT_NO_FATAL_FAILURE(expect_pairs(a, b));
    }
  }
  for (int family = 0; family < kFamilies; ++family) {
    std::vector<T> a;
    for (int i = 0; i < 200; ++i) a.push_back(draw<T>(random, i % kFamilies));
    std::vector<T> divisors;
    for (int i = 0; i < 50; ++i) divisors.push_back(draw<T>(random, family));
    ASSERT_NO_FATAL_FAILURE(expect_fixed(a, divisors));
  }
}

TEST(Division, FloatsGiveTheFunctorsBits) {
  check_floats<float>();
  check_floats<double>();
}

/// Quotients at the limit up to which a loop does without the functor, and rests that round.
TEST(Division, FloatsAtTheLimitsOfTheVectorLoops) {
  std::mt19937_64 random(13);
  auto check = [&]<class T>(int limit) {
    std::vector<T> a;
    std::vector<T> b;
    for (int i = 0; i < 20000; ++i) {
      const T divisor = std::abs(draw<T>(random, 4)) + T(0x1p-10);
      const T quotient = static_cast<T>(std::ldexp(1.0, limit + static_cast<int>(random() % 5) - 2));
      T dividend = quotient * divisor;
      for (std::uint64_t k = random() % 4; k > 0; --k) dividend = std::nextafter(dividend, T(0));
      a.push_back(i % 2 == 0 ? dividend : -dividend);
      b.push_back(i % 3 == 0 ? divisor : -divisor);
      a.push_back(-draw<T>(random, 4) * std::numeric_limits<T>::epsilon());
      b.push_back(divisor);
    }
    expect_pairs(a, b);
  };
  check.template operator()<float>(21);
  check.template operator()<double>(50);
}

template <class T>
std::vector<T> mixed(std::mt19937_64& random, std::size_t count) {
  std::vector<T> result;
  while (result.size() < count) {
    if constexpr (std::is_floating_point_v<T>) {
      result.push_back(draw<T>(random, random() % 9 == 0 ? 1 : 4));
    } else {
      result.push_back(static_cast<T>(random() >> (random() % 64)));
    }
  }
  return result;
}

template <class T>
void check_layouts() {
  std::mt19937_64 random(17);
  for (std::size_t count : {1, 2, 31, 32, 63, 64, 65, 200, 512, 513}) {
    const std::vector<T> a = mixed<T>(random, count);
    const std::vector<T> b = mixed<T>(random, count);
    for_each_loop<T>([&]<class F>(cpu::Loop loop, const std::string& what) {
      for (std::int64_t step_a : {1, 0, 3, -1, -2}) {
        for (std::int64_t step_b : {1, 0, 2, -1, -3}) {
          ASSERT_NO_FATAL_FAILURE((expect_functor<F, T>(loop, what, {a, step_a}, {b, step_b})));
          ASSERT_NO_FATAL_FAILURE(
              (expect_functor<F, T>(loop, what, {a, step_a}, {b, step_b}, Output::apart, 2)));
          if (step_a != 0) {
            ASSERT_NO_FATAL_FAILURE(
                (expect_functor<F, T>(loop, what, {a, step_a}, {b, step_b}, Output::over_a)));
          }
          if (step_b != 0) {
            ASSERT_NO_FATAL_FAILURE(
                (expect_functor<F, T>(loop, what, {a, step_a}, {b, step_b}, Output::over_b)));
          }
        }
      }
    });
  }
}

TEST(Division, AnyStepsAndAnOutputOverAnInput) {
  check_layouts<std::int8_t>();
  check_layouts<std::uint8_t>();
  check_layouts<std::int16_t>();
  check_layouts<std::uint16_t>();
  check_layouts<std::int32_t>();
  check_layouts<std::uint32_t>();
  check_layouts<std::int64_t>();
  check_layouts<std::uint64_t>();
  check_layouts<float>();
  check_layouts<double>();
}

}  // namespace
}  // namespace thalweg::testing
