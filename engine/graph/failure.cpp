// failure.cpp: texts of failures and how they are thrown again.
#include "graph/failure.h"

#include <thalweg/errors.h>

namespace thalweg {

std::string failure_text(const std::exception_ptr& exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "unknown exception";
  }
}

std::string failure_prefix(const Failure& failure) {
  const std::string site = failure.site_text();
  std::string text = failure.op + " failed on " + to_string(failure.device);
  if (!site.empty()) text += " at " + site;
  return text + ": ";
}

void Failure::raise() {
  reported.store(true, std::memory_order_relaxed);
  try {
    std::rethrow_exception(exception);
  } catch (const Error& error) {
    error.rethrow_with(failure_prefix(*this));
  }
  // Exceptions that are not ours left through rethrow_exception with their own type and text.
  __builtin_unreachable();
}

}  // namespace thalweg
