// find_table.h: loops that find the elements of a block that pass a test, one table for each instruction
// set.
#pragma once

#include <stdint.h>

// Included by files that are compiled for several instruction sets: no standard C++ headers, no inline
// functions.

namespace thalweg::cpu {

/// Elements that one call looks at, at most.
inline constexpr int64_t kFindBlock = 1024;

/// Room for the positions of a block: whole registers are stored.
inline constexpr int64_t kFindRoom = kFindBlock + 16;

/// Writes the positions of the elements that pass the test against `bound`, in order, to `positions`, which
/// has kFindRoom places; returns how many they are.
template <class T>
using FindLoop = int64_t (*)(const T* data, int64_t count, T bound, uint32_t* positions);

/// How many of `count` elements differ from `value`.
template <class T>
using CountLoop = int64_t (*)(const T* data, int64_t count, T value);

/// A comparison with nan is false, but nan differs from everything.
template <class T>
struct FindLoops {
  FindLoop<T> above;
  FindLoop<T> below;
  FindLoop<T> differs;
  CountLoop<T> count_differs;
};

struct FindTable : FindLoops<int8_t>,
                   FindLoops<int16_t>,
                   FindLoops<int32_t>,
                   FindLoops<int64_t>,
                   FindLoops<uint8_t>,
                   FindLoops<uint16_t>,
                   FindLoops<uint32_t>,
                   FindLoops<uint64_t>,
                   FindLoops<float>,
                   FindLoops<double> {};

/// The loops for the processor's instruction set.
const FindTable& find_table();

}  // namespace thalweg::cpu
