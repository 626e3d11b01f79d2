// wait_test.cpp: waiting from application threads, from kernels and from the host's own oneTBB tasks.
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/partitioner.h>
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

// --- inside a kernel
// ------------------------------------------------------------------------------------------------

/// A custom Op whose kernel issues `depth` nested operators of its own kind and waits for each.
const Op& add_nesting(Engine& engine, const std::string& name, float ns_per_element) {
  Op op = custom_op(name);
  op.ns_per_element = ns_per_element;
  return engine.register_operator(op, [&engine, name](const KernelContext& context) {
    const double depth = context.input(0).as<double>()[0];
    double inner = 0;
    if (depth > 0) {
      const Tensor next = call(engine, engine.op(name), {filled(engine, 1, depth - 1)});
      inner = item(next);
      const Tensor small = add(next, next);
      inner = item(small) / 2;
    }
    context.output().as<double>()[0] = inner + 1;
  });
}

TEST_P(WaitTest, AKernelMayWaitForAValueItIssued) {
  const Op& nest = add_nesting(engine, "nest", -1);
  for (double depth : {0.0, 1.0, 5.0})
    EXPECT_EQ(item(call(engine, nest, {filled(engine, 1, depth)})), depth + 1);
}

/// The kernel's estimate is short, so a waiting caller may run it on its own thread, outside any oneTBB task.
TEST_P(WaitTest, AShortKernelOnAHelpersThreadMayWaitForAValueItIssued) {
  const Op& nest = add_nesting(engine, "nest", 0.5F);
  for (int round = 0; round < 50; ++round) EXPECT_EQ(item(call(engine, nest, {filled(engine, 1, 3)})), 4);
}

TEST_P(WaitTest, ManyKernelsMayWaitAtOnce) {
  const Op& nest = add_nesting(engine, "nest", -1);
  std::vector<Tensor> results;
  for (int i = 0; i < 30; ++i) results.push_back(call(engine, nest, {filled(engine, 1, i % 4)}));
  for (int i = 0; i < 30; ++i) EXPECT_EQ(item(results[static_cast<std::size_t>(i)]), i % 4 + 1);
}

TEST_P(WaitTest, AKernelMayWaitForAValueIssuedBefore) {
  Engine other(options(), &register_test_kernels);
  Tensor earlier;
  const Op& step = add_custom(other, "step");
  const Op& reader = add_custom(other, "reader", [&](const KernelContext&) { earlier.wait(); });
  earlier = filled(other, 1, 0);
  for (int i = 0; i < 20; ++i) earlier = call(other, step, {earlier});
  const Tensor result = call(other, reader, {});
  EXPECT_EQ(item(result), 1);
  earlier = Tensor();
}

/// A kernel that had to wait for a permit runs on the stack of the operator that ran before it, which may
/// have kept its consumer for itself: the very value the kernel waits for.
TEST_P(WaitTest, ADeferredKernelMayWaitForTheConsumerOfTheOneBeforeIt) {
  Engine other(options(), &register_test_kernels);
  Op quick = custom_op("quick");
  quick.ns_per_element = 0.5F;  // the waiting caller runs it and holds the permit meanwhile
  const Op& first = other.register_operator(quick, [](const KernelContext& context) {
    std::this_thread::sleep_for(std::chrono::microseconds(300));
    sum_kernel(context);
  });
  Tensor last;
  const Op& step = add_custom(other, "step");
  const Op& reader = add_custom(other, "reader", [&](const KernelContext&) { last.wait(); });
  for (int round = 0; round < 100; ++round) {
    const Tensor root = call(other, first, {filled(other, 1, 0)});
    last = call(other, step, {call(other, step, {root})});
    const Tensor result = call(other, reader, {});
    root.wait();
    ASSERT_EQ(item(result), 1);
    ASSERT_EQ(item(last), 3);
    other.drain();
  }
  last = Tensor();
}

