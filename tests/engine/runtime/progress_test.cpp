// progress_test.cpp: the counter that threads sleep on.
#include "runtime/progress.h"

#include <chrono>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "engine/support/gate.h"

namespace thalweg::testing {
namespace {

using std::chrono::microseconds;

constexpr microseconds kLong = std::chrono::duration_cast<microseconds>(kPatience);

TEST(Progress, ReturnsAtOnceWhenTheTargetIsReached) {
  const Watchdog watchdog("Progress.ReturnsAtOnceWhenTheTargetIsReached");
  Progress progress;
  progress.add(5);
  EXPECT_EQ(progress.finished(), 5u);
  progress.sleep_until(5, kLong);
  progress.sleep_until(3, kLong);
}

TEST(Progress, ReturnsAfterTheTimeout) {
  Progress progress;
  progress.sleep_until(1, microseconds(1000));
  EXPECT_EQ(progress.finished(), 0u);
}

/// A lost wake-up lasts as long as the timeout and trips the watchdog.
TEST(Progress, NeverLosesAWakeUp) {
  const Watchdog watchdog("Progress.NeverLosesAWakeUp");
  constexpr std::uint64_t kRounds = 20'000;
  Progress ping;
  Progress pong;
  std::thread other([&] {
    for (std::uint64_t round = 1; round <= kRounds; ++round) {
      while (ping.finished() < round) ping.sleep_until(round, kLong);
      pong.add(1);
    }
  });
  for (std::uint64_t round = 1; round <= kRounds; ++round) {
    ping.add(1);
    while (pong.finished() < round) pong.sleep_until(round, kLong);
  }
  other.join();
  EXPECT_EQ(pong.finished(), kRounds);
}

TEST(Progress, WakesSleepersWithDifferentTargets) {
  const Watchdog watchdog("Progress.WakesSleepersWithDifferentTargets");
  constexpr std::uint64_t kSteps = 50'000;
  Progress progress;
  std::vector<std::thread> sleepers;
  for (std::uint64_t stride : {1u, 7u, 100u, 3000u}) {
    sleepers.emplace_back([&progress, stride] {
      for (std::uint64_t target = stride; target <= kSteps; target += stride) {
        while (progress.finished() < target) progress.sleep_until(target, kLong);
      }
    });
  }
  for (std::uint64_t i = 0; i < kSteps; ++i) progress.add(1);
  for (std::thread& sleeper : sleepers) sleeper.join();
}

TEST(Progress, WakeWakesEverybody) {
  const Watchdog watchdog("Progress.WakeWakesEverybody");
  Progress progress;
  std::atomic<int> returned{0};
  std::vector<std::thread> sleepers;
  for (int i = 0; i < 4; ++i) {
    sleepers.emplace_back([&] {
      progress.sleep_until(1'000'000, kLong);
      returned.fetch_add(1);
    });
  }
  // A sleeper may begin only after a wake: wake until all are back.
  EXPECT_TRUE(eventually([&] {
    progress.wake();
    return returned.load() == 4;
  }));
  for (std::thread& sleeper : sleepers) sleeper.join();
}

}  // namespace
}  // namespace thalweg::testing
