// elementwise_math_test.cpp: accuracy of the mathematical functions, and that an element's bits depend on
// nothing else.
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>
#include <random>
#include <string_view>

#include <gtest/gtest.h>

#include "kernels/cpu/elementwise.h"
#include "kernels/elementwise_reference.h"

namespace thalweg::testing {
namespace {

/// Telling values, ordinary numbers, numbers of every size, and the places where functions overflow.
template <class T>
std::vector<T> arguments() {
  std::vector<T> result = telling_values<T>();
  std::mt19937_64 random(5);
  auto unit = [&] { return static_cast<double>(random() >> 11) * 0x1p-53; };
  for (int i = 0; i < 400; ++i) {
    result.push_back(static_cast<T>(20 * unit() - 10));
    result.push_back(static_cast<T>(2 * unit() - 1));
    result.push_back(static_cast<T>(std::exp(170 * unit() - 85) * (i % 2 == 0 ? 1 : -1)));
    result.push_back(static_cast<T>((sizeof(T) == 4 ? 87 : 708) + 3 * unit()));
    result.push_back(static_cast<T>(1 + std::exp(-40 * unit())));
    T any;
    std::uint64_t bits = random();
    std::memcpy(&any, &bits, sizeof any);
    result.push_back(any);
  }
  return result;
}

template <class T>
Array vector_of(const std::vector<T>& elements) {
  return array_of<T>({static_cast<std::int64_t>(elements.size())}, elements);
}

template <class T>
void check_accuracy(const std::vector<MathCase>& cases, double limit) {
  std::vector<T> x = arguments<T>();
  for (const MathCase& each : cases) {
    std::vector<T> result = values<T>(run_op(each.op, {vector_of(x)}));
    for (std::size_t i = 0; i < x.size(); ++i) {
      long double exact = each.exact(x[i]);
      const std::string_view op = each.op;
      ASSERT_LE(units_off(result[i], exact), op == "tanh" || op == "erf" ? 2 : limit)
          << each.op << "(" << x[i] << ") is " << exact << ", not " << result[i];
    }
  }
}

TEST(ElementwiseMath, FunctionsAreWithinOneUnitTanhAndErfWithinTwo) {
  check_accuracy<float>(math_cases(), 1.0);
  check_accuracy<double>(math_cases(), 1.0);
}

TEST(ElementwiseMath, RootsAndRoundingsAreExact) {
  check_accuracy<float>(exact_cases(), 0.5000001);
  check_accuracy<double>(exact_cases(), 0.5000001);
}

template <class T>
void check_binary_accuracy(const char* op, long double (*exact)(long double, long double)) {
  auto [a, b] = telling_pairs<T>();
  std::mt19937_64 random(9);
  for (int i = 0; i < 2000; ++i) {
    a.push_back(static_cast<T>(std::exp(static_cast<double>(random() >> 11) * 0x1p-48 - 16)));
    b.push_back(static_cast<T>(static_cast<double>(random() >> 11) * 0x1p-50 - 4));
  }
  std::vector<T> result = values<T>(run_op(op, {vector_of(a), vector_of(b)}));
  for (std::size_t i = 0; i < a.size(); ++i) {
    ASSERT_LE(units_off(result[i], exact(a[i], b[i])), 1.0)
        << op << "(" << a[i] << ", " << b[i] << ") gave " << result[i];
  }
}

TEST(ElementwiseMath, BinaryFunctionsAreWithinOneUnit) {
  check_binary_accuracy<float>("pow", std::pow);
  check_binary_accuracy<double>("pow", std::pow);
  check_binary_accuracy<float>("atan2", std::atan2);
  check_binary_accuracy<double>("atan2", std::atan2);
  check_binary_accuracy<float>("hypot", std::hypot);
  check_binary_accuracy<double>("hypot", std::hypot);
}

/// x * x * x and a root stand for these powers; they keep its special cases.
template <class T>
void check_power_of_one_exponent(T exponent) {
  const std::vector<T> x = arguments<T>();
  const std::vector<T> result = values<T>(run_op("pow", {vector_of(x), vector_of<T>({exponent})}));
  for (std::size_t i = 0; i < x.size(); ++i) {
    const T rounded = std::pow(x[i], exponent);
    if (std::isnan(rounded)) {
      // A signalling NaN to the power of 0 is NaN to the C library and 1 to others.
      const bool one = exponent == 0 && result[i] == 1;
      ASSERT_TRUE(std::isnan(result[i]) || one) << x[i] << " ** " << exponent << " gave " << result[i];
    } else if (std::isinf(rounded) || x[i] == 0 || std::isinf(x[i])) {
      ASSERT_EQ(result[i], rounded) << x[i] << " ** " << exponent;
      ASSERT_EQ(std::signbit(result[i]), std::signbit(rounded)) << x[i] << " ** " << exponent;
    } else {
      const long double exact = std::pow(static_cast<long double>(x[i]), static_cast<long double>(exponent));
      ASSERT_LE(units_off(result[i], exact), 1.5) << x[i] << " ** " << exponent;
    }
  }
}

TEST(ElementwiseMath, PowersOfOneExponentKeepTheSpecialCases) {
  for (double exponent : {3.0, 0.5, 2.0, -1.0, 2.5, -0.5, 0.0}) {
    check_power_of_one_exponent<float>(static_cast<float>(exponent));
    check_power_of_one_exponent<double>(exponent);
  }
}

/// Errors in units of max(1, x^2) roundings: an error of one in the argument of exp is so many of the result.
template <class T>
void check_activation(const char* op, long double (*exact)(long double), double limit) {
  const std::vector<T> x = arguments<T>();
  const std::vector<T> result = values<T>(run_op(op, {vector_of(x)}));
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (std::isinf(x[i]) && x[i] < 0) {
      ASSERT_TRUE(result[i] == 0) << op << " of -inf is " << result[i];
      continue;
    }
    const bool spreads = op == std::string_view("gelu") && std::isfinite(x[i]);
    const double spread = spreads ? std::max(1.0, double(x[i]) * double(x[i])) : 1.0;
    ASSERT_LE(units_off(result[i], exact(x[i])) / spread, limit) << op << "(" << x[i] << ") is " << result[i];
  }
}

TEST(ElementwiseMath, Activations) {
  const auto sigmoid = [](long double x) { return 1 / (1 + std::exp(-x)); };
  const auto silu = [](long double x) { return x / (1 + std::exp(-x)); };
  const auto gelu = [](long double x) {
    return x * (std::erfc(-x * std::numbers::inv_sqrtpi_v<long double> *
                          std::sqrt(std::numbers::pi_v<long double> / 2)) /
                2);
  };
  check_activation<float>("sigmoid", sigmoid, 3);
  check_activation<double>("sigmoid", sigmoid, 3);
  check_activation<float>("silu", silu, 4);
  check_activation<double>("silu", silu, 4);
  check_activation<float>("gelu", gelu, 5);
  check_activation<double>("gelu", gelu, 5);
}

TEST(ElementwiseMath, LogAddExpOfInfinitiesAndLargeNumbers) {
  const double inf = std::numeric_limits<double>::infinity();
  Array result = run_op("logaddexp", {vector_of<double>({-inf, inf, -inf, 1000, inf, NAN}),
                                      vector_of<double>({-inf, inf, 2, 1000, -inf, 1})});
  std::vector<double> found = values<double>(result);
  EXPECT_EQ(found[0], -inf);
  EXPECT_EQ(found[1], inf);
  EXPECT_EQ(found[2], 2);
  EXPECT_DOUBLE_EQ(found[3], 1000 + std::log(2.0));
  EXPECT_EQ(found[4], inf);
  EXPECT_TRUE(std::isnan(found[5]));
}

std::vector<cpu::Isa> supported_isas() {
  std::vector<cpu::Isa> result;
  for (cpu::Isa isa : cpu::kIsas) {
    if (cpu::is_supported(isa)) result.push_back(isa);
  }
  return result;
}

/// `loop` over contiguous operands of `count` elements.
void run(cpu::Loop loop, void* out, std::int64_t out_item, const void* in, std::int64_t in_item,
         std::int64_t count, const void* second = nullptr) {
  char* data[] = {static_cast<char*>(out), const_cast<char*>(static_cast<const char*>(in)),
                  const_cast<char*>(static_cast<const char*>(second))};
  const std::int64_t steps[] = {out_item, in_item, in_item};
  loop(data, steps, count);
}

template <class T>
void check_neighbours(cpu::Isa isa) {
  const auto& table = cpu::elementwise_table(isa);
  std::vector<T> x = arguments<T>();
  // Predicates write one byte of each element and leave the others 0.
  std::vector<T> together(x.size());
  for (const auto& row : table.unary) {
    cpu::Loop loop = row[cpu::kLoopIndex<T>];
    if (loop == nullptr) continue;
    std::fill(together.begin(), together.end(), T(0));
    run(loop, together.data(), sizeof(T), x.data(), sizeof(T), static_cast<std::int64_t>(x.size()));
    for (std::size_t i = 0; i < x.size(); ++i) {
      T alone(0);
      run(loop, &alone, sizeof(T), &x[i], sizeof(T), 1);
      ASSERT_EQ(std::memcmp(&alone, &together[i], sizeof(T)), 0)
          << "row " << &row - table.unary << " at " << x[i] << ", " << cpu::name(isa);
    }
  }
}

TEST(ElementwiseMath, AnElementDoesNotDependOnItsNeighbours) {
  for (cpu::Isa isa : supported_isas()) {
    check_neighbours<float>(isa);
    check_neighbours<double>(isa);
  }
}

/// Which NaN comes of two is the processor's choice.
template <class T>
void make_nans_equal(void* elements, std::int64_t count) {
  if constexpr (std::is_floating_point_v<T>) {
    T* data = static_cast<T*>(elements);
    for (std::int64_t i = 0; i < count; ++i) {
      if (std::isnan(data[i])) data[i] = std::numeric_limits<T>::quiet_NaN();
    }
  }
}

/// One number for all elements of an operand gives what as many equal ones do.
template <class T>
void check_fixed_operands(cpu::Isa isa) {
  const auto& table = cpu::elementwise_table(isa);
  const std::vector<T> x = arguments<T>();
  const auto count = static_cast<std::int64_t>(x.size());
  std::vector<T> dense(x.size());
  std::vector<T> fixed(x.size());
  for (const auto& row : table.binary) {
    cpu::Loop loop = row[cpu::kLoopIndex<T>];
    if (loop == nullptr) continue;
    for (const T number : {T(2.5), T(-0.5), T(0)}) {
      const std::vector<T> numbers(x.size(), number);
      for (const bool first : {true, false}) {
        std::fill(dense.begin(), dense.end(), T(0));
        std::fill(fixed.begin(), fixed.end(), T(0));
        const T* const operands[] = {first ? numbers.data() : x.data(), first ? x.data() : numbers.data()};
        run(loop, dense.data(), sizeof(T), operands[0], sizeof(T), count, operands[1]);
        char* data[] = {reinterpret_cast<char*>(fixed.data()),
                        reinterpret_cast<char*>(const_cast<T*>(operands[0])),
                        reinterpret_cast<char*>(const_cast<T*>(operands[1]))};
        const std::int64_t steps[] = {sizeof(T), first ? 0 : std::int64_t{sizeof(T)},
                                      first ? std::int64_t{sizeof(T)} : 0};
        loop(data, steps, count);
        make_nans_equal<T>(dense.data(), count);
        make_nans_equal<T>(fixed.data(), count);
        ASSERT_EQ(std::memcmp(dense.data(), fixed.data(), x.size() * sizeof(T)), 0)
            << "row " << &row - table.binary << " with " << number << ", " << cpu::name(isa);
      }
    }
  }
}

TEST(ElementwiseMath, AFixedOperandIsOneForAllElements) {
  for (cpu::Isa isa : supported_isas()) {
    check_fixed_operands<float>(isa);
    check_fixed_operands<double>(isa);
  }
}

// Names in the order of the tables.
#define THALWEG_QUOTE(name) #name,
constexpr const char* kUnaryNames[] = {THALWEG_UNARY_FNS(THALWEG_QUOTE)};
constexpr const char* kBinaryNames[] = {THALWEG_BINARY_FNS(THALWEG_QUOTE)};
#undef THALWEG_QUOTE

bool is_approximate(const std::string& op) {
  for (const char* other :
       {"pow", "atan2", "hypot", "logaddexp", "sigmoid", "silu", "gelu", "silu_gradient", "gelu_gradient"}) {
    if (op == other) return true;
  }
  for (const MathCase& each : math_cases()) {
    if (op == each.op) return true;
  }
  return false;
}

template <class T>
std::vector<T> operands(std::uint64_t seed) {
  std::vector<T> result(1000);
  std::mt19937_64 random(seed);
  std::vector<T> telling = telling_values<T>();
  for (std::size_t i = 0; i < result.size(); ++i) {
    std::uint64_t bits = random();
    std::memcpy(&result[i], &bits, sizeof(T));
    if (i % 3 == 0) result[i] = telling[random() % telling.size()];
  }
  return result;
}

template <class T>
void check_isas_agree() {
  std::vector<T> a = operands<T>(1);
  std::vector<T> b = operands<T>(2);
  const auto count = static_cast<std::int64_t>(a.size());
  const auto& baseline = cpu::elementwise_table(cpu::Isa::baseline);
  // Two words for each: a cast may give complex128.
  std::vector<std::uint64_t> expected(2 * a.size());
  std::vector<std::uint64_t> found(2 * a.size());
  auto compare = [&](cpu::Loop reference, cpu::Loop loop, const std::string& op, std::int64_t out_item,
                     cpu::Isa isa) {
    if (reference == nullptr) return;
    std::fill(expected.begin(), expected.end(), 0);
    std::fill(found.begin(), found.end(), 0);
    run(reference, expected.data(), out_item, a.data(), sizeof(T), count, b.data());
    run(loop, found.data(), out_item, a.data(), sizeof(T), count, b.data());
    if (out_item == sizeof(T)) {
      make_nans_equal<T>(expected.data(), count);
      make_nans_equal<T>(found.data(), count);
    }
    EXPECT_EQ(expected, found) << op << " " << name(dtype_of<T>()) << " " << cpu::name(isa);
  };
  for (cpu::Isa isa : supported_isas()) {
    const auto& table = cpu::elementwise_table(isa);
    const int row = cpu::kLoopIndex<T>;
    for (std::size_t i = 0; i < std::size(kUnaryNames); ++i) {
      std::string op = kUnaryNames[i];
      bool predicate = op.starts_with("is") || op == "logical_not" || op == "signbit";
      if (!is_approximate(op))
        compare(baseline.unary[i][row], table.unary[i][row], op, predicate ? 1 : sizeof(T), isa);
    }
    for (std::size_t i = 0; i < std::size(kBinaryNames); ++i) {
      std::string op = kBinaryNames[i];
      if (is_approximate(op)) continue;
      compare(baseline.binary[i][row], table.binary[i][row], op, op.starts_with("logical") ? 1 : sizeof(T),
              isa);
    }
    for (std::size_t i = 0; i < std::size(baseline.compare); ++i) {
      compare(baseline.compare[i][row], table.compare[i][row], "comparison " + std::to_string(i), 1, isa);
    }
    for (int to = 0; to < cpu::kLoopDTypes; ++to) {
      DType dtype = static_cast<DType>(to);
      compare(baseline.cast[row][to], table.cast[row][to], "cast to " + std::string(name(dtype)),
              item_size(dtype), isa);
    }
  }
}

TEST(ElementwiseMath, InstructionSetsAgreeOnAllButTranscendentalFunctions) {
  for (DType dtype : kAllDTypes) {
    visit_real_dtype(dtype, []<class T>() {
      if constexpr (!std::is_same_v<T, bool>) check_isas_agree<T>();
    });
  }
}

}  // namespace
}  // namespace thalweg::testing