TEST_P(WaitTest, KernelsThatFailWhileTheyWaitHandTheErrorOn) {
  Engine other(options(), &register_test_kernels);
  const Op& bad = add_throwing(other, "bad", IndexError("inner"));
  const Op& outer = add_custom(other, "outer", [&](const KernelContext&) { call(other, bad, {}).wait(); });
  EXPECT_THROW(call(other, outer, {}).wait(), IndexError);
}

TEST_P(WaitTest, AParallelKernelMayWaitInItsChunks) {
  Engine other(options(), &register_test_kernels);
  const Op& leaf = add_custom(other, "leaf");
  const Op& outer = other.register_operator(custom_op("outer"), [&](const KernelContext& context) {
    std::atomic<int> sum{0};
    context.parallel_for(8,
                         [&](std::int64_t) { sum.fetch_add(static_cast<int>(item(call(other, leaf, {})))); });
    context.output().as<double>()[0] = sum.load();
  });
  for (int round = 0; round < 10; ++round) EXPECT_EQ(item(call(other, outer, {})), 8);
}

TEST_P(WaitTest, SeveralParallelKernelsMayWaitInTheirChunks) {
  Engine other(options(), &register_test_kernels);
  const Op& leaf = add_custom(other, "leaf");
  const Op& outer = other.register_operator(custom_op("outer"), [&](const KernelContext& context) {
    std::atomic<int> sum{0};
    context.parallel_for(8,
                         [&](std::int64_t) { sum.fetch_add(static_cast<int>(item(call(other, leaf, {})))); });
    context.output().as<double>()[0] = sum.load();
  });
  for (int round = 0; round < 20; ++round) {
    std::vector<Tensor> results;
    for (int i = 0; i < 6; ++i) results.push_back(call(other, outer, {}));
    for (const Tensor& result : results) ASSERT_EQ(item(result), 8);
  }
}

TEST_P(WaitTest, AParallelKernelMayWaitInLoopsInsideItsLoop) {
  Engine other(options(), &register_test_kernels);
  const Op& leaf = add_custom(other, "leaf");
  const Op& outer = other.register_operator(custom_op("outer"), [&](const KernelContext& context) {
    std::atomic<int> sum{0};
    context.parallel_for(4, [&](std::int64_t) {
      context.parallel_for(
          4, [&](std::int64_t) { sum.fetch_add(static_cast<int>(item(call(other, leaf, {})))); });
    });
    context.output().as<double>()[0] = sum.load();
  });
  for (int round = 0; round < 20; ++round) {
    const Tensor first = call(other, outer, {});
    ASSERT_EQ(item(call(other, outer, {})), 16);
    ASSERT_EQ(item(first), 16);
  }
}

/// Such a wait would need the thread of the kernel that waits for the loop.
TEST_P(WaitTest, AWaitInAKernelsOwnTbbLoopIsAnErrorNotAHang) {
  Engine other(options(), &register_test_kernels);
  const Op& leaf = add_custom(other, "leaf");
  Tensor ready;
  const Op& reads = other.register_operator(custom_op("reads"), [&](const KernelContext& context) {
    std::atomic<int> sum{0};
    tbb::parallel_for(0, 8, [&](int) { sum.fetch_add(static_cast<int>(item(ready))); });
    context.output().as<double>()[0] = sum.load();
  });
  const Op& waits = other.register_operator(custom_op("waits"), [&](const KernelContext&) {
    tbb::parallel_for(0, 8, [&](int) { call(other, leaf, {}).wait(); });
  });
  ready = filled(other, 1, 1);
  ready.wait();
  for (int round = 0; round < 20; ++round) {
    std::vector<Tensor> results;
    for (int i = 0; i < 6; ++i) results.push_back(call(other, waits, {}));
    EXPECT_EQ(item(call(other, reads, {})), 8);
    for (const Tensor& result : results) EXPECT_THROW(result.wait(), EngineError);
    EXPECT_NO_THROW(tbb::parallel_for(0, 16, [&](int) { other.synchronize(); }));
    other.drain();
  }
  ready = Tensor();
}

