// num_threads_test.cpp: how many bodies of one device run at the same time, helping callers and loops
// included.
#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "engine/support/engine_test.h"

namespace thalweg::testing {
namespace {

/// Counts bodies that are inside at the same time.
class Occupancy {
 public:
  void enter() {
    const int now = inside_.fetch_add(1) + 1;
    int most = most_.load();
    while (now > most && !most_.compare_exchange_weak(most, now)) {
    }
  }
  void leave() { inside_.fetch_sub(1); }
  int most() const { return most_.load(); }
  void forget() { most_ = 0; }

 private:
  std::atomic<int> inside_{0};
  std::atomic<int> most_{0};
};

/// Long enough that bodies which may overlap do.
void work() {
  for (int i = 0; i < 20; ++i) std::this_thread::yield();
}

class NumThreadsTest : public EngineTest, public ::testing::WithParamInterface<Drive> {
 protected:
  NumThreadsTest() : engine(GetParam().options(), &register_test_kernels) {
    Op op = custom_op("body");
    op.ns_per_element = 0.5F;  // short: callers help with it
    engine.register_operator(op, [this](const KernelContext& context) {
      occupancy.enter();
      work();
      occupancy.leave();
      sum_kernel(context);
    });
    engine.register_operator(custom_op("loop"), [this](const KernelContext& context) {
      context.parallel_for(16, [this](std::int64_t) {
        occupancy.enter();
        work();
        occupancy.leave();
      });
      sum_kernel(context);
    });
  }

  Occupancy occupancy;
  Engine engine;
};

std::vector<Drive> bounded_drives() {
  std::vector<Drive> drives;
  for (EngineMode mode : {EngineMode::threaded, EngineMode::caller_driven}) {
    for (int threads : {1, 2, 3}) {
      for (bool run_inline : {true, false}) drives.push_back({mode, threads, run_inline});
    }
  }
  return drives;
}

INSTANTIATE_TEST_SUITE_P(Drives, NumThreadsTest, ::testing::ValuesIn(bounded_drives()), drive_name);

TEST_P(NumThreadsTest, BoundsBodiesWithHelpingCallers) {
  const Op& body = engine.op("body");
  std::vector<std::thread> callers;
  for (int t = 0; t < 6; ++t) {
    callers.emplace_back([&] {
      for (int i = 0; i < 100; ++i) {
        Tensor x = call(engine, body, {});
        x = call(engine, body, {x, call(engine, body, {})});
        if (i % 3 == 0) engine.synchronize();
        EXPECT_EQ(item(x), 3);
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_LE(occupancy.most(), GetParam().threads);
  EXPECT_GE(occupancy.most(), 1);
}

TEST_P(NumThreadsTest, BoundsParallelLoops) {
  const Op& loop = engine.op("loop");
  const Op& body = engine.op("body");
  std::vector<std::thread> callers;
  for (int t = 0; t < 3; ++t) {
    callers.emplace_back([&] {
      for (int i = 0; i < 30; ++i) {
        const Tensor x = call(engine, loop, {call(engine, body, {})});
        const Tensor y = call(engine, loop, {});
        EXPECT_EQ(item(call(engine, body, {x, y})), 4);
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_LE(occupancy.most(), GetParam().threads);
}

TEST_P(NumThreadsTest, ChangesAtTheSameTimeLeaveWhatIsSaid) {
  const Op& body = engine.op("body");
  for (int round = 0; round < 50; ++round) {
    std::atomic<int> there{0};
    const auto change = [&](int threads) {
      ++there;
      while (there < 2) std::this_thread::yield();
      engine.set_num_threads(threads);
    };
    std::thread first(change, 1);
    std::thread second(change, 4);
    first.join();
    second.join();
    if (engine.num_threads() != 1) continue;
    occupancy.forget();
    std::vector<Tensor> results;
    for (int i = 0; i < 8; ++i) results.push_back(call(engine, body, {}));
    for (const Tensor& result : results) result.wait();
    ASSERT_EQ(occupancy.most(), 1) << "round " << round;
  }
}

TEST_P(NumThreadsTest, HoldsAfterAChange) {
  const Op& body = engine.op("body");
  engine.set_num_threads(1);
  EXPECT_EQ(engine.num_threads(), 1);
  std::vector<Tensor> results;
  for (int i = 0; i < 100; ++i) results.push_back(call(engine, body, {}));
  for (const Tensor& result : results) result.wait();
  EXPECT_EQ(occupancy.most(), 1);
  EXPECT_THROW(engine.set_num_threads(-2), ValueError);
  EXPECT_EQ(engine.num_threads(), 1);
}

/// As many bodies as allowed really meet: each waits until the others are inside.
TEST_P(NumThreadsTest, ReachesTheBound) {
  Gate gate;
  Engine other(GetParam().options(), &register_test_kernels);
  const OpenAtEnd open(gate);
  const Op& meet = add_custom(other, "meet", [&](const KernelContext&) { gate.pass(); });
  std::vector<Tensor> results;
  for (int i = 0; i < GetParam().threads; ++i) results.push_back(call(other, meet, {}));
  other.flush();
  EXPECT_TRUE(gate.await_arrivals(GetParam().threads));
}

TEST_P(NumThreadsTest, EveryChunkRunsOnce) {
  Engine other(GetParam().options(), &register_test_kernels);
  std::vector<std::atomic<int>> runs(1000);
  const Op& loop = other.register_operator(custom_op("chunks"), [&](const KernelContext& context) {
    context.parallel_for(1000,
                         [&](std::int64_t chunk) { runs[static_cast<std::size_t>(chunk)].fetch_add(1); });
    sum_kernel(context);
  });
  for (int round = 1; round <= 5; ++round) {
    call(other, loop, {}).wait();
    for (auto& count : runs) ASSERT_EQ(count, round);
  }
}

TEST_P(NumThreadsTest, TheCallerTakesTheFirstChunks) {
  Engine other(GetParam().options(), &register_test_kernels);
  std::vector<std::thread::id> ran_by(64);
  std::thread::id caller;
  const Op& loop = other.register_operator(custom_op("chunks"), [&](const KernelContext& context) {
    caller = std::this_thread::get_id();
    context.parallel_for(64, [&](std::int64_t chunk) {
      work();
      ran_by[static_cast<std::size_t>(chunk)] = std::this_thread::get_id();
    });
    sum_kernel(context);
  });
  for (int round = 0; round < 20; ++round) {
    call(other, loop, {}).wait();
    const auto first_of_others =
        std::find_if(ran_by.begin(), ran_by.end(), [&](auto id) { return id != caller; });
    EXPECT_EQ(std::find(first_of_others, ran_by.end(), caller), ran_by.end());
  }
}

TEST_P(NumThreadsTest, EachDeviceHasItsOwnThreads) {
  EngineOptions options = GetParam().options();
  options.cpu_devices = 2;
  Gate gate;
  Engine other(options, &register_test_kernels);
  const OpenAtEnd open(gate);
  const Op& meet = add_custom(other, "meet", [&](const KernelContext&) { gate.pass(); });
  std::vector<Tensor> results;
  for (int device = 0; device < 2; ++device) {
    for (int i = 0; i < GetParam().threads; ++i)
      results.push_back(call(other, meet, {filled(other, 1, 0, cpu(device))}));
  }
  other.flush();
  EXPECT_TRUE(gate.await_arrivals(2 * GetParam().threads));
}

}  // namespace
}  // namespace thalweg::testing
