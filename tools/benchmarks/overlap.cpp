// overlap.cpp: how much faster independent operators are on two threads than on one.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <thalweg/thalweg.h>

#include "harness.h"

namespace {

using thalweg::Engine;
using thalweg::Tensor;

constexpr std::size_t kCount = 64;
constexpr std::int64_t kMatrix = 256;
constexpr std::int64_t kChain = 100'000;

void fill_random(std::span<float> values, std::mt19937& random) {
  std::uniform_real_distribution<float> uniform(-1.0f, 1.0f);
  for (float& value : values) value = uniform(random);
}

// The arrays of the chains: y = a * b + sin(c) - d / 2.
struct ChainInputs {
  std::array<std::vector<float>, 4> arrays;
};

// The engine with a number of threads, and its copies of the inputs.
class Ours {
 public:
  Ours(int threads, const std::vector<ChainInputs>& chains)
      : engine_(options(threads), &thalweg::register_cpu_kernels),
        two_(engine_.constant(2.0, thalweg::DType::float32)) {
    std::mt19937 random(1);
    for (std::size_t i = 0; i < 2 * kCount; ++i) {
      matrices_.push_back(engine_.allocate(thalweg::DType::float32, {kMatrix, kMatrix}));
      fill_random({static_cast<float*>(Engine::mutable_data(matrices_.back())), kMatrix * kMatrix}, random);
    }
    for (const ChainInputs& chain : chains) {
      for (const std::vector<float>& array : chain.arrays) {
        inputs_.push_back(engine_.allocate(thalweg::DType::float32, {kChain}));
        std::copy(array.begin(), array.end(), static_cast<float*>(Engine::mutable_data(inputs_.back())));
      }
    }
  }

  double matmuls() {
    return timed(kCount, [&](std::size_t i) {
      return engine_.apply(engine_.op("matmul"), {&matrices_[2 * i], &matrices_[2 * i + 1]});
    });
  }

  double chains() {
    return timed(5 * kCount, [&](std::size_t i) {
      const Tensor* in = &inputs_[4 * i];
      const Tensor product = apply("multiply", in[0], in[1]);
      const Tensor sine = engine_.apply(engine_.op("sin"), {&in[2]});
      const Tensor half = apply("divide", in[3], two_);
      return apply("subtract", apply("add", product, sine), half);
    });
  }

  const std::vector<Tensor>& results() const { return results_; }
  const Tensor& matrix(std::size_t i) const { return matrices_[i]; }
  const std::string& disagreement() const { return disagreement_; }

 private:
  static thalweg::EngineOptions options(int threads) {
    thalweg::EngineOptions options;
    options.num_threads = threads;
    return options;
  }

  Tensor apply(const char* op, const Tensor& a, const Tensor& b) {
    return engine_.apply(engine_.op(op), {&a, &b});
  }

  template <class Issue>
  double timed(std::uint64_t operators, Issue&& issue) {
    results_.clear();
    const std::uint64_t start = engine_.stats().executed;
    const bench::Stopwatch watch;
    for (std::size_t i = 0; i < kCount; ++i) results_.push_back(issue(i));
    engine_.drain();
    const double seconds = watch.seconds();
    disagreement_ += bench::counters_disagree(engine_, operators, start);
    return seconds;
  }

