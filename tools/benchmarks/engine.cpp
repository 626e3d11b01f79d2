// engine.cpp: nanoseconds per small addition from issue to done, against bare oneTBB flow-graph nodes.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <memory>
#include <string>

#include <thalweg/thalweg.h>

#include "add_plan.h"
#include "allocations.h"
#include "flow_peer.h"
#include "harness.h"

namespace {

using bench::AddPlan;
using bench::FlowPeer;

constexpr std::size_t kAdditions = 200'000;

thalweg::EngineOptions options_for(int threads) {
  thalweg::EngineOptions options;
  options.num_threads = threads;
  options.max_operators_in_flight = bench::kWindow;
  return options;
}

// The engine under test: float32[1] additions through Engine::apply.
class Ours {
 public:
  explicit Ours(int threads)
      : engine_(options_for(threads), &thalweg::register_cpu_kernels),
        add_(engine_.op("add")),
        one_(bench::filled(engine_, {1}, 1.0f)) {}

  FlowPeer::Result run(const AddPlan& plan) {
    std::array<thalweg::Tensor, bench::kHandles> kept;
    std::vector<thalweg::Tensor> probes;
    probes.reserve(plan.count() / AddPlan::kStretch + 2);
    const std::uint64_t start = engine_.stats().executed;
    const auto kept_in = [&](std::int8_t slot) {
      return slot == bench::kConstant ? &one_ : &kept[static_cast<std::size_t>(slot)];
    };

    const bench::Stopwatch watch;
    for (std::size_t i = 0; i < plan.count(); ++i) {
      thalweg::Tensor sum = engine_.apply(add_, {kept_in(plan.reads[i][0]), kept_in(plan.reads[i][1])});
      if (plan.is_probe(i)) probes.push_back(sum);
      kept[i % bench::kHandles] = std::move(sum);
    }
    engine_.drain();
    FlowPeer::Result result{.seconds = watch.seconds()};

    disagreement_ += bench::counters_disagree(engine_, plan.count(), start);
    result.executed = static_cast<std::int64_t>(engine_.stats().executed - start);
    for (const thalweg::Tensor& probe : probes) result.checksum += probe.item().to<double>();
    return result;
  }

  /// Empty while the counters agreed in every run.
  const std::string& disagreement() const { return disagreement_; }

 private:
  thalweg::Engine engine_;
  const thalweg::Op& add_;
  thalweg::Tensor one_;
  std::string disagreement_;
};

// One way to run a plan, with what its runs gave so far.
struct Contestant {
  std::string name;
  std::function<FlowPeer::Result(const AddPlan&)> run;
  std::vector<double> ns_per_add{};
  std::string error{};

  void measure(const AddPlan& plan) {
    const FlowPeer::Result result = run(plan);
    ns_per_add.push_back(result.seconds / static_cast<double>(plan.count()) * 1e9);
    if (result.checksum != plan.checksum) {
      error =
          name + " checksum " + std::to_string(result.checksum) + " is not " + std::to_string(plan.checksum);
    }
    if (result.executed != static_cast<std::int64_t>(plan.count())) {
      error = name + " executed " + std::to_string(result.executed) + " of " + std::to_string(plan.count());
    }
  }

  // A run of its own, because counting costs time.
  double allocations_per_add(const AddPlan& plan) {
    const bench::AllocationCount count;
    run(plan);
    return static_cast<double>(count.so_far()) / static_cast<double>(plan.count());
  }
};

// One row of the table: a plan on a number of threads.
struct Case {
  Case(const AddPlan& the_plan, int the_threads, Ours& ours, FlowPeer& flow, FlowPeer& pooled)
      : plan(the_plan),
        threads(the_threads),
        engine(ours),
        contestants{{{.name = "ours", .run = [&](const AddPlan& p) { return ours.run(p); }},
                     {.name = "flow", .run = [&](const AddPlan& p) { return flow.run(p); }},
                     {.name = "pooled", .run = [&](const AddPlan& p) { return pooled.run(p); }}}} {}

  std::string name() const { return plan.name + ", num_threads " + std::to_string(threads); }

  void report(bench::Report& report) {
    std::string error = engine.disagreement();
    for (Contestant& contestant : contestants) {
      error += contestant.error;
      const double allocations = contestant.allocations_per_add(plan);
      report.facts()["heap allocations per operator"][contestant.name][name()] = allocations;
      report.facts()["ns per operator, fastest run"][contestant.name][name()] =
          *std::min_element(contestant.ns_per_add.begin(), contestant.ns_per_add.end());
    }
    if (!error.empty()) {
      report.fail(name(), error);
      return;
    }
    report.row(name(), "ns", bench::median(contestants[0].ns_per_add),
               {{"flow", bench::median(contestants[1].ns_per_add)},
                {"pooled", bench::median(contestants[2].ns_per_add)}});
  }

  const AddPlan& plan;
  int threads;
  Ours& engine;
  std::array<Contestant, 3> contestants;
};

// Everything that runs with one number of threads.
struct Bench {
  explicit Bench(int threads)
      : ours(threads), flow(bench::NodeSupply::heap, threads), pooled(bench::NodeSupply::slab, threads) {}
  Ours ours;
  FlowPeer flow;
  FlowPeer pooled;
};

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 11;
  const std::array<AddPlan, 3> plans = {bench::chain_plan(kAdditions), bench::independent_plan(kAdditions),
                                        bench::random_dag_plan(kAdditions)};
  std::array<std::unique_ptr<Bench>, 2> benches = {std::make_unique<Bench>(1), std::make_unique<Bench>(2)};
  std::vector<Case> cases;
  for (const AddPlan& plan : plans) {
    for (int threads : {1, 2}) {
      Bench& with = *benches[static_cast<std::size_t>(threads - 1)];
      cases.emplace_back(plan, threads, with.ours, with.flow, with.pooled);
    }
  }
  for (Case& one : cases) {
    for (Contestant& contestant : one.contestants) contestant.run(one.plan);  // warm-up
  }
  bench::Report report;
  for (int round = 0; round < rounds; ++round) {
    report.note_line_latency();
    for (Case& one : cases) {
      for (Contestant& contestant : one.contestants) contestant.measure(one.plan);
    }
    std::cerr << "engine: round " << round + 1 << " of " << rounds << '\r' << std::flush;
  }
  std::cerr << '\n';
  for (Case& one : cases) one.report(report);
  report.facts()["rounds"] = rounds;
  report.facts()["operators per run"] = kAdditions;
  return report.print();
}
