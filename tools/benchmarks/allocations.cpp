// allocations.cpp: malloc and its relatives, counted on demand and passed on to glibc's.
#include "allocations.h"

#include <atomic>
#include <cerrno>
#include <cstddef>

extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* block, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);
}

namespace {

std::atomic<bool> counting{false};
std::atomic<std::uint64_t> allocations{0};

void count() noexcept {
  if (counting.load(std::memory_order_relaxed)) allocations.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

// Visible, so that the dynamic linker prefers them to libc's for every library of the program.
#pragma GCC visibility push(default)
extern "C" {
void* malloc(std::size_t size) noexcept {
  count();
  return __libc_malloc(size);
}
void* calloc(std::size_t items, std::size_t size) noexcept {
  count();
  return __libc_calloc(items, size);
}
void* realloc(void* block, std::size_t size) noexcept {
  count();
  return __libc_realloc(block, size);
}
void* memalign(std::size_t alignment, std::size_t size) noexcept {
  count();
  return __libc_memalign(alignment, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept {
  count();
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** block, std::size_t alignment, std::size_t size) noexcept {
  count();
  void* found = __libc_memalign(alignment, size);
  if (found == nullptr) return ENOMEM;
  *block = found;
  return 0;
}
}
#pragma GCC visibility pop

namespace bench {

AllocationCount::AllocationCount() {
  allocations.store(0, std::memory_order_relaxed);
  counting.store(true, std::memory_order_relaxed);
}

AllocationCount::~AllocationCount() { counting.store(false, std::memory_order_relaxed); }

std::uint64_t AllocationCount::so_far() const { return allocations.load(std::memory_order_relaxed); }

}  // namespace bench
