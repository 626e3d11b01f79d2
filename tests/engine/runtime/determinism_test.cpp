// determinism_test.cpp: random programs give the same bits whatever drives them and wherever they run.
#include <atomic>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "engine/support/engine_test.h"

namespace thalweg::testing {
namespace {

/// A program over a pool of values: every random choice comes from the seed, none from what drives the
/// engine.
class Program {
 public:
  Program(Engine& engine, unsigned seed, int devices) : engine_(engine), random_(seed), devices_(devices) {}

  std::vector<std::vector<double>> run(int operators) {
    for (int i = 0; i < 8; ++i) pool_.push_back(ramp(engine_, size(), 0.1 * i, 0.013 * i));
    for (int i = 0; i < operators; ++i) step();
    std::vector<std::vector<double>> results;
    for (const Tensor& tensor : pool_) results.push_back(values<double>(tensor));
    return results;
  }

 private:
  int below(int bound) { return std::uniform_int_distribution<int>(0, bound - 1)(random_); }
  /// Below, at and above what runs inline and what lives in a buffer itself.
  std::int64_t size() const { return 600; }
  Tensor& any() { return pool_[static_cast<std::size_t>(below(static_cast<int>(pool_.size())))]; }
  Tensor on(const Tensor& tensor, Device device) {
    return tensor.device() == device ? tensor : to_device(tensor, device);
  }

  void step() {
    // Placement is drawn for every program but only used with several devices, so that the rest stays the
    // same.
    const Device device = cpu(below(4) % devices_);
    Tensor& target = any();
    const Tensor a = on(any(), device);
    const Tensor b = on(any(), device);
    switch (below(8)) {
      case 0:
      case 1: target = add(a, b); break;
      case 2: target = multiply(a, engine_.constant(Scalar(0.5), DType::float64)); break;
      case 3: target = call(engine_, engine_.op("delayed"), {a, b}); break;
      case 4: {
        Tensor own = on(target, device);
        add_to(own, b);
        target = own;
        break;
      }
      case 5: target = engine_.apply(engine_.op("flip"), {&a}, {AttrValue{}}); break;
      case 6: {
        const Tensor left = engine_.apply(engine_.op("slice"), {&a}, {Dims{0}, Dims{2}, Dims{300}});
        const Tensor wide = engine_.apply(engine_.op("broadcast_to"), {&left}, {Dims{2, 300}});
        target = engine_.apply(engine_.op("reshape"), {&wide}, {Dims{600}});
        break;
      }
      default:
        target = call(engine_, engine_.op("delayed"), {a, b, a});
        if (below(10) == 0) target.wait();
        break;
    }
  }

  Engine& engine_;
  std::mt19937 random_;
  int devices_;
  std::vector<Tensor> pool_;
};

/// Delays differ from run to run on purpose; sums are split by size only.
void delayed(const KernelContext& context) {
  thread_local std::minstd_rand random(std::random_device{}());
  for (unsigned i = random() % 40; i > 0; --i) std::this_thread::yield();
  double* out = context.output().as<double>();
  const std::int64_t count = context.output().numel();
  context.parallel_for(4, [&](std::int64_t chunk) {
    for (std::int64_t i = chunk * count / 4; i < (chunk + 1) * count / 4; ++i) {
      double sum = 0;
      for (const TensorView& input : context.inputs()) sum = sum * 0.3 + input.as<double>()[i];
      out[i] = sum;
    }
  });
}

std::vector<std::vector<double>> run_program(const Drive& drive, unsigned seed) {
  Engine engine(drive.options(), &register_test_kernels);
  engine.register_operator(custom_op("delayed"), delayed);
  return Program(engine, seed, drive.devices).run(250);
}

void expect_same_bits(const std::vector<std::vector<double>>& a, const std::vector<std::vector<double>>& b,
                      unsigned seed) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(a[i].size(), b[i].size());
    EXPECT_EQ(std::memcmp(a[i].data(), b[i].data(), a[i].size() * sizeof(double)), 0)
        << "value " << i << " of the program with seed " << seed;
  }
}

class DeterminismTest : public ::testing::TestWithParam<Drive>, private EngineTestBase {};

std::vector<Drive> placed_drives() {
  std::vector<Drive> drives = all_drives();
  for (const Drive& drive : all_drives(4)) drives.push_back(drive);
  return drives;
}

INSTANTIATE_TEST_SUITE_P(Drives, DeterminismTest, ::testing::ValuesIn(placed_drives()), drive_name);

TEST_P(DeterminismTest, RandomProgramsGiveTheBitsOfTheSynchronousEngine) {
  for (unsigned seed = 1; seed <= 4; ++seed) {
    const auto expected = run_program({EngineMode::synchronous, 1, true, 1}, seed);
    expect_same_bits(run_program(GetParam(), seed), expected, seed);
  }
}

TEST_P(DeterminismTest, ProgramsOfSeveralThreadsOnOneEngineDoNotMix) {
  Engine engine(GetParam().options(), &register_test_kernels);
  engine.register_operator(custom_op("delayed"), delayed);
  std::vector<std::vector<std::vector<double>>> results(4);
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] { results[t] = Program(engine, 10 + t, GetParam().devices).run(120); });
  }
  for (std::thread& thread : threads) thread.join();
  for (unsigned t = 0; t < 4; ++t) {
    Engine reference(Drive{EngineMode::synchronous}.options(), &register_test_kernels);
    reference.register_operator(custom_op("delayed"), delayed);
    expect_same_bits(results[t], Program(reference, 10 + t, 1).run(120), 10 + t);
  }
}

}  // namespace
}  // namespace thalweg::testing
