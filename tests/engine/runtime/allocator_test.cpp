// allocator_test.cpp: limits, the cache, figures, and buffers that outlive the owner.
#include "runtime/allocator.h"

#include <cstdint>
#include <cstring>
#include <limits>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace thalweg {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

AllocatorOwner make(std::int64_t cache_limit = 64 * kMiB, std::int64_t memory_limit = 0) {
  return AllocatorOwner(new Allocator(cache_limit, memory_limit));
}

TEST(Allocator, AlignsEveryBlock) {
  const AllocatorOwner allocator = make();
  for (std::int64_t bytes : {1L, 64L, 65L, 100L, 1000L, 1025L, 4097L, 100'000L, 5L * kMiB}) {
    Buffer* buffer = allocator->try_allocate(bytes);
    ASSERT_NE(buffer, nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer->data()) % Allocator::kAlignment, 0u) << bytes;
    EXPECT_GE(buffer->capacity(), bytes);
    std::memset(buffer->data(), 1, static_cast<std::size_t>(bytes));
    buffer->unref();
  }
}

TEST(Allocator, SmallBuffersDoNotCount) {
  const AllocatorOwner allocator = make(0, 1);
  Buffer* buffer = allocator->try_allocate(Buffer::kInlineBytes);
  ASSERT_NE(buffer, nullptr);
  EXPECT_EQ(allocator->stats().live_bytes, 0);
  Buffer* empty = allocator->try_allocate(0);
  ASSERT_NE(empty, nullptr);
  empty->unref();
  buffer->unref();
}

TEST(Allocator, TheLimitIsAboutTheBytesThatWereAskedFor) {
  const AllocatorOwner allocator = make(64 * kMiB, 62 * kMiB);
  Buffer* buffer = allocator->try_allocate(61 * kMiB);
  ASSERT_NE(buffer, nullptr);
  EXPECT_EQ(allocator->stats().live_bytes, 61 * kMiB);
  EXPECT_EQ(allocator->try_allocate(kMiB + 1), nullptr);
  Buffer* rest = allocator->try_allocate(kMiB);
  ASSERT_NE(rest, nullptr);
  rest->unref();
  buffer->unref();
  EXPECT_EQ(allocator->stats().live_bytes, 0);
}

TEST(Allocator, CountsLivePeakAndCachedBytes) {
  const AllocatorOwner allocator = make();
  Buffer* a = allocator->try_allocate(kMiB);
  Buffer* b = allocator->try_allocate(kMiB);
  const std::int64_t two = allocator->stats().live_bytes;
  EXPECT_GE(two, 2 * kMiB);
  EXPECT_LE(two, 2 * kMiB + kMiB / 4);
  EXPECT_EQ(allocator->stats().peak_bytes, two);
  a->unref();
  EXPECT_EQ(allocator->stats().live_bytes, two / 2);
  EXPECT_EQ(allocator->stats().cached_bytes, two / 2);
  EXPECT_EQ(allocator->stats().peak_bytes, two);
  allocator->reset_peak();
  EXPECT_EQ(allocator->stats().peak_bytes, two / 2);
  b->unref();
  EXPECT_EQ(allocator->stats().live_bytes, 0);
  EXPECT_EQ(allocator->stats().cached_bytes, two);
}

TEST(Allocator, ReusesAFreedBlockOfTheSameSize) {
  const AllocatorOwner allocator = make();
  Buffer* a = allocator->try_allocate(10'000);
  void* data = a->data();
  a->unref();
  Buffer* b = allocator->try_allocate(10'000);
  EXPECT_EQ(b->data(), data);
  EXPECT_EQ(allocator->stats().cached_bytes, 0);
  b->unref();
}

TEST(Allocator, KeepsNoMoreThanTheCacheLimit) {
  const AllocatorOwner allocator = make(kMiB);
  std::vector<Buffer*> buffers;
  for (int i = 0; i < 4; ++i) buffers.push_back(allocator->try_allocate(kMiB / 2));
  for (Buffer* buffer : buffers) buffer->unref();
  EXPECT_LE(allocator->stats().cached_bytes, kMiB);
  EXPECT_GT(allocator->stats().cached_bytes, 0);
}

TEST(Allocator, TrimEmptiesTheCache) {
  const AllocatorOwner allocator = make();
  allocator->try_allocate(kMiB)->unref();
  EXPECT_GT(allocator->stats().cached_bytes, 0);
  allocator->trim();
  EXPECT_EQ(allocator->stats().cached_bytes, 0);
}

TEST(Allocator, RefusesOverTheLimitAndTrimsBeforeThat) {
  const AllocatorOwner allocator = make(64 * kMiB, 4 * kMiB);
  allocator->try_allocate(3 * kMiB)->unref();  // cached
  Buffer* other = allocator->try_allocate(2 * kMiB);
  ASSERT_NE(other, nullptr) << "the cache must make room";
  EXPECT_LE(allocator->stats().live_bytes + allocator->stats().cached_bytes, 4 * kMiB);
  EXPECT_EQ(allocator->try_allocate(3 * kMiB), nullptr);
  EXPECT_EQ(allocator->stats().limit_bytes, 4 * kMiB);
  allocator->set_memory_limit(8 * kMiB);
  Buffer* third = allocator->try_allocate(3 * kMiB);
  ASSERT_NE(third, nullptr);
  third->unref();
  other->unref();
}

TEST(Allocator, RefusesSizesThatNoMachineHas) {
  const AllocatorOwner allocator = make();
  for (std::int64_t bytes : {std::numeric_limits<std::int64_t>::max(), std::int64_t{1} << 60}) {
    EXPECT_EQ(allocator->try_allocate(bytes), nullptr) << bytes;
  }
  EXPECT_EQ(allocator->stats().live_bytes, 0);
}

TEST(Allocator, LivesUntilTheLastBufferOfADepartedOwner) {
  AllocatorOwner allocator = make();
  Buffer* a = allocator->try_allocate(1000);
  Buffer* b = allocator->try_allocate(2000);
  allocator.reset();
  std::memset(a->data(), 1, 1000);
  a->unref();
  std::memset(b->data(), 1, 2000);
  b->unref();  // the sanitizer sees a lost or doubly freed allocator
}

TEST(Allocator, ServesManyThreads) {
  const AllocatorOwner allocator = make();
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 2000; ++i) {
        Buffer* buffer = allocator->try_allocate(100 + 64 * ((i + t) % 20));
        *static_cast<char*>(buffer->data()) = 1;
        buffer->unref();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(allocator->stats().live_bytes, 0);
}

}  // namespace
}  // namespace thalweg
