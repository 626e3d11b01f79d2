// back_pressure_test.cpp: run-ahead limits by operators and bytes, who waits for room and who never does.
#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "engine/support/engine_test.h"

namespace thalweg::testing {
namespace {

std::atomic<bool> interrupt_requested{false};
std::atomic<int> looks{0};  // of threads that wait, for an interrupt

class BackPressureTest : public ::testing::TestWithParam<Drive>, private EngineTestBase {
 protected:
  static constexpr std::int64_t kLimit = 16;

  BackPressureTest() {
    interrupt_requested = false;
    add_custom(engine, "gated", [this](const KernelContext&) { gate.pass(); });
  }
  ~BackPressureTest() override { gate.open(); }

  static EngineOptions options() {
    EngineOptions options = GetParam().options();
    options.max_operators_in_flight = kLimit;
    options.hooks.interrupted = [] {
      looks.fetch_add(1);
      return interrupt_requested.load();
    };
    return options;
  }
  Tensor gated(const std::vector<Tensor>& inputs = {}) { return call(engine, engine.op("gated"), inputs); }
  /// Fills the run-ahead with operators that stand at the gate or behind it.
  void fill() {
    for (std::int64_t i = 0; i < kLimit; ++i) kept.push_back(gated());
    engine.flush();
    ASSERT_TRUE(gate.await_arrivals(1));
  }

  Gate gate;
  Engine engine{options(), &register_test_kernels};
  std::vector<Tensor> kept;
};

INSTANTIATE_TEST_SUITE_P(Drives, BackPressureTest, ::testing::ValuesIn(asynchronous_drives()), drive_name);

TEST_P(BackPressureTest, ABlockedSubmitterGoesOnWhenOperatorsFinish) {
  fill();
  std::atomic<int> issued{0};
  std::thread submitter([&] {
    for (int i = 0; i < 100; ++i) {
      gated();
      issued.fetch_add(1);
    }
  });
  // Nothing may enter while the gate is closed; there is nothing to wait on, so look a while.
  for (int look = 0; look < 50; ++look) {
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    EXPECT_LE(engine.stats().in_flight, static_cast<std::uint64_t>(kLimit));
  }
  EXPECT_EQ(issued, 0);
  gate.open();
  submitter.join();
  engine.drain();
  EXPECT_EQ(engine.stats().executed, static_cast<std::uint64_t>(kLimit) + 100);
}

TEST_P(BackPressureTest, EightSubmittersNeverExceedTheLimit) {
  std::atomic<bool> over{false};
  std::vector<std::thread> submitters;
  gate.open();
  for (int t = 0; t < 8; ++t) {
    submitters.emplace_back([&] {
      for (int i = 0; i < 300; ++i) {
        gated();
        if (engine.stats().in_flight > static_cast<std::uint64_t>(kLimit)) over = true;
      }
    });
  }
  for (std::thread& submitter : submitters) submitter.join();
  engine.drain();
  EXPECT_FALSE(over);
  EXPECT_EQ(engine.stats().executed, 2400u);
  EXPECT_EQ(engine.stats().in_flight, 0u);
}

TEST_P(BackPressureTest, EightBlockedSubmittersAreAllReleased) {
  fill();
  std::vector<std::thread> submitters;
  for (int t = 0; t < 8; ++t) {
    submitters.emplace_back([&] {
      for (int i = 0; i < 20; ++i) gated();
    });
  }
  gate.open();
  for (std::thread& submitter : submitters) submitter.join();
  engine.synchronize();
  EXPECT_EQ(engine.stats().executed, static_cast<std::uint64_t>(kLimit) + 160);
}

TEST_P(BackPressureTest, AnInterruptAbortsABlockedSubmitAndTheEngineGoesOn) {
  fill();
  std::atomic<bool> began{false};
  std::atomic<bool> interrupted{false};
  std::thread submitter([&] {
    began = true;
    try {
      gated();
    } catch (const Interrupted&) {
      interrupted = true;
    }
  });
  EXPECT_TRUE(eventually([&] { return began.load(); }));
  interrupt_requested = true;
  submitter.join();
  interrupt_requested = false;
  EXPECT_TRUE(interrupted);
  gate.open();
  engine.synchronize();
  EXPECT_EQ(values<double>(gated())[0], 1);
  engine.drain();
  EXPECT_EQ(engine.stats().in_flight, 0u);
}

TEST_P(BackPressureTest, AnInterruptAbortsAWaitAndTheEngineGoesOn) {
  const Tensor waiting = gated();
  interrupt_requested = true;
  EXPECT_THROW(waiting.wait(), Interrupted);
  EXPECT_THROW(engine.synchronize(), Interrupted);
  interrupt_requested = false;
  EXPECT_FALSE(waiting.is_ready());
  gate.open();
  EXPECT_EQ(values<double>(waiting)[0], 1);
  engine.synchronize();
}

TEST_P(BackPressureTest, AnInterruptedSubmitLeavesItsInputsAlone) {
  fill();
  Tensor x = ramp(engine, 100);
  interrupt_requested = true;
  EXPECT_THROW(gated({x}), Interrupted);
  interrupt_requested = false;
  gate.open();
  engine.drain();
  EXPECT_TRUE(x.owns_bytes_alone());
  EXPECT_EQ(values<double>(gated({x}))[99], 100);
}

TEST_P(BackPressureTest, RaisingTheLimitReleasesABlockedSubmitter) {
  fill();
  std::thread submitter([&] { kept.push_back(gated()); });
  engine.set_run_ahead(1000, std::int64_t{1} << 30);
  submitter.join();
  EXPECT_EQ(engine.stats().in_flight, static_cast<std::uint64_t>(kLimit) + 1);
  EXPECT_THROW(engine.set_run_ahead(0, 1), ValueError);
}

/// The cast in front of an operator waits for room; the operator's other input must outlast that.
TEST_P(BackPressureTest, AnInputMayLoseItsHandleWhileACastWaitsForRoom) {
  const Tensor narrow = engine.constant(Scalar(1), DType::float32);
  Tensor wide = filled(engine, 100, 2);
  Operand* const lent = wide.operand();
  engine.drain();
  fill();
  Tensor sum;
  const int before = looks;
  std::thread submitter([&] {
    Tensor borrowed(lent);  // the handle is the other thread's
    sum = add(narrow, borrowed);
    borrowed.release();
  });
  // Until it waits: before the call has its inputs nobody but us keeps them.
  while (looks == before) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  wide = Tensor();
  const Tensor other = filled(engine, 100, 7);  // may get the memory of what is freed too early
  gate.open();
  submitter.join();
  EXPECT_EQ(values<double>(sum), std::vector<double>(100, 3));
}

/// A custom kernel, its parallel_for and a callback may issue beyond the limit: blocking them could block the
/// engine.
TEST_P(BackPressureTest, KernelsAndCallbacksAreAlwaysAdmitted) {
  EngineOptions tight = options();
  tight.max_operators_in_flight = 2;
  Engine other(tight, &register_test_kernels);
  std::atomic<int> issued{0};
  const Op& leaf = add_custom(other, "leaf");
  const Op& spread = other.register_operator(custom_op("spread"), [&](const KernelContext& context) {
    const auto issue = [&] {
      call(other, leaf, {});
      issued.fetch_add(1);
    };
    for (int i = 0; i < 20; ++i) issue();
    context.parallel_for(16, [&](std::int64_t) { issue(); });
    sum_kernel(context);
  });
  Gate told;
  const Tensor result = call(other, spread, {});
  result.on_ready([&] {
    for (int i = 0; i < 20; ++i) {
      call(other, leaf, {});
      issued.fetch_add(1);
    }
    told.open();
  });
  result.wait();
  EXPECT_TRUE(told.pass());
  other.synchronize();
  EXPECT_EQ(issued, 56);
  EXPECT_EQ(other.stats().executed, 57u);
}

// --- bytes
// ----------------------------------------------------------------------------------------------------------

class ByteLimitTest : public EngineTest {
 protected:
  static constexpr std::int64_t kBytes = 64 * 1024;

