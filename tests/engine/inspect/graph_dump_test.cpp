// graph_dump_test.cpp: dumps of the live graph.
#include <atomic>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <thalweg/errors.h>

#include "engine/inspect/dump_reader.h"
#include "engine/support/engine_test.h"

namespace thalweg::testing {
namespace {

const Op& add_gated(Engine& engine, Gate& gate) {
  return add_custom(engine, "gated", [&gate](const KernelContext&) { gate.pass(); });
}

using GraphDump = EngineTest;

class DrivenGraphDump : public DrivenTest {};
INSTANTIATE_TEST_SUITE_P(Drives, DrivenGraphDump, ::testing::ValuesIn(all_drives()), drive_name);

TEST_P(DrivenGraphDump, IsEmptyWhenNothingIsLive) {
  const Tensor sum = add(ramp(engine, 4), ramp(engine, 4));
  engine.synchronize();
  engine.drain();
  const Json dump = live_dump(engine);
  EXPECT_EQ(dump["format"], "thalweg.graph");
  EXPECT_EQ(dump["version"], 1);
  EXPECT_EQ(dump["kind"], "live");
  EXPECT_EQ(dump["graph"], "graph");
  EXPECT_EQ(dump["clock"], "steady");
  EXPECT_EQ(dump["engine"]["num_threads"], GetParam().threads);
  EXPECT_EQ(dump["engine"]["devices"], Json::array({"cpu:0"}));
  EXPECT_TRUE(dump["operators"].empty());
  EXPECT_TRUE(dump["operands"].empty());
}

TEST_P(DrivenGraphDump, ShowsTheGraphsName) {
  engine.set_name("step");
  EXPECT_EQ(live_dump(engine)["graph"], "step");
}

class AsynchronousGraphDump : public ::testing::TestWithParam<Drive>, private EngineTestBase {};
INSTANTIATE_TEST_SUITE_P(Drives, AsynchronousGraphDump, ::testing::ValuesIn(asynchronous_drives()),
                         drive_name);

TEST_P(AsynchronousGraphDump, ShowsRunningAndPendingOperatorsWithTheirEdges) {
  Gate gate;
  EngineOptions options = GetParam().options();
  options.hooks.resolve_site = [](SiteId site) { return "train.py:" + std::to_string(site); };
  Engine engine(options, &register_test_kernels);
  const Op& gated = add_gated(engine, gate);
  const OpenAtEnd open(gate);
  const Tensor a = ramp(engine, 4);
  const Tensor b = call(engine, gated, {a}, 12);
  const Tensor c = add(b, a);
  c.set_name("c");
  engine.flush();
  ASSERT_TRUE(gate.await_arrivals(1));

  const Json dump = live_dump(engine);
  expect_consistent(dump);
  ASSERT_EQ(dump["operators"].size(), 2U);
  const Json running = operator_of(dump, b);
  EXPECT_EQ(running["name"], "gated_" + std::to_string(b.id()));
  EXPECT_EQ(running["op"], "gated");
  EXPECT_EQ(running["state"], "running");
  EXPECT_EQ(running["site"], "train.py:12");
  EXPECT_EQ(running["inputs"], Json::array({a.id()}));
  EXPECT_EQ(running["outputs"], Json::array({b.id()}));
  EXPECT_EQ(running["bytes"], 32);
  EXPECT_EQ(running["devices"], Json::array({"cpu:0"}));
  EXPECT_EQ(running["stream"], "compute");
  const Json pending = operator_of(dump, c);
  EXPECT_EQ(pending["state"], "pending");
  EXPECT_EQ(pending["inputs"], Json::array({b.id(), a.id()}));
  for (const char* key :
       {"site", "sequence_number", "fused-into", "enqueue_ns", "start_ns", "end_ns", "thread"}) {
    EXPECT_TRUE(pending[key].is_null()) << key;
  }
  const Json constant = operand_of(dump, a);
  EXPECT_TRUE(constant["producer"].is_null());
  EXPECT_EQ(constant["consumers"], Json::array({b.id(), c.id()}));
  EXPECT_EQ(constant["shape"], Json::array({4}));
  EXPECT_EQ(constant["dtype"], "float64");
  EXPECT_EQ(constant["bytes"], 32);
  EXPECT_TRUE(constant["name"].is_null());
  EXPECT_EQ(operand_of(dump, c)["name"], "c");
}

TEST_P(AsynchronousGraphDump, ShowsShapesOfManyDimensions) {
  Gate gate;
  Engine engine(GetParam().options(), &register_test_kernels);
  const Op& gated = add_gated(engine, gate);
  const OpenAtEnd open(gate);
  const Tensor a = engine.allocate(DType::float64, {1, 2, 1, 2, 1, 3});
  const Tensor b = call(engine, gated, {a});
  engine.flush();
  ASSERT_TRUE(gate.await_arrivals(1));
  const Json dump = live_dump(engine);
  EXPECT_EQ(operand_of(dump, a)["shape"], Json::array({1, 2, 1, 2, 1, 3}));
  EXPECT_EQ(operand_of(dump, b)["shape"], Json::array({1, 2, 1, 2, 1, 3}));
}

/// Names that were sent and not handled yet: what a kernel of a caller-driven engine sends waits in the
/// queue.
TEST_F(GraphDump, ShowsNamesThatAreStillInTheQueue) {
  Gate flushed;
  Gate dumped;
  Engine engine(Drive{EngineMode::caller_driven}.options(), &register_test_kernels);
  const Tensor a = ramp(engine, 4);
  Tensor inner;
  const Op& issuing = add_custom(engine, "issuing", [&](const KernelContext&) {
    flushed.pass();
    inner = add(a, a);
    inner.set_name("first");
    inner.set_name("second");
    engine.set_name("renamed");
    dumped.pass();
  });
  const OpenAtEnd open(dumped);
  const Tensor outer = call(engine, issuing, {a});
  engine.flush();
  flushed.open();
  ASSERT_TRUE(dumped.await_arrivals(1));
  const Json dump = live_dump(engine);
  expect_consistent(dump);
  EXPECT_EQ(dump["graph"], "renamed");
  EXPECT_EQ(operator_of(dump, inner)["state"], "pending");
  EXPECT_EQ(operand_of(dump, inner)["name"], "second");
}

TEST_F(GraphDump, StartsNothing) {
  Engine engine(Drive{EngineMode::caller_driven}.options(), &register_test_kernels);
  const Tensor a = ramp(engine, 4);
  const Tensor b = add(a, a);
  const Tensor c = add(b, a);
  for (int i = 0; i < 3; ++i) {
    const Json dump = live_dump(engine);
    expect_consistent(dump);
    ASSERT_EQ(dump["operators"].size(), 2U);
    EXPECT_EQ(operator_of(dump, b)["state"], "pending");
    EXPECT_EQ(operand_of(dump, b)["consumers"], Json::array({c.id()}));
  }
  EXPECT_EQ(engine.stats().executed, 0U);
  EXPECT_EQ(values<double>(c), (std::vector<double>{0, 3, 6, 9}));
}

TEST_F(GraphDump, RefusesInKernelsAndCallbacks) {
  Gate gate;
  std::atomic<int> refused{0};
  Engine engine(Drive{}.options(), &register_test_kernels);
  const auto dump = [&] {
    try {
      std::ostringstream out;
      engine.dump_graph(out);
    } catch (const EngineError&) {
      ++refused;
    }
  };
  const Op& dumping = add_custom(engine, "dumping", [&](const KernelContext&) {
    gate.pass();
    dump();
  });
  const Tensor a = call(engine, dumping, {ramp(engine, 4)});
  a.on_ready(dump);
  gate.open();
  engine.synchronize();
  engine.drain();
  EXPECT_EQ(refused, 2);
}

/// Random reads of the last values, by turns as an inline operator and as a task, against the same sums
/// computed here.
class Mixture {
 public:
  explicit Mixture(Engine& engine, const Op& task) : task_(task), half_(filled(engine, 1, 0.5)) {
    for (std::size_t i = 0; i < kWindow; ++i) {
      expected_.push_back(static_cast<double>(i));
      tensors_.push_back(filled(engine, 1, expected_.back()));
    }
  }

