// graph_constructor_test.cpp: what the issuing call checks, infers and puts in front of an operator.
#include <cmath>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "engine/support/engine_test.h"

namespace thalweg::testing {
namespace {

/// The text of the `Error` that `call` throws.
template <class Error, class Call>
std::string text_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "threw another type: " << error.what();
    return {};
  }
  ADD_FAILURE() << "did not throw";
  return {};
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

EngineOptions caller_driven(int devices = 1) {
  return Drive{EngineMode::caller_driven, 1, true, devices}.options();
}

class GraphConstructorTest : public EngineTest {
 protected:
  std::uint64_t executed() {
    engine.drain();
    return engine.stats().executed;
  }

  Engine engine{caller_driven(), &register_test_kernels};
};

Op op_with_attributes() {
  Op op = custom_op("configured");
  op.attributes = {{"count", AttrKind::integer, {}, true},
                   {"scale", AttrKind::floating, 2.5},
                   {"axes", AttrKind::axes},
                   {"mode", AttrKind::string, std::string("fast")}};
  return op;
}

TEST_F(GraphConstructorTest, FillsInDefaultsOfAttributes) {
  Attributes seen;
  const Op& op = engine.register_operator(op_with_attributes(), [&](const KernelContext& context) {
    seen = context.attributes();
    sum_kernel(context);
  });
  engine.apply(op, {}, {AttrValue(std::int64_t{3})}).wait();
  ASSERT_EQ(seen.size(), 4u);
  EXPECT_EQ(seen.get<std::int64_t>(0), 3);
  EXPECT_EQ(seen.get<double>(1), 2.5);
  EXPECT_FALSE(seen.has(2));
  EXPECT_EQ(seen.get<std::string>(3), "fast");
}

TEST_F(GraphConstructorTest, RejectsAMissingRequiredAttribute) {
  const Op& op = engine.register_operator(op_with_attributes(), sum_kernel);
  const std::string text = text_of<AttributeError>([&] { engine.apply(op, {}); });
  EXPECT_TRUE(contains(text, "configured") && contains(text, "count")) << text;
}

TEST_F(GraphConstructorTest, RejectsAnAttributeOfTheWrongKind) {
  const Op& op = engine.register_operator(op_with_attributes(), sum_kernel);
  const std::string text = text_of<AttributeError>([&] {
    engine.apply(op, {}, {AttrValue(std::int64_t{3}), AttrValue(std::string("much"))});
  });
  EXPECT_TRUE(contains(text, "scale")) << text;
}

TEST_F(GraphConstructorTest, RejectsTooManyAttributes) {
  const Op& op = engine.register_operator(custom_op("plain"), sum_kernel);
  const std::string text = text_of<AttributeError>([&] {
    engine.apply(op, {}, {AttrValue(true), AttrValue(true)});
  });
  EXPECT_TRUE(contains(text, "plain") && contains(text, "2")) << text;
}

TEST_F(GraphConstructorTest, RejectsAWrongNumberOfInputs) {
  const Tensor a = ramp(engine, 3);
  const std::string text = text_of<ValueError>([&] { engine.apply(engine.op("add"), {&a}); });
  EXPECT_TRUE(contains(text, "add") && contains(text, "2") && contains(text, "1")) << text;
  EXPECT_THROW(engine.apply(engine.op("add"), {&a, &a, &a}), ValueError);
}

TEST_F(GraphConstructorTest, TakesAnyNumberOfVariadicInputs) {
  const Op& op = add_custom(engine, "gather");
  for (std::size_t count : {0u, 1u, 7u, 8u, 9u, 100u}) {
    const Tensor result = call(engine, op, std::vector<Tensor>(count, filled(engine, 2, 1)));
    EXPECT_EQ(values<double>(result)[0], 1.0 + static_cast<double>(count)) << count;
  }
}

TEST_F(GraphConstructorTest, RejectsAnEmptyTensor) {
  const Tensor a = ramp(engine, 3);
  const Tensor empty;
  const std::string text = text_of<ValueError>([&] { add(a, empty); });
  EXPECT_TRUE(contains(text, "add") && contains(text, "input 1")) << text;
  Tensor target;
  EXPECT_THROW(engine.apply_in_place(engine.op("add"), target, {}), ValueError);
}

TEST_F(GraphConstructorTest, RejectsTheTensorOfAnotherEngine) {
  Engine other(caller_driven(), &register_test_kernels);
  const Tensor mine = ramp(engine, 3);
  const Tensor theirs = ramp(other, 3);
  const std::string text = text_of<EngineError>([&] { add(mine, theirs); });
  EXPECT_TRUE(contains(text, "add") && contains(text, "input 1")) << text;
  EXPECT_EQ(executed(), 0u);
}

TEST_F(GraphConstructorTest, RejectsOperatorsAfterShutdown) {
  const Tensor a = ramp(engine, 3);
  engine.shutdown();
  const std::string text = text_of<EngineError>([&] { add(a, a); });
  EXPECT_TRUE(contains(text, "add") && contains(text, "shut down")) << text;
  EXPECT_EQ(values<double>(a)[2], 2) << "values are still readable";
}

TEST_F(GraphConstructorTest, RejectsRegistrationAfterTheFirstOperator) {
  const Tensor a = ramp(engine, 3);
  add(a, a);
  EXPECT_THROW(engine.register_operator(custom_op("late"), sum_kernel), EngineError);
}

TEST_F(GraphConstructorTest, RejectsATakenName) {
  add_custom(engine, "mine");
  EXPECT_THROW(add_custom(engine, "mine"), ValueError);
  EXPECT_THROW(add_custom(engine, "add"), ValueError);
}

TEST_F(GraphConstructorTest, NamesCloseMatchesOfAnUnknownOperator) {
  const std::string text = text_of<ValueError>([&] { engine.op("addd"); });
  EXPECT_TRUE(contains(text, "addd") && contains(text, "'add'")) << text;
}

TEST_F(GraphConstructorTest, RaisesShapeErrorsInTheCallAndLeavesNothingBehind) {
  const Tensor a = ramp(engine, 3);
  const Tensor b = ramp(engine, 4);
  const std::string text = text_of<ShapeError>([&] { add(a, b); });
  EXPECT_TRUE(contains(text, "add") && contains(text, "(3,)") && contains(text, "(4,)")) << text;
  EXPECT_EQ(executed(), 0u);
  EXPECT_TRUE(a.owns_bytes_alone());
}

TEST_F(GraphConstructorTest, AnInferThatThrowsLeavesNothingBehind) {
  Op op = custom_op("picky");
  op.infer = [](InferContext&) { throw std::out_of_range("no"); };
  const Op& picky = engine.register_operator(op, sum_kernel);
  const Tensor a = ramp(engine, 3);
  EXPECT_THROW(call(engine, picky, {a}), std::out_of_range);
  EXPECT_EQ(executed(), 0u);
}

TEST_F(GraphConstructorTest, InsertsCasts) {
  Tensor whole = engine.allocate(DType::int64, {2});
  static_cast<std::int64_t*>(Engine::mutable_data(whole))[0] = 40;
  static_cast<std::int64_t*>(Engine::mutable_data(whole))[1] = 50;
  const Tensor result = add(whole, ramp(engine, 2));
  EXPECT_EQ(result.dtype(), DType::float64);
  EXPECT_EQ(values<double>(result), (std::vector<double>{40, 51}));
  EXPECT_EQ(executed(), 2u) << "astype and add";
}

TEST_F(GraphConstructorTest, InsertsContiguousCopiesOnlyWhereAskedFor) {
  const Op& op = add_custom(engine, "flat");
  const Tensor matrix = engine.apply(engine.op("reshape"), {&static_cast<const Tensor&>(ramp(engine, 6))},
                                     {AttrValue(Dims{2, 3})});
  const Tensor transposed = engine.apply(engine.op("permute_dims"), {&matrix}, {AttrValue{}});
  executed();
  const auto before = executed();
  EXPECT_EQ(values<double>(call(engine, op, {transposed})), (std::vector<double>{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(executed() - before, 2u) << "contiguous and the operator";
  EXPECT_EQ(values<double>(call(engine, op, {matrix})), (std::vector<double>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(executed() - before, 3u) << "the matrix is contiguous already";
  EXPECT_EQ(values<double>(add(transposed, transposed))[1], 6);
  EXPECT_EQ(executed() - before, 4u) << "add takes strides";
}

TEST_F(GraphConstructorTest, AnOperatorMayHaveSeveralOutputs) {
  Op op = custom_op("split_sign");
  op.outputs = 2;
  op.infer = [](InferContext& context) {
    for (std::size_t i = 0; i < 2; ++i) context.set_contiguous(i, context.input(0).shape, DType::float64);
  };
  const Op& split = engine.register_operator(op, [](const KernelContext& context) {
    for (std::int64_t i = 0; i < context.input(0).numel(); ++i) {
      const double value = context.input(0).as<double>()[i];
      context.output(0).as<double>()[i] = std::abs(value);
      context.output(1).as<double>()[i] = value < 0 ? -1 : 1;
    }
  });
  const Tensor x = ramp(engine, 3, -1);
  const Tensor* inputs[] = {&x};
  const std::vector<Tensor> parts = engine.apply_many(split, inputs);
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(values<double>(parts[0]), (std::vector<double>{1, 0, 1}));
  EXPECT_EQ(values<double>(parts[1]), (std::vector<double>{-1, 1, 1}));
  EXPECT_NE(parts[0].id(), parts[1].id());
  EXPECT_THROW(engine.apply(split, inputs), ValueError) << "apply is for one output";
}

TEST_F(GraphConstructorTest, IdsRiseInIssueOrder) {
  const Tensor a = ramp(engine, 3);
  const Tensor b = add(a, a);
  const Tensor c = add(b, a);
  EXPECT_LT(a.id(), b.id());
  EXPECT_LT(b.id(), c.id());
}

TEST_F(GraphConstructorTest, AnInPlaceFormKeepsShapeAndKind) {
  Tensor x = ramp(engine, 2);
  const Tensor row = filled(engine, 1, 1);
  Tensor matrix = engine.allocate(DType::float64, {2, 2});
  EXPECT_THROW(add_to(x, matrix), ShapeError);
  add_to(x, row);
  EXPECT_EQ(values<double>(x), (std::vector<double>{1, 2}));
  Tensor whole = engine.allocate(DType::int64, {1});
  *static_cast<std::int64_t*>(Engine::mutable_data(whole)) = 4;
  EXPECT_THROW(add_to(whole, row), DTypeError);
  EXPECT_EQ(values<std::int64_t>(whole)[0], 4) << "after an error the handle still has its value";
}

TEST_F(GraphConstructorTest, AnInPlaceFormCastsBackWithinItsKind) {
  Tensor x = engine.allocate(DType::int32, {2});
  static_cast<std::int32_t*>(Engine::mutable_data(x))[0] = 1;
  static_cast<std::int32_t*>(Engine::mutable_data(x))[1] = 2;
  Tensor big = engine.allocate(DType::int64, {2});
  static_cast<std::int64_t*>(Engine::mutable_data(big))[0] = 10;
  static_cast<std::int64_t*>(Engine::mutable_data(big))[1] = 20;
  add_to(x, big);
  EXPECT_EQ(x.dtype(), DType::int32);
  EXPECT_EQ(values<std::int32_t>(x), (std::vector<std::int32_t>{11, 22}));
}

TEST_F(GraphConstructorTest, AnInPlaceFormLeavesOtherHandlesAlone) {
  Tensor x = ramp(engine, 100);
  const Tensor y = x;
  add_to(x, x);
  EXPECT_EQ(values<double>(x)[99], 198);
  EXPECT_EQ(values<double>(y)[99], 99);
}

TEST_F(GraphConstructorTest, RejectsAKernelOfAnUnknownOperator) {
  Engine broken(caller_driven(), [](KernelRegistry& registry) {
    registry.add("no_such_op", DeviceType::cpu, [](const KernelContext&) {});
  });
  const Tensor a = ramp(broken, 2);
  const std::string text = text_of<ValueError>([&] { broken.apply(broken.op("add"), {&a, &a}); });
  EXPECT_TRUE(contains(text, "no_such_op")) << text;
}

TEST_F(GraphConstructorTest, AnOperatorWithoutAKernelFailsWhenItRuns) {
  const Tensor a = ramp(engine, 2);
  const Tensor result = engine.apply(engine.op("subtract"), {&a, &a});
  EXPECT_THROW(result.wait(), KernelError);
}

TEST_F(GraphConstructorTest, HugeSizesAreRejectedOrRunOutOfMemory) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  Op op = custom_op("huge");
  op.attributes = {{"size", AttrKind::integer, {}, true}};
  op.infer = [](InferContext& context) {
    context.set_contiguous(0, {context.attributes().get<std::int64_t>(0)}, DType::uint8);
  };
  const Op& huge = engine.register_operator(op, [](const KernelContext&) {});
  EXPECT_THROW(engine.allocate(DType::float64, {kMost / 2}), ShapeError);
  EXPECT_THROW(engine.allocate(DType::uint8, {kMost}), OutOfMemoryError);
  EXPECT_THROW(engine.apply(huge, {}, {AttrValue(kMost)}).wait(), OutOfMemoryError);
  engine.drain();
  EXPECT_EQ(engine.stats().in_flight, 0u);
}

class GraphConstructorDevices : public EngineTest {
 protected:
  Engine engine{caller_driven(3), &register_test_kernels};
};

TEST_F(GraphConstructorDevices, RejectsInputsOnTwoDevices) {
  const Tensor a = ramp(engine, 3, 0, 1, cpu(0));
  const Tensor b = ramp(engine, 3, 0, 1, cpu(1));
  const std::string text = text_of<DeviceError>([&] { add(a, b); });
  EXPECT_TRUE(contains(text, "add") && contains(text, "cpu:0") && contains(text, "cpu:1")) << text;
}

TEST_F(GraphConstructorDevices, CopiesA0dCpuTensor) {
  const Tensor a = ramp(engine, 3, 0, 1, cpu(2));
  const Tensor one = engine.constant(Scalar(1.0), DType::float64);
  const Tensor left = add(one, a);
  const Tensor right = add(a, one);
  EXPECT_EQ(left.device(), cpu(2));
  EXPECT_EQ(right.device(), cpu(2));
  EXPECT_EQ(values<double>(left), (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(values<double>(right), (std::vector<double>{1, 2, 3}));
}

TEST_F(GraphConstructorDevices, NamesTheDevicesThatExist) {
  const Tensor a = ramp(engine, 3);
  const std::string text = text_of<DeviceError>([&] { to_device(a, cpu(3)); });
  EXPECT_TRUE(contains(text, "cpu:3") && contains(text, "cpu:2")) << text;
  EXPECT_THROW(engine.allocate(DType::float64, {1}, cpu(3)), DeviceError);
  EXPECT_THROW(engine.allocate(DType::float64, {1}, {DeviceType::cuda, 0}), DeviceError);
  EXPECT_THROW(engine.constant(Scalar(1.0), DType::float64, cpu(3)), DeviceError);
  EXPECT_THROW(engine.memory_stats(cpu(3)), DeviceError);
}

TEST(EngineOptionsChecks, RejectImpossibleOptions) {
  const auto make = [](auto change) {
    EngineOptions options;
    change(options);
    Engine engine(options, nullptr);
  };
  EXPECT_THROW(make([](EngineOptions& o) { o.perDevicePerProcess = true; }), EngineError);
  EXPECT_THROW(make([](EngineOptions& o) { o.cpu_devices = 0; }), ValueError);
  EXPECT_THROW(make([](EngineOptions& o) { o.cpu_devices = 65; }), ValueError);
  EXPECT_THROW(make([](EngineOptions& o) { o.num_threads = -1; }), ValueError);
  EXPECT_THROW(make([](EngineOptions& o) { o.max_operators_in_flight = 0; }), ValueError);
  EXPECT_THROW(make([](EngineOptions& o) { o.max_bytes_in_flight = 0; }), ValueError);
}

}  // namespace
}  // namespace thalweg::testing
