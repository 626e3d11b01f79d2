// stress_test.cpp: threads issue, wait, dump, fail and drop tensors of one engine for a while; every value is
// checked.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <random>
#include <sstream>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "engine/support/engine_test.h"

namespace thalweg::testing {
namespace {

/// THALWEG_STRESS_SECONDS over all drives together; 3 by default.
double stress_seconds() {
  const char* text = std::getenv("THALWEG_STRESS_SECONDS");
  const double seconds = text != nullptr ? std::atof(text) : 0;
  return seconds > 0 ? seconds : 3;
}

std::vector<Drive> stress_drives() {
  return {{EngineMode::threaded, 2, true, 2},
          {EngineMode::threaded, 1, false, 2},
          {EngineMode::threaded, 8, true, 1},
          {EngineMode::caller_driven, 2, true, 2},
          {EngineMode::caller_driven, 3, false, 1}};
}

/// A value and what it must be; the two travel together.
struct Known {
  Tensor tensor;
  double expected = 0;
};

/// A kernel that waits gives its thread to others by oneTBB's coroutines. AddressSanitizer does not follow
/// them (google/sanitizers issue 189): once a kernel throws on such a stack it reports what is not there.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kFollowsCoroutines = false;
#else
constexpr bool kFollowsCoroutines = true;
#endif

class StressTest : public ::testing::TestWithParam<Drive> {
 protected:
  static constexpr int kIssuers = 8;
  static constexpr int kShared = 32;
  static constexpr std::int64_t kSize = 20;  // above what lives in a buffer itself

  static EngineOptions options() {
    EngineOptions options = GetParam().options();
    options.max_operators_in_flight = 500;
    return options;
  }

  StressTest() {
    add_custom(engine, "step");
    add_throwing(engine, "bad", ValueError("asked to fail"));
    engine.register_operator(custom_op("nest"), [this](const KernelContext& context) {
      const Tensor inner =
          call(engine, engine.op("step"), {filled(engine, kSize, context.input(0).as<double>()[0])});
      const double value =
          kFollowsCoroutines ? values<double>(inner)[kSize - 1] : context.input(0).as<double>()[0] + 1;
      for (std::int64_t i = 0; i < kSize; ++i) context.output().as<double>()[i] = value;
    });
    engine.register_operator(custom_op("loop"), [](const KernelContext& context) {
      context.parallel_for(kSize, [&](std::int64_t i) {
        context.output().as<double>()[i] = context.input(0).as<double>()[i] + 1;
      });
    });
    for (Known& known : shared) known = {filled(engine, kSize, 0), 0};
  }

  void check(const Known& known) {
    for (double value : values<double>(known.tensor)) {
      if (value != known.expected) wrong.fetch_add(1);
    }
  }
  Known take(std::mt19937& random) {
    const std::lock_guard guard(lock);
    return shared[random() % kShared];
  }
  void put(std::mt19937& random, Known known) {
    Known replaced;
    {
      const std::lock_guard guard(lock);
      replaced = std::exchange(shared[random() % kShared], std::move(known));
    }
  }
  Tensor on(const Tensor& tensor, Device device) {
    if (tensor.device() == device) return tensor;
    issued.fetch_add(1);
    return to_device(tensor, device);
  }

