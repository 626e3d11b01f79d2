// device_test.cpp: several posed devices: copies, chains over devices, and results that do not depend on
// placement.
#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "engine/support/engine_test.h"

namespace thalweg::testing {
namespace {

class DeviceTest : public DrivenTest {};

INSTANTIATE_TEST_SUITE_P(Drives, DeviceTest, ::testing::ValuesIn(all_drives(4)), drive_name);

TEST_P(DeviceTest, ListsItsDevices) {
  const std::vector<Device> devices = engine.devices();
  ASSERT_EQ(devices.size(), 4u);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(devices[static_cast<std::size_t>(i)], cpu(i));
}

TEST_P(DeviceTest, CopiesToAnotherDevice) {
  const Tensor a = ramp(engine, 1000);
  const Tensor b = to_device(a, cpu(3));
  EXPECT_EQ(b.device(), cpu(3));
  EXPECT_EQ(values<double>(b), values<double>(a));
  EXPECT_NE(b.view().data, a.view().data);
  EXPECT_EQ(engine.memory_stats(cpu(3)).live_bytes, engine.memory_stats(cpu(0)).live_bytes);
}

TEST_P(DeviceTest, CopiesAStridedTensorInCOrder) {
  const Tensor flat = ramp(engine, 6);
  const Tensor matrix = engine.apply(engine.op("reshape"), {&flat}, {Dims{2, 3}});
  const Tensor turned = engine.apply(engine.op("permute_dims"), {&matrix}, {AttrValue{}});
  const Tensor copy = to_device(turned, cpu(1));
  EXPECT_EQ(values<double>(copy), (std::vector<double>{0, 3, 1, 4, 2, 5}));
  EXPECT_TRUE(copy.view().is_contiguous());
}

TEST_P(DeviceTest, AChainGoesRoundTheDevices) {
  const Tensor start = ramp(engine, 300);
  Tensor x = start;
  for (int i = 1; i <= 200; ++i) {
    x = to_device(x, cpu(i % 4));
    const Tensor one = filled(engine, 300, 1, cpu(i % 4));
    x = add(x, one);
  }
  EXPECT_EQ(x.device(), cpu(0));
  EXPECT_EQ(values<double>(x)[299], 499);
}

TEST_P(DeviceTest, OneProducerFeedsConsumersOnEveryDevice) {
  const Op& step = add_custom(engine, "step");
  for (int round = 0; round < 20; ++round) {
    const Tensor root = call(engine, step, {ramp(engine, 10)});
    std::vector<Tensor> ends;
    for (int i = 0; i < 16; ++i) ends.push_back(call(engine, step, {to_device(root, cpu(i % 4))}));
    for (const Tensor& end : ends) ASSERT_EQ(values<double>(end)[9], 11);
  }
}

TEST_P(DeviceTest, AFailureCrossesDevices) {
  if (is_synchronous()) GTEST_SKIP() << "the failure raises in the issuing call";
  const Op& bad = add_throwing(engine, "bad", ValueError("no"));
  const Tensor failed = call(engine, bad, {filled(engine, 3, 0, cpu(2))});
  const Tensor there = to_device(failed, cpu(1));
  EXPECT_THROW(there.wait(), ValueError);
  EXPECT_EQ(there.failure().device, cpu(2));
}

TEST_P(DeviceTest, ManyThreadsUseManyDevices) {
  const Op& step = add_custom(engine, "step");
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      Tensor x = filled(engine, 20, 0, cpu(t % 4));
      for (int i = 1; i <= 40; ++i) {
        x = call(engine, step, {to_device(x, cpu((t + i) % 4))});
        if (i % 10 == 0 && values<double>(x)[19] != i) wrong.fetch_add(1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

/// Only devices that an operator names are started: an engine with 64 devices costs no 64 threads.
TEST_P(DeviceTest, UnusedDevicesCostNothing) {
  EngineOptions many = options();
  many.cpu_devices = 64;
  Engine other(many, &register_test_kernels);
  const Tensor x = filled(other, 3, 1, cpu(63));
  EXPECT_EQ(values<double>(add(x, x))[0], 2);
}

}  // namespace
}  // namespace thalweg::testing
