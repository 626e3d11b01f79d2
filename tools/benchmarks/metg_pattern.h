// metg_pattern.h: the task graphs of the METG benchmark, the work of a task and the check of what it was
// given.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace bench {

inline constexpr int kMetgWidth = 8;
inline constexpr int kMetgSteps = 1000;
inline constexpr int kMetgTasks = kMetgWidth * kMetgSteps;

/// What a task hands to those that depend on it: who it was.
struct Payload {
  std::int64_t timestep = -1;
  std::int64_t point = -1;
};

/// A graph of kMetgSteps rows of kMetgWidth tasks. A task depends on points of the row before, as in Task
/// Bench (Slaughter et al., "Task Bench: A Parameterized Benchmark for Evaluating Parallel Runtime
/// Performance", SC20).
class MetgPattern {
 public:
  using Points = std::vector<int>;

  /// `sets[s][p]` are the points on which point p depends in the timesteps t with t % sets.size() == s.
  MetgPattern(std::string name, std::vector<std::vector<Points>> sets)
      : name_(std::move(name)), sets_(std::move(sets)) {}

  const std::string& name() const { return name_; }
  std::span<const int> dependencies(int timestep, int point) const {
    if (timestep == 0) return {};
    return sets_[static_cast<std::size_t>(timestep) % sets_.size()][static_cast<std::size_t>(point)];
  }

 private:
  std::string name_;
  std::vector<std::vector<Points>> sets_;
};

/// stencil_1d, nearest (radix 5), fft, random_nearest (the nearest five, each with probability 1/4, itself
/// always).
std::vector<MetgPattern> metg_patterns();

/// True if `found(i)` is the payload of the i-th dependency of the task.
template <class Found>
bool inputs_are_right(const MetgPattern& pattern, int timestep, int point, std::size_t count, Found&& found) {
  const std::span<const int> expected = pattern.dependencies(timestep, point);
  if (count != expected.size()) return false;
  for (std::size_t i = 0; i < count; ++i) {
    const Payload payload = found(i);
    if (payload.timestep != timestep - 1 || payload.point != expected[i]) return false;
  }
  return true;
}

/// The work of a task: `iterations` rounds of multiplications and additions on registers.
void compute(std::int64_t iterations);

/// Rounds of `compute` per second that `threads` threads do together.
double peak_rate(int threads);

}  // namespace bench
