// buffer_test.cpp: counts, inline bytes and foreign memory of buffers.
#include "core/buffer.h"

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace thalweg {
namespace {

struct Freed {
  std::atomic<int> calls{0};
  void* data = nullptr;
  std::int64_t bytes = 0;

  static void free(void* owner, void* data, std::int64_t bytes) noexcept {
    auto& self = *static_cast<Freed*>(owner);
    self.data = data;
    self.bytes = bytes;
    self.calls.fetch_add(1);
  }
};

TEST(Buffer, FreesWithTheLastReference) {
  Freed freed;
  char bytes[100];
  Buffer* buffer = Buffer::make(bytes, 100, &Freed::free, &freed);
  EXPECT_TRUE(buffer->is_unique());
  EXPECT_EQ(buffer->capacity(), 100);
  buffer->ref();
  EXPECT_FALSE(buffer->is_unique());
  buffer->unref();
  EXPECT_TRUE(buffer->is_unique());
  EXPECT_EQ(freed.calls, 0);
  buffer->unref();
  EXPECT_EQ(freed.calls, 1);
  EXPECT_EQ(freed.data, bytes);
  EXPECT_EQ(freed.bytes, 100);
}

TEST(Buffer, KeepsSmallBytesInItself) {
  Buffer* buffer = Buffer::make_inline();
  EXPECT_EQ(buffer->capacity(), Buffer::kInlineBytes);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer->data()) % 64, 0u);
  EXPECT_FALSE(buffer->is_foreign());
  const auto address = reinterpret_cast<std::uintptr_t>(buffer);
  const auto data = reinterpret_cast<std::uintptr_t>(buffer->data());
  EXPECT_TRUE(data >= address && data + 64 <= address + sizeof(Buffer));
  buffer->unref();
}

TEST(Buffer, ReleasesForeignMemoryOnce) {
  int released = 0;
  int value = 3;
  Buffer* buffer = Buffer::make_foreign(&value, [&] { ++released; });
  EXPECT_TRUE(buffer->is_foreign());
  EXPECT_EQ(buffer->data(), &value);
  buffer->ref();
  buffer->unref();
  EXPECT_EQ(released, 0);
  buffer->unref();
  EXPECT_EQ(released, 1);
}

TEST(Buffer, TakesForeignMemoryWithoutARelease) {
  int value = 3;
  Buffer::make_foreign(&value, {})->unref();
}

TEST(Buffer, AReusedSlotIsNotForeignAnyMore) {
  int value = 3;
  Buffer::make_foreign(&value, {})->unref();
  Buffer* buffer = Buffer::make_inline();
  EXPECT_FALSE(buffer->is_foreign());
  buffer->unref();
}

TEST(Buffer, FreesOnceWhenManyThreadsDropIt) {
  for (int round = 0; round < 200; ++round) {
    Freed freed;
    char byte = 0;
    Buffer* buffer = Buffer::make(&byte, 1, &Freed::free, &freed);
    for (int i = 0; i < 3; ++i) buffer->ref();
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) threads.emplace_back([buffer] { buffer->unref(); });
    for (std::thread& thread : threads) thread.join();
    ASSERT_EQ(freed.calls, 1);
  }
}

}  // namespace
}  // namespace thalweg
