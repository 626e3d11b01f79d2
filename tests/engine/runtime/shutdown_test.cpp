// shutdown_test.cpp: the end of an engine and of a process that uses one.
#include <atomic>
#include <cstdlib>
#include <functional>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/support/engine_test.h"

namespace thalweg::testing {
namespace {

class ShutdownTest : public DrivenTest {};

INSTANTIATE_TEST_SUITE_P(Drives, ShutdownTest, ::testing::ValuesIn(all_drives()), drive_name);

TEST_P(ShutdownTest, CarriesOutWhatWasIssued) {
  std::atomic<int> runs{0};
  const Op& step = add_custom(engine, "step", [&](const KernelContext&) { runs.fetch_add(1); });
  Tensor x = filled(engine, 3, 0);
  for (int i = 0; i < 100; ++i) x = call(engine, step, {x});
  EXPECT_TRUE(engine.shutdown().empty());
  EXPECT_TRUE(engine.is_shut_down());
  EXPECT_EQ(runs, 100);
  EXPECT_EQ(values<double>(x)[2], 100);
}

TEST_P(ShutdownTest, IsIdempotent) {
  add(filled(engine, 3, 0), filled(engine, 3, 0));
  engine.shutdown();
  EXPECT_TRUE(engine.shutdown().empty());
  EXPECT_NO_THROW(engine.drain());
  EXPECT_NO_THROW(engine.synchronize());
  EXPECT_NO_THROW(engine.flush());
  EXPECT_NO_THROW(engine.set_num_threads(2));
  EXPECT_NO_THROW(engine.set_name("late"));
}

TEST_P(ShutdownTest, ReleasesHandlesDroppedWhileUnfinished) {
  const Op& step = add_custom(engine, "step");
  for (int i = 0; i < 50; ++i) call(engine, step, {ramp(engine, 1000)});
  engine.shutdown();
  EXPECT_EQ(engine.memory_stats().live_bytes, 0);
}

TEST_P(ShutdownTest, MayRaceWithIssuingThreads) {
  const Op& step = add_custom(engine, "step");
  std::atomic<int> issued{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      try {
        for (;;) {
          const Tensor x = call(engine, step, {});
          issued.fetch_add(1);
          if (issued.load() % 8 == 0) {
            EXPECT_EQ(item(x), 1);
          }
        }
      } catch (const EngineError&) {
        // the engine was shut down
      }
    });
  }
  EXPECT_TRUE(eventually([&] { return issued > 100; }));
  engine.shutdown();
  for (std::thread& thread : threads) thread.join();
  engine.drain();
  EXPECT_EQ(engine.stats().in_flight, 0u);
  EXPECT_EQ(engine.stats().executed, static_cast<std::uint64_t>(issued.load()));
}

// --- the process ends
// -----------------------------------------------------------------------------------------------

/// What a fresh process that runs `body` and then exits the usual way returns.
int exit_code_of(const std::function<void()>& body) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    body();
    std::exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

class ExitTest : public ::testing::TestWithParam<Drive> {};

INSTANTIATE_TEST_SUITE_P(Drives, ExitTest,
                         ::testing::Values(Drive{EngineMode::threaded, 2, true},
                                           Drive{EngineMode::threaded, 1, false},
                                           Drive{EngineMode::caller_driven, 2, true},
                                           Drive{EngineMode::synchronous}),
                         drive_name);

#if defined(__SANITIZE_THREAD__)
#define SKIP_UNDER_TSAN() GTEST_SKIP() << "ThreadSanitizer does not follow a fork that starts threads"
#else
#define SKIP_UNDER_TSAN() static_cast<void>(0)
#endif

TEST_P(ExitTest, WithWorkInFlightAndTheEngineOnTheStackOfMain) {
  SKIP_UNDER_TSAN();
  const Drive drive = GetParam();
  EXPECT_EQ(exit_code_of([drive] {
              alarm(60);
              Engine engine(drive.options(), &register_test_kernels);
              const Op& step = add_custom(engine, "step");
              Tensor x = filled(engine, 100, 0);
              for (int i = 0; i < 1000; ++i) x = call(engine, step, {x});
            }),
            0);
}

TEST_P(ExitTest, WithWorkInFlightAndALeakedEngine) {
  SKIP_UNDER_TSAN();
  const Drive drive = GetParam();
  EXPECT_EQ(exit_code_of([drive] {
              alarm(60);
              static auto* engine = new Engine(drive.options(), &register_test_kernels);
              static auto* kept = new Tensor;
              const Op& step = add_custom(*engine, "step");
              *kept = filled(*engine, 100, 0);
              for (int i = 0; i < 1000; ++i) *kept = call(*engine, step, {*kept});
              engine->flush();
            }),
            0);
}

TEST_P(ExitTest, WithAStaticEngineAndStaticTensors) {
  SKIP_UNDER_TSAN();
  const Drive drive = GetParam();
  EXPECT_EQ(exit_code_of([drive] {
              alarm(60);
              static Engine engine(drive.options(), &register_test_kernels);
              static std::vector<Tensor> kept;
              const Op& step = add_custom(engine, "step");
              Tensor x = filled(engine, 100, 0);
              for (int i = 0; i < 1000; ++i) kept.push_back(x = call(engine, step, {x}));
            }),
            0);
}

}  // namespace
}  // namespace thalweg::testing
