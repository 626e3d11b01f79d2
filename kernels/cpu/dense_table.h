// dense_table.h: inner loops over contiguous elements for reductions and integer products, one table for each
// instruction set.
#pragma once

#include <stdint.h>

// Included by files that are compiled for several instruction sets: no standard C++ headers, no inline
// functions.

namespace thalweg::cpu {

/// Bytes of the accumulators that a reduction keeps side by side. The same for every instruction set, so that
/// all of them associate alike.
inline constexpr int kLaneBytes = 128;

/// Combines `rows` rows of kLaneBytes of `data` into the accumulators `lanes`, each row after the one before.
template <class T>
using LanesLoop = void (*)(const T* data, int64_t rows, T* lanes);

/// out[i] += factor * in[i], wrapping.
template <class T>
using AddMultipleLoop = void (*)(T* out, const T* in, T factor, int64_t count);

/// The best of `count` > 0 elements, nan before all others.
template <class T>
using BestLoop = T (*)(const T* data, int64_t count);

/// Position of the first of `count` elements that is `value`, which must be there; nan is nan.
template <class T>
using FindLoop = int64_t (*)(const T* data, int64_t count, T value);

/// Two small matrices: (rows, inner) with any strides and (inner, columns) with rows of neighbours.
template <class T>
struct SmallProduct {
  const T* a;
  const T* b;
  T* result;  ///< (rows, columns), contiguous
  int64_t rows, columns, inner;
  int64_t a_row_stride, a_column_stride, b_row_stride;
};
template <class T>
using SmallProductLoop = void (*)(const SmallProduct<T>& product);

struct DenseTable {
  LanesLoop<float> sum_float;
  LanesLoop<double> sum_double;
  LanesLoop<float> max_float;
  LanesLoop<double> max_double;
  LanesLoop<float> min_float;
  LanesLoop<double> min_double;
  BestLoop<float> best_of_max_float;
  BestLoop<double> best_of_max_double;
  BestLoop<float> best_of_min_float;
  BestLoop<double> best_of_min_double;
  FindLoop<float> find_float;
  FindLoop<double> find_double;
  SmallProductLoop<float> small_product_float;
  SmallProductLoop<double> small_product_double;
  AddMultipleLoop<uint8_t> add_multiple_uint8;
  AddMultipleLoop<uint16_t> add_multiple_uint16;
  AddMultipleLoop<uint32_t> add_multiple_uint32;
  AddMultipleLoop<uint64_t> add_multiple_uint64;
};

/// The loops for the processor's instruction set.
const DenseTable& dense_table();

}  // namespace thalweg::cpu
