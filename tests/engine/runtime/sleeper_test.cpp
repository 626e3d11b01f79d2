// sleeper_test.cpp: sleeping on an operand, and giving up.
#include "runtime/sleeper.h"

#include <chrono>
#include <thread>

#include <gtest/gtest.h>

#include "engine/support/gate.h"

namespace thalweg::testing {
namespace {

using std::chrono::microseconds;

TEST(Sleeper, IsNotMadeForAFinishedOperand) {
  Operand* operand = Operand::make(nullptr, false);
  operand->set_ready(Buffer::make_inline());
  EXPECT_EQ(Sleeper::on(*operand), nullptr);
  operand->drop_handle();
}

TEST(Sleeper, WakesWhenTheOperandIsDone) {
  const Watchdog watchdog("Sleeper.WakesWhenTheOperandIsDone");
  for (int round = 0; round < 1000; ++round) {
    Operand* operand = Operand::make(nullptr, false);
    Sleeper* sleeper = Sleeper::on(*operand);
    ASSERT_NE(sleeper, nullptr);
    std::thread completer([operand] { operand->set_ready(Buffer::make_inline()); });
    EXPECT_TRUE(sleeper->sleep(std::chrono::duration_cast<microseconds>(kPatience)));
    sleeper->unref();
    completer.join();
    operand->drop_handle();
  }
}

TEST(Sleeper, MayGiveUpBeforeTheOperandIsDone) {
  Operand* operand = Operand::make(nullptr, false);
  Sleeper* sleeper = Sleeper::on(*operand);
  EXPECT_FALSE(sleeper->sleep(microseconds(100)));
  sleeper->unref();
  operand->set_ready(
      Buffer::make_inline());  // notifies the sleeper that gave up: the sanitizer sees a late access
  operand->drop_handle();
}

TEST(Sleeper, SeveralSleepOnOneOperand) {
  Operand* operand = Operand::make(nullptr, false);
  Sleeper* first = Sleeper::on(*operand);
  Sleeper* second = Sleeper::on(*operand);
  first->unref();  // gives up
  operand->set_ready(Buffer::make_inline());
  EXPECT_TRUE(second->sleep(microseconds(0)));
  second->unref();
  operand->drop_handle();
}

}  // namespace
}  // namespace thalweg::testing
