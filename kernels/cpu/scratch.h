// scratch.h: memory for a kernel's own use during one call.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <new>
#include <type_traits>

#include <sys/mman.h>

namespace thalweg::cpu {

/// Uninitialised room for `count` elements. Throws std::bad_alloc.
template <class T>
class Scratch {
 public:
  static_assert(std::is_trivially_destructible_v<T>);

  explicit Scratch(std::int64_t count) {
    const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(T);
    // Large ones on huge pages: filling fresh small pages takes as long as sorting them.
    const std::size_t alignment = bytes < 4 * kHugePage ? 64 : kHugePage;
    const std::size_t rounded = (bytes + alignment) / alignment * alignment;
    data_ = static_cast<T*>(std::aligned_alloc(alignment, rounded));
    if (data_ == nullptr) throw std::bad_alloc();
    if (alignment == kHugePage) madvise(data_, rounded, MADV_HUGEPAGE);
  }
  ~Scratch() { std::free(data_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  T* get() const noexcept { return data_; }
  T& operator[](std::int64_t i) const noexcept { return data_[i]; }

 private:
  static constexpr std::size_t kHugePage = std::size_t{1} << 21;

  T* data_;
};

}  // namespace thalweg::cpu
