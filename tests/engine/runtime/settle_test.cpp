// settle_test.cpp: waiting until nothing is in flight (drain, set_num_threads) while others go on.
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <mutex>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "engine/support/engine_test.h"

namespace thalweg::testing {
namespace {

using std::chrono::milliseconds;

class SettleTest : public DrivenTest {
 protected:
  /// The ways to wait until nothing is in flight.
  static std::vector<std::function<void(Engine&)>> ways() {
    return {[](Engine& engine) { engine.drain(); },
            [](Engine& engine) { engine.set_num_threads(engine.num_threads() == 3 ? 2 : 3); }};
  }
};

INSTANTIATE_TEST_SUITE_P(Drives, SettleTest, ::testing::ValuesIn(asynchronous_drives()), drive_name);

/// A kernel that pulls from a queue which another thread fills with the engine's help.
TEST_P(SettleTest, AKernelMayNeedWhatAnotherThreadIssuesMeanwhile) {
  std::atomic<int> started{0};
  std::vector<std::promise<double>> items(2);
  const Op& pull = add_custom(engine, "pull", [&](const KernelContext&) {
    EXPECT_EQ(items[static_cast<std::size_t>(started.fetch_add(1))].get_future().get(), 60);
  });
  const Op& leaf = add_custom(engine, "leaf");
  int round = 0;
  for (const auto& settle : ways()) {
    const Tensor pulled = call(engine, pull, {});
    engine.flush();
    ASSERT_TRUE(eventually([&] { return started.load() == round + 1; }));
    std::thread producer([&, round] {
      std::this_thread::sleep_for(milliseconds(20));
      double issued = 0;
      for (int i = 0; i < 60; ++i, ++issued) call(engine, leaf, {});
      items[static_cast<std::size_t>(round)].set_value(issued);
    });
    settle(engine);
    EXPECT_TRUE(pulled.is_ready());
    producer.join();
    ++round;
  }
}

/// The host asks for an end once while the first wait goes on.
TEST_P(SettleTest, AnInterruptEndsTheWaitAndNothingElse) {
  static std::atomic<bool> asked;
  for (const auto& settle : ways()) {
    Gate gate;
    EngineOptions options = GetParam().options();
    options.hooks.interrupted = [] { return asked.exchange(false); };
    Engine interruptible(options, &register_test_kernels);
    const OpenAtEnd open(gate);
    const Op& gated = add_custom(interruptible, "gated", [&](const KernelContext&) { gate.pass(); });
    const int threads = interruptible.num_threads();
    const Tensor held = call(interruptible, gated, {});
    interruptible.flush();
    ASSERT_TRUE(gate.await_arrivals(1));
    asked = true;
    EXPECT_THROW(settle(interruptible), Interrupted);
    EXPECT_EQ(interruptible.num_threads(), threads);
    asked = true;
    EXPECT_THROW(interruptible.shutdown(), Interrupted);
    EXPECT_FALSE(interruptible.is_shut_down());
    gate.open();
    held.wait();
    settle(interruptible);
    EXPECT_EQ(values<double>(add(ramp(interruptible, 3), ramp(interruptible, 3)))[2], 4);
  }
}

/// A worker holds a lock while it issues, and a completion callback takes it. Held back, the worker would
/// keep the lock: some of its operators pass.
TEST_P(SettleTest, ACallbackMayTakeALockUnderWhichOthersIssue) {
  constexpr int kRounds = 60;
  const Tensor x = ramp(engine, 1000);
  std::mutex lock;
  std::atomic<int> called{0};
  std::thread worker([&] {
    for (int i = 0; i < kRounds; ++i) {
      Tensor sum;
      {
        const std::lock_guard guard(lock);
        sum = add(x, x);
        std::this_thread::sleep_for(std::chrono::microseconds(100));
        sum = add(sum, x);
      }
      sum.on_ready([&] {
        const std::lock_guard guard(lock);
        ++called;
      });
      engine.flush();
    }
  });
  for (const auto& settle : ways()) settle(engine);
  worker.join();
  engine.drain();
  EXPECT_TRUE(eventually([&] { return called.load() == kRounds; }));
}

/// While two threads wait until nothing is in flight, signal handlers on top of them issue operators.
TEST_P(SettleTest, AHandlerMayIssueWhileItsThreadWaits) {
  static std::atomic<Engine*> handled;
  static std::atomic<int> results;
  Gate gate;
  results = 0;
  EngineOptions options = GetParam().options();
  options.hooks.interrupted = [] {
    Engine* const engine = handled.load();
    if (engine != nullptr && results.fetch_add(1) < 4) add(ramp(*engine, 2), ramp(*engine, 2));
    return false;
  };
  Engine handling(options, &register_test_kernels);
  const OpenAtEnd open(gate);
  const Op& gated = add_custom(handling, "gated", [&](const KernelContext&) { gate.pass(); });
  const Tensor held = call(handling, gated, {});
  handling.flush();
  ASSERT_TRUE(gate.await_arrivals(1));
  handled = &handling;
  std::thread other([&] { handling.drain(); });
  std::thread opener([&] {
    eventually([&] { return results.load() >= 4; });
    gate.open();
  });
  handling.set_num_threads(3);
  handled = nullptr;
  other.join();
  opener.join();
  EXPECT_GE(results, 4);
  EXPECT_TRUE(held.is_ready());
}

TEST_P(SettleTest, AbandonedOperatorsFailInsteadOfRunning) {
  Gate gate;
  const OpenAtEnd open(gate);
  std::atomic<int> ran{0};
  const Op& gated = add_custom(engine, "gated", [&](const KernelContext&) { gate.pass(); });
  const Op& counted = add_custom(engine, "counted", [&](const KernelContext&) { ++ran; });
  const Tensor held = call(engine, gated, {});
  const Tensor later = call(engine, counted, {held});
  engine.flush();
  ASSERT_TRUE(gate.await_arrivals(1));
  engine.abandon();
  gate.open();
  EXPECT_TRUE(engine.shutdown().empty());
  EXPECT_EQ(ran, 0);
  EXPECT_THROW(later.wait(), EngineError);
  EXPECT_FALSE(held.has_failed());
}

}  // namespace
}  // namespace thalweg::testing
