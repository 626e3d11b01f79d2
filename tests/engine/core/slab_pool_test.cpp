// slab_pool_test.cpp: slots are handed out once, come back from any thread and survive their threads.
#include "core/slab_pool.h"

#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace thalweg {
namespace {

template <int>
struct Slot {
  int value = 0;
};

TEST(SlabPool, HandsOutDistinctSlots) {
  using Pool = SlabPool<Slot<0>>;
  std::set<Slot<0>*> slots;
  for (int i = 0; i < 1000; ++i) slots.insert(Pool::take());
  EXPECT_EQ(slots.size(), 1000u);
  for (Slot<0>* slot : slots) Pool::give(slot);
}

TEST(SlabPool, ReusesAGivenSlot) {
  using Pool = SlabPool<Slot<1>>;
  Slot<1>* first = Pool::take();
  first->value = 7;
  Pool::give(first);
  Slot<1>* second = Pool::take();
  EXPECT_EQ(second, first);
  EXPECT_EQ(second->value, 7) << "a slot is constructed once, not per use";
  Pool::give(second);
}

TEST(SlabPool, SlotsMoveBetweenThreads) {
  using Pool = SlabPool<Slot<2>>;
  // One thread only takes, the other only gives: the pool must not grow with the traffic.
  std::set<Slot<2>*> seen;
  for (int round = 0; round < 200; ++round) {
    std::vector<Slot<2>*> batch;
    for (int i = 0; i < 300; ++i) batch.push_back(Pool::take());
    EXPECT_EQ(std::set<Slot<2>*>(batch.begin(), batch.end()).size(), batch.size());
    seen.insert(batch.begin(), batch.end());
    std::thread([&] {
      Slot<2>* mine = Pool::take();  // this thread has a magazine of its own
      for (Slot<2>* slot : batch) Pool::give(slot);
      Pool::give(mine);
    }).join();
  }
  EXPECT_LT(seen.size(), 2000u);
}

TEST(SlabPool, AThreadThatOnlyGivesLeavesItsSlotsBehind) {
  using Pool = SlabPool<Slot<3>>;
  std::set<Slot<3>*> seen;
  for (int round = 0; round < 200; ++round) {
    std::vector<Slot<3>*> batch;
    for (int i = 0; i < 100; ++i) batch.push_back(Pool::take());
    seen.insert(batch.begin(), batch.end());
    std::thread([&] {
      for (Slot<3>* slot : batch) Pool::give(slot);
    }).join();
  }
  EXPECT_LT(seen.size(), 2000u) << "slots in the magazine of a thread that ended are lost";
}

TEST(SlabPool, SlotsAreUsableAfterTheThreadThatMadeThemEnded) {
  using Pool = SlabPool<Slot<4>>;
  std::vector<Slot<4>*> slots;
  std::thread([&] {
    for (int i = 0; i < 500; ++i) slots.push_back(Pool::take());
  }).join();
  for (std::size_t i = 0; i < slots.size(); ++i) slots[i]->value = static_cast<int>(i);
  for (std::size_t i = 0; i < slots.size(); ++i) EXPECT_EQ(slots[i]->value, static_cast<int>(i));
  for (Slot<4>* slot : slots) Pool::give(slot);
}

TEST(SlabPool, NoSlotIsHandedToTwoThreads) {
  using Pool = SlabPool<Slot<5>>;
  std::vector<std::vector<Slot<5>*>> held(8);
  std::vector<std::thread> threads;
  for (auto& mine : held) {
    threads.emplace_back([&mine] {
      for (int round = 0; round < 2000; ++round) {
        mine.push_back(Pool::take());
        if (round % 3 == 0) {
          Pool::give(mine.back());
          mine.pop_back();
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<Slot<5>*> all;
  std::size_t count = 0;
  for (auto& mine : held) {
    all.insert(mine.begin(), mine.end());
    count += mine.size();
  }
  EXPECT_EQ(all.size(), count);
  for (Slot<5>* slot : all) Pool::give(slot);
}

}  // namespace
}  // namespace thalweg
