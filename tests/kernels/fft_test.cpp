// fft_test.cpp: the Fourier transforms against their sums, over layouts, and the same bits however lines are
// grouped.
#include "kernels/cpu/fft.h"

#include <numbers>

#include <gtest/gtest.h>

#include "kernels/cpu/fft_plans.h"
#include "kernels/op_runner.h"

namespace thalweg::testing {
namespace {

template <class T>
Array random_numbers(const Shape& shape, unsigned seed = 1) {
  const Array parts = random_floats<T>({2 * numel(shape)}, seed);
  Array result = allocate(dtype_of<std::complex<T>>(), shape);
  std::memcpy(result.data(), parts.data(), static_cast<std::size_t>(result.meta.bytes()));
  return result;
}

/// The transform of one line by the definition, of `length` elements: x is cropped or padded with zeros.
std::vector<std::complex<double>> sums(const std::vector<std::complex<double>>& x, std::size_t length,
                                       int sign) {
  std::vector<std::complex<double>> result(length);
  for (std::size_t k = 0; k < length; ++k) {
    for (std::size_t j = 0; j < std::min(x.size(), length); ++j) {
      const double turn = static_cast<double>(j * k % length) / static_cast<double>(length);
      result[k] += x[j] * std::polar(1.0, sign * 2.0 * std::numbers::pi * turn);
    }
  }
  return result;
}

void expect_near(const Array& found, const std::vector<std::complex<double>>& expected, double bound) {
  const auto numbers = values<std::complex<double>>(cast(found, DType::complex128));
  ASSERT_EQ(numbers.size(), expected.size());
  for (std::size_t i = 0; i < numbers.size(); ++i) EXPECT_LE(std::abs(numbers[i] - expected[i]), bound) << i;
}

/// A row of a matrix, as a matrix.
Array row_of(const Array& x, std::int64_t row) {
  Array result = x;
  result.meta.offset += row * x.meta.strides[0];
  result.meta.shape = Shape{1, x.meta.shape[1]};
  return result;
}

constexpr std::int64_t kLengths[] = {1, 2, 3, 4, 5, 7, 8, 9, 11, 12, 13, 30, 97, 101};

TEST(Fft, IsTheSumOfRotatedElements) {
  for (std::int64_t length : kLengths) {
    for (std::int64_t n : {length, length + 3, std::max<std::int64_t>(1, length - 2)}) {
      const Array x = random_numbers<double>({length}, 3);
      const auto line = values<std::complex<double>>(x);
      const auto size = static_cast<std::size_t>(n);
      for (Layout layout : kAllLayouts) {
        const Array laid = with_layout(x, layout);
        expect_near(run_op("fft", {laid}, {{"n", n}}), sums(line, size, -1), 1e-12);
        expect_near(run_op("ifft", {laid}, {{"n", n}, {"norm", std::string("forward")}}), sums(line, size, 1),
                    1e-12);
      }
    }
  }
}

TEST(Fft, OfRealNumbersIsTheFirstHalf) {
  for (std::int64_t length : kLengths) {
    const Array x = random_floats<float>({length}, 5);
    auto expected =
        sums(values<std::complex<double>>(cast(x, DType::complex128)), static_cast<std::size_t>(length), -1);
    expected.resize(static_cast<std::size_t>(length / 2 + 1));
    for (Layout layout : kAllLayouts) {
      const Array spectrum = run_op("rfft", {with_layout(x, layout)});
      expect_near(spectrum, expected, 2e-5);
      const Array back = run_op("irfft", {with_layout(spectrum, layout)}, {{"n", length}});
      expect_near(back, values<std::complex<double>>(cast(x, DType::complex128)), 1e-6);
    }
    for (auto& number : expected) number = std::conj(number);
    expect_near(run_op("ihfft", {x}, {{"norm", std::string("forward")}}), expected, 2e-5);
  }
}

/// Whether each row of `x` has the same result alone as beside the others.
void expect_rows_alone(const std::string& op, const Array& x, const NamedAttributes& named) {
  const Array together = run_op(op, {x}, named);
  for (std::int64_t row = 0; row < x.meta.shape[0]; ++row) {
    const Array alone = run_op(op, {row_of(x, row)}, named);
    ASSERT_TRUE(same_bits(alone, row_of(together, row))) << op << " of length " << x.meta.shape[1];
  }
}

TEST(Fft, LinesHaveTheSameBitsAloneAndTogether) {
  for (std::int64_t length : {1, 2, 6, 97, 128, 1009, 2039}) {
    const Shape shape{35, length};
    expect_rows_alone("fft", random_numbers<float>(shape), {});
    expect_rows_alone("ifft", random_numbers<double>(shape), {});
    expect_rows_alone("rfft", random_floats<float>(shape), {});
    expect_rows_alone("rfft", random_floats<double>(shape), {});
    expect_rows_alone("irfft", random_numbers<float>(shape), {{"n", length}});
    expect_rows_alone("irfft", random_numbers<double>(shape), {{"n", length + 1}});
  }
}

TEST(Fft, OrderOfPiecesDoesNotMatter) {
  const Shape shape{40, 50, 60};
  for (const char* op : {"fftn", "irfftn"}) {
    EXPECT_TRUE(order_does_not_matter(op, {random_numbers<double>(shape)})) << op;
    EXPECT_TRUE(order_does_not_matter(op, {random_numbers<float>(shape)},
                                      {{"axes", Dims{2, 0}}, {"s", Dims{70, 30}}}))
        << op;
  }
  EXPECT_TRUE(order_does_not_matter("rfftn", {random_floats<float>(shape)}));
}

TEST(Fft, InstructionSetsAgree) {
  const std::int64_t length = 1009;
  const Array x = random_numbers<double>({9, length});
  const cpu::FftLine line{.in_count = length,
                          .in_stride = 1,
                          .out_stride = 1,
                          .side_by_side = true,
                          .forward = true,
                          .scale = 0.3};
  std::vector<std::int64_t> offsets;
  for (std::int64_t row = 0; row < 9; ++row) offsets.push_back(row * length);
  Array first;
  for (cpu::Isa isa : cpu::kIsas) {
    if (!cpu::is_supported(isa)) continue;
    const cpu::FftTable table = cpu::fft_table(isa);
    void* plan = table.float64.make_plan(length, true);
    Array result = allocate(DType::complex128, x.meta.shape);
    table.float64.run[0](plan, line, x.data(), result.data(), offsets.data(), offsets.data(), 9);
    table.float64.free_plan(plan, true);
    if (first.bytes == nullptr) first = result;
    EXPECT_TRUE(same_bits(first, result)) << cpu::name(isa);
  }
}

TEST(FftPlans, AreKeptUntilManyOthersCame) {
  static const cpu::FftTable table = cpu::fft_table(cpu::Isa::baseline);
  const auto plan = cpu::fft_plan(table.float32, 1000, true);
  EXPECT_EQ(plan, cpu::fft_plan(table.float32, 1000, true));
  EXPECT_NE(plan, cpu::fft_plan(table.float64, 1000, true));
  EXPECT_NE(plan, cpu::fft_plan(table.float32, 1000, false));
  for (std::int64_t length = 1; length < 100; ++length) {
    cpu::fft_plan(table.float32, length, true);
    if (length % 20 == 0) {
      EXPECT_EQ(plan, cpu::fft_plan(table.float32, 1000, true)) << length;
    }
  }
  for (std::int64_t length = 1; length < 100; ++length) cpu::fft_plan(table.float32, length, true);
  EXPECT_EQ(plan.use_count(), 1);
  EXPECT_NE(plan, cpu::fft_plan(table.float32, 1000, true));
}

TEST(FftPlans, LongOnesPushOutAllOthers) {
  static const cpu::FftTable table = cpu::fft_table(cpu::Isa::baseline);
  const auto small = cpu::fft_plan(table.float32, 10, true);
  const auto large = cpu::fft_plan(table.float32, std::int64_t{1} << 22, true);
  EXPECT_EQ(small.use_count(), 1);
  EXPECT_EQ(large, cpu::fft_plan(table.float32, std::int64_t{1} << 22, true));
}

TEST(Fft, NamesWhatIsWrong) {
  const Array x = random_numbers<float>({2, 3});
  const auto text = [&]<class E>(const std::string& op, const Array& input, const NamedAttributes& named) {
    return error_text<E>([&] { run_op(op, {input}, named); });
  };
  EXPECT_EQ(text.operator()<ValueError>("fft", x, {{"n", std::int64_t{0}}}),
            "fft: a length of 0 in n; it must be at least 1");
  EXPECT_EQ(text.operator()<ValueError>("fftn", x, {{"s", Dims{2}}, {"axes", Dims{0, 1}}}),
            "fftn: s (2,) and axes (0, 1) differ in length");
  EXPECT_EQ(text.operator()<ValueError>("irfftn", x, {{"s", Dims{2}}}),
            "irfftn: s is (2,) without axes; name the axis of each length");
  EXPECT_EQ(text.operator()<ShapeError>("hfft", random_numbers<float>({2, 1}), {}),
            "hfft: axis 1 of shape (2, 1) has too few elements for a transform; give n");
  EXPECT_EQ(text.operator()<DTypeError>("rfftn", x, {}),
            "rfftn: x has dtype complex64 and must be real; transform complex numbers with fftn");
  EXPECT_EQ(text.operator()<ShapeError>("rfftn", random_floats<float>({}), {}),
            "rfftn: needs at least one axis; shape () has none");
}

}  // namespace
}  // namespace thalweg::testing
