// copy_loop.cpp: copies of one item size, and blocks that are transposed in registers.
#include "kernels/cpu/copy_loop.h"

#include <cstring>
#include <utility>

#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/loops.h"

namespace thalweg::cpu {
namespace {

/// A register of 16 bytes, which every instruction set has.
template <class T>
struct RegisterOf {
  typedef T type __attribute__((vector_size(16)));
};
template <class T>
using Register = typename RegisterOf<T>::type;
template <class T>
constexpr int kWidth = 16 / static_cast<int>(sizeof(T));

/// One half of a and b, their lanes in turn.
template <class T, int first, int... lane>
Register<T> interleave(Register<T> a, Register<T> b, std::integer_sequence<int, lane...>) {
  return __builtin_shufflevector(a, b, (first + lane / 2 + lane % 2 * kWidth<T>)...);
}

/// A square of kWidth rows and columns; steps count bytes. A round of interleaving the upper with the lower
/// half of the rows moves one bit of a lane's number into the row's number; after all of them the two have
/// changed places.
template <class T>
void transpose_block(char* out, std::int64_t out_step, const char* in, std::int64_t in_step) {
  constexpr int width = kWidth<T>;
  using Lanes = std::make_integer_sequence<int, width>;
  Register<T> rows[width];
  for (int i = 0; i < width; ++i) std::memcpy(&rows[i], in + i * in_step, 16);
  for (int round = 1; round < width; round *= 2) {
    Register<T> next[width];
    for (int i = 0; i < width / 2; ++i) {
      next[2 * i] = interleave<T, 0>(rows[i], rows[i + width / 2], Lanes{});
      next[2 * i + 1] = interleave<T, width / 2>(rows[i], rows[i + width / 2], Lanes{});
    }
    for (int i = 0; i < width; ++i) rows[i] = next[i];
  }
  for (int i = 0; i < width; ++i) std::memcpy(out + i * out_step, &rows[i], 16);
}

template <class T>
void transpose_rows(char* out, std::int64_t out_step, const char* in, std::int64_t in_step, std::int64_t rows,
                    std::int64_t count) {
  constexpr std::int64_t width = kWidth<T>;
  constexpr std::int64_t item = sizeof(T);
  const std::int64_t whole_rows = rows / width * width;
  const std::int64_t whole = count / width * width;
  for (std::int64_t row = 0; row < whole_rows; row += width) {
    for (std::int64_t i = 0; i < whole; i += width) {
      transpose_block<T>(out + row * out_step + i * item, out_step, in + row * item + i * in_step, in_step);
    }
  }
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t i = row < whole_rows ? whole : 0; i < count; ++i) {
      std::memcpy(out + row * out_step + i * item, in + row * item + i * in_step, sizeof(T));
    }
  }
}

template <class T>
Loop loop_of() {
  static const ElementwiseTable& table = elementwise_table(active_isa());
  return table.unary[static_cast<int>(UnaryFn::positive)][kLoopIndex<T>];
}

}  // namespace

CopyLoop::CopyLoop(std::int64_t item_bytes) : item_(item_bytes) {
  const auto set = [&]<class T>() {
    loop_ = loop_of<T>();
    transpose_ = transpose_rows<T>;
  };
  switch (item_bytes) {
    case 1: set.template operator()<std::uint8_t>(); break;
    case 2: set.template operator()<std::uint16_t>(); break;
    case 4: set.template operator()<std::uint32_t>(); break;
    case 8: set.template operator()<std::uint64_t>(); break;
    default: loop_ = unary_loop<functors::Positive, functors::Item16, functors::Item16>;
  }
}

}  // namespace thalweg::cpu
