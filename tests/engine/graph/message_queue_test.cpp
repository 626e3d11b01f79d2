// message_queue_test.cpp: order, completeness and the release lane of the queue.
#include "graph/message_queue.h"

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "graph/operator.h"

namespace thalweg {
namespace {

struct Numbered : Message {
  Numbered(int producer_number, int sequence_number)
      : Message(Kind::control), producer(producer_number), sequence(sequence_number) {}
  int producer;
  int sequence;
};

TEST(MessageQueue, IsEmptyAtFirst) {
  MessageQueue queue;
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(queue.take_all(), nullptr);
  EXPECT_EQ(queue.take_released(), nullptr);
}

TEST(MessageQueue, GivesMessagesOldestFirst) {
  MessageQueue queue;
  std::vector<std::unique_ptr<Numbered>> messages;
  for (int i = 0; i < 5; ++i) {
    messages.push_back(std::make_unique<Numbered>(0, i));
    queue.push(messages.back().get());
  }
  EXPECT_FALSE(queue.empty());
  int expected = 0;
  for (Message* message = queue.take_all(); message != nullptr; message = message->next_message) {
    EXPECT_EQ(static_cast<Numbered*>(message)->sequence, expected++);
  }
  EXPECT_EQ(expected, 5);
  EXPECT_TRUE(queue.empty());
}

TEST(MessageQueue, KeepsEachProducersOrderAndLosesNothing) {
  constexpr int kProducers = 8;
  constexpr int kEach = 20'000;
  MessageQueue queue;
  std::atomic<int> running{kProducers};
  std::vector<std::vector<std::unique_ptr<Numbered>>> messages(kProducers);
  std::vector<std::thread> producers;
  for (int p = 0; p < kProducers; ++p) {
    producers.emplace_back([&, p] {
      for (int i = 0; i < kEach; ++i) {
        messages[p].push_back(std::make_unique<Numbered>(p, i));
        queue.push(messages[p].back().get());
      }
      running.fetch_sub(1);
    });
  }
  std::vector<int> next(kProducers, 0);
  int wrong = 0;
  const auto take = [&] {
    for (Message* message = queue.take_all(); message != nullptr; message = message->next_message) {
      auto* numbered = static_cast<Numbered*>(message);
      wrong += numbered->sequence == next[numbered->producer]++ ? 0 : 1;
    }
  };
  while (running.load() > 0) {
    take();
    std::this_thread::yield();
  }
  take();
  for (std::thread& producer : producers) producer.join();
  EXPECT_EQ(wrong, 0);
  for (int count : next) EXPECT_EQ(count, kEach);
}

TEST(MessageQueue, APushThatReturnedBeforeAnotherBeganComesOutFirst) {
  MessageQueue queue;
  for (int round = 0; round < 2000; ++round) {
    Numbered first(0, 0);
    Numbered second(1, 0);
    std::atomic<bool> pushed{false};
    std::thread other([&] {
      while (!pushed.load(std::memory_order_acquire)) std::this_thread::yield();
      queue.push(&second);
    });
    queue.push(&first);
    pushed.store(true, std::memory_order_release);
    other.join();
    Message* taken = queue.take_all();
    ASSERT_EQ(taken, &first);
    ASSERT_EQ(taken->next_message, &second);
  }
}

TEST(MessageQueue, ReleasedOperandsRideBesideTheMessages) {
  MessageQueue queue;
  Operand* a = Operand::make(nullptr, false);
  Operand* b = Operand::make(nullptr, false);
  queue.push_released(a);
  queue.push_released(b);
  int count = 0;
  for (Operand* operand = queue.take_released(); operand != nullptr;) {
    Operand* next = operand->next_released;
    operand->drop_handle();
    operand = next;
    ++count;
  }
  EXPECT_EQ(count, 2);
  EXPECT_EQ(queue.take_released(), nullptr);
}

TEST(MessageQueue, ControlMessagesCarryTheirBody) {
  ControlMessage name(NameGraph{"training"});
  EXPECT_EQ(name.kind, Message::Kind::control);
  EXPECT_EQ(std::get<NameGraph>(name.body).name, "training");
}

}  // namespace
}  // namespace thalweg
