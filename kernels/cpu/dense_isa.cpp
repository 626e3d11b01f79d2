// dense_isa.cpp: inner loops over contiguous elements, compiled once per instruction set.
#if defined(__x86_64__)
#include <immintrin.h>
#endif

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

// b > a ? b : a and b < a ? b : a, whichever operands are nan or zeros of two signs. That is what the
// processor's instructions give in this order of operands; compilers do not find them by themselves.
template <class V>
V larger(const V& a, const V& b) {
#if defined(__x86_64__)
  if constexpr (sizeof(V) >= 16) {
    constexpr bool is_float = sizeof(a[0]) == sizeof(float);
#if defined(__AVX512F__)
    if constexpr (sizeof(V) == 64 && is_float) return (V)_mm512_max_ps((__m512)b, (__m512)a);
    if constexpr (sizeof(V) == 64 && !is_float) return (V)_mm512_max_pd((__m512d)b, (__m512d)a);
#endif
#if defined(__AVX2__)
    if constexpr (sizeof(V) == 32 && is_float) return (V)_mm256_max_ps((__m256)b, (__m256)a);
    if constexpr (sizeof(V) == 32 && !is_float) return (V)_mm256_max_pd((__m256d)b, (__m256d)a);
#endif
    if constexpr (sizeof(V) == 16 && is_float) return (V)_mm_max_ps((__m128)b, (__m128)a);
    if constexpr (sizeof(V) == 16 && !is_float) return (V)_mm_max_pd((__m128d)b, (__m128d)a);
  }
#endif
  return b > a ? b : a;
}

template <class V>
V smaller(const V& a, const V& b) {
#if defined(__x86_64__)
  if constexpr (sizeof(V) >= 16) {
    constexpr bool is_float = sizeof(a[0]) == sizeof(float);
#if defined(__AVX512F__)
    if constexpr (sizeof(V) == 64 && is_float) return (V)_mm512_min_ps((__m512)b, (__m512)a);
    if constexpr (sizeof(V) == 64 && !is_float) return (V)_mm512_min_pd((__m512d)b, (__m512d)a);
#endif
#if defined(__AVX2__)
    if constexpr (sizeof(V) == 32 && is_float) return (V)_mm256_min_ps((__m256)b, (__m256)a);
    if constexpr (sizeof(V) == 32 && !is_float) return (V)_mm256_min_pd((__m256d)b, (__m256d)a);
#endif
    if constexpr (sizeof(V) == 16 && is_float) return (V)_mm_min_ps((__m128)b, (__m128)a);
    if constexpr (sizeof(V) == 16 && !is_float) return (V)_mm_min_pd((__m128d)b, (__m128d)a);
  }
#endif
  return b < a ? b : a;
}

// nan stays: b > a is false for a nan in a, b != b is true for one in b.
struct Max {
  template <class V>
  static void apply(V& a, const V& b) {
    const V most = larger(a, b);
    a = b != b ? b : most;
  }
};

struct Min {
  template <class V>
  static void apply(V& a, const V& b) {
    const V least = smaller(a, b);
    a = b != b ? b : least;
  }
};

/// The value that combines into every other without a trace (-0.0 leaves every sum as it is, 0.0 would turn
/// -0.0 into 0.0).
template <class T, class Combine>
constexpr T identity() {
  if constexpr (__is_same(Combine, Sum)) return static_cast<T>(-0.0);
  return static_cast<T>(__is_same(Combine, Max) ? -__builtin_inf() : __builtin_inf());
}

/// Combines the halves of a register, the halves of the result and so on, down to `Unit` values.
template <class T, class Combine, int Unit, int Bytes>
void fold_register(typename RegisterOf<T, Bytes>::type all, T* value) {
  if constexpr (Bytes > 2 * static_cast<int>(sizeof(T))) {
    typename RegisterOf<T, Bytes / 2>::type halves[2];
    __builtin_memcpy(halves, &all, Bytes);
    Combine::apply(halves[0], halves[1]);
    fold_register<T, Combine, Unit, Bytes / 2>(halves[0], value);
  } else if constexpr (Unit == 2) {
    value[0] = all[0];
    value[1] = all[1];
  } else {
    T low = all[0];
    const T high = all[1];
    Combine::apply(low, high);
    *value = low;
  }
}

/// The same for registers side by side.
template <class T, class Combine, int Unit, int Count>
void fold_registers(typename RegisterOf<T>::type (&all)[Count], T* value) {
  for (int half = Count / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) Combine::apply(all[i], all[i + half]);
  }
  fold_register<T, Combine, Unit, kRegisterBytes>(all[0], value);
}

