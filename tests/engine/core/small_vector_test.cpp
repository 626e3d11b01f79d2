// small_vector_test.cpp: SmallVector in place, on the heap, and between the two.
#include <cstdint>
#include <utility>

#include <gtest/gtest.h>

#include <thalweg/small_vector.h>

namespace thalweg {
namespace {

using Vector = SmallVector<std::int64_t, 4>;

Vector counted(std::size_t count) {
  Vector result;
  for (std::size_t i = 0; i < count; ++i) result.push_back(static_cast<std::int64_t>(i));
  return result;
}

TEST(SmallVector, KeepsValuesAcrossGrowth) {
  for (std::size_t count : {0, 1, 4, 5, 9, 40}) {
    Vector vector = counted(count);
    ASSERT_EQ(vector.size(), count);
    for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(vector[i], static_cast<std::int64_t>(i));
  }
}

TEST(SmallVector, CopiesAreApart) {
  for (std::size_t count : {3, 10}) {
    Vector original = counted(count);
    Vector copy = original;
    copy[0] = 99;
    EXPECT_EQ(original, counted(count));
    copy = original;
    EXPECT_EQ(copy, original);
  }
}

TEST(SmallVector, MoveTakesTheValuesAndLeavesEmpty) {
  for (std::size_t count : {3, 10}) {
    Vector original = counted(count);
    Vector moved = std::move(original);
    EXPECT_EQ(moved, counted(count));
    EXPECT_TRUE(original.empty());  // NOLINT: its state after a move is part of what is tested
    original = counted(2);
    EXPECT_EQ(original, counted(2));
  }
}

TEST(SmallVector, AssignmentCrossesBetweenInPlaceAndHeap) {
  Vector small = counted(2);
  Vector large = counted(20);
  Vector spare = small;
  small = large;
  EXPECT_EQ(small, counted(20));
  large = spare;
  EXPECT_EQ(large, counted(2));
  large = std::move(small);
  EXPECT_EQ(large, counted(20));
}

TEST(SmallVector, InsertAndErase) {
  Vector vector = counted(4);
  vector.insert(1, 50);
  EXPECT_EQ(vector, (Vector{0, 50, 1, 2, 3}));
  vector.insert(5, 60);
  EXPECT_EQ(vector, (Vector{0, 50, 1, 2, 3, 60}));
  vector.erase(0);
  EXPECT_EQ(vector, (Vector{50, 1, 2, 3, 60}));
  vector.pop_back();
  EXPECT_EQ(vector.back(), 3);
}

TEST(SmallVector, ResizeFillsAndShrinks) {
  Vector vector(3, 7);
  vector.resize(6, 8);
  EXPECT_EQ(vector, (Vector{7, 7, 7, 8, 8, 8}));
  vector.resize(1);
  EXPECT_EQ(vector, Vector{7});
}

}  // namespace
}  // namespace thalweg
