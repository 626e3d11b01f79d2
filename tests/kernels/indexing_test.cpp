// indexing_test.cpp: take, index, slice_assign and index_assign against NumPy's results worked out by loops.
#include <limits>

#include <gtest/gtest.h>

#include "kernels/op_runner.h"

namespace thalweg::testing {
namespace {

using Ints = std::vector<std::int32_t>;

Array iota(const Shape& shape) {
  Ints elements(static_cast<std::size_t>(numel(shape)));
  std::iota(elements.begin(), elements.end(), 0);
  return array_of<std::int32_t>(shape, elements);
}

Array indices(const Shape& shape, const std::vector<std::int64_t>& elements) {
  return array_of<std::int64_t>(shape, elements);
}

NamedAttributes on_axes(Dims axes, bool front = false) { return {{"axes", axes}, {"front", front}}; }

TEST(Indexing, TakeMatchesLoop) {
  const std::vector<std::int64_t> wanted = {2, -1, 0, 2};
  for (DType dtype : kAllDTypes) {
    const Array contiguous = small_integers(dtype, {2, 3, 4});
    visit_real_dtype(dtype, [&]<class T>() {
      const std::vector<T> elements = values<T>(contiguous);
      std::vector<T> expected;
      for (int i = 0; i < 2; ++i) {
        for (std::int64_t index : wanted) {
          for (int j = 0; j < 4; ++j) expected.push_back(elements[i * 12 + (index + 3) % 3 * 4 + j]);
        }
      }
      for (Layout layout : kAllLayouts) {
        const Array result = run_op("take", {with_layout(contiguous, layout), indices({2, 2}, wanted)},
                                    {{"axis", std::int64_t{-2}}});
        ASSERT_EQ(to_string(result.meta.shape), "(2, 2, 2, 4)");
        ASSERT_EQ(values<T>(result), expected) << name(dtype);
      }
    });
  }
}

TEST(Indexing, TakeAcceptsEveryIndexDType) {
  for (DType dtype : kAllDTypes) {
    const Array chosen = cast(indices({3}, {2, 0, 1}), dtype);
    if (is_integer(dtype)) {
      EXPECT_EQ(values<std::int32_t>(run_op("take", {iota({3}), chosen}, {{"axis", std::int64_t{0}}})),
                (Ints{2, 0, 1}));
    } else {
      EXPECT_EQ(error_text<DTypeError>([&] {
                  run_op("take", {iota({3}), chosen});
                }),
                "take: indices must have an integer dtype, got " + std::string(name(dtype)));
      EXPECT_NE(error_text<IndexError>([&] { run_op("index", {iota({3}), chosen}, on_axes({0})); }), "");
    }
  }
}

TEST(Indexing, TakeWithoutAxisCountsInCOrder) {
  const Array x = with_layout(iota({2, 3}), Layout::transposed);
  EXPECT_EQ(values<std::int32_t>(run_op("take", {x, indices({2}, {4, -1})})), (Ints{4, 5}));
  EXPECT_EQ(values<std::int32_t>(run_op("take", {iota({}), indices({}, {0})})), Ints{0});
}

TEST(Indexing, OutOfBoundsNamesTheIndex) {
  const Array x = iota({3, 2});
  auto take = [&](std::int64_t index) {
    return error_text<IndexError>([&] {
      run_op("take", {x, indices({1}, {index})}, {{"axis", std::int64_t{0}}});
    });
  };
  EXPECT_EQ(take(10), "take: index 10 is out of bounds for axis 0 with size 3");
  EXPECT_EQ(take(-4), "take: index -4 is out of bounds for axis 0 with size 3");
  EXPECT_EQ(take(2), "");
  EXPECT_NE(take(std::numeric_limits<std::int64_t>::min()), "");
  const Array top = array_of<std::uint64_t>({1}, {std::numeric_limits<std::uint64_t>::max()});
  EXPECT_EQ(error_text<IndexError>([&] {
              run_op("take", {x, top}, {{"axis", std::int64_t{1}}});
            }),
            "take: index 18446744073709551615 is out of bounds for axis 1 with size 2");
  EXPECT_EQ(error_text<IndexError>([&] {
              run_op("take", {iota({0, 2}), indices({1}, {0})}, {{"axis", std::int64_t{0}}});
            }),
            "take: axis 0 of shape (0, 2) has no element to index");
}

TEST(Indexing, NothingToTake) {
  EXPECT_EQ(
      to_string(run_op("take", {iota({3, 2}), indices({0}, {})}, {{"axis", std::int64_t{0}}}).meta.shape),
      "(0, 2)");
  EXPECT_EQ(
      to_string(run_op("take", {iota({0, 2}), indices({0}, {})}, {{"axis", std::int64_t{0}}}).meta.shape),
      "(0, 2)");
  EXPECT_EQ(
      to_string(run_op("take", {iota({3, 0}), indices({2}, {1, 1})}, {{"axis", std::int64_t{0}}}).meta.shape),
      "(2, 0)");
}

TEST(Indexing, IndexBroadcastsItsArrays) {
  for (Layout layout : kAllLayouts) {
    const Array x = with_layout(iota({3, 4}), layout);
    const Array grid =
        run_op("index", {x, indices({2, 1}, {0, -1}), indices({3}, {3, 1, 0})}, on_axes({0, 1}));
    EXPECT_EQ(to_string(grid.meta.shape), "(2, 3)");
    EXPECT_EQ(values<std::int32_t>(grid), (Ints{3, 1, 0, 11, 9, 8}));
  }
}

TEST(Indexing, IndexPlacesItsAxes) {
  const Array x = iota({2, 3, 4, 5});
  const Array i = indices({2}, {1, 0});
  const Array j = indices({2}, {2, 3});
  const Array middle = run_op("index", {x, i, j}, on_axes({1, 2}));
  ASSERT_EQ(to_string(middle.meta.shape), "(2, 2, 5)");
  const Array front = run_op("index", {x, i, j}, on_axes({1, 3}, true));
  ASSERT_EQ(to_string(front.meta.shape), "(2, 2, 4)");
  Ints expected_middle;
  Ints expected_front;
  const int first[] = {1, 0};
  const int second[] = {2, 3};
  for (int a = 0; a < 2; ++a) {
    for (int b = 0; b < 2; ++b) {
      for (int c = 0; c < 5; ++c) expected_middle.push_back(a * 60 + first[b] * 20 + second[b] * 5 + c);
    }
  }
  for (int b = 0; b < 2; ++b) {
    for (int a = 0; a < 2; ++a) {
      for (int c = 0; c < 4; ++c) expected_front.push_back(a * 60 + first[b] * 20 + c * 5 + second[b]);
    }
  }
  EXPECT_EQ(values<std::int32_t>(middle), expected_middle);
  EXPECT_EQ(values<std::int32_t>(front), expected_front);
  const Array lone = run_op("index", {x, indices({}, {-1})}, on_axes({0}));
  EXPECT_EQ(to_string(lone.meta.shape), "(3, 4, 5)");
}

TEST(Indexing, IndexOf32Dimensions) {
  Shape shape(32, 1);
  shape[0] = 2;
  shape[31] = 3;
  const Array result = run_op("index", {iota(shape), indices({2}, {2, 0})}, on_axes({31}));
  EXPECT_EQ(values<std::int32_t>(result), (Ints{2, 0, 5, 3}));
}

TEST(Indexing, IndexRefusesBadAttributes) {
  const Array x = iota({3, 4});
  EXPECT_NE(error_text<IndexError>([&] { run_op("index", {x, indices({1}, {0})}, on_axes({0, 1})); }), "");
  EXPECT_NE(error_text<IndexError>([&] { run_op("index", {x}, on_axes({})); }), "");
  EXPECT_NE(error_text<ShapeError>([&] {
              run_op("index", {x, indices({2}, {0, 0}), indices({3}, {0, 0, 0})}, on_axes({0, 1}));
            }),
            "");
}

NamedAttributes region(Dims starts, Dims steps, Dims sizes, Dims drop = {}, Dims insert = {}) {
  return {{"starts", starts}, {"steps", steps}, {"sizes", sizes}, {"drop", drop}, {"insert", insert}};
}

TEST(Indexing, SliceAssignReplacesWhatSliceSelects) {
  struct Case {
    NamedAttributes region;
    Shape value;
  };
  const Case table[] = {{region({0, 1}, {1, 1}, {3, 2}), {3, 2}},
                        {region({0, 1}, {1, 1}, {3, 2}), {}},
                        {region({2, 3}, {-1, -2}, {3, 2}), {2}},
                        {region({1, 0}, {1, 1}, {1, 4}, {0}), {4}},
                        {region({0, 2}, {1, 1}, {3, 1}, {1}), {3}},
                        {region({0, 2}, {1, 1}, {3, 1}, {1}), {1, 1, 3}},
                        {region({0, 0}, {2, 3}, {2, 2}, {}, {1}), {2, 1, 2}},
                        {region({0, 0}, {1, 1}, {0, 4}), {1}}};
  for (DType dtype : kAllDTypes) {
    const Array x = small_integers(dtype, {3, 4}, 1);
    for (const Case& c : table) {
      const Array value = small_integers(dtype, c.value, 2);
      for (Layout layout : kAllLayouts) {
        const Array result =
            run_op("slice_assign", {with_layout(x, layout), with_layout(value, layout)}, c.region);
        const Array selected = run_op("slice", {result}, c.region);
        const Shape flat_value = c.value.size() == 3 && c.value[0] == 1 ? Shape{3} : c.value;
        const Array narrow = run_op("reshape", {value}, {{"shape", flat_value}});
        EXPECT_TRUE(same_bits(selected, run_op("broadcast_to", {narrow}, {{"shape", selected.meta.shape}})));
        // The rest is x's: putting x's region back gives x.
        const Array back = run_op("slice_assign", {result, run_op("slice", {x}, c.region)}, c.region);
        EXPECT_TRUE(same_bits(back, x)) << name(dtype);
      }
    }
  }
}

TEST(Indexing, SliceAssignCastsAndChecksTheValue) {
  const Array x = iota({3});
  const Array value = array_of<double>({2}, {7.9, -2.5});
  EXPECT_EQ(values<std::int32_t>(run_op("slice_assign", {x, value}, region({0}, {2}, {2}))),
            (Ints{7, 1, -2}));
  EXPECT_EQ(error_text<ShapeError>([&] {
              run_op("slice_assign", {x, iota({2})}, region({0}, {1}, {3}));
            }),
            "slice_assign: value of shape (2,) does not broadcast to the selected shape (3,)");
  EXPECT_NE(error_text<IndexError>([&] {
              run_op("slice_assign", {x, iota({})}, region({0}, {1}, {4}));
            }),
            "");
}

TEST(Indexing, DonatedBytesAreWrittenInPlace) {
  const Array x = iota({4});
  const Array sliced = run_op("slice_assign", {x, iota({})}, region({1}, {1}, {2}), {.donate = true});
  EXPECT_EQ(sliced.bytes, x.bytes);
  EXPECT_EQ(values<std::int32_t>(sliced), (Ints{0, 0, 0, 3}));
  const Array indexed = run_op("index_assign", {x, array_of<std::int32_t>({1}, {9}), indices({2}, {0, -1})},
                               on_axes({0}), {.donate = true});
  EXPECT_EQ(values<std::int32_t>(indexed), (Ints{9, 0, 0, 9}));
}

TEST(Indexing, AFailedIndexAssignLeavesDonatedBytes) {
  const Array x = iota({3});
  EXPECT_EQ(error_text<IndexError>([&] {
              run_op("index_assign", {x, iota({}), indices({2}, {0, 3})}, on_axes({0}), {.donate = true});
            }),
            "index_assign: index 3 is out of bounds for axis 0 with size 3");
  EXPECT_EQ(values<std::int32_t>(x), (Ints{0, 1, 2}));
}

TEST(Indexing, IndexAssignReplacesWhatIndexSelects) {
  struct Case {
    Dims axes;
    bool front;
    std::vector<Array> arrays;
    Shape value;
  };
  const Case table[] = {
      {{0}, false, {indices({2}, {1, -3})}, {2, 4, 5}},
      {{0}, false, {indices({2}, {1, 0})}, {4, 1}},
      {{1}, false, {indices({2, 1}, {3, 0})}, {3, 2, 1, 5}},
      {{2}, false, {indices({3}, {4, 0, 1})}, {3}},
      {{0, 2}, true, {indices({2}, {1, 0}), indices({2}, {0, 4})}, {2, 4}},
      {{0, 1, 2}, false, {indices({2, 1}, {1, 0}), indices({2}, {0, 3}), indices({}, {2})}, {1, 2, 2}},
      {{0}, false, {indices({0}, {})}, {}}};
  for (DType dtype : kAllDTypes) {
    const Array x = small_integers(dtype, {3, 4, 5}, 1);
    for (const Case& c : table) {
      const Array value = small_integers(dtype, c.value, 2);
      for (Layout layout : kAllLayouts) {
        std::vector<Array> inputs = {with_layout(x, layout), with_layout(value, layout)};
        inputs.insert(inputs.end(), c.arrays.begin(), c.arrays.end());
        const Array result = run_op("index_assign", inputs, on_axes(c.axes, c.front));
        std::vector<Array> reads = {result};
        reads.insert(reads.end(), c.arrays.begin(), c.arrays.end());
        const Array selected = run_op("index", reads, on_axes(c.axes, c.front));
        const Shape narrow = c.value.size() > selected.meta.shape.size() ? Shape{2, 2} : c.value;
        const Array expected = run_op("broadcast_to", {run_op("reshape", {value}, {{"shape", narrow}})},
                                      {{"shape", selected.meta.shape}});
        EXPECT_TRUE(same_bits(selected, expected)) << name(dtype) << " axes " << to_string(c.axes);
        reads[0] = x;
        std::vector<Array> back = {result, run_op("index", reads, on_axes(c.axes, c.front))};
        back.insert(back.end(), c.arrays.begin(), c.arrays.end());
        EXPECT_TRUE(same_bits(run_op("index_assign", back, on_axes(c.axes, c.front)), x));
      }
    }
  }
}

TEST(Indexing, OfAPositionNamedTwiceTheLastValueStays) {
  const Array result =
      run_op("index_assign", {iota({2}), array_of<std::int32_t>({3}, {7, 8, 9}), indices({3}, {1, 1, 1})},
             on_axes({0}));
  EXPECT_EQ(values<std::int32_t>(result), (Ints{0, 9}));
}

TEST(Indexing, ChunkOrderDoesNotMatter) {
  const Array x = iota({500, 200});
  std::vector<std::int64_t> many(1000);
  for (std::size_t i = 0; i < many.size(); ++i) many[i] = static_cast<std::int64_t>(i * 7 % 200);
  const Array chosen = indices({1000}, many);
  EXPECT_TRUE(order_does_not_matter("take", {x, chosen}, {{"axis", std::int64_t{0}}}));
  EXPECT_TRUE(order_does_not_matter("take", {x, chosen}, {{"axis", std::int64_t{1}}}));
  EXPECT_TRUE(order_does_not_matter("index_assign", {x, iota({500, 1000}), chosen}, on_axes({1})));
  EXPECT_TRUE(
      order_does_not_matter("slice_assign", {x, iota({400, 100})}, region({50, 10}, {1, 1}, {400, 100})));
}

TEST(Indexing, IndexAddAddsEveryValueOfAPositionNamedTwice) {
  const Array value = array_of<std::int32_t>({4}, {1, 10, 100, 1000});
  const Array chosen = indices({4}, {2, 0, -1, 0});
  EXPECT_EQ(values<std::int32_t>(run_op("index_add", {iota({3}), value, chosen}, on_axes({0}))),
            (Ints{1010, 1, 103}));
}

TEST(Indexing, IndexAddMatchesLoopInEveryLayout) {
  const std::vector<std::int64_t> wanted = {2, -1, 0, 2};
  for (DType dtype : kAllDTypes) {
    if (dtype == DType::bool_ || is_half(dtype)) {
      EXPECT_NE(error_text<DTypeError>([&] {
                  run_op("index_add",
                         {small_integers(dtype, {3}), small_integers(dtype, {1}), indices({1}, {0})},
                         on_axes({0}));
                }),
                "");
      continue;
    }
    const Array x = small_integers(dtype, {2, 3, 40});
    const Array value = small_integers(dtype, {2, 4, 40});
    visit_real_dtype(dtype, [&]<class T>() {
      std::vector<T> expected = values<T>(x);
      const std::vector<T> added = values<T>(value);
      for (std::size_t i = 0; i < 2; ++i) {
        for (std::size_t k = 0; k < wanted.size(); ++k) {
          const auto row = static_cast<std::size_t>((wanted[k] + 3) % 3);
          for (std::size_t j = 0; j < 40; ++j) {
            const std::size_t place = i * 120 + row * 40 + j;
            expected[place] = static_cast<T>(expected[place] + added[i * 160 + k * 40 + j]);
          }
        }
      }
      for (Layout layout : kAllLayouts) {
        const Array result =
            run_op("index_add", {with_layout(x, layout), with_layout(value, layout), indices({4}, wanted)},
                   on_axes({1}));
        ASSERT_EQ(values<T>(result), expected) << name(dtype);
      }
    });
  }
}

}  // namespace
}  // namespace thalweg::testing
