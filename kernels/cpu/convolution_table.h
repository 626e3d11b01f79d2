// convolution_table.h: the inner loop of convolutions, one table for each instruction set.
#pragma once

#include <stdint.h>

// Included by files that are compiled for several instruction sets: no standard C++ headers, no inline
// functions.

namespace thalweg::cpu {

/// Elements behind those that `places` names which the loop reads and writes too.
inline constexpr int64_t kPlacesRoom = 256;

/// Sums of products at consecutive places: output o at place p gets, over all terms t in order, the sum of
/// weights[o * weights_step + t] * data[offsets[t] + p].
template <class T>
struct TermSums {
  const T* data;
  const int64_t* offsets;
  int64_t terms;
  const T* weights;
  int64_t weights_step;
  T* result;  ///< output o begins at o * result_step; rows have kPlacesRoom elements behind `places`
  int64_t result_step;
  int64_t outputs, places;
};
template <class T>
using TermSumsLoop = void (*)(const TermSums<T>& sums);

struct ConvolutionTable {
  TermSumsLoop<float> term_sums_float;
  TermSumsLoop<double> term_sums_double;
};

/// The loops for the processor's instruction set.
const ConvolutionTable& convolution_table();

}  // namespace thalweg::cpu
