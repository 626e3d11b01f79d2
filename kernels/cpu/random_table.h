// random_table.h: the inner loops of the random kernels, one table for each instruction set; all give the
// same bits.
#pragma once

#include <stdint.h>

// Included by files that are compiled for several instruction sets: no standard C++ headers, no inline
// functions.

namespace thalweg::cpu {

/// Part of one random operator: elements [begin, end) of its output, `begin` even. Element i comes from the i
/// % 2-th number of counter `counter` + i / 2.
struct RandomRange {
  uint64_t seed;
  uint64_t counter;
  int64_t begin;
  int64_t end;
};

/// `below_high` is what a value that rounds up to `high` becomes.
struct UniformBounds {
  double low;
  double high;
  double below_high;
};

/// Numbers low, low + 1, …, low + count - 1; `threshold` is 2^64 mod count. A count of 0 stands for 2^64.
struct IntegerBounds {
  uint64_t low;
  uint64_t count;
  uint64_t threshold;
};

struct RandomTable {
  void (*uniform_float32)(float* out, const RandomRange& range, const UniformBounds& bounds);
  void (*uniform_float64)(double* out, const RandomRange& range, const UniformBounds& bounds);
  void (*normal_float32)(float* out, const RandomRange& range, double mean, double deviation);
  void (*normal_float64)(double* out, const RandomRange& range, double mean, double deviation);
  /// By log2 of the item size: signed and unsigned integers have the same bits.
  void (*randint[4])(void* out, const RandomRange& range, const IntegerBounds& bounds);
};

}  // namespace thalweg::cpu
