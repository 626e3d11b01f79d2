// engine_options.cpp: options from the environment.
#include <charconv>
#include <cstdlib>
#include <string>
#include <string_view>

#include <thalweg/engine.h>
#include <thalweg/errors.h>

namespace thalweg {
namespace {

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

[[noreturn]] void reject(const char* name, std::string_view value, std::string_view takes) {
  throw ValueError(std::string(name) + "=" + std::string(value) + ": takes " + std::string(takes));
}

template <class T>
void read_number(const char* name, T low, T high, T& target) {
  const std::string_view text = variable(name);
  if (text.empty()) return;
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < low || value > high) {
    reject(name, text, "a whole number from " + std::to_string(low) + " to " + std::to_string(high));
  }
  target = value;
}

}  // namespace

EngineOptions EngineOptions::from_environment() {
  EngineOptions options;
  const std::string_view engine = variable("THALWEG_ENGINE");
  if (engine == "sync") {
    options.mode = EngineMode::synchronous;
  } else if (engine == "caller") {
    options.mode = EngineMode::caller_driven;
  } else if (!engine.empty() && engine != "threaded") {
    reject("THALWEG_ENGINE", engine, "threaded, caller or sync");
  }
  const std::string_view run_inline = variable("THALWEG_INLINE");
  if (run_inline == "off") {
    options.run_inline = false;
  } else if (!run_inline.empty() && run_inline != "on") {
    reject("THALWEG_INLINE", run_inline, "on or off");
  }
  read_number("THALWEG_NUM_THREADS", 1, EngineOptions::kMaxThreads, options.num_threads);
  read_number("THALWEG_CPU_DEVICES", 1, 64, options.cpu_devices);
  read_number<std::int64_t>("THALWEG_MEMORY_LIMIT", 0, INT64_MAX, options.memory_limit);
  return options;
}

}  // namespace thalweg
