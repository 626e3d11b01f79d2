// gate.h: what concurrency tests wait on instead of the clock: a gate that kernels stop at, and a watch on
// hangs.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

namespace thalweg::testing {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

/// Longer than anything a test waits for on a loaded machine.
inline constexpr std::chrono::seconds kPatience{kSanitized ? 240 : 60};

/// Threads stop at a closed gate; a test sees how many have come. Any thread.
class Gate {
 public:
  void open() {
    const std::lock_guard guard(lock_);
    open_ = true;
    changed_.notify_all();
  }
  void close() {
    const std::lock_guard guard(lock_);
    open_ = false;
  }
  /// Lets `count` threads through a closed gate.
  void admit(int count) {
    const std::lock_guard guard(lock_);
    tickets_ += count;
    changed_.notify_all();
  }
  /// False if nobody opened the gate in time.
  bool pass() {
    std::unique_lock guard(lock_);
    ++arrived_;
    changed_.notify_all();
    const bool through = changed_.wait_for(guard, kPatience, [this] { return open_ || tickets_ > 0; });
    if (through && !open_) --tickets_;
    return through;
  }
  /// False if fewer than `count` threads came in time.
  bool await_arrivals(int count) {
    std::unique_lock guard(lock_);
    return changed_.wait_for(guard, kPatience, [&] { return arrived_ >= count; });
  }
  bool is_open() {
    const std::lock_guard guard(lock_);
    return open_;
  }
  int arrived() {
    const std::lock_guard guard(lock_);
    return arrived_;
  }

 private:
  std::mutex lock_;
  std::condition_variable changed_;
  bool open_ = false;
  int arrived_ = 0;
  int tickets_ = 0;
};

/// Opens a gate at the end of a scope, so that a failed assertion does not leave kernels at it.
class OpenAtEnd {
 public:
  explicit OpenAtEnd(Gate& gate) : gate_(gate) {}
  ~OpenAtEnd() { gate_.open(); }
  OpenAtEnd(const OpenAtEnd&) = delete;
  OpenAtEnd& operator=(const OpenAtEnd&) = delete;

 private:
  Gate& gate_;
};

/// True as soon as `condition` is, false if it does not become so in time. For states without anything to
/// wait on.
inline bool eventually(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  return true;
}

/// Ends the process with the test's name if the scope is not left in time: a hang must fail, not block a run.
class Watchdog {
 public:
  explicit Watchdog(std::string name, std::chrono::seconds limit = 2 * kPatience)
      : thread_([this, name = std::move(name), limit] {
          std::unique_lock guard(lock_);
          if (left_.wait_for(guard, limit, [this] { return done_; })) return;
          std::fprintf(stderr, "%s: hangs (no end after %lld s)\n", name.c_str(),
                       static_cast<long long>(limit.count()));
          std::abort();
        }) {}
  ~Watchdog() {
    {
      const std::lock_guard guard(lock_);
      done_ = true;
    }
    left_.notify_all();
    thread_.join();
  }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  std::mutex lock_;
  std::condition_variable left_;
  bool done_ = false;
  std::thread thread_;
};

}  // namespace thalweg::testing
