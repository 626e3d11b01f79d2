// small_vector.h: a vector of trivially copyable elements that keeps its first N in place.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <new>
#include <span>
#include <type_traits>

namespace thalweg {

/// A vector of trivially copyable `T` whose first `N` elements need no allocation. Not thread-safe.
template <class T, std::size_t N>
class SmallVector {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  using value_type = T;

  SmallVector() noexcept = default;
  SmallVector(std::initializer_list<T> values) { assign(values.begin(), values.size()); }
  explicit SmallVector(std::span<const T> values) { assign(values.data(), values.size()); }
  SmallVector(std::size_t count, T value) { resize(count, value); }
  template <class It>
    requires(!std::is_integral_v<It>)
  SmallVector(It first, It last) {
    for (; first != last; ++first) push_back(*first);
  }
  SmallVector(const SmallVector& other) { assign(other.data(), other.size()); }
  SmallVector(SmallVector&& other) noexcept { steal(other); }
  SmallVector& operator=(const SmallVector& other) {
    if (this != &other) assign(other.data(), other.size());
    return *this;
  }
  SmallVector& operator=(SmallVector&& other) noexcept {
    if (this != &other) {
      release();
      steal(other);
    }
    return *this;
  }
  ~SmallVector() { release(); }

  T* data() noexcept { return capacity_ > N ? heap_ : inline_data(); }
  const T* data() const noexcept { return capacity_ > N ? heap_ : inline_data(); }
  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  T* begin() noexcept { return data(); }
  T* end() noexcept { return data() + size_; }
  const T* begin() const noexcept { return data(); }
  const T* end() const noexcept { return data() + size_; }
  T& operator[](std::size_t i) noexcept { return data()[i]; }
  const T& operator[](std::size_t i) const noexcept { return data()[i]; }
  T& back() noexcept { return data()[size_ - 1]; }
  const T& back() const noexcept { return data()[size_ - 1]; }
  T& front() noexcept { return data()[0]; }
  const T& front() const noexcept { return data()[0]; }

  void clear() noexcept { size_ = 0; }
  void reserve(std::size_t count) {
    if (count > capacity_) grow(count);
  }
  void push_back(T value) {
    if (size_ == capacity_) grow(std::size_t{capacity_} * 2);
    data()[size_++] = value;
  }
  void pop_back() noexcept { --size_; }
  void resize(std::size_t count, T value = T{}) {
    reserve(count);
    for (std::size_t i = size_; i < count; ++i) data()[i] = value;
    size_ = static_cast<std::uint32_t>(count);
  }
  void insert(std::size_t position, T value) {
    push_back(value);
    std::rotate(begin() + position, end() - 1, end());
  }
  void erase(std::size_t position) noexcept {
    std::copy(begin() + position + 1, end(), begin() + position);
    --size_;
  }
  /// Replaces the contents by `count` elements read from `source`.
  void assign(const T* source, std::size_t count) {
    reserve(count);
    std::copy_n(source, count, data());
    size_ = static_cast<std::uint32_t>(count);
  }

  friend bool operator==(const SmallVector& a, const SmallVector& b) noexcept {
    return a.size_ == b.size_ && std::equal(a.begin(), a.end(), b.begin());
  }
  operator std::span<const T>() const noexcept { return {data(), size_}; }

 private:
  T* inline_data() noexcept { return reinterpret_cast<T*>(inline_); }
  const T* inline_data() const noexcept { return reinterpret_cast<const T*>(inline_); }
  void release() noexcept {
    if (capacity_ > N) std::free(heap_);
    capacity_ = N;
    size_ = 0;
  }
  void steal(SmallVector& other) noexcept {
    size_ = other.size_;
    capacity_ = other.capacity_;
    if (other.capacity_ > N) {
      heap_ = other.heap_;
    } else {
      std::copy_n(other.inline_data(), size_, inline_data());
    }
    other.capacity_ = N;
    other.size_ = 0;
  }
  void grow(std::size_t count) {
    T* fresh = static_cast<T*>(std::malloc(count * sizeof(T)));
    if (fresh == nullptr) throw std::bad_alloc();
    std::copy_n(data(), size_, fresh);
    if (capacity_ > N) std::free(heap_);
    heap_ = fresh;
    capacity_ = static_cast<std::uint32_t>(count);
  }

  std::uint32_t size_ = 0;
  std::uint32_t capacity_ = N;
  union {
    T* heap_;
    alignas(T) std::byte inline_[N * sizeof(T)];
  };
};

}  // namespace thalweg