/// The last elements of `count`, those after the last whole register, and the identity in the other lanes.
template <class T, class Combine>
typename RegisterOf<T>::type load_last(const T* data, int64_t count) {
  using V = typename RegisterOf<T>::type;
  constexpr int width = kRegisterBytes / static_cast<int>(sizeof(T));
  const int64_t rest = count % width;
  const V none = identity<T, Combine>() - V{};
#if defined(__AVX512F__)
  const auto lanes = static_cast<uint16_t>((1u << rest) - 1);
  if constexpr (sizeof(T) == sizeof(float)) {
    return (V)_mm512_mask_loadu_ps((__m512)none, lanes, data + count - rest);
  } else {
    return (V)_mm512_mask_loadu_pd((__m512d)none, static_cast<__mmask8>(lanes), data + count - rest);
  }
#else
  T lanes[2 * width];
  *reinterpret_cast<V*>(lanes + width) = none;
  if (count >= width) {
    *reinterpret_cast<V*>(lanes) = load(data + count - width);
    return load(lanes + width - rest);
  }
  for (int64_t lane = 0; lane < rest; ++lane) lanes[width + lane] = data[lane];
  return load(lanes + width);
#endif
}

/// Combines `count` > 8 numbers of `Unit` parts, at most a leaf of them, in kLaneBytes of accumulators.
template <class T, class Combine, int Unit>
__attribute__((always_inline)) inline void combine_leaf(const T* data, int64_t count, T* value) {
  using V = typename RegisterOf<T>::type;
  constexpr int registers = kLaneBytes / kRegisterBytes;
  constexpr int width = kRegisterBytes / static_cast<int>(sizeof(T));
  constexpr int lanes = registers * width;
  const int64_t parts = count * Unit;
  V sums[registers];
  int64_t done = 0;
  if (parts >= lanes) {
    for (int i = 0; i < registers; ++i) sums[i] = load(data + i * width);
    done = lanes;
  } else {
    for (int i = 0; i < registers; ++i) sums[i] = identity<T, Combine>() - V{};
  }
  for (; done + lanes <= parts; done += lanes) {
    for (int i = 0; i < registers; ++i) Combine::apply(sums[i], load(data + done + i * width));
  }
#pragma GCC unroll 8
  for (int i = 0; i < registers; ++i, done += width) {
    if (done + width <= parts) {
      Combine::apply(sums[i], load(data + done));
    } else if (done < parts) {
      Combine::apply(sums[i], load_last<T, Combine>(data, parts));
    }
  }
  fold_registers<T, Combine, Unit>(sums, value);
}

template <class T, class Combine, int Unit = 1>
void combine_leaves(const T* data, int64_t count, T* values) {
  constexpr int64_t leaf = kLeafBytes / static_cast<int64_t>(sizeof(T)) / Unit;
  for (; count >= leaf; count -= leaf, data += leaf * Unit, values += Unit) {
    combine_leaf<T, Combine, Unit>(data, leaf, values);
  }
  if (count > 8) {
    combine_leaf<T, Combine, Unit>(data, count, values);
  } else if (count > 0) {
    for (int part = 0; part < Unit; ++part) {
      values[part] = data[part];
      for (int64_t i = 1; i < count; ++i) Combine::apply(values[part], data[i * Unit + part]);
    }
  }
}

/// Columns [column, width) as far as `Count` registers of Bytes fit; returns the first column left over.
template <class T, class Combine, int Bytes, int Count>
int64_t combine_strips(const ColumnRows<T>& p, int64_t column) {
  using V = typename RegisterOf<T, Bytes>::type;
  constexpr int width = Bytes / static_cast<int>(sizeof(T));
  for (; column + Count * width <= p.width; column += Count * width) {
    V sums[Count];
    for (int i = 0; i < Count; ++i) sums[i] = load<T, Bytes>(p.first + column + i * width);
    const T* row = p.rows + column;
    for (int64_t r = 0; r < p.count; ++r, row += p.row_stride) {
      for (int i = 0; i < Count; ++i) Combine::apply(sums[i], load<T, Bytes>(row + i * width));
    }
    for (int i = 0; i < Count; ++i) *reinterpret_cast<V*>(p.result + column + i * width) = sums[i];
  }
  return column;
}

