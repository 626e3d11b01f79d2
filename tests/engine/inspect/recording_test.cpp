// recording_test.cpp: recordings of all operators that ran in between.
#include <atomic>
#include <cmath>
#include <limits>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <thalweg/errors.h>

#include "engine/inspect/dump_reader.h"
#include "engine/support/engine_test.h"
#include "runtime/engine_impl.h"

namespace thalweg::testing {
namespace {

using Recording = EngineTest;

class DrivenRecording : public DrivenTest {};
INSTANTIATE_TEST_SUITE_P(Drives, DrivenRecording, ::testing::ValuesIn(all_drives()), drive_name);

Tensor reshape(const Tensor& a, const Shape& shape) {
  return a.engine().apply(a.engine().op("reshape"), {&a}, {AttrValue(shape)});
}

TEST_P(DrivenRecording, ShowsEveryOperatorInOrderWithTimes) {
  const Tensor a = ramp(engine, 4);
  const Tensor early = add(a, a);
  engine.start_recording();
  const Tensor b = add(early, early);
  const Tensor c = reshape(b, {2, 2});
  const Tensor d = multiply(c, c);
  const Json dump = finish_recording(engine);
  const Tensor late = add(a, a);
  expect_consistent(dump);
  EXPECT_EQ(dump["kind"], "recording");
  ASSERT_EQ(dump["operators"].size(), 3U);
  EXPECT_EQ(dump["operands"].size(), 4U);
  for (const Json& op : dump["operators"]) {
    EXPECT_EQ(op["state"], "ready");
    EXPECT_GT(op["enqueue_ns"], 0);
    EXPECT_GE(op["start_ns"], op["enqueue_ns"]);
    EXPECT_GE(op["end_ns"], op["start_ns"]);
    EXPECT_TRUE(op["thread"].is_number_unsigned());
  }
  EXPECT_TRUE(operand_of(dump, early)["producer"].is_null());
  EXPECT_EQ(operand_of(dump, early)["consumers"], Json::array({b.id()}));
  EXPECT_EQ(operator_of(dump, b)["inputs"], Json::array({early.id(), early.id()}));
  EXPECT_EQ(operator_of(dump, c)["attributes"], Json({{"shape", {2, 2}}}));
  EXPECT_TRUE(operator_of(dump, c)["stream"].is_null());
  EXPECT_EQ(operator_of(dump, c)["bytes"], 0);
  EXPECT_EQ(operand_of(dump, d)["shape"], Json::array({2, 2}));
  EXPECT_EQ(values<double>(d), (std::vector<double>{0, 16, 64, 144}));
}

TEST_P(DrivenRecording, ShowsFailures) {
  const Op& broken = add_throwing(engine, "broken", KernelError("no"));
  const Tensor a = ramp(engine, 4);
  engine.start_recording();
  if (is_synchronous()) {
    EXPECT_THROW(call(engine, broken, {a}), KernelError);
    EXPECT_EQ(finish_recording(engine)["operators"][0]["state"], "failed");
    return;
  }
  const Tensor b = call(engine, broken, {a});
  const Tensor c = add(b, a);
  const Json dump = finish_recording(engine);
  EXPECT_EQ(operator_of(dump, b)["state"], "failed");
  EXPECT_EQ(operator_of(dump, c)["state"], "failed");
  EXPECT_GE(operator_of(dump, c)["end_ns"], operator_of(dump, c)["start_ns"]);
  EXPECT_THROW(c.wait(), KernelError);
}

TEST_P(DrivenRecording, ShowsNamesGivenBeforeDuringAndAfter) {
  const Tensor a = ramp(engine, 4);
  a.set_name("before");
  engine.start_recording();
  const Tensor b = add(a, a);
  b.set_name("during");
  const Tensor c = add(b, a);
  c.wait();
  c.set_name("after it ran");
  const Tensor d = add(c, a);
  d.set_name("\xff");
  const Json dump = finish_recording(engine);
  EXPECT_EQ(operand_of(dump, a)["name"], "before");
  EXPECT_EQ(operand_of(dump, b)["name"], "during");
  EXPECT_EQ(operand_of(dump, c)["name"], "after it ran");
  EXPECT_EQ(operand_of(dump, d)["name"], "\xEF\xBF\xBD");
}

TEST_F(Recording, ShowsEveryNameHoweverMany) {
  constexpr int kNames = static_cast<int>(OperandNames::kKept) + 100;
  for (const EngineMode mode : {EngineMode::threaded, EngineMode::synchronous}) {
    if (kSanitized && mode == EngineMode::synchronous) break;  // a minute each
    Engine engine(Drive{mode}.options(), &register_test_kernels);
    const Tensor a = filled(engine, 1, 1);
    engine.start_recording();
    for (int i = 0; i < kNames; ++i) add(a, a).set_name(std::to_string(i));
    const Json dump = finish_recording(engine);
    ASSERT_EQ(dump["operands"].size(), static_cast<std::size_t>(kNames) + 1);
    for (int i = 0; i < kNames; ++i) {
      ASSERT_EQ(dump["operands"][static_cast<std::size_t>(i) + 1]["name"], std::to_string(i));
    }
  }
}

TEST_P(DrivenRecording, KeepsNothingWhileOff) {
  Tensor a = filled(engine, 1, 1);
  for (int i = 0; i < 100; ++i) a = add(a, a);
  engine.start_recording();
  finish_recording(engine);
  for (int i = 0; i < 100; ++i) a = add(a, a);
  engine.drain();
  EXPECT_TRUE(engine.impl().records.empty());
  engine.start_recording();
  a = add(a, a);
  EXPECT_EQ(finish_recording(engine)["operators"].size(), 1U);
}

TEST_P(DrivenRecording, RefusesASecondStartAndALoneStop) {
  std::ostringstream out;
  EXPECT_THROW(engine.stop_recording(out), EngineError);
  engine.start_recording();
  EXPECT_THROW(engine.start_recording(), EngineError);
  const Tensor a = ramp(engine, 4);
  const Tensor b = add(a, a);
  EXPECT_EQ(finish_recording(engine)["operators"].size(), 1U);
  EXPECT_THROW(engine.stop_recording(out), EngineError);
  EXPECT_TRUE(out.str().empty());
}

/// Everything but times and threads is the same however the engine is driven.
TEST_P(DrivenRecording, IsTheSameInEveryDrive) {
  const auto record = [](Engine& recorded) {
    Tensor a = ramp(recorded, 4);
    recorded.start_recording();
    for (int i = 0; i < 20; ++i) a = i % 3 == 0 ? multiply(a, a) : reshape(add(a, a), {2, 2});
    Json dump = finish_recording(recorded);
    dump.erase("engine");
    for (Json& op : dump["operators"]) {
      for (const char* key : {"enqueue_ns", "start_ns", "end_ns", "thread"}) op.erase(key);
    }
    return dump;
  };
  Engine reference(Drive{EngineMode::synchronous}.options(), &register_test_kernels);
  EXPECT_EQ(record(engine).dump(), record(reference).dump());
}

TEST_F(Recording, WritesAttributesAsJson) {
  Engine engine(Drive{}.options(), &register_test_kernels);
  Op op = custom_op("attributed");
  op.attributes = {{"flag", AttrKind::boolean, true},
                   {"count", AttrKind::integer, std::int64_t{-3}},
                   {"ratio", AttrKind::floating, 0.1},
                   {"low", AttrKind::floating, -std::numeric_limits<double>::infinity()},
                   {"high", AttrKind::scalar, Scalar(std::numeric_limits<double>::infinity())},
                   {"nan", AttrKind::scalar, Scalar(std::nan(""))},
                   {"large", AttrKind::scalar, Scalar(std::numeric_limits<std::uint64_t>::max())},
                   {"dtype", AttrKind::dtype, DType::bool_},
                   {"device", AttrKind::device, Device{}},
                   {"axes", AttrKind::axes, Dims{0, -1}},
                   {"text", AttrKind::string, std::string("a \"b\"")},
                   {"none", AttrKind::axes}};
  const Op& attributed = engine.register_operator(std::move(op), sum_kernel);
  engine.start_recording();
  const Tensor result = call(engine, attributed, {ramp(engine, 4)});
  const Json attributes = operator_of(finish_recording(engine), result)["attributes"];
  EXPECT_EQ(
      attributes.dump(),
      R"({"flag":true,"count":-3,"ratio":0.1,"low":"-inf","high":"inf","nan":"nan",)"
      R"("large":18446744073709551615,"dtype":"bool","device":"cpu:0","axes":[0,-1],"text":"a \"b\"","none":null})");
}

TEST_F(Recording, ShowsDevicesAndCopies) {
  Engine engine(Drive{.devices = 2}.options(), &register_test_kernels);
  engine.start_recording();
  const Tensor copy = to_device(ramp(engine, 4), cpu(1));
  const Json dump = finish_recording(engine);
  EXPECT_EQ(dump["engine"]["devices"], Json::array({"cpu:0", "cpu:1"}));
  EXPECT_EQ(operator_of(dump, copy)["devices"], Json::array({"cpu:1"}));
  EXPECT_EQ(operator_of(dump, copy)["stream"], "copy");
  EXPECT_EQ(operator_of(dump, copy)["attributes"]["device"], "cpu:1");
  EXPECT_EQ(operand_of(dump, copy)["device"], "cpu:1");
}

/// Threads issue across the beginning and the end of recordings: records are neither lost nor used after they
/// went.
TEST_P(DrivenRecording, MayBeginAndEndWhileOthersIssue) {
  std::atomic<bool> over{false};
  std::vector<std::thread> issuers;
  for (int i = 0; i < 2; ++i) {
    issuers.emplace_back([&] {
      Tensor a = filled(engine, 1, 0);
      const Tensor one = filled(engine, 1, 1);
      int issued = 0;
      for (; !over; ++issued) {
        a = add(a, one);
        if (issued % 64 == 0) a.wait();
      }
      EXPECT_EQ(item(a), issued);
    });
  }
  for (int i = 0; i < 20; ++i) {
    engine.start_recording();
    const Tensor mine = add(filled(engine, 1, 1), filled(engine, 1, 1));
    const Json dump = finish_recording(engine);
    expect_consistent(dump);
    EXPECT_EQ(operator_of(dump, mine)["state"], "ready");
  }
  over = true;
  for (std::thread& issuer : issuers) issuer.join();
}

TEST_F(Recording, WritesAHundredThousandOperators) {
  constexpr std::size_t kOperators = kSanitized ? 10'000 : 100'000;
  Engine engine(Drive{}.options(), &register_test_kernels);
  Tensor a = filled(engine, 1, 0);
  const Tensor one = filled(engine, 1, 1);
  engine.start_recording();
  for (std::size_t i = 0; i < kOperators; ++i) a = add(a, one);
  engine.synchronize();
  std::ostringstream out;
  engine.stop_recording(out);
  EXPECT_EQ(Json::parse(out.str())["operators"].size(), kOperators);
}

}  // namespace
}  // namespace thalweg::testing
