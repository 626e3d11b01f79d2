// kernel_wait_test.cpp: waiting from kernels: in their bodies, their chunks and oneTBB loops of their own.
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/partitioner.h>

#include "engine/support/engine_test.h"

namespace thalweg::testing {
namespace {

class KernelWaitTest : public DrivenTest {
 protected:
  Tensor one = engine.constant(Scalar(1.0), DType::float64);
};

INSTANTIATE_TEST_SUITE_P(Drives, KernelWaitTest, ::testing::ValuesIn(asynchronous_drives()), drive_name);

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

TEST_P(KernelWaitTest, AKernelMayWaitForAValueItIssued) {
  const Op& nest = add_nesting(engine, "nest", -1);
  for (double depth : {0.0, 1.0, 5.0})
    EXPECT_EQ(item(call(engine, nest, {filled(engine, 1, depth)})), depth + 1);
}

/// The kernel's estimate is short, so a waiting caller may run it on its own thread, outside any oneTBB task.
TEST_P(KernelWaitTest, AShortKernelOnAHelpersThreadMayWaitForAValueItIssued) {
  const Op& nest = add_nesting(engine, "nest", 0.5F);
  for (int round = 0; round < 50; ++round) EXPECT_EQ(item(call(engine, nest, {filled(engine, 1, 3)})), 4);
}

TEST_P(KernelWaitTest, ManyKernelsMayWaitAtOnce) {
  const Op& nest = add_nesting(engine, "nest", -1);
  std::vector<Tensor> results;
  for (int i = 0; i < 30; ++i) results.push_back(call(engine, nest, {filled(engine, 1, i % 4)}));
  for (int i = 0; i < 30; ++i) EXPECT_EQ(item(results[static_cast<std::size_t>(i)]), i % 4 + 1);
}

TEST_P(KernelWaitTest, AKernelMayWaitForAValueIssuedBefore) {
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
TEST_P(KernelWaitTest, ADeferredKernelMayWaitForTheConsumerOfTheOneBeforeIt) {
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

TEST_P(KernelWaitTest, KernelsThatFailWhileTheyWaitHandTheErrorOn) {
  Engine other(options(), &register_test_kernels);
  const Op& bad = add_throwing(other, "bad", IndexError("inner"));
  const Op& outer = add_custom(other, "outer", [&](const KernelContext&) { call(other, bad, {}).wait(); });
  EXPECT_THROW(call(other, outer, {}).wait(), IndexError);
}

/// A custom Op whose kernel adds up what `leaf` gives in each of its chunks.
const Op& add_sum_of(std::int64_t chunks, Engine& engine, const Op& leaf) {
  return engine.register_operator(custom_op("outer"), [&engine, &leaf, chunks](const KernelContext& context) {
    std::atomic<int> sum{0};
    context.parallel_for(
        chunks, [&](std::int64_t) { sum.fetch_add(static_cast<int>(item(call(engine, leaf, {})))); });
    context.output().as<double>()[0] = sum.load();
  });
}

TEST_P(KernelWaitTest, AParallelKernelMayWaitInItsChunks) {
  Engine other(options(), &register_test_kernels);
  const Op& leaf = add_custom(other, "leaf");
  const Op& outer = add_sum_of(8, other, leaf);
  for (int round = 0; round < 10; ++round) EXPECT_EQ(item(call(other, outer, {})), 8);
}

TEST_P(KernelWaitTest, SeveralParallelKernelsMayWaitInTheirChunks) {
  Engine other(options(), &register_test_kernels);
  const Op& leaf = add_custom(other, "leaf");
  const Op& outer = add_sum_of(8, other, leaf);
  for (int round = 0; round < 20; ++round) {
    std::vector<Tensor> results;
    for (int i = 0; i < 6; ++i) results.push_back(call(other, outer, {}));
    for (const Tensor& result : results) ASSERT_EQ(item(result), 8);
  }
}

TEST_P(KernelWaitTest, AParallelKernelMayWaitInLoopsInsideItsLoop) {
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
TEST_P(KernelWaitTest, AWaitInAKernelsOwnTbbLoopIsAnErrorNotAHang) {
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
TEST_P(KernelWaitTest, KernelsMayWaitForKernelsThatRunTbbLoops) {
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

TEST_P(KernelWaitTest, ShortKernelsOfTwoDevicesMayWaitForEachOther) {
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

TEST_P(KernelWaitTest, KernelsOfTwoEnginesMayWaitForEachOther) {
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

TEST_P(KernelWaitTest, AWaitInAShortKernelsOwnTbbLoopIsAnErrorToo) {
  Engine other(options(), &register_test_kernels);
  const Op& leaf = add_custom(other, "leaf");
  const Op& waits = other.register_operator(short_op("waits"), [&](const KernelContext&) {
    tbb::parallel_for(0, 8, [&](int) { call(other, leaf, {}).wait(); });
  });
  for (int round = 0; round < 20; ++round) EXPECT_THROW(call(other, waits, {}).wait(), EngineError);
}

/// What a kernel launches while it waits is not its own: its loops must not begin it on top of the kernel.
TEST_P(KernelWaitTest, AKernelsTbbLoopLeavesAloneWhatItsWaitLaunched) {
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

TEST_P(KernelWaitTest, AKernelMayUseAndCloseAnEngineOfItsOwn) {
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

TEST_P(KernelWaitTest, ChunksMayWaitForFailedValues) {
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

TEST_P(KernelWaitTest, WaitingForEverythingInsideAKernelIsAnErrorNotAHang) {
  Engine other(options(), &register_test_kernels);
  const Op& sync = add_custom(other, "sync", [&](const KernelContext&) { other.synchronize(); });
  const Op& threads = add_custom(other, "threads", [&](const KernelContext&) { other.set_num_threads(3); });
  const Op& drain = add_custom(other, "drain", [&](const KernelContext&) { other.drain(); });
  const Op& shutdown = add_custom(other, "shutdown", [&](const KernelContext&) { other.shutdown(); });
  for (const Op* op : {&sync, &threads, &drain, &shutdown}) {
    EXPECT_THROW(call(other, *op, {}).wait(), EngineError) << op->name;
  }
}

/// oneTBB moves a parallel kernel that waits in its chunks from thread to thread: none of them may take
/// itself for one that runs a kernel afterwards.
TEST_P(KernelWaitTest, AParallelKernelThatWaitsLeavesNoMarkOnAThread) {
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

}  // namespace
}  // namespace thalweg::testing