/// A kernel that waits for its own tasks must not begin one on top of itself that waits for it.
TEST_P(WaitTest, KernelsMayWaitForKernelsThatRunTbbLoops) {
  Engine other(options(), &register_test_kernels);
  const Op& outer = other.register_operator(custom_op("outer"), [&](const KernelContext& context) {
    std::atomic<int> sum{0};
    tbb::parallel_for(0, 200, [&](int i) { sum.fetch_add(i % 2); });
    context.output().as<double>()[0] = sum.load();
  });
  Tensor last;
  const Op& reader = add_custom(other, "reader", [&](const KernelContext&) { last.wait(); });
  for (int round = 0; round < 40; ++round) {
    last = call(other, outer, {});
    const Tensor read = call(other, reader, {});
    ASSERT_EQ(item(last), 100);
    read.wait();
    other.drain();
  }
  last = Tensor();
}

/// One that a waiting thread would gladly run itself.
Op short_op(std::string name) {
  Op op = custom_op(std::move(name));
  op.ns_per_element = 0.5F;
  return op;
}

TEST_P(WaitTest, ShortKernelsOfTwoDevicesMayWaitForEachOther) {
  EngineOptions two = options();
  two.cpu_devices = 2;
  Engine other(two, &register_test_kernels);
  const Device second{DeviceType::cpu, 1};
  const Op& leaf = add_custom(other, "leaf");
  const Op& middle = other.register_operator(short_op("middle"), [&](const KernelContext& context) {
    call(other, leaf, {}).wait();
    sum_kernel(context);
  });
  const Op& outer = add_custom(other, "outer", [&](const KernelContext&) {
    call(other, middle, {filled(other, 1, 0, second)}).wait();
  });
  for (int round = 0; round < 30; ++round) ASSERT_EQ(item(call(other, outer, {})), 1);
}

TEST_P(WaitTest, KernelsOfTwoEnginesMayWaitForEachOther) {
  Engine a(options(), &register_test_kernels);
  Engine b(options(), &register_test_kernels);
  const Op& leaf = add_custom(a, "leaf");
  const Op& middle = b.register_operator(short_op("middle"), [&](const KernelContext& context) {
    call(a, leaf, {}).wait();
    sum_kernel(context);
  });
  const Op& outer =
      add_custom(a, "outer", [&](const KernelContext&) { call(b, middle, {filled(b, 1, 0)}).wait(); });
  for (int round = 0; round < 20; ++round) {
    std::vector<Tensor> results;
    for (int i = 0; i < 4; ++i) results.push_back(call(a, outer, {}));
    for (const Tensor& result : results) ASSERT_EQ(item(result), 1);
  }
}

TEST_P(WaitTest, AWaitInAShortKernelsOwnTbbLoopIsAnErrorToo) {
  Engine other(options(), &register_test_kernels);
  const Op& leaf = add_custom(other, "leaf");
  const Op& waits = other.register_operator(short_op("waits"), [&](const KernelContext&) {
    tbb::parallel_for(0, 8, [&](int) { call(other, leaf, {}).wait(); });
  });
  for (int round = 0; round < 20; ++round) EXPECT_THROW(call(other, waits, {}).wait(), EngineError);
}

/// What a kernel launches while it waits is not its own: its loops must not begin it on top of the kernel.
TEST_P(WaitTest, AKernelsTbbLoopLeavesAloneWhatItsWaitLaunched) {
  using std::chrono::milliseconds;
  Engine other(options(), &register_test_kernels);
  const Tensor one_of_it = other.constant(Scalar(1.0), DType::float64);
  Tensor last;
  Gate* gate = nullptr;
  const Op& outer = add_custom(other, "outer", [&](const KernelContext&) {
    gate->pass();
    add(one_of_it, one_of_it).wait();
    tbb::parallel_for(
        0, 2, [&](int i) { std::this_thread::sleep_for(milliseconds(i + 1)); }, tbb::static_partitioner());
  });
  const Op& reader = add_custom(other, "reader", [&](const KernelContext&) { last.wait(); });
  for (int round = 0; round < 10; ++round) {
    Gate fresh;
    gate = &fresh;
    last = call(other, outer, {});
    other.flush();
    std::this_thread::sleep_for(milliseconds(1));
    std::vector<Tensor> readers;
    for (int i = 0; i < 3; ++i) readers.push_back(call(other, reader, {}));
    fresh.open();
    std::this_thread::sleep_for(milliseconds(3));
    last.wait();
    for (const Tensor& each : readers) each.wait();
    other.drain();
  }
  last = Tensor();
}

