// failure_test.cpp: a kernel's failure becomes its outputs' state, is inherited, read, reported and recovered
// from.
#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/support/engine_test.h"
#include "graph/operand.h"

namespace thalweg::testing {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string text_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "nothing was thrown";
}

struct NotAnException {
  int code;
};

/// Failures of kernels surface later, so only the asynchronous drives are swept; synchronous ones have their
/// own tests.
class FailureTest : public DrivenTest {
 protected:
  FailureTest() {
    engine.register_operator(custom_op("fail"), [this](const KernelContext&) {
      runs.fetch_add(1);
      throw ValueError("wrong value 7");
    });
    add_throwing(engine, "fail_std", std::domain_error("outside the domain"));
    add_throwing(engine, "fail_foreign", NotAnException{3});
    add_custom(engine, "count", [this](const KernelContext&) { runs.fetch_add(1); });
  }
  const Op& op(const char* name) { return engine.op(name); }

  Tensor x = ramp(engine, 100);
  Tensor one = engine.constant(Scalar(1.0), DType::float64);
  std::atomic<int> runs{0};
};

INSTANTIATE_TEST_SUITE_P(Drives, FailureTest, ::testing::ValuesIn(asynchronous_drives()), drive_name);

TEST_P(FailureTest, ReadingRaisesTheOriginalTypeEachTime) {
  const Tensor failed = call(engine, op("fail"), {x});
  EXPECT_THROW(failed.wait(), ValueError);
  EXPECT_THROW(failed.wait(), ValueError);
  EXPECT_THROW(failed.view(), ValueError);
  EXPECT_TRUE(failed.is_ready());
  EXPECT_TRUE(failed.has_failed());
}

TEST_P(FailureTest, AnExceptionThatIsNotOursKeepsItsTypeAndText) {
  const Tensor failed = call(engine, op("fail_std"), {x});
  EXPECT_THROW(failed.wait(), std::domain_error);
  EXPECT_TRUE(contains(text_of([&] { failed.wait(); }), "outside the domain"));
  EXPECT_TRUE(contains(failed.failure().message, "outside the domain"));
}

TEST_P(FailureTest, WhatIsNoStdExceptionKeepsItsType) {
  const Tensor failed = call(engine, op("fail_foreign"), {x});
  EXPECT_THROW(failed.wait(), NotAnException);
  EXPECT_TRUE(contains(failed.failure().message, "fail_foreign"));
}

TEST_P(FailureTest, DependantsInheritWithoutRunning) {
  std::vector<Tensor> dependants{call(engine, op("fail"), {x})};
  for (int i = 0; i < 100; ++i) {
    dependants.push_back(i % 2 == 0 ? call(engine, op("count"), {x, dependants.back()})
                                    : add(dependants.back(), one));
  }
  for (const Tensor& dependant : dependants) EXPECT_THROW(dependant.wait(), ValueError);
  EXPECT_EQ(runs, 1) << "only the failing kernel ran";
  EXPECT_EQ(dependants.back().failure().op, "fail");
  engine.drain();
  EXPECT_EQ(engine.stats().failed, 1u);
  EXPECT_EQ(engine.stats().executed, 101u);
}

TEST_P(FailureTest, EverythingElseKeepsWorking) {
  const Tensor failed = call(engine, op("fail"), {x});
  Tensor good = x;
  for (int i = 0; i < 50; ++i) good = add(good, one);
  EXPECT_EQ(values<double>(good)[99], 149);
  EXPECT_THROW(failed.wait(), ValueError);
}

TEST_P(FailureTest, TheDetailsNameOperatorAndDevice) {
  const Tensor failed = add(call(engine, op("fail"), {x}), one);
  EXPECT_TRUE(eventually([&] { return failed.is_ready(); }));
  const FailureInfo info = failed.failure();
  EXPECT_EQ(info.op, "fail");
  EXPECT_EQ(info.device, Device{});
  EXPECT_NE(info.exception, nullptr);
  EXPECT_TRUE(contains(info.message, "fail failed on cpu:0") && contains(info.message, "wrong value 7"))
      << info.message;
  EXPECT_TRUE(contains(text_of([&] { failed.wait(); }), info.message));
  EXPECT_EQ(x.failure().op, "");
}

TEST_P(FailureTest, SynchronizeRaisesTheOldestUnread) {
  const Tensor first = call(engine, op("fail"), {x});
  const Tensor second = call(engine, op("fail_std"), {x});
  const Tensor third = call(engine, op("fail"), {x});
  EXPECT_THROW(first.wait(), ValueError);  // read, so no longer unread
  EXPECT_THROW(engine.synchronize(), std::domain_error);
  EXPECT_THROW(engine.synchronize(), ValueError) << "a foreign exception has no place for the others' texts";
  EXPECT_NO_THROW(engine.synchronize());
  EXPECT_THROW(second.wait(), std::domain_error) << "reading raises although it was reported";
  EXPECT_THROW(third.wait(), ValueError);
}

