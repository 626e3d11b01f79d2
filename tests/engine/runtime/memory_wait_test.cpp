// memory_wait_test.cpp: who waits for memory, who gets it first, and who is told that there will be none.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "engine/support/engine_test.h"

namespace thalweg::testing {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;
constexpr std::int64_t kCount = kMiB / 8;  // doubles in a MiB

class MemoryWaitTest : public DrivenTest {
 protected:
  EngineOptions limited(int blocks) const {
    EngineOptions options = GetParam().options();
    options.memory_limit = blocks * kMiB + kMiB / 2;
    return options;
  }
};

INSTANTIATE_TEST_SUITE_P(Drives, MemoryWaitTest, ::testing::ValuesIn(asynchronous_drives()), drive_name);

/// A custom Op that makes `blocks` MiB of ones after its inputs.
const Op& add_maker(Engine& engine, const std::string& name, std::int64_t blocks) {
  Op op = custom_op(name);
  op.infer = [blocks](InferContext& context) {
    context.set_contiguous(0, {blocks * kCount}, DType::float64);
  };
  return engine.register_operator(op, [](const KernelContext& context) {
    double* out = context.output().as<double>();
    std::fill(out, out + context.output().numel(), 1.0);
  });
}

/// A custom Op of one element, the number of its inputs.
Op counting_op(const std::string& name) {
  Op op = custom_op(name);
  op.infer = [](InferContext& context) { context.set_contiguous(0, {1}, DType::float64); };
  return op;
}
void count_inputs(const KernelContext& context) {
  context.output().as<double>()[0] = static_cast<double>(context.input_count());
}

TEST_P(MemoryWaitTest, AKernelThatWaitsForAValueThatCannotFitFails) {
  Engine limited_engine(limited(1), &register_test_kernels);
  const Tensor base = ramp(limited_engine, kCount);
  const Op& waits = limited_engine.register_operator(counting_op("waits"), [&](const KernelContext& context) {
    add(base, base).wait();
    count_inputs(context);
  });
  EXPECT_THROW(call(limited_engine, waits, {base}).wait(), OutOfMemoryError);
  EXPECT_EQ(values<double>(base)[7], 7);
}

TEST_P(MemoryWaitTest, ChunksThatWaitForAValueThatCannotFitFail) {
  Engine limited_engine(limited(1), &register_test_kernels);
  const Tensor base = ramp(limited_engine, kCount);
  const Op& waits = limited_engine.register_operator(counting_op("waits"), [&](const KernelContext& context) {
    context.parallel_for(6, [&](std::int64_t) { add(base, base).wait(); });
    count_inputs(context);
  });
  EXPECT_THROW(call(limited_engine, waits, {base}).wait(), OutOfMemoryError);
}

/// The kernel's value comes, so it will end and free its input: what waits for memory must not fail
/// meanwhile.
TEST_P(MemoryWaitTest, AKernelThatWaitsForAValueThatComesFreesItsMemory) {
  Engine limited_engine(limited(2), &register_test_kernels);
  for (int round = 0; round < 20; ++round) {
    if (round == 0) {
      limited_engine.register_operator(counting_op("passes"), [&](const KernelContext& context) {
        const Tensor small = filled(limited_engine, 4, 1);
        Tensor sum = small;
        for (int i = 0; i < 5; ++i) sum = add(sum, small);
        sum.wait();
        count_inputs(context);
      });
    }
    const Tensor other = ramp(limited_engine, kCount);
    Tensor held = filled(limited_engine, kCount, 1);
    const Tensor end = call(limited_engine, limited_engine.op("passes"), {held});
    held = Tensor();
    EXPECT_EQ(values<double>(add(other, other))[3], 6) << round;
    EXPECT_EQ(item(end), 1);
  }
}

TEST_P(MemoryWaitTest, AValueThatCannotFitFailsThoughNobodyBlocksOnIt) {
  Engine limited_engine(limited(1), &register_test_kernels);
  const Tensor base = ramp(limited_engine, kCount);
  const Tensor polled = add(base, base);
  EXPECT_TRUE(eventually([&] { return polled.is_ready(); }));
  EXPECT_TRUE(polled.has_failed());
  std::promise<void> called;
  const Tensor awaited = multiply(base, base);
  awaited.on_ready([&] { called.set_value(); });
  EXPECT_EQ(called.get_future().wait_for(std::chrono::seconds(60)), std::future_status::ready);
  EXPECT_TRUE(awaited.has_failed());
}

/// What waits for memory while the last long operator runs is seen to when that ends, though the controller
/// sleeps by then.
TEST_P(MemoryWaitTest, AValueThatCannotFitFailsAfterALongOperator) {
  Gate gate;
  Engine limited_engine(limited(1), &register_test_kernels);
  const OpenAtEnd open(gate);
  const Op& blocks =
      limited_engine.register_operator(counting_op("blocks"), [&](const KernelContext& context) {
        gate.pass();
        count_inputs(context);
      });
  const Op& maker = add_maker(limited_engine, "maker", 2);
  const Tensor first = call(limited_engine, blocks, {});
  std::promise<void> called;
  const Tensor large = call(limited_engine, maker, {first});
  large.on_ready([&] { called.set_value(); });
  ASSERT_TRUE(gate.await_arrivals(1));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  gate.open();
  EXPECT_EQ(called.get_future().wait_for(std::chrono::seconds(60)), std::future_status::ready);
  EXPECT_TRUE(large.has_failed());
}

TEST_P(MemoryWaitTest, AllocateWaitsForWhatIsInFlight) {
  Gate gate;
  Engine limited_engine(limited(2), &register_test_kernels);
  const OpenAtEnd open(gate);
  const Op& reads = limited_engine.register_operator(counting_op("reads"), [&](const KernelContext& context) {
    gate.pass();
    count_inputs(context);
  });
  std::optional<Tensor> first = ramp(limited_engine, 2 * kCount);
  const Tensor end = call(limited_engine, reads, {*first});
  first.reset();
  limited_engine.flush();
  ASSERT_TRUE(gate.await_arrivals(1));
  std::thread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    gate.open();
  });
  EXPECT_EQ(ramp(limited_engine, 2 * kCount).numel(), 2 * kCount);
  EXPECT_EQ(item(end), 1);
  opener.join();
}

