// metg_flow.cpp: continue_node per task with a guard predecessor and a done flag under the producer's lock.
#include "metg_flow.h"

#include <array>
#include <atomic>
#include <memory>
#include <vector>

#include <oneapi/tbb/flow_graph.h>
#include <oneapi/tbb/spin_mutex.h>
#include <oneapi/tbb/task_arena.h>

#include "harness.h"

namespace bench {

namespace {

struct Job {
  const MetgPattern& pattern;
  std::int64_t iterations;
  std::atomic<std::int64_t> bad{0};
};

class FlowTask {
 public:
  FlowTask(tbb::flow::graph& graph, Job& job, int timestep, int point)
      : job_(job),
        timestep_(timestep),
        point_(point),
        node_(graph, 1, [this](const tbb::flow::continue_msg&) noexcept {
          run();
          return tbb::flow::continue_msg();
        }) {}

  void depend_on(FlowTask& producer) {
    inputs_[count_++] = &producer;
    tbb::spin_mutex::scoped_lock lock(producer.mutex_);
    // An edge to a node that fired would be lost.
    if (!producer.done_) tbb::flow::make_edge(producer.node_, node_);
  }
  // Releases the guard predecessor.
  void start() { node_.try_put(tbb::flow::continue_msg()); }
  const Payload& payload() const { return payload_; }

 private:
  void run() {
    if (!inputs_are_right(job_.pattern, timestep_, point_, count_,
                          [&](std::size_t i) { return inputs_[i]->payload_; })) {
      job_.bad.fetch_add(1, std::memory_order_relaxed);
    }
    compute(job_.iterations);
    payload_ = {timestep_, point_};
    tbb::spin_mutex::scoped_lock lock(mutex_);
    done_ = true;
  }

  Job& job_;
  int timestep_;
  int point_;
  std::size_t count_ = 0;
  std::array<const FlowTask*, kMetgWidth> inputs_{};
  Payload payload_;
  tbb::spin_mutex mutex_;
  bool done_ = false;
  tbb::flow::continue_node<tbb::flow::continue_msg> node_;
};

}  // namespace

MetgRun run_metg_flow(const MetgPattern& pattern, std::int64_t iterations, int threads) {
  Job job{.pattern = pattern, .iterations = iterations};
  MetgRun run;
  tbb::task_arena arena(threads, 1);
  arena.execute([&] {
    tbb::flow::graph graph;
    std::vector<std::unique_ptr<FlowTask>> tasks;
    tasks.reserve(kMetgTasks);
    const Stopwatch watch;
    for (int timestep = 0; timestep < kMetgSteps; ++timestep) {
      for (int point = 0; point < kMetgWidth; ++point) {
        tasks.push_back(std::make_unique<FlowTask>(graph, job, timestep, point));
        const std::size_t row = static_cast<std::size_t>(timestep - 1) * kMetgWidth;
        for (int dependency : pattern.dependencies(timestep, point)) {
          tasks.back()->depend_on(*tasks[row + static_cast<std::size_t>(dependency)]);
        }
        tasks.back()->start();
      }
    }
    graph.wait_for_all();
    run.seconds = watch.seconds();
    for (int task = 0; task < kMetgTasks; ++task) {
      const Payload& payload = tasks[static_cast<std::size_t>(task)]->payload();
      if (payload.timestep == task / kMetgWidth && payload.point == task % kMetgWidth) ++run.executed;
    }
  });
  run.bad = job.bad.load();
  return run;
}

}  // namespace bench
