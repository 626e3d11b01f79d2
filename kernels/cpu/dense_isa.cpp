// dense_isa.cpp: inner loops over contiguous elements, compiled once per instruction set.
#include "kernels/cpu/dense_table.h"

namespace thalweg::cpu::THALWEG_ISA {
namespace {

// The width of this instruction set's registers. Written out as vector types because a compiler that
// vectorises the plain loop keeps the accumulators in memory.
#if defined(__AVX512F__)
constexpr int kRegisterBytes = 64;
#elif defined(__AVX2__)
constexpr int kRegisterBytes = 32;
#else
constexpr int kRegisterBytes = 16;
#endif

template <class T, int Bytes = kRegisterBytes>
struct RegisterOf {
  typedef T type __attribute__((vector_size(Bytes), aligned(alignof(T)), may_alias));
};

template <class T, int Bytes = kRegisterBytes>
typename RegisterOf<T, Bytes>::type load(const T* data) {
  return *reinterpret_cast<const typename RegisterOf<T, Bytes>::type*>(data);
}

struct Sum {
  template <class V>
  static void apply(V& a, const V& b) {
    a = a + b;
  }
};

// nan stays: b > a is false for a nan in a, b != b is true for one in b.
struct Max {
  template <class V>
  static void apply(V& a, const V& b) {
    const V larger = b > a ? b : a;
    a = b != b ? b : larger;
  }
};

struct Min {
  template <class V>
  static void apply(V& a, const V& b) {
    const V smaller = b < a ? b : a;
    a = b != b ? b : smaller;
  }
};

template <class T, class Combine>
void combine_lanes(const T* data, int64_t rows, T* lanes) {
  using V = typename RegisterOf<T>::type;
  constexpr int count = kLaneBytes / kRegisterBytes;
  constexpr int width = kRegisterBytes / static_cast<int>(sizeof(T));
  V sums[count];
  for (int i = 0; i < count; ++i) sums[i] = *reinterpret_cast<const V*>(lanes + i * width);
  for (int64_t row = 0; row < rows; ++row, data += count * width) {
    for (int i = 0; i < count; ++i) Combine::apply(sums[i], *reinterpret_cast<const V*>(data + i * width));
  }
  for (int i = 0; i < count; ++i) *reinterpret_cast<V*>(lanes + i * width) = sums[i];
}

template <class T, class Best>
T best_of(const T* data, int64_t count) {
  using V = typename RegisterOf<T>::type;
  constexpr int width = kRegisterBytes / static_cast<int>(sizeof(T));
  constexpr int group = 4;
  T best = data[0];
  int64_t at = 1;
  if (count >= width) {
    V most[group];
    for (int i = 0; i < group; ++i) most[i] = load(data);
    for (at = width; at + group * width <= count; at += group * width) {
      for (int i = 0; i < group; ++i) Best::apply(most[i], load(data + at + i * width));
    }
    for (; at + width <= count; at += width) Best::apply(most[0], load(data + at));
    Best::apply(most[1], load(data + count - width));  // some of them a second time
    at = count;
    Best::apply(most[0], most[1]);
    Best::apply(most[2], most[3]);
    Best::apply(most[0], most[2]);
    T lanes[width];
    *reinterpret_cast<V*>(lanes) = most[0];
    best = lanes[0];
    for (int i = 1; i < width; ++i) Best::apply(best, lanes[i]);
  }
  for (; at < count; ++at) Best::apply(best, data[at]);
  return best;
}

template <class T>
int64_t find(const T* data, int64_t count, T value) {
  constexpr int width = kRegisterBytes / static_cast<int>(sizeof(T));
  constexpr int group = 4;
  int64_t at = 0;
  if (value == value) {
    for (; at + group * width <= count; at += group * width) {
      auto hits = load(data + at) == value;
      for (int i = 1; i < group; ++i) hits |= load(data + at + i * width) == value;
      int64_t words[kRegisterBytes / 8];
      __builtin_memcpy(words, &hits, sizeof words);
      int64_t any = 0;
      for (const int64_t word : words) any |= word;
      if (any != 0) break;
    }
    while (data[at] != value) ++at;
  } else {
    while (data[at] == data[at]) ++at;
  }
  return at;
}

/// `Rows` rows of as many columns of a product as fit Bytes: sums that do not wait for each other.
template <class T, int Bytes, int Rows>
void product_block(const SmallProduct<T>& p, int64_t row, int64_t column) {
  using V = typename RegisterOf<T, Bytes>::type;
  V sums[Rows];
  for (int r = 0; r < Rows; ++r) sums[r] = V{};
  const T* a = p.a + row * p.a_row_stride;
  const T* b = p.b + column;
  for (int64_t k = 0; k < p.inner; ++k, a += p.a_column_stride, b += p.b_row_stride) {
    const V factors = load<T, Bytes>(b);
    for (int r = 0; r < Rows; ++r) sums[r] = sums[r] + a[r * p.a_row_stride] * factors;
  }
  for (int r = 0; r < Rows; ++r) {
    *reinterpret_cast<V*>(p.result + (row + r) * p.columns + column) = sums[r];
  }
}

template <class T, int Bytes>
int64_t product_columns(const SmallProduct<T>& p, int64_t column) {
  constexpr int width = Bytes / static_cast<int>(sizeof(T));
  for (; column + width <= p.columns; column += width) {
    int64_t row = 0;
    for (; row + 4 <= p.rows; row += 4) product_block<T, Bytes, 4>(p, row, column);
    for (; row < p.rows; ++row) product_block<T, Bytes, 1>(p, row, column);
  }
  return column;
}

template <class T>
void small_product(const SmallProduct<T>& p) {
  int64_t column = product_columns<T, kRegisterBytes>(p, 0);
  if constexpr (kRegisterBytes > 32) column = product_columns<T, 32>(p, column);
  if constexpr (kRegisterBytes > 16) column = product_columns<T, 16>(p, column);
  product_columns<T, sizeof(T)>(p, column);
}

// `Wide` keeps narrow unsigned factors from being promoted to int, where they would overflow.
template <class T, class Wide>
void add_multiple(T* out, const T* in, T factor, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    out[i] = static_cast<T>(static_cast<Wide>(out[i]) + static_cast<Wide>(factor) * static_cast<Wide>(in[i]));
  }
}

}  // namespace

void fill_dense(DenseTable& table) {
  table.sum_float = combine_lanes<float, Sum>;
  table.sum_double = combine_lanes<double, Sum>;
  table.max_float = combine_lanes<float, Max>;
  table.max_double = combine_lanes<double, Max>;
  table.min_float = combine_lanes<float, Min>;
  table.min_double = combine_lanes<double, Min>;
  table.best_of_max_float = best_of<float, Max>;
  table.best_of_max_double = best_of<double, Max>;
  table.best_of_min_float = best_of<float, Min>;
  table.best_of_min_double = best_of<double, Min>;
  table.find_float = find<float>;
  table.find_double = find<double>;
  table.small_product_float = small_product<float>;
  table.small_product_double = small_product<double>;
  table.add_multiple_uint8 = add_multiple<uint8_t, uint32_t>;
  table.add_multiple_uint16 = add_multiple<uint16_t, uint32_t>;
  table.add_multiple_uint32 = add_multiple<uint32_t, uint32_t>;
  table.add_multiple_uint64 = add_multiple<uint64_t, uint64_t>;
}

}  // namespace thalweg::cpu::THALWEG_ISA
