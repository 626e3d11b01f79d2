// view_test.cpp: views share the bytes of their base and never see a later write.
#include <vector>

#include <gtest/gtest.h>

#include "engine/support/engine_test.h"

namespace thalweg::testing {
namespace {

class ViewTest : public DrivenTest {
 protected:
  Tensor slice(const Tensor& x, Dims starts, Dims steps, Dims sizes) {
    return engine.apply(engine.op("slice"), {&x}, {std::move(starts), std::move(steps), std::move(sizes)});
  }
  Tensor matrix(std::int64_t rows, std::int64_t columns) {
    const Tensor flat = ramp(engine, rows * columns);
    return engine.apply(engine.op("reshape"), {&flat}, {Dims{rows, columns}});
  }
  static const std::byte* data(const Tensor& tensor) {
    return static_cast<const std::byte*>(tensor.view().data);
  }

  Tensor one = engine.constant(Scalar(1.0), DType::float64);
};

INSTANTIATE_TEST_SUITE_P(Drives, ViewTest,
                         ::testing::Values(Drive{EngineMode::threaded, 2, true},
                                           Drive{EngineMode::threaded, 2, false},
                                           Drive{EngineMode::caller_driven, 1, true},
                                           Drive{EngineMode::synchronous, 1, true}),
                         drive_name);

TEST_P(ViewTest, ASliceSharesBytesAtAnOffset) {
  const Tensor x = ramp(engine, 100);
  const Tensor view = slice(x, {10}, {3}, {4});
  EXPECT_EQ(data(view), data(x) + 10 * sizeof(double));
  EXPECT_EQ(view.strides(), (Strides{3}));
  EXPECT_EQ(values<double>(view), (std::vector<double>{10, 13, 16, 19}));
}

TEST_P(ViewTest, ATransposedMatrixSharesBytes) {
  const Tensor x = matrix(2, 3);
  const Tensor view = engine.apply(engine.op("permute_dims"), {&x}, {AttrValue{}});
  EXPECT_EQ(data(view), data(x));
  EXPECT_EQ(values<double>(view), (std::vector<double>{0, 3, 1, 4, 2, 5}));
}

TEST_P(ViewTest, ABroadcastSharesBytes) {
  const Tensor x = ramp(engine, 3);
  const Tensor view = engine.apply(engine.op("broadcast_to"), {&x}, {Dims{2, 3}});
  EXPECT_EQ(data(view), data(x));
  EXPECT_EQ(view.strides(), (Strides{0, 1}));
  EXPECT_EQ(values<double>(view), (std::vector<double>{0, 1, 2, 0, 1, 2}));
}

TEST_P(ViewTest, AReshapeSharesBytesWhereStridesAllow) {
  const Tensor x = matrix(4, 6);
  const Tensor view = engine.apply(engine.op("reshape"), {&x}, {Dims{2, 12}});
  EXPECT_EQ(data(view), data(x));
  const Tensor turned = engine.apply(engine.op("permute_dims"), {&x}, {AttrValue{}});
  const Tensor copy = engine.apply(engine.op("reshape"), {&turned}, {Dims{24}});
  EXPECT_NE(data(copy), data(x));
  EXPECT_EQ(values<double>(copy)[1], 6);
}

TEST_P(ViewTest, AViewOfAViewOfADroppedBaseKeepsTheBytes) {
  Tensor view;
  {
    const Tensor x = ramp(engine, 100);
    const Tensor middle = slice(x, {20}, {1}, {50});
    view = slice(middle, {10}, {2}, {3});
  }
  EXPECT_EQ(values<double>(view), (std::vector<double>{30, 32, 34}));
  engine.drain();
  EXPECT_EQ(values<double>(view), (std::vector<double>{30, 32, 34}));
}

TEST_P(ViewTest, AViewDoesNotSeeAWriteToItsBase) {
  Tensor x = ramp(engine, 100);
  const Tensor view = slice(x, {50}, {1}, {50});
  for (int i = 0; i < 3; ++i) add_to(x, one);
  EXPECT_EQ(values<double>(view)[0], 50);
  EXPECT_EQ(values<double>(x)[50], 53);
}

TEST_P(ViewTest, ABaseDoesNotSeeAWriteToItsView) {
  const Tensor x = ramp(engine, 100);
  Tensor view = slice(x, {0}, {1}, {100});
  for (int i = 0; i < 3; ++i) add_to(view, one);
  EXPECT_EQ(values<double>(view)[99], 102);
  EXPECT_EQ(values<double>(x)[99], 99);
}

TEST_P(ViewTest, AViewOfAPendingValueIsPendingToo) {
  if (is_synchronous()) GTEST_SKIP() << "nothing is pending";
  Gate gate;
  Engine other(options(), &register_test_kernels);
  const OpenAtEnd open(gate);
  const Op& slow = add_custom(other, "slow", [&](const KernelContext&) { gate.pass(); });
  const Tensor base = call(other, slow, {ramp(other, 4)});
  const Tensor view = other.apply(other.op("flip"), {&base}, {AttrValue{}});
  EXPECT_FALSE(view.is_ready());
  gate.open();
  EXPECT_EQ(values<double>(view), (std::vector<double>{4, 3, 2, 1}));
}

TEST_P(ViewTest, AViewOfAFailureIsAFailure) {
  if (is_synchronous()) GTEST_SKIP() << "the failure raises in the issuing call";
  Engine other(options(), &register_test_kernels);
  const Op& bad = add_throwing(other, "bad", ValueError("no"));
  const Tensor base = call(other, bad, {ramp(other, 4)});
  const Tensor view = other.apply(other.op("flip"), {&base}, {AttrValue{}});
  EXPECT_THROW(view.wait(), ValueError);
}

TEST_P(ViewTest, OverlappingViewsOfOneBaseAddUp) {
  const Tensor x = ramp(engine, 1000);
  const Tensor left = slice(x, {0}, {1}, {999});
  const Tensor right = slice(x, {1}, {1}, {999});
  const std::vector<double> sums = values<double>(add(left, right));
  for (std::size_t i = 0; i < sums.size(); ++i) ASSERT_EQ(sums[i], 2.0 * static_cast<double>(i) + 1);
}

}  // namespace
}  // namespace thalweg::testing
