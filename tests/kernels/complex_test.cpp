// complex_test.cpp: complex dtypes: what every instruction set gives, NumPy's formulas, reductions, products,
// parts.
#include <array>
#include <complex>
#include <cstring>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "kernels/cpu/elementwise.h"
#include "kernels/op_runner.h"

namespace thalweg::testing {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr DType kComplexDTypes[] = {DType::complex64, DType::complex128};

/// Every pair of telling parts, and random numbers.
template <class T>
std::vector<std::complex<T>> telling_numbers(unsigned seed) {
  const T parts[] = {0,       -T(0),    1,      -2, T(0.5), T(1e-30), std::numeric_limits<T>::max(),
                     T(kInf), T(-kInf), T(kNan)};
  std::vector<std::complex<T>> result;
  for (T real : parts) {
    for (T imag : parts) result.emplace_back(real, imag);
  }
  std::mt19937_64 random(seed);
  for (int i = 0; i < 300; ++i) {
    result.emplace_back(static_cast<T>(static_cast<double>(random() >> 11) * 0x1p-50 - 4),
                        static_cast<T>(static_cast<double>(random() >> 11) * 0x1p-50 - 4));
  }
  std::shuffle(result.begin(), result.end(), random);
  return result;
}

template <class T>
Array vector_of(const std::vector<T>& elements) {
  return array_of<T>({static_cast<std::int64_t>(elements.size())}, elements);
}

template <class T>
std::complex<T> only(const std::string& op, std::vector<std::complex<T>> inputs) {
  std::vector<Array> arrays;
  for (std::complex<T> input : inputs) arrays.push_back(vector_of<std::complex<T>>({input}));
  return values<std::complex<T>>(run_op(op, arrays))[0];
}

std::string text(std::complex<double> value) { return to_string(AttrValue(Scalar(value))); }

TEST(Complex, ProductsAndQuotientsAreThePlainFormulas) {
  using C = std::complex<double>;
  // C and C++ would recover infinities from the NaN.
  EXPECT_EQ(text(only<double>("multiply", {C(kInf, 0), C(1, 0)})), "(inf+nanj)");
  EXPECT_EQ(text(only<double>("multiply", {C(1, 2), C(3, 4)})), "(-5+10j)");
  EXPECT_EQ(text(only<double>("divide", {C(-5, 10), C(3, 4)})), "(1+2j)");
  EXPECT_EQ(text(only<double>("divide", {C(1, 0), C(0, 0)})), "(inf+nanj)");
  EXPECT_EQ(text(only<double>("divide", {C(1, 1), C(1e300, 1e300)})), "(1e-300+0j)");
  EXPECT_EQ(text(only<double>("square", {C(1, 2)})), "(-3+4j)");
  EXPECT_EQ(text(only<double>("conj", {C(1, 0)})), "(1-0j)");
}

TEST(Complex, PowersOfSmallWholeExponentsAreExact) {
  using C = std::complex<double>;
  EXPECT_EQ(text(only<double>("pow", {C(1, 2), C(2, 0)})), "(-3+4j)");
  EXPECT_EQ(text(only<double>("pow", {C(0, 1), C(-1, 0)})), "-1j");
  EXPECT_EQ(text(only<double>("pow", {C(0, 0), C(0, 0)})), "(1+0j)");
  EXPECT_EQ(text(only<double>("pow", {C(0, 0), C(2, 3)})), "0j");
  EXPECT_EQ(text(only<double>("pow", {C(0, 0), C(-2, 3)})), "(nan+nanj)");
}

TEST(Complex, SizesDoNotOverflowOnTheWay) {
  const auto large = std::complex<float>(3e38f, 1e38f);
  EXPECT_FLOAT_EQ(values<float>(run_op("abs", {vector_of<std::complex<float>>({large})}))[0], 3.1622776e38f);
  const auto sign = only<double>("sign", {{1.7e308, 1.7e308}});
  EXPECT_DOUBLE_EQ(sign.real(), std::sqrt(0.5));
  EXPECT_DOUBLE_EQ(sign.imag(), std::sqrt(0.5));
  EXPECT_EQ(text(only<double>("sign", {{kInf, kNan}})), "(nan+nanj)");
}

/// Which NaN comes of two is the processor's choice.
template <class T>
void make_nans_equal(std::vector<T>* parts) {
  for (T& part : *parts) {
    if (part != part) part = std::numeric_limits<T>::quiet_NaN();
  }
}

/// What `loop` gives for two rows of numbers, as parts; a bool or a real result leaves the others 0.
template <class T>
std::vector<T> results(cpu::Loop loop, const std::vector<std::complex<T>>& a,
                       const std::vector<std::complex<T>>& b, std::int64_t out_item) {
  std::vector<T> parts(4 * a.size(), T(0));
  char* data[] = {reinterpret_cast<char*>(parts.data()),
                  const_cast<char*>(reinterpret_cast<const char*>(a.data())),
                  const_cast<char*>(reinterpret_cast<const char*>(b.data()))};
  const std::int64_t item = sizeof(std::complex<T>);
  const std::int64_t steps[] = {out_item, item, item};
  loop(data, steps, static_cast<std::int64_t>(a.size()));
  if (out_item > 1) make_nans_equal(&parts);
  return parts;
}

template <class T>
void check_isas_agree(cpu::Isa isa) {
  const auto a = telling_numbers<T>(1);
  const auto b = telling_numbers<T>(2);
  const auto& baseline = cpu::elementwise_table(cpu::Isa::baseline);
  const auto& table = cpu::elementwise_table(isa);
  const int row = static_cast<int>(dtype_of<std::complex<T>>());
  const auto compare = [&](cpu::Loop reference, cpu::Loop loop, std::int64_t out_item, const char* kind,
                           std::size_t i) {
    if (reference == nullptr) return;
    const auto expected = results<T>(reference, a, b, out_item);
    const auto found = results<T>(loop, a, b, out_item);
    EXPECT_EQ(std::memcmp(expected.data(), found.data(), expected.size() * sizeof(T)), 0)
        << kind << " " << i << " " << cpu::name(isa);
  };
  const std::int64_t item = sizeof(std::complex<T>);
  const auto is_predicate = [](std::size_t fn) {
    for (cpu::UnaryFn each :
         {cpu::UnaryFn::isnan, cpu::UnaryFn::isinf, cpu::UnaryFn::isfinite, cpu::UnaryFn::logical_not}) {
      if (static_cast<std::size_t>(each) == fn) return true;
    }
    return false;
  };
  for (std::size_t i = 0; i < std::size(table.unary); ++i) {
    const bool real = i == static_cast<std::size_t>(cpu::UnaryFn::abs);
    compare(baseline.unary[i][row], table.unary[i][row],
            is_predicate(i) ? 1
            : real          ? item / 2
                            : item,
            "unary", i);
  }
  for (std::size_t i = 0; i < std::size(table.binary); ++i) {
    const bool logical = i >= static_cast<std::size_t>(cpu::BinaryFn::logical_and);
    compare(baseline.binary[i][row], table.binary[i][row], logical ? 1 : item, "binary", i);
  }
  for (std::size_t i = 0; i < std::size(table.compare); ++i) {
    compare(baseline.compare[i][row], table.compare[i][row], 1, "comparison", i);
  }
  for (DType to : {DType::bool_, DType::complex64, DType::complex128}) {
    const auto column = static_cast<std::size_t>(to);
    compare(baseline.cast[row][column], table.cast[row][column], item_size(to), "cast", column);
  }
}

TEST(Complex, InstructionSetsAgreeOnEveryFunction) {
  for (cpu::Isa isa : cpu::kIsas) {
    if (!cpu::is_supported(isa)) continue;
    check_isas_agree<float>(isa);
    check_isas_agree<double>(isa);
  }
}

template <class T>
Array random_numbers(const Shape& shape, unsigned seed) {
  const auto count = static_cast<std::size_t>(numel(shape));
  const Array parts = random_floats<T>({2 * numel(shape)}, seed);
  std::vector<std::complex<T>> numbers(count);
  std::memcpy(static_cast<void*>(numbers.data()), parts.data(), count * sizeof(numbers[0]));
  return array_of<std::complex<T>>(shape, numbers);
}

template <class T>
void check_sums(const Shape& shape, const AttrValue& axis) {
  const Array x = random_numbers<T>(shape, 3);
  const Array wide = x.meta.dtype == DType::complex64 ? cast(x, DType::complex128) : x;
  for (Layout layout : kAllLayouts) {
    const Array laid = with_layout(x, layout);
    for (const char* op : {"sum", "mean"}) {
      const Array found = cast(run_op(op, {laid}, {{"axis", axis}}), DType::complex128);
      for (const char* part : {"real", "imag"}) {
        // The parts add up apart from each other.
        const auto expected = values<double>(run_op(op, {run_op(part, {wide})}, {{"axis", axis}}));
        const auto parts = values<double>(with_layout(run_op(part, {found}), Layout::contiguous));
        ASSERT_EQ(parts.size(), expected.size());
        for (std::size_t i = 0; i < parts.size(); ++i) {
          EXPECT_NEAR(parts[i], expected[i], sizeof(T) == 4 ? 1e-3 : 1e-10) << op << " " << part;
        }
      }
    }
    EXPECT_TRUE(order_does_not_matter("sum", {laid}, {{"axis", axis}}));
    EXPECT_TRUE(order_does_not_matter("prod", {laid}, {{"axis", axis}}));
  }
}

TEST(Complex, SumsAndMeans) {
  for (const AttrValue& axis : {AttrValue{}, AttrValue{Dims{0}}, AttrValue{Dims{1}}}) {
    for (const Shape& shape : {Shape{3, 4}, Shape{65, 33}, Shape{2, 40000}, Shape{5000, 8}}) {
      check_sums<float>(shape, axis);
      check_sums<double>(shape, axis);
    }
  }
}

TEST(Complex, EmptyReductions) {
  const Array none = allocate(DType::complex128, {0});
  EXPECT_EQ(text(values<std::complex<double>>(run_op("sum", {none}))[0]), "0j");
  EXPECT_EQ(text(values<std::complex<double>>(run_op("prod", {none}))[0]), "(1+0j)");
  EXPECT_EQ(text(values<std::complex<double>>(run_op("mean", {none}))[0]), "(nan+nanj)");
}

TEST(Complex, AnyAndAllLookAtBothParts) {
  using C = std::complex<float>;
  const Array x = array_of<C>({2, 2}, {C(0, 0), C(0, -0.0f), C(0, 1), C(NAN, 0)});
  EXPECT_EQ(values<bool>(run_op("any", {x}, {{"axis", Dims{1}}})), (std::vector<bool>{false, true}));
  EXPECT_EQ(values<bool>(run_op("all", {x}, {{"axis", Dims{1}}})), (std::vector<bool>{false, true}));
}

template <class T>
void check_matmul(std::int64_t m, std::int64_t k, std::int64_t n) {
  using C = std::complex<T>;
  const Array a = random_numbers<T>({m, k}, 4);
  const Array b = random_numbers<T>({k, n}, 5);
  const auto left = values<C>(a);
  const auto right = values<C>(b);
  for (Layout layout : kAllLayouts) {
    const auto found = values<C>(run_op("matmul", {with_layout(a, layout), with_layout(b, layout)}));
    for (std::int64_t i = 0; i < m * n; ++i) {
      std::complex<double> exact;
      for (std::int64_t j = 0; j < k; ++j) {
        exact += std::complex<double>(left[i / n * k + j]) * std::complex<double>(right[j * n + i % n]);
      }
      EXPECT_LE(std::abs(std::complex<double>(found[i]) - exact), sizeof(T) == 4 ? 1e-4 : 1e-12);
    }
  }
}

TEST(Complex, MatrixProducts) {
  const std::array<std::int64_t, 3> sizes[] = {
      {2, 3, 4}, {1, 20, 30}, {30, 20, 1}, {17, 33, 9}, {300, 5, 20}};
  for (auto [m, k, n] : sizes) {
    check_matmul<float>(m, k, n);
    check_matmul<double>(m, k, n);
  }
}

TEST(Complex, PartsAreViews) {
  const Array x = random_numbers<float>({3, 4}, 6);
  for (Layout layout : kAllLayouts) {
    const Array laid = with_layout(x, layout);
    const auto numbers = values<std::complex<float>>(laid);
    const Array real = run_op("real", {laid});
    const Array imag = run_op("imag", {laid});
    EXPECT_EQ(real.bytes, laid.bytes);
    const auto reals = values<float>(real);
    const auto imags = values<float>(imag);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      EXPECT_EQ(numbers[i], std::complex<float>(reals[i], imags[i]));
    }
  }
}

