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

template <class T>
struct RegisterOf {
  typedef T type __attribute__((vector_size(kRegisterBytes), aligned(alignof(T)), may_alias));
};

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
  table.add_multiple_uint8 = add_multiple<uint8_t, uint32_t>;
  table.add_multiple_uint16 = add_multiple<uint16_t, uint32_t>;
  table.add_multiple_uint32 = add_multiple<uint32_t, uint32_t>;
  table.add_multiple_uint64 = add_multiple<uint64_t, uint64_t>;
}

}  // namespace thalweg::cpu::THALWEG_ISA
