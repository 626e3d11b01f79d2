// manipulation_test.cpp: views, concat and roll against index arithmetic done by hand.
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

/// The strides of `result` if it shares `input`'s bytes, else "copied".
std::string shared_strides(const Array& input, const Array& result) {
  return input.bytes == result.bytes ? to_string(result.meta.strides) : "copied";
}

const Shape k32Dims = {2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1,
                       1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 3};

TEST(Manipulation, ReshapeKeepsCOrderInEveryLayout) {
  const std::pair<Shape, Shape> table[] = {
      {{2, 3, 4}, {24}},      {{2, 3, 4}, {6, 4}},     {{2, 3, 4}, {2, -1}},  {{2, 3, 4}, {4, 3, 2}},
      {{24}, {2, 3, 4}},      {{1, 24, 1}, {3, 1, 8}}, {{}, {1, 1}},          {{1}, {}},
      {{0, 3}, {3, 0}},       {{0, 3}, {-1, 3}},       {{2, 0}, {0}},         {k32Dims, {-1}},
      {k32Dims, {16, 2, 24}}, {{6, 2}, {3, 2, 2}},     {{4, 6}, {2, 2, 3, 2}}};
  for (const auto& [from, to] : table) {
    for (Layout layout : kAllLayouts) {
      SCOPED_TRACE(to_string(from) + " to " + to_string(to) + ", layout " +
                   std::to_string(static_cast<int>(layout)));
      const Array input = with_layout(iota(from), layout);
      EXPECT_EQ(values<std::int32_t>(run_op("reshape", {input}, {{"shape", to}})),
                values<std::int32_t>(input));
    }
  }
}

TEST(Manipulation, ReshapeSharesBytesWhereStridesAllow) {
  const Array input = iota({4, 6});
  EXPECT_EQ(shared_strides(input, run_op("reshape", {input}, {{"shape", Dims{2, 2, 3, 2}}})),
            "(12, 6, 2, 1)");
  const Array gapped = with_layout(input, Layout::gapped);
  EXPECT_EQ(shared_strides(gapped, run_op("reshape", {gapped}, {{"shape", Dims{2, 2, 3, 2}}})),
            "(52, 26, 4, 2)");
  EXPECT_EQ(shared_strides(gapped, run_op("reshape", {gapped}, {{"shape", Dims{24}}})), "copied");
  const Array reversed = with_layout(input, Layout::reversed);
  EXPECT_EQ(shared_strides(reversed, run_op("reshape", {reversed}, {{"shape", Dims{24}}})), "(-1,)");
  const Array row = run_op("broadcast_to", {iota({1})}, {{"shape", Dims{6, 4}}});
  EXPECT_EQ(shared_strides(row, run_op("reshape", {row}, {{"shape", Dims{3, 8}}})), "(0, 0)");
}

TEST(Manipulation, ReshapeRefusesOtherCounts) {
  const Array input = iota({2, 3});
  EXPECT_EQ(error_text<ShapeError>([&] {
              run_op("reshape", {input}, {{"shape", Dims{4}}});
            }),
            "reshape: shape (2, 3) has 6 elements and cannot become (4,)");
  for (const Dims& bad : {Dims{-1, -1}, Dims{-1, 4}, Dims{-2, 3}, Dims{-1, 0}}) {
    EXPECT_NE(error_text<ShapeError>([&] {
                run_op("reshape", {input}, {{"shape", bad}});
              }),
              "")
        << to_string(bad);
  }
  const std::int64_t huge = std::int64_t{1} << 40;
  EXPECT_NE(error_text<ShapeError>([&] {
              run_op("reshape", {input}, {{"shape", Dims{huge, huge, 0}}});
            }),
            "");
  EXPECT_NE(error_text<ShapeError>([&] {
              run_op("reshape", {allocate(DType::int32, {0})}, {{"shape", Dims{0, -1}}});
            }),
            "");
}

