// memory_test.cpp: the byte limit, waiting for memory, the cache, figures, and values that outlive their
// engine.
#include <atomic>
#include <memory>
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

class MemoryTest : public DrivenTest {
 protected:
  /// Room for `blocks` tensors of one MiB.
  EngineOptions limited(int blocks) const {
    EngineOptions options = GetParam().options();
    options.memory_limit = blocks * kMiB + kMiB / 2;
    return options;
  }
};

INSTANTIATE_TEST_SUITE_P(Drives, MemoryTest, ::testing::ValuesIn(all_drives()), drive_name);

TEST_P(MemoryTest, AllocateRaisesOverTheLimit) {
  Engine limited_engine(limited(2), &register_test_kernels);
  const Tensor a = ramp(limited_engine, kCount);
  std::optional<Tensor> b = ramp(limited_engine, kCount);
  try {
    ramp(limited_engine, kCount);
    FAIL() << "did not throw";
  } catch (const OutOfMemoryError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("1048576"), std::string::npos) << text;
    EXPECT_NE(text.find("limit"), std::string::npos) << text;
  }
  b.reset();
  EXPECT_EQ(ramp(limited_engine, kCount).numel(), kCount);
}

TEST_P(MemoryTest, AnOperatorThatCanNeverFitFails) {
  Engine limited_engine(limited(2), &register_test_kernels);
  const Tensor a = ramp(limited_engine, kCount);
  const Tensor b = ramp(limited_engine, kCount);
  EXPECT_THROW(add(a, b).wait(), OutOfMemoryError);
  if (!is_synchronous()) {
    const Tensor sum = add(a, b);
    const Tensor later = add(sum, a);
    EXPECT_THROW(later.wait(), OutOfMemoryError) << "inherited";
    EXPECT_EQ(sum.failure().op, "add");
    EXPECT_NE(sum.failure().message.find("live"), std::string::npos) << sum.failure().message;
  }
  EXPECT_EQ(values<double>(a)[kCount - 1], kCount - 1);
}

TEST_P(MemoryTest, AnOperatorFitsAgainWhenAHandleGoes) {
  Engine limited_engine(limited(2), &register_test_kernels);
  const Tensor a = ramp(limited_engine, kCount);
  {
    const Tensor b = ramp(limited_engine, kCount);
    EXPECT_THROW(add(a, b).wait(), OutOfMemoryError);
    limited_engine.drain();
  }
  EXPECT_EQ(values<double>(add(a, a))[1], 2);
}

/// A custom Op whose result is input 0's last element: it needs no memory and frees its input's.
Op last_element_op() {
  Op op = custom_op("last_element");
  op.infer = [](InferContext& context) { context.set_contiguous(0, {1}, DType::float64); };
  return op;
}
void last_element(const KernelContext& context) {
  context.output().as<double>()[0] = context.input(0).as<double>()[context.input(0).numel() - 1];
}

/// More results than fit at once: operators wait for memory that the consumers of others will free.
TEST_P(MemoryTest, OperatorsWaitForMemoryThatOthersFree) {
  Engine limited_engine(limited(4), &register_test_kernels);
  const Op& step = add_custom(limited_engine, "step");
  const Op& last = limited_engine.register_operator(last_element_op(), last_element);
  const Tensor base = ramp(limited_engine, kCount);
  std::vector<Tensor> ends;
  for (int i = 0; i < 40; ++i)
    ends.push_back(call(limited_engine, last, {call(limited_engine, step, {base})}));
  for (const Tensor& end : ends) EXPECT_EQ(item(end), kCount);
  limited_engine.drain();
  EXPECT_LE(limited_engine.memory_stats().peak_bytes, 4 * kMiB + kMiB / 2);
}

TEST_P(MemoryTest, OneOfTwoThatWaitForEachOthersMemoryFails) {
  if (is_synchronous()) GTEST_SKIP() << "nothing waits";
  Engine limited_engine(limited(3), &register_test_kernels);
  const Tensor a = ramp(limited_engine, kCount);
  const Tensor b = ramp(limited_engine, kCount);
  const Tensor first = add(a, b);
  const Tensor second = multiply(a, b);
  int failed = 0;
  for (const Tensor* result : {&first, &second}) {
    try {
      result->wait();
    } catch (const OutOfMemoryError&) {
      ++failed;
    }
  }
  EXPECT_EQ(failed, 1);
}

TEST_P(MemoryTest, NoErrorWhileARunningOperatorWillFreeMemory) {
  if (is_synchronous()) GTEST_SKIP() << "nothing runs beside";
  Gate gate;
  Engine limited_engine(limited(2), &register_test_kernels);
  const OpenAtEnd open(gate);
  const Op& consume = limited_engine.register_operator(last_element_op(), [&](const KernelContext& context) {
    gate.pass();
    last_element(context);
  });
  Tensor held = filled(limited_engine, kCount, 5);
  const Tensor other = ramp(limited_engine, kCount);
  const Tensor consumed = call(limited_engine, consume, {held});
  held = Tensor();
  const Tensor waiting = add(other, other);
  limited_engine.flush();
  ASSERT_TRUE(gate.await_arrivals(1));
  std::thread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // long enough for a wrong verdict
    gate.open();
  });
  EXPECT_EQ(values<double>(waiting)[1], 2);
  EXPECT_EQ(item(consumed), 5);
  opener.join();
}

