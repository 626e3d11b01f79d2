// operand_test.cpp: counts, states, waiters and the chain of recoverable values.
#include "graph/operand.h"

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace thalweg {
namespace {

int live_buffers = 0;

Buffer* counted_buffer() {
  ++live_buffers;
  static char byte;
  return Buffer::make(
      &byte, 1, [](void*, void*, std::int64_t) noexcept { --live_buffers; }, nullptr);
}

Failure* make_failure() {
  return new Failure(std::make_exception_ptr(std::runtime_error("lost")), "op", Device{}, 0, 1, nullptr);
}

struct Counting : Waiter {
  explicit Counting(std::atomic<int>& count_) : count(count_) {
    notify = [](Waiter* self) noexcept { static_cast<Counting*>(self)->count.fetch_add(1); };
  }
  std::atomic<int>& count;
};

TEST(Operand, StartsPendingWithOneHandle) {
  Operand* operand = Operand::make(nullptr, true);
  EXPECT_EQ(operand->state(), OperandState::pending);
  EXPECT_FALSE(operand->is_done());
  EXPECT_EQ(operand->handles(), 1u);
  EXPECT_FALSE(operand->is_unique());
  operand->drop_handle();
  EXPECT_TRUE(operand->is_unique());
  operand->unref();
}

TEST(Operand, FreesItsBufferWithTheLastReference) {
  live_buffers = 0;
  Operand* operand = Operand::make(nullptr, true);
  operand->set_ready(counted_buffer());
  EXPECT_EQ(operand->state(), OperandState::ready);
  operand->unref();
  EXPECT_EQ(live_buffers, 1);
  operand->drop_handle();
  EXPECT_EQ(live_buffers, 0);
}

TEST(Operand, HandlesAndReferencesAreCountedApart) {
  Operand* operand = Operand::make(nullptr, false);
  operand->add_handle();
  EXPECT_EQ(operand->handles(), 2u);
  EXPECT_FALSE(operand->forget_handle());
  EXPECT_EQ(operand->handles(), 1u);
  operand->add_consumer();
  operand->ref();
  EXPECT_TRUE(operand->forget_handle());
  EXPECT_EQ(operand->handles(), 0u);
  EXPECT_FALSE(operand->is_unique()) << "the handles' reference is not given back yet";
  operand->handles_gone();
  EXPECT_FALSE(operand->is_unique());
  operand->unref();
  EXPECT_TRUE(operand->is_unique());
  operand->unref();
}

TEST(Operand, ConsumersMayRunBeforeTheLastHandleGoes) {
  live_buffers = 0;
  Operand* operand = Operand::make(nullptr, false);
  operand->set_ready(counted_buffer());
  for (int i = 0; i < 5; ++i) {
    operand->add_consumer();
    operand->unref();
  }
  EXPECT_FALSE(operand->is_unique());
  EXPECT_EQ(live_buffers, 1);
  operand->drop_handle();
  EXPECT_EQ(live_buffers, 0);
}

TEST(Operand, AHandleMayBecomeAReferenceAndComeBack) {
  live_buffers = 0;
  Operand* operand = Operand::make(nullptr, false);
  operand->set_ready(counted_buffer());
  operand->add_consumer();
  operand->drop_handle();
  EXPECT_EQ(operand->handles(), 0u);
  EXPECT_TRUE(operand->is_unique());
  operand->revive_handle();
  operand->revive_handle();
  EXPECT_EQ(operand->handles(), 2u);
  EXPECT_FALSE(operand->is_unique());
  operand->unref();
  operand->drop_handle();
  EXPECT_EQ(live_buffers, 1);
  operand->drop_handle();
  EXPECT_EQ(live_buffers, 0);
}

/// Handles come, go and come back and consumers are added on several threads while others drop them: the
/// bytes go once, with the last of all.
TEST(Operand, CountsFromManyThreadsAddUp) {
  for (int round = 0; round < 200; ++round) {
    live_buffers = 0;
    Operand* operand = Operand::make(nullptr, false);
    operand->set_ready(counted_buffer());
    std::atomic<int> added{0};
    std::atomic<int> issuing{3};
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) {
      operand->ref();
      threads.emplace_back([&] {
        for (int i = 0; i < 20; ++i) {
          operand->revive_handle();
          operand->add_consumer();
          ++added;
          operand->drop_handle();
        }
        operand->unref();
        --issuing;
      });
    }
    threads.emplace_back([&] {
      while (issuing > 0 || added > 0) {
        if (added > 0) {
          operand->unref();
          --added;
        }
      }
    });
    for (std::thread& thread : threads) thread.join();
    ASSERT_EQ(live_buffers, 1);
    ASSERT_EQ(operand->handles(), 1u);
    operand->drop_handle();
    ASSERT_EQ(live_buffers, 0);
  }
}

TEST(Operand, NotifiesEachWaiterOnce) {
  Operand* operand = Operand::make(nullptr, false);
  std::atomic<int> count{0};
  Counting a(count), b(count), c(count);
  EXPECT_TRUE(operand->add_waiter(&a));
  EXPECT_TRUE(operand->add_waiter(&b));
  EXPECT_EQ(operand->state(), OperandState::pending);
  operand->set_ready(Buffer::make_inline());
  EXPECT_EQ(count, 2);
  EXPECT_FALSE(operand->add_waiter(&c)) << "the operand is done";
  EXPECT_EQ(count, 2);
  operand->drop_handle();
}

TEST(Operand, AFailureIsSharedAndCounted) {
  Failure* failure = make_failure();
  Operand* a = Operand::make(nullptr, false);
  Operand* b = Operand::make(nullptr, false);
  a->set_failed(failure);
  b->set_failed(failure);
  failure->unref();
  EXPECT_EQ(a->state(), OperandState::failed);
  EXPECT_EQ(a->failure(), b->failure());
  a->drop_handle();
  EXPECT_EQ(b->failure()->op, "op");
  b->drop_handle();  // the sanitizer sees a lost or doubly freed failure
}

TEST(Operand, AWaiterIsNeverLostInTheRaceWithCompletion) {
  for (int round = 0; round < 2000; ++round) {
    Operand* operand = Operand::make(nullptr, false);
    std::atomic<int> notified{0};
    int refused = 0;
    Counting waiter(notified);
    std::thread completer([&] { operand->set_ready(Buffer::make_inline()); });
    if (!operand->add_waiter(&waiter)) ++refused;
    completer.join();
    ASSERT_EQ(notified.load() + refused, 1);
    operand->drop_handle();
  }
}

TEST(Operand, ALongChainOfRecoverableValuesDiesWithoutRecursion) {
  live_buffers = 0;
  Failure* failure = make_failure();
  Operand* newest = Operand::make(nullptr, false);
  newest->set_ready(counted_buffer());
  for (int i = 0; i < 200'000; ++i) {
    Operand* next = Operand::make(nullptr, false);
    newest->add_consumer();
    newest->drop_handle();
    next->recover = newest;
    next->set_failed(failure);
    newest = next;
  }
  failure->unref();
  EXPECT_EQ(live_buffers, 1);
  newest->drop_handle();
  EXPECT_EQ(live_buffers, 0);
}

TEST(Operand, AReusedSlotStartsAfresh) {
  Operand* first = Operand::make(nullptr, false);
  first->set_ready(Buffer::make_inline());
  first->drop_handle();
  Operand* second = Operand::make(nullptr, false);
  ASSERT_EQ(second, first) << "the test expects the pool to hand the slot out again";
  EXPECT_EQ(second->state(), OperandState::pending);
  EXPECT_EQ(second->recover, nullptr);
  EXPECT_EQ(second->producer.load(), nullptr);
  second->drop_handle();
}

}  // namespace
}  // namespace thalweg