  static EngineOptions options() {
    EngineOptions options = Drive{}.options();
    options.max_bytes_in_flight = kBytes;
    return options;
  }
  ByteLimitTest() {
    Op op = custom_op("big");
    op.attributes = {{"bytes", AttrKind::integer, {}, true}};
    op.infer = [](InferContext& context) {
      context.set_contiguous(0, {context.attributes().get<std::int64_t>(0)}, DType::uint8);
    };
    engine.register_operator(op, [this](const KernelContext&) { gate.pass(); });
  }
  ~ByteLimitTest() override { gate.open(); }
  Tensor big(std::int64_t bytes) { return engine.apply(engine.op("big"), {}, {AttrValue(bytes)}); }

  Gate gate;
  Engine engine{options(), &register_test_kernels};
};

TEST_F(ByteLimitTest, OutputsOfUnfinishedOperatorsCount) {
  const Tensor a = big(kBytes / 2);
  const Tensor b = big(kBytes / 2);
  std::atomic<bool> entered{false};
  std::thread submitter([&] {
    big(kBytes / 2);
    entered = true;
  });
  for (int look = 0; look < 50; ++look) {
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    EXPECT_FALSE(entered);
  }
  gate.open();
  submitter.join();
}

TEST_F(ByteLimitTest, FinishedValuesDoNotCount) {
  gate.open();
  std::vector<Tensor> kept;
  for (int i = 0; i < 20; ++i) kept.push_back(big(kBytes / 2));
  engine.synchronize();
  EXPECT_EQ(engine.stats().in_flight, 0u);
}

TEST_F(ByteLimitTest, AnOperatorLargerThanTheLimitEntersAlone) {
  const Tensor first = big(10 * kBytes);
  ASSERT_TRUE(gate.await_arrivals(1));
  std::atomic<bool> entered{false};
  std::thread submitter([&] {
    const Tensor second = big(10 * kBytes);
    entered = true;
    second.wait();
  });
  for (int look = 0; look < 50; ++look) {
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    EXPECT_FALSE(entered);
  }
  gate.open();
  submitter.join();
  EXPECT_TRUE(entered);
}

TEST_F(ByteLimitTest, ViewsCostNothing) {
  gate.open();
  const Tensor base = big(kBytes / 2);
  base.wait();
  gate.close();
  const Tensor held = big(kBytes);
  std::vector<Tensor> views;
  for (int i = 0; i < 100; ++i) views.push_back(engine.apply(engine.op("flip"), {&base}, {AttrValue{}}));
  views.back().wait();
  gate.open();
}

}  // namespace
}  // namespace thalweg::testing