  void issue(int operators) {
    for (int i = 0; i < operators; i += 2) {
      const std::size_t left = next();
      const std::size_t right = next();
      const std::size_t to = next();
      if (i % 16 == 0) {
        tensors_[to] = call(half_.engine(), task_, {tensors_[left], tensors_[right]});
        expected_[to] = expected_[left] + expected_[right] + 1;
      } else {
        tensors_[to] = add(tensors_[left], tensors_[right]);
        expected_[to] = expected_[left] + expected_[right];
      }
      tensors_[to] = multiply(tensors_[to], half_);
      expected_[to] *= 0.5;
    }
  }
  void expect_right() const {
    for (std::size_t i = 0; i < kWindow; ++i) EXPECT_EQ(item(tensors_[i]), expected_[i]) << i;
  }

 private:
  static constexpr std::size_t kWindow = 64;

  std::size_t next() {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return state_ >> 58;
  }

  const Op& task_;
  Tensor half_;
  std::uint64_t state_ = 1;
  std::vector<Tensor> tensors_;
  std::vector<double> expected_;
};

TEST_P(AsynchronousGraphDump, NeverDisturbsARun) {
  constexpr int kOperators = 100'000;
  Engine engine(GetParam().options(), &register_test_kernels);
  const Op& task = engine.register_operator(custom_op("task"), [](const KernelContext& context) {
    *context.output().as<double>() = *context.input(0).as<double>() + *context.input(1).as<double>() + 1;
  });
  Mixture mixture(engine, task);
  std::atomic<bool> over{false};
  int dumps = 0;
  std::thread dumper([&] {
    do {
      const Json dump = live_dump(engine);
      if (dumps % 8 == 0) expect_consistent(dump);
      ++dumps;
    } while (!over);
  });
  mixture.issue(kOperators);
  engine.synchronize();
  over = true;
  dumper.join();
  mixture.expect_right();
  engine.drain();
  EXPECT_EQ(engine.stats().executed, static_cast<std::uint64_t>(kOperators));
  EXPECT_GT(dumps, 0);
}

}  // namespace
}  // namespace thalweg::testing
