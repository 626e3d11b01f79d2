// engines_test.cpp: several engines in one process, and options that change while others use the engine.
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "engine/support/engine_test.h"

namespace thalweg::testing {
namespace {

class EnginesTest : public DrivenTest {};

INSTANTIATE_TEST_SUITE_P(Drives, EnginesTest, ::testing::ValuesIn(asynchronous_drives()), drive_name);

double chain(Engine& engine, const Op& step, int length) {
  Tensor x = filled(engine, 10, 0);
  for (int i = 0; i < length; ++i) x = call(engine, step, {x});
  return values<double>(x)[9];
}

TEST_P(EnginesTest, WorkSideBySide) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      Engine mine(options(), &register_test_kernels);
      const Op& step = add_custom(mine, "step");
      for (int i = 1; i < 20; ++i) EXPECT_EQ(chain(mine, step, i), i);
      mine.synchronize();
      EXPECT_EQ(mine.stats().executed, 190U);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_P(EnginesTest, AKernelOfOneMayUseAnother) {
  Engine inner(options(), &register_test_kernels);
  Engine outer(options(), &register_test_kernels);
  const Op& step = add_custom(inner, "step");
  const Op& bridge = outer.register_operator(custom_op("bridge"), [&](const KernelContext& context) {
    context.output().as<double>()[0] = chain(inner, step, 5);
  });
  for (int i = 0; i < 10; ++i) EXPECT_EQ(item(call(outer, bridge, {})), 5);
}

TEST_P(EnginesTest, MayBeDestroyedWithWorkInFlight) {
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> runs{0};
    std::vector<Tensor> kept;
    {
      Engine mine(options(), &register_test_kernels);
      const Op& step = add_custom(mine, "step", [&](const KernelContext&) { runs.fetch_add(1); });
      Tensor x = filled(mine, 10, 0);
      for (int i = 0; i < 50; ++i) {
        x = call(mine, step, {x});
        if (i % 10 == 0) kept.push_back(x);
      }
    }
    EXPECT_EQ(runs, 50) << "work in flight is carried out";
    EXPECT_EQ(values<double>(kept.back())[0], 41);
  }
}

TEST_P(EnginesTest, MayBeMadeAndDroppedWithoutUse) {
  for (int round = 0; round < 100; ++round) Engine unused(options(), &register_test_kernels);
}

TEST_P(EnginesTest, ThreadsMayChangeWhileOthersIssueAndWait) {
  const Op& step = add_custom(engine, "step");
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      while (!stop) wrong.fetch_add(chain(engine, step, 20) == 20 ? 0 : 1);
    });
  }
  for (int round = 0; round < 20; ++round) {
    engine.set_num_threads(1 + round % 4);
    EXPECT_EQ(engine.num_threads(), 1 + round % 4);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_P(EnginesTest, ThreadsMayBeChangedByTwoAtOnce) {
  const Op& step = add_custom(engine, "step");
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 10; ++i) {
        engine.set_num_threads(1 + (i + t) % 3);
        EXPECT_EQ(chain(engine, step, 3), 3);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_P(EnginesTest, RunAheadMayChangeWhileOthersIssue) {
  const Op& step = add_custom(engine, "step");
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      while (!stop) EXPECT_EQ(chain(engine, step, 30), 30);
    });
  }
  for (int round = 0; round < 100; ++round) {
    engine.set_run_ahead(1 + round % 10, std::int64_t{1} << (10 + round % 12));
    std::this_thread::yield();
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

/// A thread that changes num_threads or waits for everything must not starve behind threads that never stop
/// issuing.
TEST_P(EnginesTest, ChangesAndSynchronizeEndWhileOthersKeepIssuing) {
  const Op& step = add_custom(engine, "step");
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      while (!stop) call(engine, step, {});
    });
  }
  for (int round = 0; round < 5; ++round) {
    engine.set_num_threads(1 + round % 2);
    engine.synchronize();
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

TEST_P(EnginesTest, SeveralThreadsMayIssueTheFirstOperator) {
  for (int round = 0; round < 20; ++round) {
    Engine fresh(options(), &register_test_kernels);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        const Tensor x = filled(fresh, 3, 1);
        EXPECT_EQ(values<double>(add(x, x))[0], 2);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
}

TEST_P(EnginesTest, NamesAreSentWithoutDisturbing) {
  const Op& step = add_custom(engine, "step");
  engine.set_name("training");
  Tensor x = filled(engine, 3, 0);
  for (int i = 0; i < 100; ++i) {
    x = call(engine, step, {x});
    x.set_name("x" + std::to_string(i));
  }
  EXPECT_EQ(values<double>(x)[0], 100);
}

}  // namespace
}  // namespace thalweg::testing