  /// One random thing that a program may do.
  void act(std::mt19937& random) {
    const Device device = cpu(static_cast<int>(random() % static_cast<unsigned>(GetParam().devices)));
    Known a = take(random);
    Known b = take(random);
    a.tensor = on(a.tensor, device);
    b.tensor = on(b.tensor, device);
    switch (random() % 16) {
      case 0:
      case 1:
      case 2:
        issued.fetch_add(2);
        return put(random, {multiply(add(a.tensor, b.tensor), filled(engine, 1, 0.5, device)),
                            (a.expected + b.expected) / 2});
      case 3:
      case 4:
        // In the order of the kernel's additions, and halved so that values stay small.
        issued.fetch_add(2);
        return put(random, {multiply(call(engine, engine.op("step"), {a.tensor, b.tensor}),
                                     filled(engine, 1, 0.5, device)),
                            (1 + a.expected + b.expected) / 2});
      case 5:
        issued.fetch_add(1);
        add_to(a.tensor, filled(engine, 1, 1, device));
        return put(random, {a.tensor, a.expected + 1});
      case 6: {
        issued.fetch_add(2);
        const Tensor view = engine.apply(engine.op("flip"), {&a.tensor}, {AttrValue{}});
        return put(random, {add(view, b.tensor), a.expected + b.expected});
      }
      case 7:
        issued.fetch_add(1);
        return put(random, {call(engine, engine.op("loop"), {a.tensor}), a.expected + 1});
      case 8: {
        // The kernel's own allocation is on cpu:0, so it runs there.
        issued.fetch_add(2);
        const Tensor input = on(a.tensor, cpu(0));
        return put(random, {call(engine, engine.op("nest"), {input}), a.expected + 1});
      }
      case 9: return check(a);
      case 10: {
        issued.fetch_add(2);
        const Tensor failed = call(engine, engine.op("bad"), {a.tensor});
        const Tensor dependant = add(failed, b.tensor);
        if (random() % 4 == 0) {
          EXPECT_THROW(dependant.wait(), ValueError);
        }
        return;
      }
      case 11: {
        issued.fetch_add(1);
        Tensor target = a.tensor;
        engine.apply_in_place(engine.op("bad"), target, {});
        if (random() % 4 != 0) return;
        EXPECT_THROW(target.wait(), ValueError);
        return check({target.recover(), a.expected});
      }
      case 12: {
        issued.fetch_add(1);
        called_for.fetch_add(1);
        add(a.tensor, b.tensor).on_ready([this] { called.fetch_add(1); });
        return;
      }
      case 13: return put(random, {filled(engine, kSize, 1), 1});
      case 14: a.tensor.is_ready(); return engine.flush();
      default: return a.tensor.set_name("shared");
    }
  }

  Engine engine{options(), &register_test_kernels};
  std::mutex lock;
  Known shared[kShared];
  std::atomic<std::uint64_t> issued{0};
  std::atomic<std::uint64_t> called{0};
  std::atomic<std::uint64_t> called_for{0};
  std::atomic<int> wrong{0};
};

INSTANTIATE_TEST_SUITE_P(Drives, StressTest, ::testing::ValuesIn(stress_drives()), drive_name);

TEST_P(StressTest, EightIssuersWhileOthersWaitDumpAndSynchronize) {
  const tbb::global_control workers(tbb::global_control::max_allowed_parallelism, 10);
  const double seconds = stress_seconds() / static_cast<double>(stress_drives().size());
  const Watchdog watchdog("StressTest", std::chrono::seconds(static_cast<int>(seconds)) + 2 * kPatience);
  std::atomic<bool> stop{false};
  std::atomic<int> dumps{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < kIssuers; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      while (!stop) act(random);
    });
  }
  threads.emplace_back([&] {
    std::mt19937 random(100);
    while (!stop) check(take(random));
  });
  threads.emplace_back([&] {
    while (!stop) {
      try {
        engine.synchronize();
      } catch (const ValueError&) {
        // a failure nobody had read
      }
    }
  });
  threads.emplace_back([&] {
    while (!stop) {
      std::ostringstream text;
      engine.dump_graph(text);
      EXPECT_FALSE(text.str().empty());
      engine.memory_stats();
      engine.stats();
      dumps.fetch_add(1);
    }
  });
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  stop = true;
  for (std::thread& thread : threads) thread.join();

  for (const Known& known : shared) check(known);
  engine.drain();
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(dumps, 0);
  EXPECT_TRUE(eventually([&] { return called == called_for; }));
  const EngineStats stats = engine.stats();
  EXPECT_EQ(stats.in_flight, 0u);
  EXPECT_EQ(stats.executed, stats.issued);
  EXPECT_EQ(stats.executed, issued.load());
  for (Known& known : shared) known = {};
  engine.drain();
  for (Device device : engine.devices()) EXPECT_EQ(engine.memory_stats(device).live_bytes, 0);
  RecordProperty("operators", static_cast<int>(stats.executed));
  std::printf("%llu operators, %d dumps\n", static_cast<unsigned long long>(stats.executed), dumps.load());
}

/// Threads and run-ahead change while work goes on.
TEST_P(StressTest, OptionsChangeUnderLoad) {
  const tbb::global_control workers(tbb::global_control::max_allowed_parallelism, 10);
  const Watchdog watchdog("StressTest");
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(200 + t);
      while (!stop) act(random);
    });
  }
  for (int round = 0; round < 12; ++round) {
    engine.set_num_threads(1 + round % 4);
    engine.set_run_ahead(4 + 40 * (round % 5), std::int64_t{1} << (12 + round));
    engine.empty_cache();
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  for (const Known& known : shared) check(known);
  engine.drain();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(engine.stats().executed, issued.load());
}

}  // namespace
}  // namespace thalweg::testing
