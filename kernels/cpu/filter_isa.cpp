// filter_isa.cpp: loops that find the elements of a block that pass a test, compiled once per instruction
// set.
#include "kernels/cpu/filter_table.h"

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

namespace thalweg::cpu::THALWEG_ISA {
namespace {

#if defined(__AVX512F__)
constexpr int kRegisterBytes = 64;
#elif defined(__AVX2__)
constexpr int kRegisterBytes = 32;
#else
constexpr int kRegisterBytes = 16;
#endif

/// Registers that are tested together.
constexpr int kGroup = 4;

template <class T>
struct RegisterOf {
  typedef T type __attribute__((vector_size(kRegisterBytes), aligned(alignof(T)), may_alias));
};

// The tests of two numbers, or of two registers lane by lane.
struct Above {
  template <class V>
  static auto passes(const V& x, const V& bound) {
    return x > bound;
  }
};
struct Below {
  template <class V>
  static auto passes(const V& x, const V& bound) {
    return x < bound;
  }
};
struct Differs {
  template <class V>
  static auto passes(const V& x, const V& bound) {
    return x != bound;
  }
};

/// Without a branch on the elements, which would be mispredicted half the time.
template <class T, class Test>
int64_t filter_each(const T* data, int64_t begin, int64_t end, T bound, uint32_t* positions, int64_t found) {
  for (int64_t i = begin; i < end; ++i) {
    positions[found] = static_cast<uint32_t>(i);
    found += Test::passes(data[i], bound) ? 1 : 0;
  }
  return found;
}

#if defined(__AVX512F__)

/// One bit for each lane that is all ones.
template <class Hits>
uint64_t bits_of(const Hits& hits) {
  const __m512i lanes = reinterpret_cast<const __m512i&>(hits);
  constexpr int size = sizeof(hits[0]);
  if constexpr (size == 1) return _mm512_movepi8_mask(lanes);
  if constexpr (size == 2) return _mm512_movepi16_mask(lanes);
  if constexpr (size == 4) return _mm512_movepi32_mask(lanes);
  return _mm512_movepi64_mask(lanes);
}

template <class T, class Test>
int64_t filter(const T* data, int64_t count, T bound, uint32_t* positions) {
  using V = typename RegisterOf<T>::type;
  constexpr int width = kRegisterBytes / static_cast<int>(sizeof(T));
  const V bounds = V{} + bound;
  const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  int64_t found = 0;
  int64_t at = 0;
  for (; at + kGroup * width <= count; at += kGroup * width) {
    uint64_t bits[kGroup];
    for (int i = 0; i < kGroup; ++i) {
      bits[i] = bits_of(Test::passes(*reinterpret_cast<const V*>(data + at + i * width), bounds));
    }
    if ((bits[0] | bits[1] | bits[2] | bits[3]) == 0) continue;
    for (int i = 0; i < kGroup; ++i) {
      for (int part = 0; part < width; part += 16) {
        const auto hits = static_cast<__mmask16>(bits[i] >> part);
        const __m512i here =
            _mm512_add_epi32(lane, _mm512_set1_epi32(static_cast<int>(at) + i * width + part));
        _mm512_storeu_si512(positions + found, _mm512_maskz_compress_epi32(hits, here));
        found += __builtin_popcount(hits);
      }
    }
  }
  return filter_each<T, Test>(data, at, count, bound, positions, found);
}

#else

template <class T, class Test>
int64_t filter(const T* data, int64_t count, T bound, uint32_t* positions) {
  using V = typename RegisterOf<T>::type;
  constexpr int width = kRegisterBytes / static_cast<int>(sizeof(T));
  const V bounds = V{} + bound;
  int64_t found = 0;
  int64_t at = 0;
  for (; at + kGroup * width <= count; at += kGroup * width) {
    auto hits = Test::passes(*reinterpret_cast<const V*>(data + at), bounds);
    for (int i = 1; i < kGroup; ++i) {
      hits |= Test::passes(*reinterpret_cast<const V*>(data + at + i * width), bounds);
    }
    int64_t words[kRegisterBytes / 8];
    __builtin_memcpy(words, &hits, sizeof words);
    int64_t any = 0;
    for (const int64_t word : words) any |= word;
    if (any == 0) continue;
    found = filter_each<T, Test>(data, at, at + kGroup * width, bound, positions, found);
  }
  return filter_each<T, Test>(data, at, count, bound, positions, found);
}

#endif

template <class T>
int64_t count_differs(const T* data, int64_t count, T value) {
  using V = typename RegisterOf<T>::type;
  constexpr int width = kRegisterBytes / static_cast<int>(sizeof(T));
  // A lane of bytes counts to 127 before its count is moved on.
  constexpr int64_t turn = 127;
  const V values = V{} + value;
  int64_t found = 0;
  int64_t at = 0;
  while (at + width <= count) {
    const int64_t whole = (count - at) / width;
    const int64_t registers = whole < turn ? whole : turn;
    auto same = values != values;
    same ^= same;
    for (int64_t i = 0; i < registers; ++i) {
      same -= Differs::passes(*reinterpret_cast<const V*>(data + at + i * width), values);
    }
    for (int lane = 0; lane < width; ++lane) found += same[lane];
    at += registers * width;
  }
  for (; at < count; ++at) found += data[at] != value ? 1 : 0;
  return found;
}

template <class T>
void fill_loops(FilterLoops<T>& loops) {
  loops.above = filter<T, Above>;
  loops.below = filter<T, Below>;
  loops.differs = filter<T, Differs>;
  loops.count_differs = count_differs<T>;
}

}  // namespace

void fill_filter(FilterTable& table) {
  fill_loops<int8_t>(table);
  fill_loops<int16_t>(table);
  fill_loops<int32_t>(table);
  fill_loops<int64_t>(table);
  fill_loops<uint8_t>(table);
  fill_loops<uint16_t>(table);
  fill_loops<uint32_t>(table);
  fill_loops<uint64_t>(table);
  fill_loops<float>(table);
  fill_loops<double>(table);
}

}  // namespace thalweg::cpu::THALWEG_ISA
