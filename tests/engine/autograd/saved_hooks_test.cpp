// saved_hooks_test.cpp: saved values that hooks pack: when they are called, what they may do, several
// threads.
#include <atomic>
#include <functional>
#include <memory>
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

struct Doubled final : PackedValue {
  Doubled(Tensor packed, std::atomic<int>* calls) : value(std::move(packed)), unpacked(calls) {}
  Tensor unpack() override {
    ++*unpacked;
    return add(value, value);
  }
  const Tensor value;
  std::atomic<int>* const unpacked;
};

/// Packs a value as itself, and unpacks twice the value.
struct Doubling final : SavedTensorsHooks {
  std::unique_ptr<PackedValue> pack(const Tensor& value) override {
    ++packed;
    recorded = recorded || is_grad_enabled();
    if (fails) throw ValueError("pack: no");
    return std::make_unique<Doubled>(value, &unpacked);
  }
  bool fails = false;
  bool recorded = false;
  int packed = 0;
  std::atomic<int> unpacked{0};
};

class Setting {
 public:
  explicit Setting(SavedTensorsHooks& hooks) : before_(set_saved_tensors_hooks(&hooks)) {}
  ~Setting() { set_saved_tensors_hooks(before_); }

 private:
  SavedTensorsHooks* const before_;
};

class SavedHooks : public DrivenTest {
 protected:
  Doubling hooks;
};
INSTANTIATE_TEST_SUITE_P(Drives, SavedHooks, ::testing::ValuesIn(all_drives()), drive_name);

TEST_P(SavedHooks, PackWhenRecordedAndUnpackInEachBackward) {
  const Tensor x = leaf(engine, 3);
  Tensor y;
  {
    const Setting set(hooks);
    y = multiply(x, x);
    EXPECT_EQ(hooks.packed, 2);
    add(y, y);  // saves nothing
    const GradMode off(false);
    multiply(x, x);
  }
  EXPECT_EQ(hooks.packed, 2);
  EXPECT_FALSE(hooks.recorded);
  multiply(x, x);
  EXPECT_EQ(hooks.packed, 2);
  backward({&y, 1}, {}, {.retain_graph = true});
  EXPECT_EQ(hooks.unpacked, 2);
  EXPECT_EQ(item(gradient_of(x)), 12);
  backward({&y, 1}, {});
  EXPECT_EQ(hooks.unpacked, 4);
  EXPECT_THROW(backward({&y, 1}, {}), EngineError);
  EXPECT_EQ(hooks.unpacked, 4);
}

TEST_P(SavedHooks, AnErrorOfPackIsRaisedInTheCall) {
  const Tensor x = leaf(engine, 3);
  hooks.fails = true;
  {
    const Setting set(hooks);
    EXPECT_THROW(multiply(x, x), ValueError);
  }
  EXPECT_TRUE(is_grad_enabled());
  const Tensor y = multiply(x, x);
  backward({&y, 1}, {});
  EXPECT_EQ(item(gradient_of(x)), 6);
}

TEST_P(SavedHooks, OneOfSeveralThreadsGetsWhatIsFreed) {
  const Tensor x = leaf(engine, 3);
  for (int round = 0; round < 20; ++round) {
    set_gradient(x, {});
    Tensor y;
    {
      const Setting set(hooks);
      y = multiply(x, x);
    }
    std::atomic<int> ran{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&] {
        try {
          backward({&y, 1}, {});
          ++ran;
        } catch (const EngineError&) {
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(ran, 1);
    EXPECT_EQ(item(gradient_of(x)), 12);
  }
}

TEST_P(SavedHooks, EdgesStandForTensors) {
  const Tensor x = leaf(engine, 3);
  const Tensor w = leaf(engine, 5);
  const Edge root = gradient_edge(multiply(x, w));
  const Edge input = gradient_edge(w);
  backward({&root, 1}, {}, engine, {.retain_graph = true}, {}, {&input, 1});
  EXPECT_FALSE(gradient_of(x));
  EXPECT_EQ(item(gradient_of(w)), 3);
  EXPECT_EQ(execution_order({&root, 1}).size(), 3u);
  EXPECT_EQ(backward_state(), nullptr);
}

}  // namespace
}  // namespace thalweg::testing
