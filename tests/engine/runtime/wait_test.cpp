// wait_test.cpp: waiting from application threads and from the host's own oneTBB tasks.
#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_group.h>

#include "engine/support/engine_test.h"

namespace thalweg::testing {
namespace {

class WaitTest : public DrivenTest {
 protected:
  Tensor one = engine.constant(Scalar(1.0), DType::float64);
};

INSTANTIATE_TEST_SUITE_P(Drives, WaitTest, ::testing::ValuesIn(asynchronous_drives()), drive_name);

TEST_P(WaitTest, ManyThreadsWaitForOnePendingValue) {
  Gate gate;
  Engine other(options(), &register_test_kernels);
  const OpenAtEnd open(gate);
  const Op& slow = add_custom(other, "slow", [&](const KernelContext&) { gate.pass(); });
  const Tensor pending = call(other, slow, {ramp(other, 3)});
  std::atomic<int> right{0};
  std::vector<std::thread> waiters;
  for (int i = 0; i < 8; ++i) {
    waiters.emplace_back([&] {
      pending.wait();
      if (values<double>(pending)[2] == 3) right.fetch_add(1);
    });
  }
  EXPECT_FALSE(pending.is_ready());
  gate.open();
  for (std::thread& waiter : waiters) waiter.join();
  EXPECT_EQ(right, 8);
}

TEST_P(WaitTest, ItemOfASmallChainInALoop) {
  Tensor total = filled(engine, 1, 0);
  for (int i = 1; i <= 300; ++i) {
    total = add(total, one);
    ASSERT_EQ(item(total), i);
  }
}

TEST_P(WaitTest, TaskBarriersOfManyThreadsMakeProgress) {
  const Op& step = add_custom(engine, "step");
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      Tensor x = filled(engine, 4, 0);
      for (int i = 1; i <= 100; ++i) {
        x = call(engine, step, {x});
        if (values<double>(x)[3] != i) wrong.fetch_add(1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_P(WaitTest, IsReadyStartsWhatWasIssued) {
  const Tensor sum = add(one, one);
  EXPECT_TRUE(eventually([&] { return sum.is_ready(); }));
  EXPECT_EQ(item(sum), 2);
}

TEST_P(WaitTest, FlushStartsWhatWasIssuedAndDoesNotWait) {
  Gate gate;
  Engine other(options(), &register_test_kernels);
  const OpenAtEnd open(gate);
  const Op& slow = add_custom(other, "slow", [&](const KernelContext&) { gate.pass(); });
  const Tensor pending = call(other, slow, {});
  other.flush();
  EXPECT_TRUE(gate.await_arrivals(1));
  EXPECT_FALSE(pending.is_ready());
}

TEST_P(WaitTest, SynchronizeCoversOperatorsOfOtherThreads) {
  const Op& step = add_custom(engine, "step");
  std::vector<Tensor> last(4);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < last.size(); ++t) {
    threads.emplace_back([&, t] {
      last[t] = filled(engine, 1, 0);
      for (int i = 0; i < 50; ++i) last[t] = call(engine, step, {last[t]});
    });
  }
  for (std::thread& thread : threads) thread.join();
  engine.synchronize();
  for (const Tensor& tensor : last) EXPECT_TRUE(tensor.is_ready());
  EXPECT_EQ(engine.stats().executed, 200u);
}

// --- inside the host's oneTBB tasks
// ---------------------------------------------------------------------------------

TEST_P(WaitTest, AHostsParallelForMayWait) {
  const Op& step = add_custom(engine, "step");
  std::atomic<int> right{0};
  tbb::parallel_for(0, 32, [&](int i) {
    Tensor x = filled(engine, 1, i);
    for (int k = 0; k < 5; ++k) x = call(engine, step, {x});
    if (item(x) == i + 5 && item(add(x, x)) == 2 * (i + 5)) right.fetch_add(1);
  });
  EXPECT_EQ(right, 32);
}

TEST_P(WaitTest, AHostsArenaOfOneThreadMayWait) {
  const Op& step = add_custom(engine, "step");
  tbb::task_arena arena(1);
  double result = 0;
  arena.execute([&] {
    Tensor x = filled(engine, 1, 0);
    for (int k = 0; k < 20; ++k) {
      x = call(engine, step, {x});
      x.wait();
    }
    result = item(x);
  });
  EXPECT_EQ(result, 20);
  arena.execute([&] {
    tbb::parallel_for(0, 8,
                      [&](int i) { EXPECT_EQ(item(call(engine, step, {filled(engine, 1, i)})), i + 1); });
  });
}

TEST_P(WaitTest, AHostsTaskGroupMaySynchronize) {
  const Op& step = add_custom(engine, "step");
  tbb::task_group group;
  std::atomic<int> done{0};
  for (int t = 0; t < 6; ++t) {
    group.run([&] {
      for (int i = 0; i < 10; ++i) {
        call(engine, step, {});
        engine.synchronize();
      }
      done.fetch_add(1);
    });
  }
  group.wait();
  EXPECT_EQ(done, 6);
}

// --- callbacks
// ------------------------------------------------------------------------------------------------------

TEST_P(WaitTest, ACallbackOnAPendingValueIsCalledOnce) {
  Gate gate;
  Engine other(options(), &register_test_kernels);
  const OpenAtEnd open(gate);
  const Op& slow = add_custom(other, "slow", [&](const KernelContext&) { gate.pass(); });
  const Tensor pending = call(other, slow, {});
  std::atomic<int> calls{0};
  for (int i = 0; i < 10; ++i) pending.on_ready([&] { calls.fetch_add(1); });
  EXPECT_EQ(calls, 0);
  gate.open();
  pending.wait();
  EXPECT_TRUE(eventually([&] { return calls == 10; }));
  other.drain();
  EXPECT_EQ(calls, 10);
}

TEST_P(WaitTest, ACallbackOnAReadyValueIsCalledAtOnce) {
  int calls = 0;
  one.on_ready([&] { ++calls; });
  EXPECT_EQ(calls, 1);
}

TEST_P(WaitTest, ACallbackIsCalledForAFailureToo) {
  Engine other(options(), &register_test_kernels);
  const Op& bad = add_throwing(other, "bad", ValueError("no"));
  Gate told;
  const Tensor failed = call(other, bad, {});
  failed.on_ready([&] { told.open(); });
  EXPECT_TRUE(told.pass());
  EXPECT_TRUE(failed.has_failed());
}

TEST_P(WaitTest, RegisteringACallbackStartsTheOperator) {
  Gate told;
  const Tensor sum = add(one, one);
  sum.on_ready([&] { told.open(); });
  EXPECT_TRUE(told.pass());
}

TEST_P(WaitTest, ACallbackRacesWithCompletionAndIsCalledOnce) {
  const Op& step = add_custom(engine, "step");
  constexpr int kRounds = 500;
  std::vector<std::atomic<int>> calls(kRounds);
  for (int i = 0; i < kRounds; ++i) {
    const Tensor value = call(engine, step, {});
    engine.flush();
    value.on_ready([&calls, i] { calls[static_cast<std::size_t>(i)].fetch_add(1); });
  }
  engine.drain();
  EXPECT_TRUE(eventually([&] {
    int all = 0;
    for (auto& count : calls) all += count;
    return all == kRounds;
  }));
  for (auto& count : calls) EXPECT_EQ(count, 1);
}

TEST_P(WaitTest, ACallbackMayIssueAndHandOn) {
  Gate told;
  Tensor result;
  std::function<void(Tensor, int)> next = [&](const Tensor& current, int left) {
    if (left == 0) {
      result = current;
      return told.open();
    }
    const Tensor following = add(current, one);
    following.on_ready([&next, following, left] { next(following, left - 1); });
  };
  const Tensor start = add(one, one);
  start.on_ready([&] { next(start, 50); });
  EXPECT_TRUE(eventually([&] {
    engine.flush();  // nobody else drives a caller-driven engine
    return told.is_open();
  }));
  EXPECT_EQ(item(result), 52);
}

TEST_P(WaitTest, AWaitInACallbackRaises) {
  Gate gate;
  Engine other(options(), &register_test_kernels);
  const OpenAtEnd open(gate);
  const Op& slow = add_custom(other, "slow", [&](const KernelContext&) { gate.pass(); });
  const Op& quick = add_custom(other, "quick");
  const Tensor blocked = call(other, slow, {});
  const Tensor first = other.constant(Scalar(1.0), DType::float64);
  std::atomic<int> raised{0};
  const auto wait_for_blocked = [&] {
    try {
      blocked.wait();
    } catch (const EngineError&) {
      raised.fetch_add(1);
    }
  };
  first.on_ready(wait_for_blocked);
  EXPECT_EQ(raised, 1) << "also when the callback is called at once";
  if (GetParam().threads > 1) {
    const Tensor second = call(other, quick, {});
    second.on_ready(wait_for_blocked);
    second.wait();
    EXPECT_TRUE(eventually([&] { return raised == 2; }));
  }
}

TEST_P(WaitTest, CallbacksMayAskTheEngine) {
  std::atomic<int> done{0};
  for (int i = 0; i < 20; ++i) {
    const Tensor sum = add(one, one);
    sum.on_ready([&] {
      engine.stats();
      engine.memory_stats();
      engine.flush();
      one.is_ready();
      done.fetch_add(1);
    });
  }
  engine.drain();
  EXPECT_TRUE(eventually([&] { return done == 20; }));
}

TEST_P(WaitTest, DrainingInACallbackIsAnErrorNotAHang) {
  Gate told;
  std::atomic<int> raised{0};
  const Tensor sum = add(one, one);
  sum.on_ready([&] {
    const std::function<void()> calls[] = {[&] { engine.drain(); }, [&] { engine.synchronize(); },
                                           [&] { engine.set_num_threads(5); }, [&] { engine.shutdown(); }};
    for (const auto& each : calls) {
      try {
        each();
      } catch (const EngineError&) {
        raised.fetch_add(1);
      }
    }
    told.open();
  });
  EXPECT_TRUE(told.pass());
  EXPECT_EQ(raised, 4);
}

// --- deep chains
// ----------------------------------------------------------------------------------------------------

/// Nothing may recurse along a chain: not running it, not dropping it from either end, not its names.
class DeepChain : public DrivenTest {};

INSTANTIATE_TEST_SUITE_P(Drives, DeepChain,
                         ::testing::Values(Drive{EngineMode::threaded, 2, true},
                                           Drive{EngineMode::caller_driven, 1, true},
                                           Drive{EngineMode::threaded, 2, false},
                                           Drive{EngineMode::synchronous}),
                         drive_name);

constexpr int chain_length() { return kSanitized ? 100'000 : 1'000'000; }

TEST_P(DeepChain, RunsAMillionOperators) {
  Tensor x = filled(engine, 1, 0);
  const Tensor one = engine.constant(Scalar(1.0), DType::float64);
  for (int i = 0; i < chain_length(); ++i) x = add(x, one);
  EXPECT_EQ(item(x), chain_length());
  engine.drain();
  EXPECT_EQ(engine.stats().executed, static_cast<std::uint64_t>(chain_length()));
}

TEST_P(DeepChain, DropsKeptHandlesInAnyOrder) {
  const int length = chain_length() / 10;
  const Tensor one = engine.constant(Scalar(1.0), DType::float64);
  for (bool from_the_end : {true, false}) {
    std::vector<Tensor> all{filled(engine, 1, 0)};
    for (int i = 0; i < length; ++i) all.push_back(add(all.back(), one));
    if (from_the_end) {
      while (!all.empty()) all.pop_back();
    } else {
      for (Tensor& tensor : all) tensor = Tensor();
    }
  }
  engine.drain();
  EXPECT_EQ(engine.stats().executed, 2u * static_cast<std::uint64_t>(length));
  EXPECT_EQ(engine.memory_stats().live_bytes, 0);
}

TEST_P(DeepChain, AFailureAtItsRootReachesItsEnd) {
  if (GetParam().mode == EngineMode::synchronous) GTEST_SKIP() << "the failure raises in the issuing call";
  Engine other(options(), &register_test_kernels);
  const Op& bad = add_throwing(other, "bad", ValueError("no"));
  Tensor x = call(other, bad, {});
  const Tensor one = other.constant(Scalar(1.0), DType::float64);
  for (int i = 0; i < chain_length() / 10; ++i) {
    if (i % 2 == 0)
      x = add(x, one);
    else
      add_to(x, one);
  }
  EXPECT_THROW(x.wait(), ValueError);
}

}  // namespace
}  // namespace thalweg::testing
