// failure_log.cpp: how failures that nobody has read are raised.
#include "runtime/failure_log.h"

#include <string>

#include <thalweg/engine.h>
#include <thalweg/errors.h>

namespace thalweg {

void FailureLog::raise_before(std::uint64_t before) {
  std::uint64_t not_kept = 0;
  std::vector<Failure*> failures = take_before(before, not_kept);
  if (failures.empty()) return;
  struct Owner {
    ~Owner() {
      for (Failure* failure : failures) failure->unref();
    }
    std::vector<Failure*>& failures;
  } owner{failures};
  std::vector<std::string> others;
  for (std::size_t i = 1; i < failures.size(); ++i) others.push_back(failure_line(*failures[i]));
  try {
    failures.front()->raise();
  } catch (const Error& error) {
    for (Failure* failure : failures) failure->reported.store(true, std::memory_order_relaxed);
    const std::uint64_t count = others.size() + not_kept;
    if (count == 0) throw;
    const char* const plural = count > 1 ? "s" : "";
    error.rethrow_with("", "\nand " + std::to_string(count) + " more unread failure" + plural + ":" +
                               distinct_lines(others));
  } catch (...) {
    put_back({failures.begin() + 1, failures.end()}, not_kept);
    throw;
  }
}

void FailureLog::put_back(const std::vector<Failure*>& failures, std::uint64_t not_kept) {
  const std::lock_guard guard(lock_);
  for (Failure* failure : failures) failure->ref();
  failures_.insert(failures_.begin(), failures.begin(), failures.end());
  dropped_ += not_kept;
}

}  // namespace thalweg
