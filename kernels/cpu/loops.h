// loops.h: inner loops over a functor, for files compiled once per instruction set.
#pragma once

#include <stdint.h>

#include "kernels/cpu/elementwise_table.h"
#include "kernels/functors.h"

// The output is either apart from an input or its very bytes; neither carries a value from one turn to the
// next, which the compiler cannot see by itself.
#if defined(__clang__)
#define THALWEG_INDEPENDENT_TURNS _Pragma("clang loop vectorize(assume_safety)")
#else
#define THALWEG_INDEPENDENT_TURNS _Pragma("GCC ivdep")
#endif

namespace thalweg::cpu {
// Unnamed, so that each instruction set keeps its own copy.
namespace {

/// True of a function that gives back its operand: such loops are copies.
template <class F>
inline constexpr bool kIsCopy = false;
template <>
inline constexpr bool kIsCopy<functors::Positive> = true;

/// Elements of strided inputs that are brought together at a time, and the fewest for which that pays.
inline constexpr int64_t kGathered = 256;
inline constexpr int64_t kFewGathered = 16;

/// `count` elements `step` bytes apart, put side by side.
template <class T>
void gather_elements(T* to, const char* from, int64_t step, int64_t count) {
  if (step == 2 * static_cast<int64_t>(sizeof(T))) {
    // Of a step that is known the compiler makes shuffles.
    const T* in = reinterpret_cast<const T*>(from);
    THALWEG_INDEPENDENT_TURNS
    for (int64_t i = 0; i < count; ++i) to[i] = in[2 * i];
    return;
  }
  for (int64_t i = 0; i < count; ++i) to[i] = *reinterpret_cast<const T*>(from + i * step);
}

/// The elements of input `data`, `step` bytes apart: where they lie if that is side by side, else in
/// `buffer`.
template <class T>
char* side_by_side(T* buffer, char* data, int64_t step, int64_t count) {
  if (step == sizeof(T)) return data;
  gather_elements(buffer, data, step, count);
  return reinterpret_cast<char*>(buffer);
}

/// Calls `loop`, which is fast over dense operands, for pieces of strided inputs brought together.
template <class Out, class In>
void gathered_unary_loop(Loop loop, char* const* data, const int64_t* steps, int64_t count) {
  const int64_t dense[] = {sizeof(Out), sizeof(In)};
  In in[kGathered];
  for (int64_t begin = 0; begin < count; begin += kGathered) {
    const int64_t piece = count - begin < kGathered ? count - begin : kGathered;
    char* const at[] = {data[0] + begin * dense[0],
                        side_by_side(in, data[1] + begin * steps[1], steps[1], piece)};
    loop(at, dense, piece);
  }
}
template <class Out, class A, class B>
void gathered_binary_loop(Loop loop, char* const* data, const int64_t* steps, int64_t count) {
  const int64_t dense[] = {sizeof(Out), sizeof(A), sizeof(B)};
  A a[kGathered];
  B b[kGathered];
  for (int64_t begin = 0; begin < count; begin += kGathered) {
    const int64_t piece = count - begin < kGathered ? count - begin : kGathered;
    char* const at[] = {data[0] + begin * dense[0],
                        side_by_side(a, data[1] + begin * steps[1], steps[1], piece),
                        side_by_side(b, data[2] + begin * steps[2], steps[2], piece)};
    loop(at, dense, piece);
  }
}

template <class F, class In, class Out>
void unary_loop(char* const* data, const int64_t* steps, int64_t count) {
  const F f{};
  if (steps[0] == sizeof(Out) && steps[1] == sizeof(In)) {
    Out* out = reinterpret_cast<Out*>(data[0]);
    const In* in = reinterpret_cast<const In*>(data[1]);
    THALWEG_INDEPENDENT_TURNS
    for (int64_t i = 0; i < count; ++i) out[i] = f(in[i]);
    return;
  }
  if constexpr (kIsCopy<F>) {
    if (steps[0] == sizeof(Out) && steps[1] == -static_cast<int64_t>(sizeof(In))) {
      Out* out = reinterpret_cast<Out*>(data[0]);
      const In* last = reinterpret_cast<const In*>(data[1]);
      THALWEG_INDEPENDENT_TURNS
      for (int64_t i = 0; i < count; ++i) out[i] = last[-i];
      return;
    }
    if (steps[0] == sizeof(Out)) {
      return gather_elements(reinterpret_cast<Out*>(data[0]), data[1], steps[1], count);
    }
  } else if (steps[0] == sizeof(Out) && count >= kFewGathered) {
    return gathered_unary_loop<Out, In>(unary_loop<F, In, Out>, data, steps, count);
  }
  for (int64_t i = 0; i < count; ++i) {
    *reinterpret_cast<Out*>(data[0] + i * steps[0]) = f(*reinterpret_cast<const In*>(data[1] + i * steps[1]));
  }
}

template <class F, class A, class B, class Out>
void binary_loop(char* const* data, const int64_t* steps, int64_t count) {
  const F f{};
  Out* out = reinterpret_cast<Out*>(data[0]);
  const A* a = reinterpret_cast<const A*>(data[1]);
  const B* b = reinterpret_cast<const B*>(data[2]);
  bool dense_out = steps[0] == sizeof(Out);
  bool dense_a = steps[1] == sizeof(A);
  bool dense_b = steps[2] == sizeof(B);
  if (dense_out && dense_a && dense_b) {
    THALWEG_INDEPENDENT_TURNS
    for (int64_t i = 0; i < count; ++i) out[i] = f(a[i], b[i]);
  } else if (dense_out && dense_a && steps[2] == 0) {
    const B fixed = *b;
    THALWEG_INDEPENDENT_TURNS
    for (int64_t i = 0; i < count; ++i) out[i] = f(a[i], fixed);
  } else if (dense_out && dense_b && steps[1] == 0) {
    const A fixed = *a;
    THALWEG_INDEPENDENT_TURNS
    for (int64_t i = 0; i < count; ++i) out[i] = f(fixed, b[i]);
  } else if (dense_out && count >= kFewGathered) {
    gathered_binary_loop<Out, A, B>(binary_loop<F, A, B, Out>, data, steps, count);
  } else {
    for (int64_t i = 0; i < count; ++i) {
      *reinterpret_cast<Out*>(data[0] + i * steps[0]) =
          f(*reinterpret_cast<const A*>(data[1] + i * steps[1]),
            *reinterpret_cast<const B*>(data[2] + i * steps[2]));
    }
  }
}

/// The first input is dense, the others are where their step is 1 and one element for all where it is 0.
template <int kStepB, int kStepC, class F, class A, class B, class C, class Out>
void dense_ternary_loop(const F& f, Out* out, const A* a, const B* b, const C* c, int64_t count) {
  THALWEG_INDEPENDENT_TURNS
  for (int64_t i = 0; i < count; ++i) out[i] = f(a[i], b[i * kStepB], c[i * kStepC]);
}

template <class F, class A, class B, class C, class Out>
void ternary_loop(char* const* data, const int64_t* steps, int64_t count) {
  const F f{};
  Out* out = reinterpret_cast<Out*>(data[0]);
  const A* a = reinterpret_cast<const A*>(data[1]);
  const B* b = reinterpret_cast<const B*>(data[2]);
  const C* c = reinterpret_cast<const C*>(data[3]);
  const bool dense_b = steps[2] == sizeof(B);
  const bool dense_c = steps[3] == sizeof(C);
  const bool fixed_b = steps[2] == 0;
  const bool fixed_c = steps[3] == 0;
  if (steps[0] == sizeof(Out) && steps[1] == sizeof(A) && (dense_b || fixed_b) && (dense_c || fixed_c)) {
    const B one_b = *b;
    const C one_c = *c;
    if (fixed_b && fixed_c) return dense_ternary_loop<0, 0>(f, out, a, &one_b, &one_c, count);
    if (fixed_b) return dense_ternary_loop<0, 1>(f, out, a, &one_b, c, count);
    if (fixed_c) return dense_ternary_loop<1, 0>(f, out, a, b, &one_c, count);
    return dense_ternary_loop<1, 1>(f, out, a, b, c, count);
  }
  for (int64_t i = 0; i < count; ++i) {
    // All of them before the function chooses: a jump for each element costs more than a load.
    const A x = *reinterpret_cast<const A*>(data[1] + i * steps[1]);
    const B y = *reinterpret_cast<const B*>(data[2] + i * steps[2]);
    const C z = *reinterpret_cast<const C*>(data[3] + i * steps[3]);
    *reinterpret_cast<Out*>(data[0] + i * steps[0]) = f(x, y, z);
  }
}

/// A list of types over which a row of a table is filled.
template <class... T>
struct Types {};
using SignedTypes = Types<int8_t, int16_t, int32_t, int64_t>;
using IntegerTypes = Types<int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>;
using FloatingTypes = Types<float, double>;
using NumericTypes =
    Types<int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t, float, double>;
using BoolTypes = Types<bool>;

template <class F, class... T>
void fill_unary(Loop* row, Types<T...>) {
  ((row[kLoopIndex<T>] = unary_loop<F, T, T>), ...);
}
template <class F, class... T>
void fill_predicate(Loop* row, Types<T...>) {
  ((row[kLoopIndex<T>] = unary_loop<F, T, bool>), ...);
}
template <class F, class... T>
void fill_binary(Loop* row, Types<T...>) {
  ((row[kLoopIndex<T>] = binary_loop<F, T, T, T>), ...);
}
template <class F, class... T>
void fill_compare(Loop* row, Types<T...>) {
  ((row[kLoopIndex<T>] = binary_loop<F, T, T, bool>), ...);
}

}  // namespace
}  // namespace thalweg::cpu
