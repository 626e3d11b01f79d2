// filter_table.h: loops that find the elements of a block that pass a test, one table for each instruction
// set.
#pragma once

#include <stdint.h>

// Included by files that are compiled for several instruction sets: no standard C++ headers, no inline
// functions.

namespace thalweg::cpu {

/// Elements that one call looks at, at most.
inline constexpr int64_t kFilterBlock = 1024;

/// Room for the positions of a block: whole registers are stored.
inline constexpr int64_t kFilterRoom = kFilterBlock + 16;

/// Writes the positions of the elements that pass the test against `bound`, in order, to `positions`, which
/// has kFilterRoom places; returns how many they are.
template <class T>
using FilterLoop = int64_t (*)(const T* data, int64_t count, T bound, uint32_t* positions);

/// How many of `count` elements differ from `value`.
template <class T>
using CountLoop = int64_t (*)(const T* data, int64_t count, T value);

/// A comparison with nan is false, but nan differs from everything.
template <class T>
struct FilterLoops {
  FilterLoop<T> above;
  FilterLoop<T> below;
  FilterLoop<T> differs;
  CountLoop<T> count_differs;
};

struct FilterTable : FilterLoops<int8_t>,
                     FilterLoops<int16_t>,
                     FilterLoops<int32_t>,
                     FilterLoops<int64_t>,
                     FilterLoops<uint8_t>,
                     FilterLoops<uint16_t>,
                     FilterLoops<uint32_t>,
                     FilterLoops<uint64_t>,
                     FilterLoops<float>,
                     FilterLoops<double> {};

/// The loops for the processor's instruction set.
const FilterTable& filter_table();

}  // namespace thalweg::cpu
