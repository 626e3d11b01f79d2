// harness.h: clocks, medians, the latency of a cache line between two cores, and the report every program
// prints.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <thalweg/engine.h>

namespace bench {

/// Wall time since construction.
class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

/// Median of `samples`; NaN if there are none.
double median(std::vector<double> samples);

/// Nanoseconds in which a written cache line reaches another core, by ping-pong between two pinned threads; 0
/// where the process may use one core only. Takes some milliseconds.
double line_latency_ns();

/// What one benchmark program found. `print` writes the JSON that tools/bench reads.
class Report {
 public:
  /// A row of medians; the ratio to each peer is `ours` / peer.
  void row(const std::string& name, const std::string& unit, double ours,
           const std::map<std::string, double>& peers);
  /// A row whose checksum or counters were wrong: it is left out and the run fails.
  void fail(const std::string& name, const std::string& reason);
  nlohmann::json& facts() { return facts_; }
  /// Notes the line latency now; the report has the median and the extremes.
  void note_line_latency();
  /// Prints the JSON on standard output; the exit status of the program.
  int print();

 private:
  nlohmann::json rows_ = nlohmann::json::array();
  nlohmann::json failures_ = nlohmann::json::array();
  nlohmann::json facts_ = nlohmann::json::object();
  std::vector<double> line_latency_;
};

/// A ready float32 tensor of `shape` with every element `value`.
thalweg::Tensor filled(thalweg::Engine& engine, const thalweg::Shape& shape, float value);

/// Compares the counters of a drained engine with `expected` operators issued since its counter stood at
/// `start`; empty if issued and executed agree, else why not.
std::string counters_disagree(const thalweg::Engine& engine, std::uint64_t expected, std::uint64_t start);

}  // namespace bench
