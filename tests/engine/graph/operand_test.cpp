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
  operand->unref();
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
  operand->unref();
  EXPECT_EQ(live_buffers, 0);
}

TEST(Operand, HandlesAndReferencesAreCountedApart) {
  Operand* operand = Operand::make(nullptr, false);
  operand->add_handle();
  EXPECT_EQ(operand->handles(), 2u);
  EXPECT_FALSE(operand->forget_handle());
  EXPECT_EQ(operand->handles(), 1u);
  EXPECT_FALSE(operand->is_unique()) << "a forgotten handle is still a reference";
  EXPECT_TRUE(operand->forget_handle());
  EXPECT_EQ(operand->handles(), 0u);
  operand->unref();
  operand->unref();
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
  operand->unref();
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
  a->unref();
  EXPECT_EQ(b->failure()->op, "op");
  b->unref();  // the sanitizer sees a lost or doubly freed failure
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
    operand->unref();
  }
}

TEST(Operand, ALongChainOfRecoverableValuesDiesWithoutRecursion) {
  live_buffers = 0;
  Failure* failure = make_failure();
  Operand* newest = Operand::make(nullptr, false);
  newest->set_ready(counted_buffer());
  for (int i = 0; i < 200'000; ++i) {
    Operand* next = Operand::make(nullptr, false);
    next->recover = newest;
    next->set_failed(failure);
    newest = next;
  }
  failure->unref();
  EXPECT_EQ(live_buffers, 1);
  newest->unref();
  EXPECT_EQ(live_buffers, 0);
}

TEST(Operand, AReusedSlotStartsAfresh) {
  Operand* first = Operand::make(nullptr, false);
  first->set_ready(Buffer::make_inline());
  first->unref();
  Operand* second = Operand::make(nullptr, false);
  ASSERT_EQ(second, first) << "the test expects the pool to hand the slot out again";
  EXPECT_EQ(second->state(), OperandState::pending);
  EXPECT_EQ(second->recover, nullptr);
  EXPECT_EQ(second->producer.load(), nullptr);
  second->unref();
}

}  // namespace
}  // namespace thalweg
