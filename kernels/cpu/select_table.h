// select_table.h: loops that find the elements of a block that pass a test, one table for each instruction
// set.
#pragma once

#include <stdint.h>

// Included by files that are compiled for several instruction sets: no standard C++ headers, no inline
// functions.

namespace thalweg::cpu {

/// Elements that one call looks at, at most.
inline constexpr int64_t kSelectBlock = 1024;

/// Room for the positions of a block: whole registers are stored.
inline constexpr int64_t kSelectRoom = kSelectBlock + 16;

/// Writes the positions of the elements that pass the test against `bound`, in order, to `positions`, which
/// has kSelectRoom places; returns how many they are.
template <class T>
using SelectLoop = int64_t (*)(const T* data, int64_t count, T bound, uint32_t* positions);

/// How many of `count` elements differ from `value`.
template <class T>
using CountLoop = int64_t (*)(const T* data, int64_t count, T value);

/// A comparison with nan is false, but nan differs from everything.
template <class T>
struct SelectLoops {
  SelectLoop<T> above;
  SelectLoop<T> below;
  SelectLoop<T> differs;
  CountLoop<T> count_differs;
};

struct SelectTable : SelectLoops<int8_t>,
                     SelectLoops<int16_t>,
                     SelectLoops<int32_t>,
                     SelectLoops<int64_t>,
                     SelectLoops<uint8_t>,
                     SelectLoops<uint16_t>,
                     SelectLoops<uint32_t>,
                     SelectLoops<uint64_t>,
                     SelectLoops<float>,
                     SelectLoops<double> {};

/// The loops for the processor's instruction set.
const SelectTable& select_table();

}  // namespace thalweg::cpu
