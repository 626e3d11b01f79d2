// admission.h: who may issue an operator now: the limits of the run-ahead, and those whom others must let
// pass.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

namespace thalweg {

/// Counts what is in flight against the limits. While there are holds, application threads do not issue: for
/// somebody who waits until nothing is in flight, or who has been first in line for too long. Operators of
/// kernels and callbacks always enter. Any thread.
class Admission {
 public:
  Admission(std::int64_t max_operators, std::int64_t max_bytes) noexcept
      : max_operators_(max_operators), max_bytes_(max_bytes) {}

  /// Bytes in the units that are counted; clamped: more than any machine has must not run into the count.
  static std::int64_t units_of(std::int64_t bytes) noexcept {
    return (std::min(bytes, std::int64_t{1} << 44) + kUnit - 1) / kUnit;
  }

  /// Enters if the limits leave room and nobody holds others back. An operator larger than the limit of bytes
  /// enters when nothing is in flight.
  bool try_enter(std::int64_t units) noexcept {
    return holds_.load(std::memory_order_relaxed) == 0 && try_count(units);
  }
  /// The same for a thread that may pass some of the holds: one that holds others back itself, or one of the
  /// few that `ease` lets through.
  bool try_enter_held(std::int64_t units, const void* turn) noexcept;
  void enter(std::int64_t units) noexcept {
    in_flight_.fetch_add(word_of(1, units), std::memory_order_relaxed);
  }
  void leave(std::int64_t operators, std::int64_t units) noexcept {
    in_flight_.fetch_sub(word_of(operators, units), std::memory_order_relaxed);
  }

  std::int64_t operators() const noexcept {
    return static_cast<std::int64_t>(in_flight_.load(std::memory_order_relaxed) >> kCountShift);
  }
  std::int64_t bytes() const noexcept {
    return static_cast<std::int64_t>(in_flight_.load(std::memory_order_relaxed) & kUnitMask) * kUnit;
  }
  std::int64_t max_operators() const noexcept { return max_operators_.load(std::memory_order_relaxed); }
  void set_limits(std::int64_t operators, std::int64_t bytes) noexcept {
    max_operators_.store(operators, std::memory_order_relaxed);
    max_bytes_.store(bytes, std::memory_order_relaxed);
  }

  /// Sends every application thread through `try_enter_held`, where the caller has more to ask.
  void always_ask(bool on) noexcept;

  /// Application threads are held back until `end_hold`.
  void begin_hold() noexcept;
  void end_hold() noexcept;

  /// While one lives, the host's code may run on top of a wait of this thread: a signal handler, which passes
  /// all holds. If it takes long, others do not stand in line behind this thread.
  class HostCode {
   public:
    explicit HostCode(Admission& self) noexcept;
    ~HostCode();
    HostCode(const HostCode&) = delete;
    HostCode& operator=(const HostCode&) = delete;

   private:
    Admission& self_;
    const Admission* const outer_;
    const bool is_first_;
  };

  /// Makes `turn` the first in line, before whom nobody else enters, if nobody is. True if it is the first.
  bool take_turn(const void* turn) noexcept;
  /// True if it was the first.
  bool end_turn(const void* turn) noexcept;

  /// For whoever waits, now and then: what is in flight may need what a thread that is held back does after
  /// its next operator. When nothing has finished for a while, lets some in: a few each time where a user's
  /// code runs, else one, ever more rarely. True if there is reason to wake them.
  bool ease(std::uint64_t finished, bool user_code_runs) noexcept;

  /// In a forked child: whoever held others back does not exist here.
  void forget_holds() noexcept;

 private:
  static constexpr int kCountShift = 40;
  static constexpr std::uint64_t kUnitMask = (std::uint64_t{1} << kCountShift) - 1;
  static constexpr std::int64_t kUnit = 64;

  static std::uint64_t word_of(std::int64_t operators, std::int64_t units) noexcept {
    return (static_cast<std::uint64_t>(operators) << kCountShift) + static_cast<std::uint64_t>(units);
  }

  bool try_count(std::int64_t units) noexcept {
    std::uint64_t word = in_flight_.load(std::memory_order_relaxed);
    do {
      const auto operators = static_cast<std::int64_t>(word >> kCountShift);
      const auto bytes = (static_cast<std::int64_t>(word & kUnitMask) + units) * kUnit;
      if (word != 0 && (operators >= max_operators_.load(std::memory_order_relaxed) ||
                        bytes > max_bytes_.load(std::memory_order_relaxed))) {
        return false;
      }
    } while (!in_flight_.compare_exchange_weak(word, word + word_of(1, units), std::memory_order_relaxed));
    return true;
  }

  static inline constinit thread_local const Admission* exempt_ = nullptr;
  /// Of this thread, if it is the first in line anywhere.
  static inline constinit thread_local const void* turn_ = nullptr;

  /// Whether `turn` must stand in line behind another.
  bool is_behind(const void* turn) const noexcept;

  // Operators (high 24 bits) and bytes in units of 64 (low 40) issued and not finished, in one word.
  alignas(64) std::atomic<std::uint64_t> in_flight_{0};
  std::atomic<std::int64_t> max_operators_;
  std::atomic<std::int64_t> max_bytes_;
  std::atomic<int> holds_{0};       // any reason not to enter at once
  std::atomic<int> full_holds_{0};  // of `begin_hold`
  std::atomic<const void*> first_{nullptr};
  std::atomic<std::int64_t> host_code_since_ns_{0};  // of the first in line; 0 for none
  std::atomic<int> passes_{0};                       // operators that enter in spite of holds

  std::atomic<std::int64_t> next_look_ns_{0};
  std::atomic<std::uint64_t> finished_at_look_{0};
  std::atomic<unsigned> stalls_{0};  // looks without progress since the youngest hold began
};

}  // namespace thalweg
