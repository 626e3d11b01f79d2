// operand_names_test.cpp: the bounded table of users' names.
#include "graph/operand_names.h"

#include <string>

#include <gtest/gtest.h>

namespace thalweg {
namespace {

TEST(OperandNames, KeepsTheLastNameOfAnOperand) {
  OperandNames names;
  EXPECT_TRUE(names.empty());
  EXPECT_EQ(names.find(7), nullptr);
  names.set(7, "w");
  names.set(7, "weights");
  ASSERT_NE(names.find(7), nullptr);
  EXPECT_EQ(*names.find(7), "weights");
  EXPECT_EQ(names.size(), 1U);
}

TEST(OperandNames, ForgetsTheOldestBeyondItsLimit) {
  OperandNames names;
  for (std::uint64_t id = 1; id <= OperandNames::kKept + 10; ++id) names.set(id, std::to_string(id));
  EXPECT_EQ(names.size(), OperandNames::kKept);
  EXPECT_EQ(names.find(10), nullptr);
  ASSERT_NE(names.find(11), nullptr);
  EXPECT_EQ(*names.find(11), "11");
}

TEST(OperandNames, KeepsAllDuringARecordingAndForgetsAfter) {
  OperandNames names;
  names.keep_all(true);
  for (std::uint64_t id = 1; id <= OperandNames::kKept + 10; ++id) names.set(id, "x");
  EXPECT_EQ(names.size(), OperandNames::kKept + 10);
  names.keep_all(false);
  EXPECT_EQ(names.size(), OperandNames::kKept);
  EXPECT_EQ(names.find(1), nullptr);
}

}  // namespace
}  // namespace thalweg
