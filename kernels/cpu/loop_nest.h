// loop_nest.h: N strided operands walked together in C order, in any sub-range of their elements.
#pragma once

#include <array>
#include <cstdint>

#include <thalweg/shape.h>

namespace thalweg::cpu {

/// A loop nest over N operands. Dimensions are added outermost first; neighbours that all operands cross with
/// one stride are merged and dimensions of size 1 vanish, so a contiguous tensor is one run.
template <int N>
class LoopNest {
 public:
  using Offsets = std::array<std::int64_t, N>;

  /// Adds a dimension inside the present ones; `strides` count elements, one per operand.
  void add(std::int64_t size, const Offsets& strides) noexcept {
    if (size == 1 || total_ == 0) return;
    total_ *= size;
    if (rank_ > 0 && merges(size, strides)) {
      sizes_[rank_ - 1] *= size;
    } else {
      sizes_[rank_++] = size;
    }
    strides_[rank_ - 1] = strides;
  }

  /// Takes the innermost dimension out; the nest must have one.
  void pop() noexcept {
    total_ /= sizes_[rank_ - 1];
    --rank_;
  }

  int rank() const noexcept { return rank_; }
  std::int64_t total() const noexcept { return total_; }
  std::int64_t inner_size() const noexcept { return rank_ == 0 ? 1 : sizes_[rank_ - 1]; }
  std::int64_t inner_stride(int operand) const noexcept {
    return rank_ == 0 ? 0 : strides_[rank_ - 1][operand];
  }

  /// Where element number `index` of the nest lies in each operand.
  Offsets offsets(std::int64_t index) const noexcept {
    Offsets result{};
    for (int axis = rank_ - 1; axis >= 0 && index != 0; --axis) {
      const std::int64_t at = index % sizes_[axis];
      index /= sizes_[axis];
      for (int i = 0; i < N; ++i) result[i] += at * strides_[axis][i];
    }
    return result;
  }

  /// Calls `fn(offsets, count)` for the runs along the innermost dimension that make up elements [begin,
  /// end).
  template <class Fn>
  void run(std::int64_t begin, std::int64_t end, Fn&& fn) const {
    if (begin >= end) return;
    if (rank_ <= 1) {
      Offsets at{};
      for (int i = 0; i < N; ++i) at[i] = begin * inner_stride(i);
      fn(at, end - begin);
      return;
    }
    run_outer(begin, end, fn);
  }

 private:
  bool merges(std::int64_t size, const Offsets& strides) const noexcept {
    for (int i = 0; i < N; ++i) {
      if (strides_[rank_ - 1][i] != strides[i] * size) return false;
    }
    return true;
  }

  template <class Fn>
  void run_outer(std::int64_t begin, std::int64_t end, Fn& fn) const {
    const int inner = rank_ - 1;
    std::int64_t counter[kMaxRank];
    Offsets at{};
    std::int64_t rest = begin;
    for (int axis = inner; axis >= 0; --axis) {
      counter[axis] = rest % sizes_[axis];
      rest /= sizes_[axis];
      for (int i = 0; i < N; ++i) at[i] += counter[axis] * strides_[axis][i];
    }
    while (begin < end) {
      const std::int64_t left = sizes_[inner] - counter[inner];
      const std::int64_t count = left < end - begin ? left : end - begin;
      fn(at, count);
      begin += count;
      if (begin >= end) return;
      for (int i = 0; i < N; ++i) at[i] -= counter[inner] * strides_[inner][i];
      counter[inner] = 0;
      step(counter, at, inner - 1);
    }
  }

  /// Moves on by one along `axis`, carrying outwards. The caller stops before the outermost dimension
  /// overflows.
  void step(std::int64_t* counter, Offsets& at, int axis) const noexcept {
    while (++counter[axis] == sizes_[axis]) {
      counter[axis] = 0;
      for (int i = 0; i < N; ++i) at[i] -= (sizes_[axis] - 1) * strides_[axis][i];
      --axis;
    }
    for (int i = 0; i < N; ++i) at[i] += strides_[axis][i];
  }

  int rank_ = 0;
  std::int64_t total_ = 1;
  std::int64_t sizes_[kMaxRank];
  Offsets strides_[kMaxRank];
};

/// Chunks of `per_chunk` that cover `total`.
constexpr std::int64_t ceil_div(std::int64_t total, std::int64_t per_chunk) noexcept {
  return (total + per_chunk - 1) / per_chunk;
}

}  // namespace thalweg::cpu