TEST_P(FailureTest, SynchronizeTellsOfTheOthersToo) {
  std::vector<Tensor> failed;
  for (int i = 0; i < 3; ++i) failed.push_back(call(engine, op("fail"), {x}));
  failed.push_back(call(engine, op("fail_std"), {x}));
  const std::string text = text_of([&] { engine.synchronize(); });
  EXPECT_EQ(
      text,
      "fail failed on cpu:0: wrong value 7\nand 3 more unread failures:\n  fail failed on cpu:0: wrong value "
      "7 (2 times)\n  fail_std failed on cpu:0: outside the domain");
  EXPECT_NO_THROW(engine.synchronize());
}

TEST_P(FailureTest, SynchronizeSeesFailuresOfDroppedResults) {
  call(engine, op("fail"), {x});
  EXPECT_THROW(engine.synchronize(), ValueError);
}

TEST_P(FailureTest, DrainRaisesNothing) {
  const Tensor failed = call(engine, op("fail"), {x});
  EXPECT_NO_THROW(engine.drain());
  EXPECT_TRUE(failed.has_failed());
}

TEST_P(FailureTest, ShutdownReturnsWhatNobodyRead) {
  const Tensor read = call(engine, op("fail"), {x});
  const Tensor unread = call(engine, op("fail_std"), {x});
  EXPECT_THROW(read.wait(), ValueError);
  const std::vector<std::string> texts = engine.shutdown();
  ASSERT_EQ(texts.size(), 1u);
  EXPECT_TRUE(contains(texts[0], "fail_std failed on cpu:0") && contains(texts[0], "outside the domain"))
      << texts[0];
  EXPECT_TRUE(engine.shutdown().empty());
}

TEST_P(FailureTest, ManyUnreadFailuresAreCountedNotKept) {
  for (int i = 0; i < 3000; ++i) call(engine, op("fail"), {x});
  const std::string text = text_of([&] { engine.synchronize(); });
  EXPECT_TRUE(contains(text, "2999 more")) << text;
}

// --- in-place forms
// -------------------------------------------------------------------------------------------------

TEST_P(FailureTest, AFailedInPlaceFormRecoversItsTarget) {
  Tensor target = ramp(engine, 100);
  engine.apply_in_place(op("fail"), target, {});
  EXPECT_THROW(target.wait(), ValueError);
  const Tensor good = target.recover();
  EXPECT_EQ(values<double>(good)[99], 99);
}

TEST_P(FailureTest, AChainOfInPlaceFormsRecoversTheLastGoodValue) {
  Tensor target = ramp(engine, 100);
  add_to(target, one);
  engine.apply_in_place(op("fail"), target, {});
  for (int i = 0; i < 20; ++i) add_to(target, one);
  engine.apply_in_place(op("fail_std"), target, {});
  EXPECT_THROW(target.wait(), ValueError) << "the first failure is what is inherited";
  EXPECT_EQ(values<double>(target.recover())[99], 100);
  EXPECT_EQ(runs, 1);
}

/// Or such a loop would keep every failed result until its end.
TEST_P(FailureTest, ALoopOfInPlaceFormsOnAFailedValueKeepsTheLastGoodOneOnly) {
  Tensor target = ramp(engine, 100);
  engine.apply_in_place(op("fail"), target, {});
  for (int i = 0; i < 50; ++i) add_to(target, one);
  EXPECT_THROW(target.wait(), ValueError);
  const Operand* earlier = target.operand()->recover;
  ASSERT_NE(earlier, nullptr);
  EXPECT_EQ(earlier->state(), OperandState::ready);
}

TEST_P(FailureTest, AnInPlaceFormOfAFailedOtherOperandRecoversItsTarget) {
  Tensor target = ramp(engine, 100);
  const Tensor failed = call(engine, op("fail"), {x});
  add_to(target, failed);
  EXPECT_THROW(target.wait(), ValueError);
  EXPECT_EQ(values<double>(target.recover())[99], 99);
}

TEST_P(FailureTest, AnInPlaceFormThatCastsRecoversItsTarget) {
  Tensor target = engine.allocate(DType::float32, {3});
  for (int i = 0; i < 3; ++i) static_cast<float*>(Engine::mutable_data(target))[i] = 5;
  const Tensor failed =
      call(engine, op("fail"), {ramp(engine, 3)});  // float64: the result is cast back to float32
  add_to(target, failed);
  EXPECT_EQ(target.dtype(), DType::float32);
  EXPECT_THROW(target.wait(), ValueError);
  EXPECT_EQ(values<float>(target.recover()), (std::vector<float>{5, 5, 5}));
}

