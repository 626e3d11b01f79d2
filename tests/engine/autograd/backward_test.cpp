// backward_test.cpp: the walk from roots to leaves: values, order, what is kept and what is let go.
#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <thalweg/autograd.h>
#include <thalweg/gradient.h>

#include "engine/support/engine_test.h"

namespace thalweg::testing {
namespace {

Tensor leaf(Engine& engine, double value) {
  Tensor tensor = filled(engine, 1, value);
  set_requires_grad(tensor, true);
  return tensor;
}
Tensor one(Engine& engine) { return filled(engine, 1, 1); }
double grad_item(const Tensor& tensor) { return item(gradient_of(tensor)); }
void run_backward(const Tensor& root, BackwardOptions options = {}) { backward({&root, 1}, {}, options); }
Tensor reshape(const Tensor& x, const Shape& shape) {
  return x.engine().apply(x.engine().op("reshape"), {&x}, attributes_of(shape));
}

std::vector<std::string> names(const std::vector<NodePtr>& nodes) {
  std::vector<std::string> found;
  for (const NodePtr& node : nodes) found.push_back(node->name());
  return found;
}

/// A hook of a function.
class Call final : public Hook {
 public:
  explicit Call(std::function<void(std::span<Tensor>)> function) : function_(std::move(function)) {}
  void run(std::span<Tensor> gradients, std::span<const Tensor>) override { function_(gradients); }

