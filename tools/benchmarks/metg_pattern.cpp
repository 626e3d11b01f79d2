// metg_pattern.cpp: the four patterns, the compute loop and its peak rate.
#include "metg_pattern.h"

#include <algorithm>
#include <array>
#include <latch>
#include <random>
#include <thread>

#include "harness.h"

namespace bench {

namespace {

using Points = MetgPattern::Points;

// One dependence set: those of the `candidates(point)` that exist.
template <class Candidates>
std::vector<Points> dependence_set(Candidates&& candidates) {
  std::vector<Points> set;
  for (int point = 0; point < kMetgWidth; ++point) {
    Points points = candidates(point);
    std::erase_if(points, [](int p) { return p < 0 || p >= kMetgWidth; });
    set.push_back(std::move(points));
  }
  return set;
}

MetgPattern fft() {
  std::vector<std::vector<Points>> sets;
  for (int distance = 1; distance < kMetgWidth; distance *= 2) {
    sets.push_back(dependence_set([&](int p) { return Points{p - distance, p, p + distance}; }));
  }
  return {"fft", std::move(sets)};
}

MetgPattern random_nearest() {
  constexpr int kPeriod = 3;
  std::mt19937 random(7);
  std::vector<std::vector<Points>> sets;
  for (int set = 0; set < kPeriod; ++set) {
    sets.push_back(dependence_set([&](int p) {
      Points points;
      for (int other = p - 2; other <= p + 2; ++other) {
        if (other == p || random() % 4 == 0) points.push_back(other);
      }
      return points;
    }));
  }
  return {"random_nearest", std::move(sets)};
}

}  // namespace

std::vector<MetgPattern> metg_patterns() {
  using Sets = std::vector<std::vector<Points>>;
  const Sets stencil = {dependence_set([](int p) { return Points{p - 1, p, p + 1}; })};
  const Sets nearest = {dependence_set([](int p) { return Points{p - 2, p - 1, p, p + 1, p + 2}; })};
  return {{"stencil_1d", stencil}, {"nearest", nearest}, fft(), random_nearest()};
}

[[gnu::noinline]] void compute(std::int64_t iterations) {
  // Volatile, so that the compiler can neither foresee the values nor leave the loop out.
  volatile float edge = 1.0f;
  std::array<float, 32> values;
  values.fill(float{edge});
  const float factor = 0.5f * edge;
  for (std::int64_t i = 0; i < iterations; ++i) {
    for (float& value : values) value = value * factor + factor;
  }
  edge = *std::max_element(values.begin(), values.end());
}

double peak_rate(int threads) {
  constexpr std::int64_t kIterations = 1 << 19;
  double best = 0;
  for (int attempt = 0; attempt < 5; ++attempt) {
    std::latch all_there(threads);
    std::vector<double> seconds(static_cast<std::size_t>(threads));
    std::vector<std::thread> workers;
    for (double& mine : seconds) {
      workers.emplace_back([&] {
        all_there.arrive_and_wait();
        const Stopwatch watch;
        compute(kIterations);
        mine = watch.seconds();
      });
    }
    for (std::thread& worker : workers) worker.join();
    const double slowest = *std::max_element(seconds.begin(), seconds.end());
    best = std::max(best, static_cast<double>(kIterations) * threads / slowest);
  }
  return best;
}

}  // namespace bench
