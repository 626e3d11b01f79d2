// fft_table.h: one-dimensional Fourier transforms of many lines, one table for each instruction set.
#pragma once

#include <stddef.h>
#include <stdint.h>

// Included by files that are compiled for several instruction sets: no standard C++ headers, no inline
// functions.

namespace thalweg::cpu {

/// What a transform turns into what: complex into complex, real into the first half of a complex spectrum
/// (the other half are its conjugates), or such a half into real.
enum class FftType { complex, real_to_complex, complex_to_real };

/// How a line of n elements is read, transformed and written. Strides count elements of their side.
struct FftLine {
  /// Elements of the input line that count; those up to the transform's length are taken for zeros.
  int64_t in_count;
  int64_t in_stride;
  int64_t out_stride;
  /// Whether several lines go through the processor's registers together.
  bool side_by_side;
  /// The exponent's sign: forward is exp(-2 pi i j k / n).
  bool forward;
  double scale;
};

/// Transforms the lines that begin at elements in_offsets[i] of `in` and writes them at out_offsets[i] of
/// `out`; a line may be written over itself. Every line gets the same bits, whichever are transformed with
/// it. Throws std::bad_alloc.
using FftRun = void (*)(const void* plan, const FftLine& line, const void* in, void* out,
                        const int64_t* in_offsets, const int64_t* out_offsets, int64_t count);

/// The functions for one precision.
struct FftFunctions {
  int64_t real_bytes;
  /// Lines that go through the processor's registers side by side.
  int64_t lanes;
  /// The factors of one length, for complex lines or for real ones. Throws std::bad_alloc.
  void* (*make_plan)(int64_t length, bool complex);
  void (*free_plan)(void* plan, bool complex);
  FftRun run[3];  // by FftType
};

struct FftTable {
  FftFunctions float32;
  FftFunctions float64;
};

}  // namespace thalweg::cpu
