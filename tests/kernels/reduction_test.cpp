// reduction_test.cpp: every reduction against a naive loop, over dtypes, layouts, shapes and axes.
#include <functional>
#include <limits>
#include <optional>

#include <gtest/gtest.h>

#include "kernels/op_runner.h"

namespace thalweg::testing {
namespace {

struct Case {
  Shape shape;
  std::optional<Dims> axes;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> table = {
      {{}, std::nullopt},
      {{}, Dims{}},
      {{1}, std::nullopt},
      {{7}, Dims{0}},
      {{8}, std::nullopt},
      {{31}, std::nullopt},
      {{33}, Dims{-1}},
      {{2, 3, 4}, std::nullopt},
      {{2, 3, 4}, Dims{}},
      {{2, 3, 4}, Dims{0}},
      {{2, 3, 4}, Dims{1}},
      {{2, 3, 4}, Dims{2}},
      {{2, 3, 4}, Dims{0, 2}},
      {{2, 3, 4}, Dims{-1, -2}},
      {{5, 1, 6}, Dims{1}},
      {{1, 1, 1}, Dims{0, 1}},
      {{40, 17}, Dims{0}},
      {{40, 17}, Dims{1}},
      {{70, 130}, Dims{0}},
      {{3, 530}, Dims{1}},
      {{200, 3}, Dims{1}},
      {{5, 33, 9}, Dims{1}},
      {{5, 33, 9}, Dims{0, 2}},
      {Shape(32, 1), std::nullopt},
      {{2, 1, 2, 1, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 3},
       Dims{0, 2, 4, 31}},
  };
  return table;
}

std::vector<bool> reduced_mask(const Case& c) {
  std::vector<bool> mask(c.shape.size(), !c.axes.has_value());
  if (c.axes.has_value()) {
    for (std::int64_t axis : *c.axes) mask[axis < 0 ? axis + c.shape.size() : axis] = true;
  }
  return mask;
}

using Values = std::vector<double>;

/// The elements of each output in C order.
std::vector<Values> groups(const Array& array, const Case& c) {
  const std::vector<bool> mask = reduced_mask(c);
  const Values elements = values<double>(cast(array, DType::float64));
  std::int64_t outputs = 1;
  for (std::size_t axis = 0; axis < mask.size(); ++axis) outputs *= mask[axis] ? 1 : c.shape[axis];
  std::vector<Values> result(static_cast<std::size_t>(outputs));
  for (std::size_t i = 0; i < elements.size(); ++i) {
    std::int64_t rest = static_cast<std::int64_t>(i);
    std::int64_t output = 0;
    std::int64_t stride = 1;
    for (std::size_t axis = mask.size(); axis-- > 0;) {
      if (!mask[axis]) {
        output += rest % c.shape[axis] * stride;
        stride *= c.shape[axis];
      }
      rest /= c.shape[axis];
    }
    result[output].push_back(elements[i]);
  }
  return result;
}

NamedAttributes attributes(const Case& c, bool keepdims = false) {
  NamedAttributes result = {{"keepdims", keepdims}};
  if (c.axes.has_value()) result.push_back({"axis", *c.axes});
  return result;
}

Shape expected_shape(const Case& c, bool keepdims) {
  const std::vector<bool> mask = reduced_mask(c);
  Shape shape;
  for (std::size_t axis = 0; axis < mask.size(); ++axis) {
    if (!mask[axis]) shape.push_back(c.shape[axis]);
    if (mask[axis] && keepdims) shape.push_back(1);
  }
  return shape;
}

std::string describe(const char* op, DType dtype, const Case& c, Layout layout) {
  return std::string(op) + " of " + std::string(name(dtype)) + to_string(c.shape) + " over " +
         (c.axes.has_value() ? to_string(*c.axes) : "all") + ", layout " +
         std::to_string(static_cast<int>(layout));
}

using DTypeRule = DType (*)(DType);

/// Runs `op` for all dtypes, layouts and cases; `reference(group)` gives what each output must equal. The
/// values are small whole numbers, so doubles hold every exact result.
void expect_all(const char* op, DTypeRule dtype_rule, double (*reference)(const Values&)) {
  for (DType dtype : kAllDTypes) {
    for (const Case& c : cases()) {
      if (dtype_rule(dtype) == DType::int64 && std::string(op).starts_with("arg") && c.axes.has_value() &&
          c.axes->size() != 1) {
        continue;
      }
      const Array contiguous = small_integers(dtype, c.shape);
      Values expected;
      for (const Values& group : groups(contiguous, c)) expected.push_back(reference(group));
      for (Layout layout : kAllLayouts) {
        for (bool keepdims : {false, true}) {
          SCOPED_TRACE(describe(op, dtype, c, layout));
          const Array result = run_op(op, {with_layout(contiguous, layout)}, attributes(c, keepdims));
          ASSERT_EQ(to_string(result.meta.shape), to_string(expected_shape(c, keepdims)));
          ASSERT_EQ(name(result.meta.dtype), name(dtype_rule(dtype)));
          const Values found = values<double>(cast(result, DType::float64));
          // A mean in float32 is rounded once.
          const double tolerance = result.meta.dtype == DType::float32 ? 1e-6 : 0;
          for (std::size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(found[i], expected[i], tolerance);
        }
      }
    }
  }
}

DType same(DType dtype) { return dtype; }
DType accumulated(DType dtype) {
  if (is_floating(dtype)) return dtype;
  return kind(dtype) == DTypeKind::unsigned_integer ? DType::uint64 : DType::int64;
}
DType floating(DType dtype) { return is_floating(dtype) ? dtype : DType::float64; }
DType logical(DType) { return DType::bool_; }
DType position(DType) { return DType::int64; }

TEST(Reduction, SumMatchesLoop) {
  expect_all("sum", accumulated,
             [](const Values& group) { return std::accumulate(group.begin(), group.end(), 0.0); });
}

TEST(Reduction, ProdMatchesLoop) {
  expect_all("prod", accumulated, [](const Values& group) {
    return std::accumulate(group.begin(), group.end(), 1.0, std::multiplies<>());
  });
}

TEST(Reduction, MaxMatchesLoop) {
  expect_all("max", same, [](const Values& group) { return *std::max_element(group.begin(), group.end()); });
}

TEST(Reduction, MinMatchesLoop) {
  expect_all("min", same, [](const Values& group) { return *std::min_element(group.begin(), group.end()); });
}

TEST(Reduction, MeanMatchesLoop) {
  expect_all("mean", floating, [](const Values& group) {
    return std::accumulate(group.begin(), group.end(), 0.0) / static_cast<double>(group.size());
  });
}

double is_nonzero(double value) { return value != 0; }

TEST(Reduction, AnyMatchesLoop) {
  expect_all("any", logical, [](const Values& group) {
    return static_cast<double>(std::any_of(group.begin(), group.end(), is_nonzero));
  });
}

TEST(Reduction, AllMatchesLoop) {
  expect_all("all", logical, [](const Values& group) {
    return static_cast<double>(std::all_of(group.begin(), group.end(), is_nonzero));
  });
}

TEST(Reduction, ArgmaxMatchesLoop) {
  expect_all("argmax", position, [](const Values& group) {
    return static_cast<double>(std::max_element(group.begin(), group.end()) - group.begin());
  });
}

TEST(Reduction, ArgminMatchesLoop) {
  expect_all("argmin", position, [](const Values& group) {
    return static_cast<double>(std::min_element(group.begin(), group.end()) - group.begin());
  });
}

TEST(Reduction, VarAndStdMatchTwoPasses) {
  for (double correction : {0.0, 1.0}) {
    for (const Case& c : cases()) {
      const Array input = random_floats<double>(c.shape);
      std::vector<double> expected;
      for (const auto& group : groups(input, c)) {
        long double sum = 0;
        for (double value : group) sum += value;
        const long double mean = sum / group.size();
        long double squares = 0;
        for (double value : group) squares += (value - mean) * (value - mean);
        const double divisor = std::max(0.0, static_cast<double>(group.size()) - correction);
        expected.push_back(static_cast<double>(squares) / divisor);
      }
      for (Layout layout : kAllLayouts) {
        SCOPED_TRACE(describe("var", DType::float64, c, layout));
        NamedAttributes named = attributes(c);
        named.push_back({"correction", correction});
        const auto variance = values<double>(run_op("var", {with_layout(input, layout)}, named));
        const auto deviation = values<double>(run_op("std", {with_layout(input, layout)}, named));
        const auto single = values<float>(run_op("var", {cast(input, DType::float32)}, named));
        for (std::size_t i = 0; i < expected.size(); ++i) {
          if (std::isnan(expected[i])) {
            ASSERT_TRUE(std::isnan(variance[i]));
            continue;
          }
          ASSERT_NEAR(variance[i], expected[i], 1e-13);
          ASSERT_NEAR(deviation[i], std::sqrt(expected[i]), 1e-13);
          ASSERT_NEAR(single[i], expected[i], 1e-5);
        }
      }
    }
  }
}

TEST(Reduction, VarOfIntegersIsFloat64) {
  const Array input = array_of<std::int8_t>({4}, {1, 2, 3, 4});
  EXPECT_EQ(values<double>(run_op("var", {input})), std::vector<double>{1.25});
}

TEST(Reduction, ChunkBoundariesAreExact) {
  constexpr std::int64_t chunk = 32768;
  for (std::int64_t count : {chunk - 1, chunk, chunk + 1, 3 * chunk + 17}) {
    for (DType dtype : {DType::bool_, DType::int8, DType::int64, DType::float32, DType::float64}) {
      for (const Case& c : {Case{{count, 2}, Dims{0}}, Case{{count, 5}, Dims{0}}, Case{{2, count}, Dims{1}},
                            Case{{count}, std::nullopt}}) {
        SCOPED_TRACE(describe("sum", dtype, c, Layout::contiguous));
        const Array input = small_integers(dtype, c.shape);
        // The last element of each group is its only maximum.
        Array peak = cast(input, DType::float64);
        std::fill_n(
            static_cast<double*>(peak.data()) + (c.axes == Dims{0} ? numel(c.shape) - c.shape[1] : count - 1),
            c.axes == Dims{0} ? c.shape[1] : 1, 9.0);
        Values sums;
        Values peaks;
        Values positions;
        for (const Values& group : groups(input, c))
          sums.push_back(std::accumulate(group.begin(), group.end(), 0.0));
        for (const Values& group : groups(peak, c)) {
          const auto best = std::max_element(group.begin(), group.end());
          peaks.push_back(*best);
          positions.push_back(static_cast<double>(best - group.begin()));
        }
        auto run = [&](const char* op, const Array& x) {
          return values<double>(cast(run_op(op, {x}, attributes(c)), DType::float64));
        };
        EXPECT_EQ(run("sum", input), sums);
        EXPECT_EQ(run("max", peak), peaks);
        EXPECT_EQ(run("argmax", peak), positions);
        EXPECT_EQ(run("argmax", cast(peak, DType::float32)), positions);
      }
    }
  }
}

TEST(Reduction, WideColumnsMatchLoop) {
  // More columns than a tile, more rows than a piece.
  const Case c{{2000, 515}, Dims{0}};
  const Array input = small_integers(DType::float32, c.shape);
  Values expected;
  for (const Values& group : groups(input, c))
    expected.push_back(std::accumulate(group.begin(), group.end(), 0.0));
  EXPECT_EQ(values<double>(cast(run_op("sum", {input}, attributes(c)), DType::float64)), expected);
}

TEST(Reduction, ChunkOrderDoesNotMatter) {
  const std::vector<Case> large = {{{100000}, std::nullopt},   {{2, 40000}, Dims{1}}, {{40000, 2}, Dims{0}},
                                   {{300, 500}, Dims{0}},      {{300, 500}, Dims{1}}, {{30, 60, 40}, Dims{1}},
                                   {{30, 60, 40}, Dims{0, 2}}, {{40000, 3}, Dims{1}}};
  for (const char* op :
       {"sum", "prod", "mean", "var", "std", "max", "min", "any", "all", "argmax", "argmin"}) {
    for (const Case& c : large) {
      if (std::string(op).starts_with("arg") && c.axes.has_value() && c.axes->size() != 1) continue;
      for (Layout layout : {Layout::contiguous, Layout::transposed}) {
        SCOPED_TRACE(describe(op, DType::float32, c, layout));
        EXPECT_TRUE(
            order_does_not_matter(op, {with_layout(random_floats<float>(c.shape), layout)}, attributes(c)));
      }
    }
  }
}

TEST(Reduction, StridesKeepTheBitsOfARow) {
  const Array row = random_floats<float>({100000});
  EXPECT_TRUE(same_bits(run_op("sum", {row}), run_op("sum", {with_layout(row, Layout::gapped)})));
}

TEST(Reduction, SumOfFloatsIsPairwise) {
  const std::int64_t count = 1 << 22;
  const Array input = array_of<float>({count}, std::vector<float>(count, 0.1f));
  const Array columns = array_of<float>({count / 4, 4}, std::vector<float>(count, 0.1f));
  const double exact = 0.1f * static_cast<double>(count);
  EXPECT_NEAR(values<float>(run_op("sum", {input}))[0], exact, exact * 1e-6);
  for (float sum : values<float>(run_op("sum", {columns}, {{"axis", Dims{0}}}))) {
    EXPECT_NEAR(sum, exact / 4, exact * 1e-6);
  }
}

TEST(Reduction, EmptyGivesTheNeutralValue) {
  const Array empty = allocate(DType::float32, {0, 3});
  const NamedAttributes over_none = {{"axis", Dims{0}}};
  EXPECT_EQ(values<float>(run_op("sum", {empty}, over_none)), (std::vector<float>{0, 0, 0}));
  EXPECT_FALSE(std::signbit(values<float>(run_op("sum", {empty}))[0]));
  EXPECT_EQ(values<float>(run_op("prod", {empty}, over_none)), (std::vector<float>{1, 1, 1}));
  EXPECT_EQ(values<bool>(run_op("any", {empty}))[0], false);
  EXPECT_EQ(values<bool>(run_op("all", {empty}))[0], true);
  for (const char* op : {"mean", "var", "std"})
    EXPECT_TRUE(std::isnan(values<float>(run_op(op, {empty}))[0])) << op;
  for (const char* op : {"sum", "max", "mean", "var", "any", "argmax"}) {
    const Array none = run_op(op, {empty}, {{"axis", Dims{1}}});
    EXPECT_EQ(to_string(none.meta.shape), "(0,)") << op;
  }
}

TEST(Reduction, EmptyExtremumIsRefused) {
  const Array empty = allocate(DType::float32, {0, 3});
  for (const char* op : {"max", "min", "argmax", "argmin"}) {
    EXPECT_EQ(error_text<ShapeError>([&] {
                run_op(op, {empty}, {{"axis", Dims{0}}});
              }),
              std::string(op) + ": shape (0, 3) has no element to reduce along axis (0,), and an empty " +
                  op + " has no value");
  }
}

TEST(Reduction, NanSpreads) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (std::int64_t count : {3, 100, 1000, 40000}) {
    for (std::int64_t place : {std::int64_t{0}, count / 2, count - 1}) {
      Array input = random_floats<float>({count});
      static_cast<float*>(input.data())[place] = nan;
      for (const char* op : {"sum", "prod", "mean", "var", "max", "min"}) {
        EXPECT_TRUE(std::isnan(values<float>(run_op(op, {input}))[0])) << op << " " << count << " " << place;
      }
      EXPECT_EQ(values<std::int64_t>(run_op("argmax", {input}))[0], place);
      EXPECT_EQ(values<std::int64_t>(run_op("argmin", {input}))[0], place);
      static_cast<float*>(input.data())[count - 1] = nan;
      EXPECT_EQ(values<std::int64_t>(run_op("argmax", {input}))[0], place) << "the first nan";
      const Array columns = run_op("expand_dims", {input}, {{"axis", Dims{1}}});
      const Array wide = run_op("broadcast_to", {columns}, {{"shape", Dims{count, 5}}});
      EXPECT_EQ(values<std::int64_t>(run_op("argmin", {wide}, {{"axis", Dims{0}}})),
                std::vector<std::int64_t>(5, place));
    }
  }
}

TEST(Reduction, InfinitiesAndNegativeZero) {
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(values<double>(run_op("max", {array_of<double>({2}, {-inf, -inf})}))[0], -inf);
  EXPECT_EQ(values<double>(run_op("min", {array_of<double>({2}, {inf, inf})}))[0], inf);
  EXPECT_EQ(values<double>(run_op("sum", {array_of<double>({3}, {inf, 1, inf})}))[0], inf);
  EXPECT_TRUE(std::isnan(values<double>(run_op("sum", {array_of<double>({2}, {inf, -inf})}))[0]));
  EXPECT_TRUE(std::signbit(
      values<double>(run_op("sum", {array_of<double>({20}, std::vector<double>(20, -0.0))}))[0]));
  EXPECT_FALSE(values<bool>(run_op("any", {array_of<double>({1}, {-0.0})}))[0]);
}

TEST(Reduction, IntegersWrap) {
  const std::int64_t top = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(values<std::int64_t>(run_op("sum", {array_of<std::int64_t>({2}, {top, 1})}))[0],
            std::numeric_limits<std::int64_t>::min());
}

TEST(Reduction, DTypeOverridesTheAccumulator) {
  const Array bytes = array_of<std::uint8_t>({3}, {200, 100, 1});
  EXPECT_EQ(values<std::uint8_t>(run_op("sum", {bytes}, {{"dtype", DType::uint8}}))[0], 45);
  EXPECT_EQ(values<float>(run_op("sum", {bytes}, {{"dtype", DType::float32}}))[0], 301.0f);
  EXPECT_EQ(values<bool>(run_op("sum", {bytes}, {{"dtype", DType::bool_}}))[0], true);
  EXPECT_EQ(values<std::int16_t>(run_op("prod", {bytes}, {{"dtype", DType::int16}}))[0], 20000);
}

TEST(Reduction, BadAxesAreRefused) {
  const Array input = small_integers(DType::float32, {2, 3});
  EXPECT_NE(error_text<IndexError>([&] {
              run_op("sum", {input}, {{"axis", Dims{2}}});
            }).find("sum: axis 2"),
            std::string::npos);
  EXPECT_NE(error_text<ShapeError>([&] { run_op("sum", {input}, {{"axis", Dims{0, -2}}}); }), "");
  EXPECT_NE(error_text<ValueError>([&] { run_op("argmax", {input}, {{"axis", Dims{0, 1}}}); }), "");
}

TEST(Reduction, BroadcastInputNeedsNoCopy) {
  const Array one = array_of<float>({1, 1}, {0.5f});
  const Array wide = run_op("broadcast_to", {one}, {{"shape", Dims{300, 200}}});
  EXPECT_EQ(values<float>(run_op("sum", {wide}))[0], 30000.0f);
  EXPECT_EQ(values<float>(run_op("sum", {wide}, {{"axis", Dims{0}}})), std::vector<float>(200, 150.0f));
}

}  // namespace
}  // namespace thalweg::testing
