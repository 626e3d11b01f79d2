// metg.cpp: the smallest task at which half of the machine's peak is still reached, against a raw flow graph.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <thalweg/thalweg.h>

#include "harness.h"
#include "metg_flow.h"
#include "metg_pattern.h"

namespace {

using bench::kMetgSteps;
using bench::kMetgTasks;
using bench::kMetgWidth;
using bench::MetgPattern;
using bench::MetgRun;
using bench::Payload;
using thalweg::Tensor;

constexpr int kThreads = 2;
constexpr int kLargest = 14;  // 2^14 iterations, the first size of a sweep
constexpr int kSmallest = 2;

// What the custom operator's kernel needs to know of the run.
struct Job {
  const MetgPattern* pattern = nullptr;
  std::int64_t iterations = 0;
  std::atomic<std::int64_t> bad{0};

  void run(const thalweg::KernelContext& context) {
    const auto task = context.attributes().get<std::int64_t>(0);
    const int timestep = static_cast<int>(task / kMetgWidth);
    const int point = static_cast<int>(task % kMetgWidth);
    const bool right =
        bench::inputs_are_right(*pattern, timestep, point, context.input_count(), [&](std::size_t i) {
          const auto* words = context.input(i).as<std::int64_t>();
          return Payload{words[0], words[1]};
        });
    if (!right) bad.fetch_add(1, std::memory_order_relaxed);
    bench::compute(iterations);
    auto* words = context.output().as<std::int64_t>();
    words[0] = timestep;
    words[1] = point;
  }
};

class Ours {
 public:
  Ours() : engine_(options(), &thalweg::register_cpu_kernels), op_(register_task()) {}

  MetgRun run(const MetgPattern& pattern, std::int64_t iterations) {
    job_.pattern = &pattern;
    job_.iterations = iterations;
    job_.bad.store(0);
    const std::uint64_t start = engine_.stats().executed;
    const bench::Stopwatch watch;
    std::vector<Tensor> before(kMetgWidth);
    for (int timestep = 0; timestep < kMetgSteps; ++timestep) {
      std::vector<Tensor> row;
      row.reserve(kMetgWidth);
      for (int point = 0; point < kMetgWidth; ++point) row.push_back(issue(pattern, timestep, point, before));
      before = std::move(row);
    }
    engine_.drain();
    MetgRun run{.seconds = watch.seconds()};
    disagreement_ += bench::counters_disagree(engine_, kMetgTasks, start);
    run.executed = static_cast<std::int64_t>(engine_.stats().executed - start);
    run.bad = job_.bad.load();
    return run;
  }

  const std::string& disagreement() const { return disagreement_; }

 private:
  static thalweg::EngineOptions options() {
    thalweg::EngineOptions options;
    options.num_threads = kThreads;
    return options;
  }

  const thalweg::Op& register_task() {
    thalweg::Op op{
        .name = "metg_task",
        .inputs = {"dependencies"},
        .attributes = {{.name = "task", .kind = thalweg::AttrKind::integer, .required = true}},
        .infer =
            [](thalweg::InferContext& context) { context.set_contiguous(0, {2}, thalweg::DType::int64); },
        .doc = "A task of the METG benchmark.",
        .variadic = true};
    return engine_.register_operator(std::move(op),
                                     [this](const thalweg::KernelContext& context) { job_.run(context); });
  }

  Tensor issue(const MetgPattern& pattern, int timestep, int point, const std::vector<Tensor>& before) {
    const Tensor* inputs[kMetgWidth];
    std::size_t count = 0;
    for (int dependency : pattern.dependencies(timestep, point)) {
      inputs[count++] = &before[static_cast<std::size_t>(dependency)];
    }
    const std::int64_t task = std::int64_t{timestep} * kMetgWidth + point;
    return engine_.apply(op_, std::span<const Tensor* const>(inputs, count), {task});
  }

  Job job_;
  thalweg::Engine engine_;
  const thalweg::Op& op_;
  std::string disagreement_;
};

// Wall times by task size (a power of two) of one contestant on one pattern.
struct Sweep {
  std::map<int, std::vector<double>> seconds{};
  std::string error{};

