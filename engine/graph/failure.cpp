// failure.cpp: texts of failures and how they are thrown again.
#include "graph/failure.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

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

std::string distinct_lines(const std::vector<std::string>& texts) {
  constexpr std::size_t kShown = 5;
  std::vector<std::pair<std::string_view, std::size_t>> distinct;
  for (const std::string& text : texts) {
    const auto same = std::find_if(distinct.begin(), distinct.end(),
                                   [&](const auto& entry) { return entry.first == text; });
    if (same != distinct.end()) {
      ++same->second;
    } else {
      distinct.emplace_back(text, 1);
    }
  }
  std::string lines;
  for (std::size_t i = 0; i < distinct.size() && i < kShown; ++i) {
    lines.append("\n  ").append(distinct[i].first);
    if (distinct[i].second > 1) lines += " (" + std::to_string(distinct[i].second) + " times)";
  }
  if (distinct.size() > kShown) lines += "\n  and " + std::to_string(distinct.size() - kShown) + " others";
  return lines;
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
