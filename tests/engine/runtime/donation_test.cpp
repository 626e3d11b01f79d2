// donation_test.cpp: when an operator may write over the bytes of an input, and what must never change by it.
#include <vector>

#include <gtest/gtest.h>

#include "engine/support/engine_test.h"

namespace thalweg::testing {
namespace {

constexpr std::int64_t kCount = 1000;  // far above what lives in a buffer itself

class DonationTest : public DrivenTest {
 protected:
  /// A settled tensor that nothing but the returned handle holds.
  Tensor fresh(double value = 1) {
    Tensor tensor = add(filled(engine, kCount, value), engine.constant(Scalar(0.0), DType::float64));
    tensor.wait();
    engine.drain();
    return tensor;
  }
  std::uint64_t donated() {
    engine.drain();
    return engine.stats().donated;
  }

  Tensor one = engine.constant(Scalar(1.0), DType::float64);
};

INSTANTIATE_TEST_SUITE_P(Drives, DonationTest, ::testing::ValuesIn(all_drives()), drive_name);

TEST_P(DonationTest, AnInPlaceFormWritesOverItsOnlyHandle) {
  Tensor x = fresh();
  const auto before = donated();
  const void* data = x.view().data;
  add_to(x, one);
  EXPECT_EQ(values<double>(x)[kCount - 1], 2);
  EXPECT_EQ(x.view().data, data);
  EXPECT_EQ(donated() - before, 1u);
}

TEST_P(DonationTest, AChainOfInPlaceFormsStaysInOneBuffer) {
  Tensor x = fresh();
  const auto before = donated();
  const void* data = x.view().data;
  for (int i = 0; i < 50; ++i) add_to(x, one);
  EXPECT_EQ(values<double>(x)[0], 51);
  EXPECT_EQ(x.view().data, data);
  EXPECT_EQ(donated() - before, 50u);
}

TEST_P(DonationTest, ARebindingChainDonatesWhatWasDropped) {
  if (is_synchronous()) GTEST_SKIP() << "the operator is over before the old handle goes";
  if (GetParam().mode == EngineMode::threaded) GTEST_SKIP() << "an operator may start before the handle goes";
  Tensor x = fresh();
  const auto before = donated();
  for (int i = 0; i < 20; ++i) x = add(x, one);
  EXPECT_EQ(values<double>(x)[0], 21);
  EXPECT_EQ(donated() - before, 20u) << "every intermediate was dead before its consumer started";
}

TEST_P(DonationTest, AnotherHandleKeepsItsBytes) {
  Tensor x = fresh();
  const Tensor y = x;
  const auto before = donated();
  add_to(x, one);
  EXPECT_EQ(values<double>(x)[0], 2);
  EXPECT_EQ(values<double>(y)[0], 1);
  EXPECT_EQ(donated(), before);
}

TEST_P(DonationTest, AViewKeepsItsBytes) {
  Tensor x = fresh();
  const Tensor tail = engine.apply(engine.op("slice"), {&x}, {Dims{500}, Dims{1}, Dims{500}});
  const auto before = donated();
  add_to(x, one);
  EXPECT_EQ(values<double>(x)[kCount - 1], 2);
  EXPECT_EQ(values<double>(tail)[499], 1);
  EXPECT_EQ(donated(), before);
}

TEST_P(DonationTest, ForeignBytesAreNeverWritten) {
  std::vector<double> bytes(kCount, 1);
  TensorMeta meta;
  meta.dtype = DType::float64;
  meta.shape = {kCount};
  meta.strides = {1};
  int released = 0;
  {
    Tensor x = engine.from_external(meta, bytes.data(), [&] { ++released; });
    EXPECT_FALSE(x.owns_bytes_alone());
    add_to(x, one);
    EXPECT_EQ(values<double>(x)[0], 2);
    engine.drain();
  }
  EXPECT_EQ(released, 1);
  EXPECT_EQ(bytes, std::vector<double>(kCount, 1));
  EXPECT_EQ(donated(), 0u);
}

TEST_P(DonationTest, TwiceTheSameOperandIsNotDead) {
  Tensor x = fresh(3);
  const auto before = donated();
  x = add(x, x);
  EXPECT_EQ(values<double>(x)[7], 6);
  add_to(x, x);
  EXPECT_EQ(values<double>(x)[7], 12);
  EXPECT_EQ(donated(), before);
}

TEST_P(DonationTest, AHandleOnTheOtherInputDoesNotMatter) {
  Tensor x = fresh(3);
  Tensor y = fresh(4);
  const auto before = donated();
  const void* data = y.view().data;
  const Tensor keep = x;
  add_to(y, x);  // y is input 0 here
  EXPECT_EQ(y.view().data, data);
  EXPECT_EQ(values<double>(y)[0], 7);
  EXPECT_EQ(donated() - before, 1u);
}

TEST_P(DonationTest, BroadcastAndStridedInputsAreNotWritten) {
  Tensor x = fresh(1);
  const auto before = donated();
  const Tensor wide = engine.apply(engine.op("broadcast_to"), {&x}, {Dims{2, kCount}});
  const Tensor flipped = engine.apply(engine.op("flip"), {&x}, {AttrValue{}});
  EXPECT_EQ(values<double>(add(wide, one))[2 * kCount - 1], 2);
  EXPECT_EQ(values<double>(add(flipped, one))[0], 2);
  EXPECT_EQ(values<double>(x)[0], 1);
  EXPECT_EQ(donated(), before);
}

TEST_P(DonationTest, SmallValuesAreNotDonated) {
  Tensor x = filled(engine, 2, 1);
  add_to(x, one);
  EXPECT_EQ(values<double>(x)[0], 2);
  EXPECT_EQ(donated(), 0u);
}

TEST_P(DonationTest, AnOperandThatIsNotAliasSafeIsNotWritten) {
  Engine other(options(), &register_test_kernels);
  const Op& sum = add_custom(other, "plain_sum");  // no alias mask
  Tensor x = filled(other, kCount, 1);
  other.apply_in_place(sum, x, {});
  EXPECT_EQ(values<double>(x)[0], 2);
  other.drain();
  EXPECT_EQ(other.stats().donated, 0u);
}

/// An unfinished reader holds the bytes: the in-place form gets others, the reader sees the old values.
TEST_P(DonationTest, AnUnfinishedReaderKeepsItsBytes) {
  if (is_synchronous()) GTEST_SKIP() << "nothing is unfinished";
  Gate gate;
  Engine other(options(), &register_test_kernels);
  const OpenAtEnd open(gate);
  const Op& slow = add_custom(other, "slow", [&](const KernelContext&) { gate.pass(); });
  const Tensor one_there = other.constant(Scalar(1.0), DType::float64);
  Tensor x = filled(other, kCount, 1);
  const Tensor reader = call(other, slow, {x});
  other.flush();
  ASSERT_TRUE(gate.await_arrivals(1));
  add_to(x, one_there);
  if (GetParam().threads > 1) {
    EXPECT_EQ(values<double>(x)[0], 2);
    EXPECT_EQ(other.stats().donated, 0u);
  }
  gate.open();
  EXPECT_EQ(values<double>(reader)[0], 2);
  EXPECT_EQ(values<double>(x)[0], 2);
}

TEST_P(DonationTest, OwnsBytesAloneTellsWhetherBytesAreShared) {
  const Tensor x = fresh();
  EXPECT_TRUE(x.owns_bytes_alone());
  {
    const Tensor view = engine.apply(engine.op("flip"), {&x}, {AttrValue{}});
    view.wait();
    engine.drain();
    EXPECT_FALSE(x.owns_bytes_alone());
  }
  engine.drain();
  EXPECT_TRUE(x.owns_bytes_alone());
}

}  // namespace
}  // namespace thalweg::testing
