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

/// Bytes of a leaf: each accumulator takes 16 values in a row, as in NumPy's pairwise sum.
inline constexpr int kLeafBytes = 16 * kLaneBytes;

/// Splits `count` elements into leaves of kLeafBytes, the last one perhaps shorter, and writes the
/// combination of each. Up to 8 elements are combined one after the other; more of them in accumulators side
/// by side, element i going to accumulator i mod their number, then the accumulators by halves: the lower
/// with the upper. A complex number is two neighbouring parts.
template <class T>
using LeavesLoop = void (*)(const T* data, int64_t count, T* values);

/// Rows of `width` neighbouring columns that are combined into one, each after the one before.
template <class T>
struct ColumnRows {
  const T* first;  ///< what the first of the rows is combined with
  const T* rows;
  T* result;  ///< may be `first` or `rows`
  int64_t row_stride, count, width;
};
template <class T>
using ColumnsLoop = void (*)(const ColumnRows<T>& rows);

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
  LeavesLoop<float> sum_leaves_float;
  LeavesLoop<double> sum_leaves_double;
  LeavesLoop<float> sum_leaves_complex64;
  LeavesLoop<double> sum_leaves_complex128;
  LeavesLoop<float> max_leaves_float;
  LeavesLoop<double> max_leaves_double;
  LeavesLoop<float> min_leaves_float;
  LeavesLoop<double> min_leaves_double;
  ColumnsLoop<float> sum_columns_float;
  ColumnsLoop<double> sum_columns_double;
  ColumnsLoop<float> max_columns_float;
  ColumnsLoop<double> max_columns_double;
  ColumnsLoop<float> min_columns_float;
  ColumnsLoop<double> min_columns_double;
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