TEST(Complex, CastsFromRealDTypesAreExact) {
  for (DType from : kAllDTypes) {
    for (DType to : kComplexDTypes) {
      const Array x = small_integers(from, {40});
      const Array real = run_op("real", {run_op("astype", {x}, {{"dtype", to}})});
      EXPECT_TRUE(same_bits(real, run_op("astype", {x}, {{"dtype", real_dtype(to)}}))) << name(from);
    }
  }
}

TEST(Complex, FunctionsWithoutAComplexMeaningRefuse) {
  const char* const unary[] = {"signbit", "floor", "ceil",   "trunc",  "max",           "min",
                               "var",     "std",   "argmax", "argmin", "bitwise_invert"};
  const char* const binary[] = {"floor_divide", "remainder",  "minimum",     "maximum",
                                "copysign",     "atan2",      "hypot",       "logaddexp",
                                "less",         "less_equal", "greater",     "greater_equal",
                                "bitwise_and",  "bitwise_or", "bitwise_xor", "bitwise_left_shift"};
  for (DType dtype : kComplexDTypes) {
    const Array x = allocate(dtype, {3});
    const auto check = [&](const std::string& op, const std::vector<Array>& inputs,
                           const NamedAttributes& named = {}) {
      const std::string message = error_text<DTypeError>([&] { run_op(op, inputs, named); });
      EXPECT_TRUE(message.starts_with(op + ":") && message.find(name(dtype)) != std::string::npos)
          << op << ": " << message;
    };
    for (const char* op : unary) check(op, {x});
    for (const char* op : binary) check(op, {x, allocate(DType::int8, {3})});
    check("clip", {x, x, x});
    check("astype", {x}, {{"dtype", DType::float64}});
    check("sum", {x}, {{"dtype", DType::float64}});
  }
}

}  // namespace
}  // namespace thalweg::testing