TEST(Manipulation, PermuteDimsMovesAxes) {
  const Array input = iota({2, 3});
  EXPECT_EQ(values<std::int32_t>(run_op("permute_dims", {input}, {{"axes", Dims{1, 0}}})),
            (Ints{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(values<std::int32_t>(run_op("permute_dims", {input})), (Ints{0, 3, 1, 4, 2, 5}));
  const Array cube = run_op("permute_dims", {iota({2, 3, 4})}, {{"axes", Dims{2, 0, -2}}});
  EXPECT_EQ(to_string(cube.meta.shape), "(4, 2, 3)");
  EXPECT_EQ(to_string(cube.meta.strides), "(1, 12, 4)");
  EXPECT_NE(error_text<ShapeError>([&] { run_op("permute_dims", {input}, {{"axes", Dims{0}}}); }), "");
  EXPECT_NE(error_text<ShapeError>([&] { run_op("permute_dims", {input}, {{"axes", Dims{0, 0}}}); }), "");
  EXPECT_NE(error_text<IndexError>([&] { run_op("permute_dims", {input}, {{"axes", Dims{0, 2}}}); }), "");
}

TEST(Manipulation, BroadcastToRepeats) {
  const Array column = iota({2, 1});
  const Array wide = run_op("broadcast_to", {column}, {{"shape", Dims{2, 2, 3}}});
  EXPECT_EQ(values<std::int32_t>(wide), (Ints{0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(shared_strides(column, wide), "(0, 1, 0)");
  EXPECT_EQ(to_string(run_op("broadcast_to", {iota({1})}, {{"shape", Dims{0}}}).meta.shape), "(0,)");
  EXPECT_EQ(to_string(run_op("broadcast_to", {iota({})}, {{"shape", Dims{2}}}).meta.shape), "(2,)");
  EXPECT_EQ(error_text<ShapeError>([&] {
              run_op("broadcast_to", {column}, {{"shape", Dims{3, 1}}});
            }),
            "broadcast_to: shape (2, 1) does not broadcast to (3, 1); from the last axis on, each size must "
            "be equal "
            "or 1");
  EXPECT_NE(error_text<ShapeError>([&] { run_op("broadcast_to", {column}, {{"shape", Dims{2}}}); }), "");
  EXPECT_NE(error_text<ShapeError>([&] { run_op("broadcast_to", {column}, {{"shape", Dims{2, -1}}}); }), "");
  const std::int64_t huge = std::int64_t{1} << 62;
  EXPECT_NE(error_text<ShapeError>([&] {
              run_op("broadcast_to", {column}, {{"shape", Dims{huge, 2, 1}}});
            }),
            "");
}

TEST(Manipulation, ExpandDimsAndSqueezeAreInverse) {
  const Array input = with_layout(iota({2, 3}), Layout::transposed);
  const Array expanded = run_op("expand_dims", {input}, {{"axis", Dims{0, -1}}});
  EXPECT_EQ(to_string(expanded.meta.shape), "(1, 2, 3, 1)");
  EXPECT_EQ(to_string(run_op("squeeze", {expanded}).meta.shape), "(2, 3)");
  EXPECT_EQ(to_string(run_op("squeeze", {expanded}, {{"axis", Dims{-1}}}).meta.shape), "(1, 2, 3)");
  EXPECT_EQ(values<std::int32_t>(run_op("squeeze", {expanded})), values<std::int32_t>(input));
  EXPECT_EQ(to_string(run_op("expand_dims", {iota({})}).meta.shape), "(1,)");
  EXPECT_EQ(error_text<ShapeError>([&] {
              run_op("squeeze", {input}, {{"axis", Dims{1}}});
            }),
            "squeeze: axis 1 of shape (2, 3) has size 3; only axes of size 1 can be squeezed");
  EXPECT_NE(error_text<IndexError>([&] { run_op("expand_dims", {input}, {{"axis", Dims{3}}}); }), "");
  EXPECT_NE(error_text<ShapeError>([&] { run_op("expand_dims", {input}, {{"axis", Dims{0, 0}}}); }), "");
}

TEST(Manipulation, FlipReverses) {
  const Array input = iota({2, 3});
  EXPECT_EQ(values<std::int32_t>(run_op("flip", {input})), (Ints{5, 4, 3, 2, 1, 0}));
  const Array rows = run_op("flip", {input}, {{"axis", Dims{0}}});
  EXPECT_EQ(values<std::int32_t>(rows), (Ints{3, 4, 5, 0, 1, 2}));
  EXPECT_EQ(shared_strides(input, rows), "(-3, 1)");
  EXPECT_EQ(rows.meta.offset, 3);
  EXPECT_EQ(run_op("flip", {iota({0, 3})}).meta.offset, 0);
  EXPECT_EQ(values<std::int32_t>(run_op("flip", {iota({})})), Ints{0});
  EXPECT_EQ(values<std::int32_t>(run_op("flip", {run_op("flip", {with_layout(input, Layout::gapped)})})),
            values<std::int32_t>(input));
}

NamedAttributes region(Dims starts, Dims steps, Dims sizes, Dims drop = {}, Dims insert = {}) {
  return {{"starts", starts}, {"steps", steps}, {"sizes", sizes}, {"drop", drop}, {"insert", insert}};
}

TEST(Manipulation, SliceSelects) {
  for (Layout layout : kAllLayouts) {
    const Array input = with_layout(iota({4, 5}), layout);
    EXPECT_EQ(values<std::int32_t>(run_op("slice", {input}, region({1, 4}, {2, -2}, {2, 3}))),
              (Ints{9, 7, 5, 19, 17, 15}));
    const Array row = run_op("slice", {input}, region({2, 0}, {1, 1}, {1, 5}, {0}));
    EXPECT_EQ(to_string(row.meta.shape), "(5,)");
    EXPECT_EQ(values<std::int32_t>(row), (Ints{10, 11, 12, 13, 14}));
    const Array inserted = run_op("slice", {input}, region({2, 0}, {1, 1}, {1, 2}, {0}, {0, 2}));
    EXPECT_EQ(to_string(inserted.meta.shape), "(1, 2, 1)");
    EXPECT_EQ(values<std::int32_t>(run_op("slice", {input}, region({3, 4}, {1, 1}, {1, 1}, {0, 1}))),
              Ints{19});
  }
}

TEST(Manipulation, SliceOfNothing) {
  const Array input = iota({4, 5});
  const Array none = run_op("slice", {input}, region({4, 0}, {1, 1}, {0, 5}));
  EXPECT_EQ(to_string(none.meta.shape), "(0, 5)");
  EXPECT_EQ(none.meta.offset, 0);
  EXPECT_EQ(to_string(run_op("slice", {none}, region({0, 1}, {1, 2}, {0, 2})).meta.shape), "(0, 2)");
  EXPECT_EQ(values<std::int32_t>(run_op("slice", {iota({})}, region({}, {}, {}, {}, {0}))), Ints{0});
  // A step too large to multiply does no harm on one element.
  const std::int64_t huge = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(values<std::int32_t>(run_op("slice", {input}, region({1, 0}, {huge, 1}, {1, 2}))), (Ints{5, 6}));
}

TEST(Manipulation, SliceRefusesToLeaveTheInput) {
  const Array input = iota({4, 5});
  const std::int64_t huge = std::numeric_limits<std::int64_t>::max();
  const NamedAttributes bad[] = {region({0, 0}, {1, 1}, {5, 5}),    region({-1, 0}, {1, 1}, {1, 5}),
                                 region({3, 0}, {2, 1}, {2, 5}),    region({0, 0}, {-1, 1}, {2, 5}),
                                 region({0, 0}, {huge, 1}, {4, 5}), region({0, 0}, {1, 1}, {-1, 5}),
                                 region({4, 0}, {1, 1}, {1, 5})};
  for (const NamedAttributes& named : bad) {
    EXPECT_NE(error_text<IndexError>([&] { run_op("slice", {input}, named); }), "");
  }
  EXPECT_EQ(error_text<IndexError>([&] {
              run_op("slice", {input}, region({0, 0}, {1, 2}, {4, 4}));
            }),
            "slice: start 0, step 2, size 4 leaves axis 1 of shape (4, 5)");
  EXPECT_NE(error_text<ShapeError>([&] { run_op("slice", {input}, region({0, 0}, {0, 1}, {1, 1})); }), "");
  EXPECT_NE(error_text<ShapeError>([&] {
              run_op("slice", {input}, region({0, 0}, {1, 1}, {2, 1}, {0}));
            }),
            "");
  EXPECT_NE(error_text<ShapeError>([&] { run_op("slice", {input}, region({0}, {1}, {2})); }), "");
}

TEST(Manipulation, DiagonalSelects) {
  const Array input = iota({3, 4});
  EXPECT_EQ(values<std::int32_t>(run_op("diagonal", {input})), (Ints{0, 5, 10}));
  EXPECT_EQ(values<std::int32_t>(run_op("diagonal", {input}, {{"offset", std::int64_t{2}}})), (Ints{2, 7}));
  EXPECT_EQ(values<std::int32_t>(run_op("diagonal", {input}, {{"offset", std::int64_t{-1}}})), (Ints{4, 9}));
  for (std::int64_t far :
       {std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()}) {
    EXPECT_EQ(run_op("diagonal", {input}, {{"offset", far}}).meta.numel(), 0);
  }
}

TEST(Manipulation, ConcatMatchesCopies) {
  for (DType dtype : kAllDTypes) {
    for (Layout layout : kAllLayouts) {
      const Array a = small_integers(dtype, {2, 3, 2}, 1);
      const Array b = small_integers(dtype, {2, 1, 2}, 2);
      const Array none = small_integers(dtype, {2, 0, 2}, 3);
      const Array joined =
          run_op("concat", {with_layout(a, layout), none, with_layout(b, layout)}, {{"axis", Dims{1}}});
      ASSERT_EQ(to_string(joined.meta.shape), "(2, 4, 2)");
      EXPECT_TRUE(same_bits(run_op("slice", {joined}, region({0, 0, 0}, {1, 1, 1}, {2, 3, 2})), a));
      EXPECT_TRUE(same_bits(run_op("slice", {joined}, region({0, 3, 0}, {1, 1, 1}, {2, 1, 2})), b));
    }
  }
}

TEST(Manipulation, ConcatFlattensWithoutAxis) {
  const Array flat = run_op("concat", {with_layout(iota({2, 2}), Layout::transposed), iota({}), iota({0, 3})},
                            {{"axis", AttrValue{}}});
  EXPECT_EQ(values<std::int32_t>(flat), (Ints{0, 1, 2, 3, 0}));
}

TEST(Manipulation, ConcatPromotes) {
  const Array mixed =
      run_op("concat", {array_of<std::int8_t>({1}, {-1}), array_of<std::uint8_t>({1}, {200})});
  EXPECT_EQ(values<std::int16_t>(mixed), (std::vector<std::int16_t>{-1, 200}));
}

TEST(Manipulation, ConcatRefusesMismatches) {
  EXPECT_EQ(error_text<ShapeError>([&] {
              run_op("concat", {iota({2, 3}), iota({2, 4})});
            }),
            "concat: shapes (2, 3) and (2, 4) of arrays 0 and 1 must be equal except at axis 0");
  EXPECT_NE(error_text<ShapeError>([&] { run_op("concat", {}); }), "");
  EXPECT_NE(error_text<ShapeError>([&] { run_op("concat", {iota({}), iota({})}); }), "");
  EXPECT_NE(error_text<ShapeError>([&] { run_op("concat", {iota({2}), iota({2, 1})}); }), "");
  EXPECT_NE(error_text<IndexError>([&] { run_op("concat", {iota({2})}, {{"axis", Dims{1}}}); }), "");
}

TEST(Manipulation, RollMovesOn) {
  const Array input = iota({2, 3});
  auto rolled = [&](const Array& x, Dims shift, AttrValue axis) {
    return values<std::int32_t>(run_op("roll", {x}, {{"shift", shift}, {"axis", axis}}));
  };
  for (Layout layout : kAllLayouts) {
    const Array x = with_layout(input, layout);
    EXPECT_EQ(rolled(x, {1}, AttrValue{}), (Ints{5, 0, 1, 2, 3, 4}));
    EXPECT_EQ(rolled(x, {1}, Dims{1}), (Ints{2, 0, 1, 5, 3, 4}));
    EXPECT_EQ(rolled(x, {-1, 1}, Dims{0, 1}), (Ints{5, 3, 4, 2, 0, 1}));
    EXPECT_EQ(rolled(x, {1}, Dims{0, 1}), (Ints{5, 3, 4, 2, 0, 1}));
    EXPECT_EQ(rolled(x, {1, 3}, Dims{1}), (Ints{2, 0, 1, 5, 3, 4}));
    EXPECT_EQ(rolled(x, {std::numeric_limits<std::int64_t>::min()}, Dims{0}), (Ints{0, 1, 2, 3, 4, 5}));
    EXPECT_EQ(rolled(x, {6}, AttrValue{}), values<std::int32_t>(input));
  }
  EXPECT_EQ(rolled(iota({}), {3}, AttrValue{}), Ints{0});
  EXPECT_EQ(rolled(iota({0, 2}), {3}, Dims{0}), Ints{});
  EXPECT_NE(error_text<ShapeError>([&] { rolled(input, {1, 2, 3}, Dims{0, 1}); }), "");
  EXPECT_NE(error_text<IndexError>([&] { rolled(input, {1}, Dims{2}); }), "");
}

TEST(Manipulation, ChunkOrderDoesNotMatter) {
  const Array large = with_layout(iota({300, 400}), Layout::transposed);
  EXPECT_TRUE(order_does_not_matter("concat", {large, large}, {{"axis", Dims{1}}}));
  EXPECT_TRUE(order_does_not_matter("roll", {large}, {{"shift", Dims{7, 9}}, {"axis", Dims{0, 1}}}));
}

}  // namespace
}  // namespace thalweg::testing
