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

struct DenseTable {
  LanesLoop<float> sum_float;
  LanesLoop<double> sum_double;
  LanesLoop<float> max_float;
  LanesLoop<double> max_double;
  LanesLoop<float> min_float;
  LanesLoop<double> min_double;
  AddMultipleLoop<uint8_t> add_multiple_uint8;
  AddMultipleLoop<uint16_t> add_multiple_uint16;
  AddMultipleLoop<uint32_t> add_multiple_uint32;
  AddMultipleLoop<uint64_t> add_multiple_uint64;
};

/// The loops for the processor's instruction set.
const DenseTable& dense_table();

}  // namespace thalweg::cpu
