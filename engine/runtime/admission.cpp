// admission.cpp: holds, turns and how they are eased.
#include "runtime/admission.h"

#include <utility>

namespace thalweg {
namespace {

constexpr std::chrono::nanoseconds kLook = std::chrono::milliseconds(50);
/// Operators that enter after a look without progress while a user's code runs.
constexpr int kPasses = 16;
/// Whoever is first in line may spend so long in the host's code before others pass.
constexpr std::chrono::nanoseconds kHostCode = std::chrono::milliseconds(10);

std::int64_t now_ns() noexcept {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

}  // namespace

bool Admission::try_enter_held(std::int64_t units, const void* turn) noexcept {
  if (exempt_ != this) {
    const bool held = full_holds_.load(std::memory_order_relaxed) > 0 || is_behind(turn);
    if (held && passes_.load(std::memory_order_relaxed) <= 0) return false;
    if (held && passes_.fetch_sub(1, std::memory_order_relaxed) <= 0) return false;
  }
  return try_count(units);
}

bool Admission::is_behind(const void* turn) const noexcept {
  const void* const first = first_.load(std::memory_order_relaxed);
  if (first == nullptr || first == turn) return false;
  const std::int64_t since = host_code_since_ns_.load(std::memory_order_relaxed);
  return since == 0 || now_ns() - since < kHostCode.count();
}

Admission::HostCode::HostCode(Admission& self) noexcept
    : self_(self),
      outer_(std::exchange(exempt_, &self)),
      is_first_(turn_ != nullptr && self.first_.load(std::memory_order_relaxed) == turn_) {
  if (is_first_) self.host_code_since_ns_.store(now_ns(), std::memory_order_relaxed);
}

Admission::HostCode::~HostCode() {
  exempt_ = outer_;
  if (is_first_) self_.host_code_since_ns_.store(0, std::memory_order_relaxed);
}

void Admission::always_ask(bool on) noexcept { holds_.fetch_add(on ? 1 : -1, std::memory_order_relaxed); }

void Admission::begin_hold() noexcept {
  stalls_.store(0, std::memory_order_relaxed);
  passes_.store(0, std::memory_order_relaxed);
  full_holds_.fetch_add(1, std::memory_order_seq_cst);
  holds_.fetch_add(1, std::memory_order_seq_cst);
}

void Admission::end_hold() noexcept {
  full_holds_.fetch_sub(1, std::memory_order_seq_cst);
  holds_.fetch_sub(1, std::memory_order_seq_cst);
}

bool Admission::take_turn(const void* turn) noexcept {
  const void* first = nullptr;
  if (!first_.compare_exchange_strong(first, turn, std::memory_order_seq_cst)) return first == turn;
  turn_ = turn;
  stalls_.store(0, std::memory_order_relaxed);
  passes_.store(0, std::memory_order_relaxed);
  holds_.fetch_add(1, std::memory_order_seq_cst);
  return true;
}

bool Admission::end_turn(const void* turn) noexcept {
  if (first_.load(std::memory_order_relaxed) != turn) return false;
  turn_ = nullptr;
  first_.store(nullptr, std::memory_order_seq_cst);
  holds_.fetch_sub(1, std::memory_order_seq_cst);
  return true;
}

bool Admission::ease(std::uint64_t finished, bool user_code_runs) noexcept {
  if (holds_.load(std::memory_order_relaxed) == 0) return false;
  const std::int64_t now = now_ns();
  std::int64_t next = next_look_ns_.load(std::memory_order_relaxed);
  if (now < next || !next_look_ns_.compare_exchange_strong(next, now + kLook.count())) return false;
  if (finished_at_look_.exchange(finished, std::memory_order_relaxed) != finished) return false;
  const unsigned stalls = stalls_.fetch_add(1, std::memory_order_relaxed) + 1;
  const bool is_rare_enough = (stalls & (stalls - 1)) == 0;
  if (!user_code_runs && !is_rare_enough) return false;
  passes_.store(user_code_runs ? kPasses : 1, std::memory_order_relaxed);
  return true;
}

void Admission::forget_holds() noexcept {
  full_holds_.store(0, std::memory_order_relaxed);
  first_.store(nullptr, std::memory_order_relaxed);
  holds_.store(0, std::memory_order_relaxed);
}

}  // namespace thalweg