  void add(int size, const MetgRun& run) {
    seconds[size].push_back(run.seconds);
    if (run.bad != 0) error = std::to_string(run.bad) + " tasks were given wrong inputs";
    if (run.executed != kMetgTasks) error = std::to_string(run.executed) + " tasks executed";
  }

  double efficiency(int size, double peak) const {
    const double work = static_cast<double>(kMetgTasks) * std::ldexp(1.0, size);
    return work / bench::median(seconds.at(size)) / peak;
  }
  double granularity_us(int size) const {
    return bench::median(seconds.at(size)) * kThreads / kMetgTasks * 1e6;
  }

  // Linear interpolation where the efficiency falls through one half, from large tasks to small ones.
  std::optional<double> metg_us(double peak) const {
    for (int size = kLargest - 1; seconds.contains(size); --size) {
      const double above = efficiency(size + 1, peak);
      const double below = efficiency(size, peak);
      if (above < 0.5) return std::nullopt;
      if (below >= 0.5) continue;
      const double part = (above - 0.5) / (above - below);
      return granularity_us(size + 1) + part * (granularity_us(size) - granularity_us(size + 1));
    }
    return std::nullopt;
  }
};

nlohmann::json efficiencies(const Sweep& sweep, double peak) {
  nlohmann::json curve = nlohmann::json::object();
  for (const auto& [size, seconds] : sweep.seconds) {
    curve[std::to_string(1 << size)] = {{"us", sweep.granularity_us(size)},
                                        {"efficiency", sweep.efficiency(size, peak)}};
  }
  return curve;
}

// Ours and the peer on one pattern.
struct Contest {
  // Runs both in turn; sizes at which both are far below one half are left out.
  void measure(const MetgPattern& pattern, Ours& ours, int rounds, double peak) {
    for (int round = 0; round < rounds; ++round) {
      for (int size = kLargest; size >= kSmallest; --size) {
        if (round > 0 && !mine.seconds.contains(size)) break;
        const auto iterations = std::int64_t{1} << size;
        mine.add(size, ours.run(pattern, iterations));
        flow.add(size, bench::run_metg_flow(pattern, iterations, kThreads));
        if (round == 0 && mine.efficiency(size, peak) < 0.2 && flow.efficiency(size, peak) < 0.2) break;
      }
      std::cerr << "metg: " << pattern.name() << ", round " << round + 1 << " of " << rounds << "   \r"
                << std::flush;
    }
  }

  void report_to(bench::Report& report, const std::string& name, double peak) const {
    report.facts()["curves"][name] = {{"ours", efficiencies(mine, peak)}, {"flow", efficiencies(flow, peak)}};
    const std::string error = mine.error + flow.error;
    const std::optional<double> mine_us = mine.metg_us(peak), flow_us = flow.metg_us(peak);
    if (!error.empty()) {
      report.fail(name, error);
    } else if (!mine_us || !flow_us) {
      report.fail(name, "the efficiency does not cross one half between the sizes tried");
    } else {
      report.row(name, "us", *mine_us, {{"flow", *flow_us}});
    }
  }

  Sweep mine, flow;
};

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 7;
  const std::vector<MetgPattern> patterns = bench::metg_patterns();
  bench::Report report;
  Ours ours;
  std::vector<Contest> contests(patterns.size());
  double peak = 0;  // the best seen: whatever disturbs a calibration only lowers it
  for (std::size_t i = 0; i < patterns.size(); ++i) {
    report.note_line_latency();
    peak = std::max(peak, bench::peak_rate(kThreads));
    ours.run(patterns[i], 1);  // warm-up
    contests[i].measure(patterns[i], ours, rounds, peak);
    contests[i].flow.error += ours.disagreement();
  }
  peak = std::max(peak, bench::peak_rate(kThreads));
  std::cerr << '\n';
  for (std::size_t i = 0; i < patterns.size(); ++i) contests[i].report_to(report, patterns[i].name(), peak);
  report.facts()["ns per iteration of the compute loop"] = kThreads / peak * 1e9;
  report.facts()["rounds"] = rounds;
  return report.print();
}
