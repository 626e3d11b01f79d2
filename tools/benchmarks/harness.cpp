// harness.cpp: the shared parts of the benchmark programs.
#include "harness.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <iostream>
#include <limits>
#include <thread>

#include <pthread.h>
#include <sched.h>

namespace bench {

double median(std::vector<double> samples) {
  if (samples.empty()) return std::numeric_limits<double>::quiet_NaN();
  std::sort(samples.begin(), samples.end());
  const std::size_t middle = samples.size() / 2;
  return samples.size() % 2 != 0 ? samples[middle] : (samples[middle - 1] + samples[middle]) / 2;
}

namespace {

std::vector<int> usable_cpus() {
  cpu_set_t set;
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

void pin_to(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
}

struct alignas(128) Line {
  std::atomic<std::uint32_t> turn{0};
};

// Waits for its turn, then hands over; the two sides write alternating values to one line.
void play(Line& line, std::uint32_t first, std::uint32_t last) {
  for (std::uint32_t turn = first; turn < last; turn += 2) {
    // Bounded spin: on a busy machine the partner may be off its core.
    for (int spins = 0; line.turn.load(std::memory_order_acquire) != turn; ++spins) {
      if (spins > 20000) std::this_thread::yield();
    }
    line.turn.store(turn + 1, std::memory_order_release);
  }
}

}  // namespace

double line_latency_ns() {
  const std::vector<int> cpus = usable_cpus();
  if (cpus.size() < 2) return 0;
  constexpr std::uint32_t kHops = 4000;
  constexpr int kBatches = 7;
  std::vector<double> batches;
  for (int batch = 0; batch < kBatches; ++batch) {
    Line line;
    std::atomic<int> arrived{0};
    double seconds = 0;
    const auto meet = [&] {
      arrived.fetch_add(1);
      while (arrived.load() < 2) std::this_thread::yield();
    };
    std::thread other([&] {
      pin_to(cpus[1]);
      meet();
      play(line, 1, kHops);
    });
    std::thread one([&] {
      pin_to(cpus[0]);
      meet();
      Stopwatch watch;
      play(line, 0, kHops);
      seconds = watch.seconds();
    });
    one.join();
    other.join();
    batches.push_back(seconds / kHops * 1e9);
  }
  // Whatever else runs only lengthens a batch.
  return *std::min_element(batches.begin(), batches.end());
}

void Report::row(const std::string& name, const std::string& unit, double ours,
                 const std::map<std::string, double>& peers) {
  nlohmann::json ratio = nlohmann::json::object();
  for (const auto& [peer, value] : peers) ratio[peer] = ours / value;
  rows_.push_back({{"case", name}, {"unit", unit}, {"ours", ours}, {"peers", peers}, {"ratio", ratio}});
}

void Report::fail(const std::string& name, const std::string& reason) {
  failures_.push_back(name + ": " + reason);
}

void Report::note_line_latency() { line_latency_.push_back(line_latency_ns()); }

int Report::print() {
  if (!line_latency_.empty()) {
    const auto [low, high] = std::minmax_element(line_latency_.begin(), line_latency_.end());
    facts_["line latency during the run, ns"] = {
        {"median", median(line_latency_)}, {"min", *low}, {"max", *high}};
  }
  const nlohmann::json report = {{"rows", rows_}, {"facts", facts_}, {"failures", failures_}};
  std::cout << report.dump(1) << std::endl;
  return failures_.empty() ? 0 : 1;
}

thalweg::Tensor filled(thalweg::Engine& engine, const thalweg::Shape& shape, float value) {
  thalweg::Tensor tensor = engine.allocate(thalweg::DType::float32, shape);
  std::fill_n(static_cast<float*>(thalweg::Engine::mutable_data(tensor)), thalweg::numel(shape), value);
  return tensor;
}

std::string counters_disagree(const thalweg::Engine& engine, std::uint64_t expected, std::uint64_t start) {
  const thalweg::EngineStats stats = engine.stats();
  if (stats.issued == stats.executed && stats.executed - start == expected && stats.failed == 0) return {};
  return std::to_string(stats.issued - start) + " issued, " + std::to_string(stats.executed - start) +
         " executed, " + std::to_string(stats.failed) + " failed, expected " + std::to_string(expected);
}

}  // namespace bench