  Engine engine_;
  Tensor two_;
  std::vector<Tensor> matrices_;
  std::vector<Tensor> inputs_;
  std::vector<Tensor> results_;
  std::string disagreement_;
};

// sin on [-1, 1] in a form that compilers vectorise: the Taylor polynomial of degree 9, within 3e-8.
inline float sine(float x) {
  const float s = x * x;
  return x * (1.0f + s * (-1.0f / 6 + s * (1.0f / 120 + s * (-1.0f / 5040 + s * (1.0f / 362880)))));
}

// The chains as a C++ programmer would write them: one fused loop, the arrays dealt out to the threads.
double loop_chains(const std::vector<ChainInputs>& chains, std::vector<std::vector<float>>& results,
                   int threads) {
  const auto work = [&](int thread) {
    for (std::size_t i = static_cast<std::size_t>(thread); i < kCount;
         i += static_cast<std::size_t>(threads)) {
      const auto& [a, b, c, d] = chains[i].arrays;
      std::vector<float>& y = results[i];
      for (std::size_t k = 0; k < y.size(); ++k) y[k] = a[k] * b[k] + sine(c[k]) - d[k] / 2;
    }
  };
  const bench::Stopwatch watch;
  std::vector<std::thread> helpers;
  for (int thread = 1; thread < threads; ++thread) helpers.emplace_back(work, thread);
  work(0);
  for (std::thread& helper : helpers) helper.join();
  return watch.seconds();
}

std::string check_chains(const Ours& ours, const std::vector<std::vector<float>>& expected) {
  for (std::size_t i = 0; i < kCount; ++i) {
    const float* found = ours.results()[i].view().as<float>();
    for (std::size_t k = 0; k < expected[i].size(); ++k) {
      if (!(std::abs(found[k] - expected[i][k]) < 1e-5f))
        return "chain " + std::to_string(i) + " has a wrong element";
    }
  }
  return {};
}

// The sum of a product's elements is the column sums of one factor times the row sums of the other.
std::string check_matmuls(const Ours& ours) {
  for (std::size_t i = 0; i < kCount; ++i) {
    const float* a = ours.matrix(2 * i).view().as<float>();
    const float* b = ours.matrix(2 * i + 1).view().as<float>();
    const float* c = ours.results()[i].view().as<float>();
    double expected = 0, found = 0;
    for (std::int64_t k = 0; k < kMatrix; ++k) {
      double column = 0, row = 0;
      for (std::int64_t j = 0; j < kMatrix; ++j) {
        column += a[j * kMatrix + k];
        row += b[k * kMatrix + j];
        found += c[k * kMatrix + j];
      }
      expected += column * row;
    }
    if (!(std::abs(found - expected) < 0.05)) return "product " + std::to_string(i) + " has a wrong sum";
  }
  return {};
}

// Wall times with one thread and with two.
struct Walls {
  std::array<std::vector<double>, 2> seconds;
  double speed_up() const { return bench::median(seconds[0]) / bench::median(seconds[1]); }
  nlohmann::json in_ms() const {
    return {{"1 thread", bench::median(seconds[0]) * 1e3}, {"2 threads", bench::median(seconds[1]) * 1e3}};
  }
};

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 15;
  std::mt19937 random(2);
  std::vector<ChainInputs> inputs(kCount);
  for (ChainInputs& chain : inputs) {
    for (std::vector<float>& array : chain.arrays) {
      array.resize(kChain);
      fill_random(array, random);
    }
  }
  std::vector<std::vector<float>> expected(kCount, std::vector<float>(kChain));
  std::array<std::unique_ptr<Ours>, 2> ours = {std::make_unique<Ours>(1, inputs),
                                               std::make_unique<Ours>(2, inputs)};

  bench::Report report;
  Walls matmuls, chains, loop;
  std::string matmul_error, chain_error;
  for (int round = 0; round < rounds; ++round) {
    report.note_line_latency();
    // Each timed pass follows an untimed one, so that threads of the pass before have gone to sleep.
    for (std::size_t i = 0; i < 2; ++i) {
      const int threads = static_cast<int>(i) + 1;
      loop_chains(inputs, expected, threads);
      loop.seconds[i].push_back(loop_chains(inputs, expected, threads));
      ours[i]->matmuls();
      matmuls.seconds[i].push_back(ours[i]->matmuls());
      matmul_error += check_matmuls(*ours[i]);
      ours[i]->chains();
      chains.seconds[i].push_back(ours[i]->chains());
      chain_error += check_chains(*ours[i], expected);
    }
    std::cerr << "overlap: round " << round + 1 << " of " << rounds << '\r' << std::flush;
  }
  std::cerr << '\n';
  const std::string counters = ours[0]->disagreement() + ours[1]->disagreement();
  matmul_error += counters;
  chain_error += counters;
  if (matmul_error.empty()) {
    report.row("matmuls", "x", matmuls.speed_up(), {});
  } else {
    report.fail("matmuls", matmul_error);
  }
  if (chain_error.empty()) {
    report.row("chains", "x", chains.speed_up(), {{"loop", loop.speed_up()}});
  } else {
    report.fail("chains", chain_error);
  }
  report.facts()["wall, ms"] = {
      {"matmuls", matmuls.in_ms()}, {"chains", chains.in_ms()}, {"loop", loop.in_ms()}};
  report.facts()["rounds"] = rounds;
  return report.print();
}