template <class T, class Combine>
void combine_columns(const ColumnRows<T>& p) {
  int64_t column = combine_strips<T, Combine, kRegisterBytes, 4>(p, 0);
  column = combine_strips<T, Combine, kRegisterBytes, 1>(p, column);
  if constexpr (kRegisterBytes > 32) column = combine_strips<T, Combine, 32, 1>(p, column);
  if constexpr (kRegisterBytes > 16) column = combine_strips<T, Combine, 16, 1>(p, column);
  for (; column < p.width; ++column) {
    T sum = p.first[column];
    for (int64_t r = 0; r < p.count; ++r) Combine::apply(sum, p.rows[column + r * p.row_stride]);
    p.result[column] = sum;
  }
}

template <class T, class Best>
T best_of(const T* data, int64_t count) {
  using V = typename RegisterOf<T>::type;
  constexpr int width = kRegisterBytes / static_cast<int>(sizeof(T));
  constexpr int group = 4;
  T best = data[0];
  if (count < width) {
    for (int64_t i = 1; i < count; ++i) Best::apply(best, data[i]);
    return best;
  }
  V most[group];
  for (int i = 0; i < group; ++i) most[i] = load(data);
  int64_t at = width;
  for (; at + group * width <= count; at += group * width) {
    for (int i = 0; i < group; ++i) Best::apply(most[i], load(data + at + i * width));
  }
  for (; at + width <= count; at += width) Best::apply(most[0], load(data + at));
  Best::apply(most[1], load(data + count - width));  // some of them a second time
  fold_registers<T, Best, 1>(most, &best);
  return best;
}

/// Bit i is lane i of a comparison's result.
template <class M>
uint64_t lane_bits(const M& hits) {
#if defined(__x86_64__)
  constexpr bool is_float = sizeof(hits[0]) == sizeof(float);
#if defined(__AVX512F__)
  if constexpr (is_float) return _mm512_movepi32_mask((__m512i)hits);
  return _mm512_movepi64_mask((__m512i)hits);
#elif defined(__AVX2__)
  if constexpr (is_float) return static_cast<uint64_t>(_mm256_movemask_ps((__m256)hits));
  return static_cast<uint64_t>(_mm256_movemask_pd((__m256d)hits));
#else
  if constexpr (is_float) return static_cast<uint64_t>(_mm_movemask_ps((__m128)hits));
  return static_cast<uint64_t>(_mm_movemask_pd((__m128d)hits));
#endif
#else
  uint64_t bits = 0;
  for (uint64_t lane = 0; lane < sizeof(M) / sizeof(hits[0]); ++lane) bits |= (hits[lane] & 1ull) << lane;
  return bits;
#endif
}

/// Position of the first of `count` elements for which `matches`, of a register or a number, is true.
template <class T, class Matches>
int64_t find_match(const T* data, int64_t count, const Matches& matches) {
  constexpr int width = kRegisterBytes / static_cast<int>(sizeof(T));
  constexpr int group = 4;
  int64_t at = 0;
  for (; at + group * width <= count; at += group * width) {
    uint64_t bits = 0;
    for (int i = 0; i < group; ++i) bits |= lane_bits(matches(load(data + at + i * width))) << i * width;
    if (bits != 0) return at + __builtin_ctzll(bits);
  }
  for (; at + width <= count; at += width) {
    const uint64_t bits = lane_bits(matches(load(data + at)));
    if (bits != 0) return at + __builtin_ctzll(bits);
  }
  if (count >= width) {
    // What lies before `at` does not match.
    at = count - width;
    return at + __builtin_ctzll(lane_bits(matches(load(data + at))));
  }
  while (!matches(data[at])) ++at;
  return at;
}

template <class T>
int64_t find(const T* data, int64_t count, T value) {
  if (value != value) return find_match(data, count, [](const auto& x) { return x != x; });
  return find_match(data, count, [value](const auto& x) { return x == value; });
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
  table.sum_leaves_float = combine_leaves<float, Sum>;
  table.sum_leaves_double = combine_leaves<double, Sum>;
  table.sum_leaves_complex64 = combine_leaves<float, Sum, 2>;
  table.sum_leaves_complex128 = combine_leaves<double, Sum, 2>;
  table.max_leaves_float = combine_leaves<float, Max>;
  table.max_leaves_double = combine_leaves<double, Max>;
  table.min_leaves_float = combine_leaves<float, Min>;
  table.min_leaves_double = combine_leaves<double, Min>;
  table.sum_columns_float = combine_columns<float, Sum>;
  table.sum_columns_double = combine_columns<double, Sum>;
  table.max_columns_float = combine_columns<float, Max>;
  table.max_columns_double = combine_columns<double, Max>;
  table.min_columns_float = combine_columns<float, Min>;
  table.min_columns_double = combine_columns<double, Min>;
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
