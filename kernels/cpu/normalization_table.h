// normalization_table.h: inner loops over rows for softmax and layer normalisation, one table for each
// instruction set.
#pragma once

#include <stdint.h>

// Included by files that are compiled for several instruction sets: no standard C++ headers, no inline
// functions.

namespace thalweg::cpu {

/// Loops over `count` neighbours; an output may be the input's own bytes. Sums associate alike in every
/// instruction set.
template <class T>
struct RowLoops {
  /// The largest element that is not nan; minus infinity for none.
  T (*largest)(const T* in, int64_t count);
  /// out = exp(in - shift), where no element is above the shift; returns the sum.
  T (*exp)(const T* in, T shift, T* out, int64_t count);
  /// The sum of exp without the values.
  T (*exp_sum)(const T* in, T shift, int64_t count);
  /// out = (in - shift) - further.
  void (*subtract)(const T* in, T shift, T further, T* out, int64_t count);
  T (*sum)(const T* in, int64_t count);
  // The same down `count` columns: rows are `step` apart in `in` and `out`, and each column has its own
  // numbers. Results are combined with what is in `best` and `sums`; a null `out` takes no values.
  void (*largest_down)(const T* in, int64_t rows, int64_t step, T* best, int64_t count);
  void (*exp_down)(const T* in, int64_t rows, int64_t step, const T* shifts, T* out, T* sums, int64_t count);
  void (*subtract_down)(const T* in, int64_t rows, int64_t step, const T* shifts, const T* further, T* out,
                        int64_t count);
  /// data *= factors.
  void (*scale_down)(T* data, int64_t rows, int64_t step, const T* factors, int64_t count);
  /// The sum of (in - mean)^2.
  T (*square_sum)(const T* in, T mean, int64_t count);
  /// out = (in - mean) * factor * weight + bias; weight and bias may be null.
  void (*normalize)(const T* in, T mean, T factor, const T* weight, const T* bias, T* out, int64_t count);
};

struct NormalizationTable : RowLoops<float>, RowLoops<double> {};

/// The loops for the processor's instruction set.
const NormalizationTable& normalization_table();

}  // namespace thalweg::cpu