TEST_P(MemoryWaitTest, OneFurtherBackThatFitsLetsTheFirstGoOn) {
  Gate gate;
  Engine limited_engine(limited(6), &register_test_kernels);
  const OpenAtEnd open(gate);
  const Op& gated = limited_engine.register_operator(counting_op("gated"), [&](const KernelContext& context) {
    gate.pass();
    count_inputs(context);
  });
  const Op& reads = limited_engine.register_operator(counting_op("reads"), count_inputs);
  const Op& makes4 = add_maker(limited_engine, "makes4", 4);
  const Op& makes1 = add_maker(limited_engine, "makes1", 1);
  Tensor large = ramp(limited_engine, 4 * kCount);
  Tensor small = ramp(limited_engine, 2 * kCount);
  const Tensor last_of_small = call(limited_engine, gated, {small});
  small = Tensor();
  const Tensor first = call(limited_engine, makes4, {});  // fits when `large` is gone
  Tensor second = call(limited_engine, makes1, {});       // fits when `small` is gone
  const Tensor last_of_large = call(limited_engine, reads, {large, second});
  large = second = Tensor();
  limited_engine.flush();
  ASSERT_TRUE(gate.await_arrivals(1));
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  gate.open();
  EXPECT_EQ(item(last_of_large), 2);
  EXPECT_EQ(values<double>(first)[4 * kCount - 1], 1);
  EXPECT_EQ(item(last_of_small), 1);
}

TEST_P(MemoryWaitTest, WhatIsBroughtInCountsAgainstTheRunAhead) {
  Gate gate;
  EngineOptions options = GetParam().options();
  options.max_bytes_in_flight = 8 * kMiB;
  Engine tight(options, &register_test_kernels);
  const OpenAtEnd open(gate);
  const Op& gated = tight.register_operator(counting_op("gated"), [&](const KernelContext& context) {
    gate.pass();
    count_inputs(context);
  });
  const Op& reads = tight.register_operator(counting_op("reads"), count_inputs);
  const Tensor first = call(tight, gated, {});
  std::thread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    gate.open();
  });
  std::vector<Tensor> ends;
  for (int i = 0; i < 60; ++i) ends.push_back(call(tight, reads, {ramp(tight, kCount), first}));
  for (const Tensor& end : ends) EXPECT_EQ(item(end), 2);
  opener.join();
  tight.drain();
  EXPECT_LE(tight.memory_stats().peak_bytes, 12 * kMiB);
}