TEST_P(FailureTest, AnInPlaceFormOfATargetThatFailedElsewhereHasNothingToRecover) {
  Tensor target = call(engine, op("fail"), {x});
  add_to(target, one);
  EXPECT_THROW(target.wait(), ValueError);
  EXPECT_THROW(target.recover(), ValueError);
}

TEST_P(FailureTest, RecoverOfAGoodValueIsTheValue) {
  const Tensor good = add(x, one);
  EXPECT_EQ(values<double>(good.recover())[0], 1);
}

TEST_P(FailureTest, AnAliasSafeOperatorThatThrowsInPlaceStillRecovers) {
  Engine other(options(), &register_test_kernels);
  Op aliasing = custom_op("aliasing");
  aliasing.alias_mask = kAliasAny;
  const Op& bad = other.register_operator(aliasing, [](const KernelContext&) { throw KernelError("no"); });
  Tensor target = ramp(other, 1000);
  other.apply_in_place(bad, target, {});
  EXPECT_THROW(target.wait(), KernelError);
  EXPECT_EQ(values<double>(target.recover())[999], 999);
}

TEST_P(FailureTest, AFailureOutlivesItsOperandsAndTheLog) {
  FailureInfo info;
  {
    const Tensor failed = call(engine, op("fail"), {x});
    EXPECT_THROW(failed.wait(), ValueError);
    info = failed.failure();
  }
  engine.drain();
  EXPECT_THROW(std::rethrow_exception(info.exception), ValueError);
}

TEST_P(FailureTest, AFailedValueIsReadAfterItsEngine) {
  EngineOptions with_sites = options();
  with_sites.hooks.resolve_site = [](SiteId site) { return "train.py:" + std::to_string(site); };
  auto short_lived = std::make_unique<Engine>(with_sites, &register_test_kernels);
  const Op& bad = add_throwing(*short_lived, "bad", ValueError("no"));
  Tensor failed;
  try {
    failed = call(*short_lived, bad, {ramp(*short_lived, 3)}, 42);
  } catch (const ValueError&) {
    GTEST_SKIP() << "synchronous: there is no failed value";
  }
  short_lived.reset();
  EXPECT_TRUE(contains(text_of([&] { failed.wait(); }), "bad failed on cpu:0 at train.py:42: no"));
  EXPECT_EQ(failed.failure().site, "train.py:42");
}

// --- sites
// ----------------------------------------------------------------------------------------------------------

TEST(FailureSite, IsResolvedByTheHost) {
  EngineOptions options = Drive{}.options();
  options.hooks.resolve_site = [](SiteId site) { return "train.py:" + std::to_string(site); };
  Engine engine(options, &register_test_kernels);
  const Op& bad = add_throwing(engine, "bad", ValueError("no"));
  const Tensor failed = call(engine, bad, {ramp(engine, 3)}, 42);
  EXPECT_TRUE(contains(text_of([&] { failed.wait(); }), "bad failed on cpu:0 at train.py:42: no"));
  EXPECT_EQ(failed.failure().site, "train.py:42");
  const Tensor unread = call(engine, bad, {ramp(engine, 3)}, 43);
  const auto texts = engine.shutdown();
  ASSERT_EQ(texts.size(), 1u);
  EXPECT_TRUE(contains(texts[0], "train.py:43")) << texts[0];
}

// --- synchronous
// ----------------------------------------------------------------------------------------------------

class SynchronousFailure : public EngineTest {
 protected:
  SynchronousFailure() { add_throwing(engine, "fail", ValueError("no")); }

  Engine engine{Drive{EngineMode::synchronous}.options(), &register_test_kernels};
};

TEST_F(SynchronousFailure, RaisesInTheIssuingCall) {
  const Tensor x = ramp(engine, 3);
  EXPECT_THROW(call(engine, engine.op("fail"), {x}), ValueError);
  EXPECT_EQ(values<double>(add(x, x))[2], 4);
  EXPECT_TRUE(engine.shutdown().empty()) << "it was raised to the caller";
}

TEST_F(SynchronousFailure, AnInPlaceFormKeepsTheLastGoodValue) {
  Tensor x = ramp(engine, 1000);
  EXPECT_THROW(engine.apply_in_place(engine.op("fail"), x, {}), ValueError);
  EXPECT_EQ(values<double>(x)[999], 999);
}

}  // namespace
}  // namespace thalweg::testing