 private:
  std::function<void(std::span<Tensor>)> function_;
};

class Backward : public DrivenTest {};
INSTANTIATE_TEST_SUITE_P(Drives, Backward, ::testing::ValuesIn(all_drives()), drive_name);

TEST_P(Backward, MultipliesAlongAChain) {
  const Tensor x = leaf(engine, 3);
  Tensor y = x;
  for (int i = 0; i < 4; ++i) y = multiply(y, x);
  run_backward(y);
  EXPECT_EQ(grad_item(x), 5 * 81.0);
}

TEST_P(Backward, AddsToTheGradientThatIsThere) {
  const Tensor x = leaf(engine, 3);
  run_backward(multiply(x, x));
  run_backward(multiply(x, x));
  EXPECT_EQ(grad_item(x), 12);
}

TEST_P(Backward, SumsWhatSeveralUsersSendBackInDescendingOrder) {
  const Tensor x = leaf(engine, 1);
  const Tensor y = multiply(x, one(engine));
  // In forward order the sum would be 0: 1 + 1e20 - 1e20.
  Tensor sum = multiply(y, filled(engine, 1, 1));
  sum = add(sum, multiply(y, filled(engine, 1, 1e20)));
  sum = add(sum, multiply(y, filled(engine, 1, -1e20)));
  run_backward(sum);
  EXPECT_EQ(grad_item(x), 1);
}

TEST_P(Backward, FreesWhatWasSavedUnlessAskedToRetain) {
  const Tensor x = leaf(engine, 3);
  const Tensor y = multiply(x, x);
  run_backward(y, {.retain_graph = true});
  run_backward(y);
  EXPECT_EQ(grad_item(x), 12);
  try {
    run_backward(y);
    FAIL() << "the saved values are gone";
  } catch (const EngineError& error) {
    EXPECT_NE(std::string(error.what()).find("retain_graph=True"), std::string::npos) << error.what();
  }
}

TEST_P(Backward, RunsTwiceThroughOperatorsThatSaveNothing) {
  const Tensor x = leaf(engine, 3);
  const Tensor y = add(x, x);
  run_backward(y);
  run_backward(y);
  EXPECT_EQ(grad_item(x), 4);
}

TEST_P(Backward, RecordsItselfForHigherDerivatives) {
  const Tensor x = leaf(engine, 3);
  const Tensor y = multiply(multiply(x, x), x);
  const Edge input = gradient_edge(x);
  Edge root = gradient_edge(y);
  const Tensor first = gradients_of({&root, 1}, {}, {&input, 1}, engine, {.create_graph = true})[0];
  EXPECT_EQ(item(first), 27);
  root = gradient_edge(first);
  const Tensor second = gradients_of({&root, 1}, {}, {&input, 1}, engine)[0];
  EXPECT_EQ(item(second), 18);
  EXPECT_FALSE(second.requires_grad());
  EXPECT_FALSE(gradient_of(x));
}

TEST_P(Backward, ReachesOnlyTheInputsAskedFor) {
  const Tensor x = leaf(engine, 3);
  const Tensor w = leaf(engine, 5);
  const Tensor y = multiply(x, w);
  backward({&y, 1}, {}, {}, {&w, 1});
  EXPECT_EQ(grad_item(w), 3);
  EXPECT_FALSE(gradient_of(x));
}

TEST_P(Backward, InPlaceFormsRebindAndSaveTheOldValue) {
  const Tensor x = leaf(engine, 3);
  Tensor y = multiply(x, one(engine));
  const Tensor z = multiply(y, y);
  add_to(y, one(engine));
  EXPECT_EQ(item(y), 4);
  EXPECT_EQ(names({grad_fn(y)}), std::vector<std::string>{"AddBackward"});
  run_backward(z);
  EXPECT_EQ(grad_item(x), 6);
}

TEST_P(Backward, RefusesToChangeALeafInPlaceWhileRecording) {
  Tensor x = leaf(engine, 3);
  EXPECT_THROW(add_to(x, one(engine)), EngineError);
  {
    const GradMode off(false);
    add_to(x, one(engine));
  }
  EXPECT_TRUE(is_leaf(x));
  run_backward(multiply(x, x));
  EXPECT_EQ(grad_item(x), 8);
}

TEST_P(Backward, CastsToTheDtypeOfTheInput) {
  Tensor x = reshape(engine.constant(Scalar(2.0), DType::float32), {1});
  set_requires_grad(x, true);
  run_backward(multiply(x, one(engine)));
  EXPECT_EQ(gradient_of(x).dtype(), DType::float32);
}

TEST_P(Backward, AFailedGradientPoisonsThatLeafOnly) {
  if (is_synchronous()) GTEST_SKIP() << "raises in the call";
  const Tensor good = leaf(engine, 3);
  const Tensor bad = leaf(engine, 4);
  run_backward(multiply(good, bad));
  // A matrix that no test kernel multiplies: the operator fails when it runs.
  const Tensor other = engine.allocate(DType::bool_, {1});
  *static_cast<bool*>(Engine::mutable_data(other)) = true;
  const auto hook = std::make_shared<Call>([&](std::span<Tensor> gradients) {
    const Tensor failing = multiply(other, other);  // test kernels take no bool
    Engine& e = failing.engine();
    gradients[0] = e.apply(e.op("astype"), {&failing}, attributes_of(DType::float64));
  });
  const auto list = add_tensor_hook(bad, hook);
  run_backward(multiply(good, bad));
  EXPECT_EQ(grad_item(good), 8);
  EXPECT_THROW(gradient_of(bad).wait(), KernelError);
  EXPECT_EQ(item(gradient_of(bad).recover()), 3);
}

class BackwardOrder : public EngineTest {
 protected:
  Engine engine{EngineOptions{}, &register_test_kernels};
};

TEST_F(BackwardOrder, IsAccumulationFirstThenDescendingNumbers) {
  const Tensor a = leaf(engine, 1);
  const Tensor b = leaf(engine, 2);
  const Tensor first = multiply(a, a);
  const Tensor second = add(b, b);
  const Tensor root = add(first, second);
  const std::vector<NodePtr> order = execution_order({&root, 1});
  EXPECT_EQ(names(order), (std::vector<std::string>{"AddBackward", "AddBackward", "AccumulateGrad",
                                                    "MultiplyBackward", "AccumulateGrad"}));
  EXPECT_EQ(order[1].get(), grad_fn(second).get());
}

TEST_F(BackwardOrder, SeveralRootsStartUnderAGraphRoot) {
  const Tensor a = leaf(engine, 2);
  const Tensor y = multiply(a, a);
  const std::vector<Tensor> roots{y, y};
  EXPECT_EQ(names(execution_order(roots)),
            (std::vector<std::string>{"GraphRoot", "MultiplyBackward", "AccumulateGrad"}));
  backward(roots, {});
  EXPECT_EQ(grad_item(a), 8);
}

TEST_F(BackwardOrder, NumbersCountTheNodesOfAThreadFromZero) {
  const Tensor a = leaf(engine, 2);
  std::vector<std::uint64_t> numbers;
  std::thread([&] {
    {
      const GradMode off(false);
      add(a, a);
    }
    for (int i = 0; i < 3; ++i) numbers.push_back(grad_fn(add(a, a))->sequence_nr());
  }).join();
  EXPECT_EQ(numbers, (std::vector<std::uint64_t>{0, 1, 2}));
}

TEST_F(BackwardOrder, HooksRunAroundTheirNode) {
  const Tensor x = leaf(engine, 3);
  const Tensor y = multiply(x, x);
  std::string seen;
  const auto note = [&](char letter) {
    return std::make_shared<Call>([&seen, letter](std::span<Tensor>) { seen += letter; });
  };
  grad_fn(y)->make_hooks().pre->add(note('c'));
  grad_fn(y)->make_hooks().post->add(note('d'));
  add_tensor_hook(y, note('a'));
  add_tensor_hook(y, note('b'));
  add_tensor_hook(x, note('e'));
  add_post_accumulate_hook(x, note('f'));
  run_backward(y);
  EXPECT_EQ(seen, "abcdef");
}

TEST_F(BackwardOrder, AnErrorInAHookLeavesNothingBehind) {
  const Tensor x = leaf(engine, 3);
  const Tensor y = multiply(x, x);
  const auto hook = std::make_shared<Call>([](std::span<Tensor>) -> void { throw ValueError("hook: no"); });
  const auto list = add_tensor_hook(y, hook);
  EXPECT_THROW(run_backward(y, {.retain_graph = true}), ValueError);
  EXPECT_TRUE(is_grad_enabled());
  list->remove(hook.get());
  run_backward(y);
  EXPECT_EQ(grad_item(x), 6);
}

TEST_F(BackwardOrder, NestedBackwardInAHookIsATaskOfItsOwn) {
  const Tensor x = leaf(engine, 3);
  const Tensor y = multiply(x, x);
  int level = 0;
  const auto hook = std::make_shared<Call>([&](std::span<Tensor>) {
    if (++level < 200) run_backward(y, {.retain_graph = true});
  });
  add_tensor_hook(y, hook);
  run_backward(y, {.retain_graph = true});
  EXPECT_EQ(grad_item(x), 200 * 6.0);
}

TEST_F(BackwardOrder, ThreadsAddToOneLeafExactly) {
  const Tensor x = leaf(engine, 3);
  const Tensor shared = multiply(x, x);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 50; ++k) run_backward(shared, {.retain_graph = true});
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(grad_item(x), 4 * 50 * 6.0);
}

TEST_F(BackwardOrder, AMillionNodesNeedNoStack) {
  const Tensor x = leaf(engine, 3);
  {
    Tensor y = x;
    for (int i = 0; i < 1'000'000; ++i) y = reshape(y, {1});
    run_backward(y);
  }
  EXPECT_EQ(grad_item(x), 1);
}

TEST_F(BackwardOrder, AGradientWithAGraphMakesNoCycle) {
  std::weak_ptr<Hook> alive;
  {
    const Tensor x = leaf(engine, 3);
    const auto hook = std::make_shared<Call>([](std::span<Tensor>) {});
    alive = hook;
    const Tensor y = multiply(x, x);
    add_tensor_hook(y, hook);
    run_backward(y, {.create_graph = true});
    EXPECT_TRUE(gradient_of(x).requires_grad());
  }
  EXPECT_TRUE(alive.expired());
}

}  // namespace
}  // namespace thalweg::testing