/// Each step fits easily; the newest must not take what the oldest need.
TEST_P(MemoryWaitTest, ALoopOfStepsStaysWithinATightLimit) {
  Engine limited_engine(limited(8), &register_test_kernels);
  const Op& reads = limited_engine.register_operator(counting_op("reads"), count_inputs);
  const Op& makes = add_maker(limited_engine, "makes", 1);
  std::vector<Tensor> ends;
  for (int i = 0; i < 60; ++i) {
    const Tensor x = ramp(limited_engine, kCount);
    const Tensor y = call(limited_engine, makes, {x});
    const Tensor z = call(limited_engine, makes, {x, y});
    ends.push_back(call(limited_engine, reads, {y, z}));
  }
  for (const Tensor& end : ends) EXPECT_EQ(item(end), 2);
  EXPECT_LE(limited_engine.memory_stats().peak_bytes, 8 * kMiB + kMiB / 2);
}

/// What never fits is told so while another thread goes on issuing.
TEST_P(MemoryWaitTest, AVerdictComesThoughOthersKeepIssuing) {
  Engine limited_engine(limited(6), &register_test_kernels);
  const Op& makes4 = add_maker(limited_engine, "makes4", 4);
  const Tensor held = ramp(limited_engine, 4 * kCount);
  std::atomic<bool> stop{false};
  std::thread other([&] {
    Tensor x = filled(limited_engine, 64, 1);
    const Tensor one = filled(limited_engine, 64, 1);
    while (!stop) x = add(x, one);
  });
  EXPECT_THROW(ramp(limited_engine, 4 * kCount), OutOfMemoryError);
  EXPECT_THROW(ramp(limited_engine, 40 * kCount), OutOfMemoryError);
  EXPECT_THROW(call(limited_engine, makes4, {}).wait(), OutOfMemoryError);
  stop = true;
  other.join();
}

TEST_P(MemoryWaitTest, ALargeOperatorGetsItsTurnThoughOthersKeepIssuing) {
  EngineOptions options = GetParam().options();
  options.max_bytes_in_flight = 4 * kMiB;
  Engine tight(options, &register_test_kernels);
  const Op& makes4 = add_maker(tight, "makes4", 4);
  std::atomic<bool> stop{false};
  std::vector<std::thread> others;
  for (int t = 0; t < 2; ++t) {
    others.emplace_back([&] {
      const Tensor one = filled(tight, kCount / 4, 1);
      Tensor x = one;
      while (!stop) x = add(x, one);
    });
  }
  for (int i = 0; i < 3; ++i) EXPECT_EQ(call(tight, makes4, {}).numel(), 4 * kCount);
  stop = true;
  for (std::thread& other : others) other.join();
}

TEST_P(MemoryWaitTest, ForeignBytesCountOnceAndByTheirReach) {
  Gate gate;
  EngineOptions options = GetParam().options();
  options.max_bytes_in_flight = 8 * kMiB;
  Engine tight(options, &register_test_kernels);
  const OpenAtEnd open(gate);
  const Op& gated = tight.register_operator(counting_op("gated"), [&](const KernelContext& context) {
    gate.pass();
    count_inputs(context);
  });
  const Op& reads = tight.register_operator(counting_op("reads"), count_inputs);
  const Tensor first = call(tight, gated, {});
  std::vector<double> data(static_cast<std::size_t>(4 * kCount), 1.0);
  std::vector<Tensor> ends;
  const auto read = [&](double* from, std::int64_t stride) {
    TensorMeta meta;
    meta.dtype = DType::float64;
    meta.shape.push_back(4 * kCount);
    meta.strides.push_back(stride);
    ends.push_back(call(tight, reads, {tight.from_external(meta, from, [] {}), first}));
  };
  for (int i = 0; i < 20; ++i) read(data.data(), 1);
  for (int i = 0; i < 20; ++i) read(data.data() + i, 0);
  gate.open();
  for (const Tensor& end : ends) EXPECT_EQ(item(end), 2);
}

}  // namespace
}  // namespace thalweg::testing
