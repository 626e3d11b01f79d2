// allocator.cpp: rounding, the free lists and their limits.
#include "runtime/allocator.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace thalweg {
namespace {

/// More than any machine has; rounding above it would overflow.
constexpr std::int64_t kLargest = std::int64_t{1} << 56;
constexpr std::int64_t kHugePage = std::int64_t{2} << 20;

std::int64_t align_up(std::int64_t bytes) {
  return (bytes + Allocator::kAlignment - 1) / Allocator::kAlignment * Allocator::kAlignment;
}

/// Multiples of 64 bytes up to 1 KiB, above that eighths of a power of two: at most 12.5 % of a block is
/// unused.
std::int64_t round_up(std::int64_t bytes) {
  if (bytes <= 1024) return align_up(bytes);
  const auto top = std::int64_t{1} << (63 - std::countl_zero(static_cast<std::uint64_t>(bytes - 1)));
  const std::int64_t step = top / 8;
  return (bytes + step - 1) / step * step;
}

void* system_allocate(std::int64_t bytes) {
  // Big blocks start on a huge page and ask for huge pages: first touch of 4 KiB pages costs more than most
  // kernels.
  const bool huge = bytes >= 2 * kHugePage;
  const auto alignment = static_cast<std::size_t>(huge ? kHugePage : Allocator::kAlignment);
  const auto size = (static_cast<std::size_t>(bytes) + alignment - 1) / alignment * alignment;
  void* data = std::aligned_alloc(alignment, size);
#if defined(__linux__)
  if (huge && data != nullptr) madvise(data, size, MADV_HUGEPAGE);
#endif
  return data;
}

}  // namespace

Allocator::Allocator(std::int64_t cache_limit, std::int64_t memory_limit)
    : cache_limit_(cache_limit), memory_limit_(memory_limit) {
  PoolLocks::add(&lock_);
}

Allocator::~Allocator() {
  PoolLocks::remove(&lock_);
  trim_locked();
}

Buffer* Allocator::try_allocate(std::int64_t bytes) {
  if (bytes <= Buffer::kInlineBytes) return Buffer::make_inline();
  if (bytes > kLargest) return nullptr;
  std::int64_t size = round_up(bytes);
  void* data = take_block(size);
  if (data == nullptr) {
    // The limit may have room for the bytes themselves.
    size = align_up(bytes);
    data = take_block(size);
  }
  if (data == nullptr) return nullptr;
  return Buffer::make(data, size, &Allocator::free_buffer, this);
}

void* Allocator::take_block(std::int64_t size) {
  std::lock_guard guard(lock_);
  if (memory_limit_ > 0 && live_ + size > memory_limit_) return nullptr;
  void* data = nullptr;
  auto found = free_.find(size);
  if (found != free_.end() && !found->second.empty()) {
    data = found->second.back();
    found->second.pop_back();
    cached_ -= size;
  } else {
    if (memory_limit_ > 0 && live_ + cached_ + size > memory_limit_) trim_locked();
    data = system_allocate(size);
    if (data == nullptr) {
      trim_locked();
      data = system_allocate(size);
    }
    if (data == nullptr) return nullptr;
  }
  live_ += size;
  peak_ = std::max(peak_, live_);
  return data;
}

void Allocator::give_block(void* data, std::int64_t size) noexcept {
  bool last = false;
  {
    std::lock_guard guard(lock_);
    live_ -= size;
    if (owned_ && cached_ + size <= cache_limit_) {
      free_[size].push_back(data);
      cached_ += size;
    } else {
      std::free(data);
    }
    last = !owned_ && live_ == 0;
  }
  if (last) delete this;
}

void Allocator::free_buffer(void* owner, void* data, std::int64_t size) noexcept {
  static_cast<Allocator*>(owner)->give_block(data, size);
}

void Allocator::trim_locked() noexcept {
  for (auto& [size, blocks] : free_) {
    for (void* block : blocks) std::free(block);
    blocks.clear();
  }
  cached_ = 0;
}

void Allocator::trim() {
  std::lock_guard guard(lock_);
  trim_locked();
}

void Allocator::stop_keeping() {
  std::lock_guard guard(lock_);
  cache_limit_ = 0;
  trim_locked();
}

void Allocator::disown() {
  bool last = false;
  {
    std::lock_guard guard(lock_);
    owned_ = false;
    trim_locked();
    last = live_ == 0;
  }
  if (last) delete this;
}

MemoryStats Allocator::stats() const {
  std::lock_guard guard(lock_);
  return {live_, peak_, cached_, memory_limit_};
}

void Allocator::reset_peak() {
  std::lock_guard guard(lock_);
  peak_ = live_;
}

void Allocator::set_memory_limit(std::int64_t bytes) {
  std::lock_guard guard(lock_);
  memory_limit_ = bytes;
}

}  // namespace thalweg