TEST_P(MemoryTest, ManyThreadsShareATightLimit) {
  Engine limited_engine(limited(8), &register_test_kernels);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 10; ++i) {
        try {
          Tensor x = filled(limited_engine, kCount, 1);
          for (int k = 0; k < 3; ++k) add_to(x, limited_engine.constant(Scalar(1.0), DType::float64));
          if (values<double>(x)[7] != 4) wrong.fetch_add(1);
        } catch (const OutOfMemoryError&) {
          // allowed: what the other threads hold is not in flight
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  limited_engine.drain();
  EXPECT_EQ(limited_engine.memory_stats().live_bytes, 0);
}

TEST_P(MemoryTest, RaisingTheLimitLetsOperatorsIn) {
  Engine limited_engine(limited(2), &register_test_kernels);
  const Tensor a = ramp(limited_engine, kCount);
  const Tensor b = ramp(limited_engine, kCount);
  limited_engine.set_memory_limit(100 * kMiB);
  EXPECT_EQ(values<double>(add(a, b))[1], 2);
  EXPECT_EQ(limited_engine.memory_stats().limit_bytes, 100 * kMiB);
}

TEST_P(MemoryTest, FiguresFollowTensors) {
  EXPECT_EQ(engine.memory_stats().live_bytes, 0);
  {
    const Tensor a = ramp(engine, kCount);
    const Tensor b = add(a, a);
    b.wait();
    engine.drain();
    EXPECT_EQ(engine.memory_stats().live_bytes, 2 * kMiB);
    EXPECT_EQ(engine.memory_stats().peak_bytes, 2 * kMiB);
  }
  engine.drain();
  EXPECT_EQ(engine.memory_stats().live_bytes, 0);
  EXPECT_EQ(engine.memory_stats().cached_bytes, 2 * kMiB);
  engine.reset_peak_memory();
  EXPECT_EQ(engine.memory_stats().peak_bytes, 0);
  engine.empty_cache();
  EXPECT_EQ(engine.memory_stats().cached_bytes, 0);
}

TEST_P(MemoryTest, AnIntermediateDiesWithItsLastReader) {
  const Tensor base = ramp(engine, kCount);
  Tensor x = base;
  for (int i = 0; i < 20; ++i) {
    x = add(x, base);
    x.wait();
    engine.drain();
  }
  EXPECT_EQ(engine.memory_stats().live_bytes, 2 * kMiB);
  EXPECT_LE(engine.memory_stats().peak_bytes, 3 * kMiB);
}

TEST_P(MemoryTest, ADroppedPendingValueIsFreedWithoutFurtherCalls) {
  if (GetParam().mode == EngineMode::caller_driven) GTEST_SKIP() << "nobody drives without calls";
  const Tensor base = ramp(engine, kCount);
  for (int i = 0; i < 50; ++i) add(base, base);
  const std::int64_t only_base = kMiB;
  // stats() instead of memory_stats(), which flushes.
  EXPECT_TRUE(eventually([&] { return engine.stats().in_flight == 0; }));
  EXPECT_TRUE(eventually([&] { return engine.memory_stats().live_bytes == only_base; }));
}

TEST_P(MemoryTest, ManySmallResultsDroppedUnreadStayBounded) {
  const Tensor base = ramp(engine, 512);
  for (int i = 0; i < 20'000; ++i) add(base, base);
  engine.drain();
  EXPECT_EQ(engine.memory_stats().live_bytes, 4096);
  EXPECT_LE(engine.memory_stats().peak_bytes, 33 * kMiB) << "at most the run-ahead";
}

TEST_P(MemoryTest, DevicesHaveTheirOwnLimits) {
  EngineOptions options = limited(1);
  options.cpu_devices = 2;
  Engine two(options, &register_test_kernels);
  const Tensor a = ramp(two, kCount, 0, 1, cpu(0));
  EXPECT_THROW(ramp(two, kCount, 0, 1, cpu(0)), OutOfMemoryError);
  const Tensor b = to_device(a, cpu(1));
  EXPECT_EQ(values<double>(b)[5], 5);
  EXPECT_EQ(two.memory_stats(cpu(1)).live_bytes, kMiB);
}

TEST_P(MemoryTest, ValuesOutliveTheirEngine) {
  auto short_lived = std::make_unique<Engine>(options(), &register_test_kernels);
  Tensor big = add(ramp(*short_lived, kCount), ramp(*short_lived, kCount));
  const Tensor small = add(ramp(*short_lived, 2), ramp(*short_lived, 2));
  const Tensor view = short_lived->apply(short_lived->op("flip"), {&big}, {AttrValue{}});
  short_lived.reset();
  EXPECT_EQ(values<double>(big)[3], 6);
  EXPECT_EQ(values<double>(small)[1], 2);
  big = Tensor();
  EXPECT_EQ(values<double>(view)[kCount - 1], 0);
}

TEST_P(MemoryTest, TheLimitMayBeSetByTwoThreads) {
  Engine other(options(), &register_test_kernels);
  std::vector<std::thread> threads;
  for (std::int64_t t = 1; t <= 2; ++t) {
    threads.emplace_back([&other, t] {
      for (int i = 0; i < 200; ++i) other.set_memory_limit((t << 40) + i);
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::int64_t limit = other.memory_stats().limit_bytes;
  EXPECT_TRUE(limit == (std::int64_t{1} << 40) + 199 || limit == (std::int64_t{2} << 40) + 199) << limit;
}

}  // namespace
}  // namespace thalweg::testing