TEST_P(WaitTest, AKernelMayUseAndCloseAnEngineOfItsOwn) {
  Engine other(options(), &register_test_kernels);
  const Op& leaf = add_custom(other, "leaf");
  const Op& closes = add_custom(other, "closes", [&](const KernelContext&) {
    Engine inner(options(), &register_test_kernels);
    EXPECT_EQ(item(add(filled(inner, 1, 2), filled(inner, 1, 3))), 5);
    inner.shutdown();
    call(other, leaf, {}).wait();
  });
  const Op& destroys = add_custom(other, "destroys", [&](const KernelContext&) {
    Engine inner(options(), &register_test_kernels);
    add(filled(inner, 1, 2), filled(inner, 1, 3)).wait();
  });
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(item(call(other, closes, {})), 1);
    EXPECT_EQ(item(call(other, destroys, {})), 1);
  }
}

TEST_P(WaitTest, ChunksMayWaitForFailedValues) {
  Engine other(options(), &register_test_kernels);
  const Op& bad = add_throwing(other, "bad", IndexError("no"));
  const Op& outer = other.register_operator(custom_op("outer"), [&](const KernelContext& context) {
    context.parallel_for(8, [&](std::int64_t chunk) {
      if (chunk % 3 == 1) throw ValueError("chunk " + std::to_string(chunk));
      if (chunk == 5) call(other, bad, {}).wait();
    });
  });
  for (int round = 0; round < 20; ++round) {
    try {
      call(other, outer, {}).wait();
      FAIL() << "it did not throw";
    } catch (const ValueError& error) {
      EXPECT_NE(std::string(error.what()).find("chunk 1"), std::string::npos) << error.what();
    }
  }
}

TEST_P(WaitTest, WaitingForEverythingInsideAKernelIsAnErrorNotAHang) {
  Engine other(options(), &register_test_kernels);
  const Op& sync = add_custom(other, "sync", [&](const KernelContext&) { other.synchronize(); });
  const Op& threads = add_custom(other, "threads", [&](const KernelContext&) { other.set_num_threads(3); });
  const Op& drain = add_custom(other, "drain", [&](const KernelContext&) { other.drain(); });
  const Op& shutdown = add_custom(other, "shutdown", [&](const KernelContext&) { other.shutdown(); });
  for (const Op* op : {&sync, &threads, &drain, &shutdown}) {
    EXPECT_THROW(call(other, *op, {}).wait(), EngineError) << op->name;
  }
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

/// oneTBB moves a parallel kernel that waits in its chunks from thread to thread: none of them may take
/// itself for one that runs a kernel afterwards.
TEST_P(WaitTest, AParallelKernelThatWaitsLeavesNoMarkOnAThread) {
  Engine other(options(), &register_test_kernels);
  const Op& leaf = add_custom(other, "leaf");
  const Op& outer = other.register_operator(custom_op("outer"), [&](const KernelContext& context) {
    context.parallel_for(8, [&](std::int64_t) { call(other, leaf, {}).wait(); });
    context.output().as<double>()[0] = 1;
  });
  for (int round = 0; round < 30; ++round) {
    EXPECT_EQ(item(call(other, outer, {})), 1);
    EXPECT_NO_THROW(tbb::parallel_for(0, 16, [&](int) { other.synchronize(); }));
  }
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
