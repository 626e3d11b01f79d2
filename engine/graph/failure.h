// failure.h: why an operand has no value: one record, shared by every operand that inherits it.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <string>

#include <thalweg/device.h>
#include <thalweg/engine.h>

namespace thalweg {

using ResolveSite = std::string (*)(SiteId);

/// The user's line that `site` stands for, or empty.
inline std::string site_text(ResolveSite resolve, SiteId site) {
  return site != 0 && resolve != nullptr ? resolve(site) : std::string();
}

/// A kernel's failure. Immutable but for its counts; any thread.
class Failure {
 public:
  Failure(std::exception_ptr error, std::string op_name, Device device, SiteId site,
          std::uint64_t operator_id, ResolveSite resolve_site)
      : exception(std::move(error)),
        op(std::move(op_name)),
        device(device),
        site(site),
        operator_id(operator_id),
        resolve_site_(resolve_site) {}

  /// The user's line, or empty. Needs no engine: a failed value may be read after its engine is gone.
  std::string site_text() const { return thalweg::site_text(resolve_site_, site); }
  /// Throws it for a reader, and counts it as told: thalweg errors with operator, device and line in front,
  /// others as they were thrown.
  [[noreturn]] void raise();

  void ref() noexcept { refs_.fetch_add(1, std::memory_order_relaxed); }
  void unref() noexcept {
    if (refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

  const std::exception_ptr exception;
  const std::string op;
  const Device device;
  const SiteId site;
  const std::uint64_t operator_id;
  /// Set once it was raised to someone; `synchronize` and the report at exit pass over it then.
  std::atomic<bool> reported{false};

 private:
  ~Failure() = default;

  const ResolveSite resolve_site_;
  std::atomic<std::int32_t> refs_{1};
};

/// What the exception says of itself.
std::string failure_text(const std::exception_ptr& exception);

/// "add failed on cpu:0 at file.py:12: ".
std::string failure_prefix(const Failure& failure);

/// What failed, where and why.
inline std::string failure_line(const Failure& failure) {
  return failure_prefix(failure) + failure_text(failure.exception);
}

}  // namespace thalweg
