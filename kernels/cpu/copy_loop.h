// copy_loop.h: the inner loop of copies of one item size.
#pragma once

#include <cstdint>

#include "kernels/cpu/elementwise_table.h"

namespace thalweg::cpu {

class CopyLoop {
 public:
  /// Of items of 1, 2, 4, 8 or 16 bytes.
  explicit CopyLoop(std::int64_t item_bytes);

  void operator()(char* const* data, const std::int64_t* steps, std::int64_t count) const {
    loop_(data, steps, count);
  }

  /// Copies rows of items where the input's neighbours lie across the output's rows; false, and nothing is
  /// done, where they do not. Steps are those of the output and the input, from a row to the next and within
  /// a row.
  bool transpose(char* const* data, const std::int64_t* row_steps, const std::int64_t* steps,
                 std::int64_t rows, std::int64_t count) const {
    if (transpose_ == nullptr || steps[0] != item_ || row_steps[1] != item_) return false;
    transpose_(data[0], row_steps[0], data[1], steps[1], rows, count);
    return true;
  }

 private:
  using Transpose = void (*)(char* out, std::int64_t out_step, const char* in, std::int64_t in_step,
                             std::int64_t rows, std::int64_t count);

  Loop loop_;
  Transpose transpose_ = nullptr;
  std::int64_t item_;
};

}  // namespace thalweg::cpu
