// memory.cpp: peak resident memory while a million operators are issued without waiting. One measurement a
// process.
#include <cstdint>
#include <fstream>
#include <iostream>
#include <string>

#include <thalweg/thalweg.h>

#include "harness.h"

namespace {

using thalweg::Tensor;

constexpr std::int64_t kOperators = 1'000'000;
constexpr std::int64_t kElements = 1024;
constexpr double kMiB = 1 << 20;

// A field of /proc/self/status in bytes; 0 where there is none.
std::int64_t status_bytes(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string name; status >> name;) {
    std::int64_t kibibytes = 0;
    if (name == field + ":" && status >> kibibytes) return kibibytes * 1024;
  }
  return 0;
}

// Makes VmHWM start anew from the present size (Linux's proc(5)).
bool reset_peak() {
  std::ofstream clear("/proc/self/clear_refs");
  clear << 5 << std::flush;
  return clear.good();
}

}  // namespace

int main(int argc, char** argv) {
  const bool chain = argc > 1 && std::string(argv[1]) == "chain";
  const std::string name = chain ? "chain 1e6" : "issue 1e6";
  bench::Report report;
  thalweg::Engine engine({}, &thalweg::register_cpu_kernels);
  const thalweg::Op& add = engine.op("add");
  const Tensor one = bench::filled(engine, {kElements}, 1.0f);
  Tensor last = bench::filled(engine, {kElements}, 1.0f);

  if (!reset_peak()) std::cerr << "memory: cannot reset the peak; it includes the start of the program\n";
  const std::int64_t start_bytes = status_bytes("VmRSS");
  const std::uint64_t start = engine.stats().executed;
  const bench::Stopwatch watch;
  for (std::int64_t i = 0; i < kOperators; ++i) {
    // Assigned, so that the result before is dropped.
    last = engine.apply(add, {chain ? &last : &one, &one});
  }
  const double issued = watch.seconds();
  engine.drain();
  const double done = watch.seconds();
  const std::int64_t peak_bytes = status_bytes("VmHWM");

  std::string error = bench::counters_disagree(engine, static_cast<std::uint64_t>(kOperators), start);
  const float expected = chain ? static_cast<float>(kOperators + 1) : 2.0f;
  const float* values = last.view().as<float>();
  for (std::int64_t i = 0; i < kElements && error.empty(); ++i) {
    if (values[i] != expected) error = "a wrong element: " + std::to_string(values[i]);
  }
  if (!error.empty()) report.fail(name, error);
  if (error.empty()) report.row(name, "MiB", static_cast<double>(peak_bytes - start_bytes) / kMiB, {});
  report.facts()["ns per operator until issued"] = issued / kOperators * 1e9;
  report.facts()["ns per operator until done"] = done / kOperators * 1e9;
  const thalweg::MemoryStats memory = engine.memory_stats();
  report.facts()["tensor bytes, MiB"] = {{"live", memory.live_bytes / kMiB},
                                         {"peak", memory.peak_bytes / kMiB},
                                         {"cached", memory.cached_bytes / kMiB}};
  report.facts()["resident at the start, MiB"] = static_cast<double>(start_bytes) / kMiB;
  return report.print();
}
