// convolution_isa.cpp: sums of products of a convolution's terms, compiled once per instruction set. A block
// of outputs times places stays in registers over all the terms.
#include "kernels/cpu/convolution_table.h"
#include "kernels/cpu/vector_math.h"

namespace thalweg::cpu::THALWEG_ISA {
namespace {

// What fits the registers, 32 of AVX-512 and 16 of the others.
#if defined(__AVX512F__)
constexpr int kOutputs = 8;
#else
constexpr int kOutputs = 4;
#endif

/// Terms that are summed before the next block of outputs: what they read of the data stays in the
/// first-level cache for all of them.
constexpr int64_t kTerms = 128;

/// Adds terms [begin, end) to a block of outputs times places; the first ones to 0.
template <class Lanes, int outputs, int registers>
void add_block(const TermSums<typename Lanes::Element>& sums, int64_t output, int64_t place, int64_t begin,
               int64_t end) {
  using Element = typename Lanes::Element;
  using Vector = typename Lanes::Vector;
  constexpr int64_t width = Lanes::width;
  Element* out = sums.result + output * sums.result_step + place;
  Vector total[outputs][registers];
  for (int o = 0; o < outputs; ++o) {
    for (int r = 0; r < registers; ++r) {
      total[o][r] = begin == 0 ? Lanes::splat(0) : load<Lanes>(out + o * sums.result_step + r * width);
    }
  }
  const Element* weights = sums.weights + output * sums.weights_step;
  const Element* data = sums.data + place;
  for (int64_t t = begin; t < end; ++t) {
    const Element* at = data + sums.offsets[t];
    Vector seen[registers];
    for (int r = 0; r < registers; ++r) seen[r] = load<Lanes>(at + r * width);
    for (int o = 0; o < outputs; ++o) {
      const Vector weight = Lanes::splat(weights[o * sums.weights_step + t]);
      for (int r = 0; r < registers; ++r) total[o][r] = Lanes::multiply_add(weight, seen[r], total[o][r]);
    }
  }
  for (int o = 0; o < outputs; ++o) {
    for (int r = 0; r < registers; ++r) store<Lanes>(out + o * sums.result_step + r * width, total[o][r]);
  }
}

/// All terms of all outputs at some places. The last outputs, fewer than make a block, have a block's size of
/// their own.
template <class Lanes, int registers, int last = kOutputs - 1>
void add_places(const TermSums<typename Lanes::Element>& sums, int64_t place) {
  const int64_t rest = sums.outputs % kOutputs;
  if constexpr (last > 0) {
    if (rest < last) return add_places<Lanes, registers, last - 1>(sums, place);
  }
  int64_t begin = 0;
  do {
    const int64_t end = sums.terms - begin < kTerms ? sums.terms : begin + kTerms;
    for (int64_t output = 0; output < sums.outputs - rest; output += kOutputs) {
      add_block<Lanes, kOutputs, registers>(sums, output, place, begin, end);
    }
    if constexpr (last > 0) {
      add_block<Lanes, last, registers>(sums, sums.outputs - rest, place, begin, end);
    }
    begin = end;
  } while (begin < sums.terms);
}

template <class Lanes, int registers>
void add_runs(const TermSums<typename Lanes::Element>& sums) {
  int64_t place = 0;
  for (; sums.places - place > (registers - 1) * Lanes::width; place += registers * Lanes::width) {
    add_places<Lanes, registers>(sums, place);
  }
  for (; place < sums.places; place += Lanes::width) add_places<Lanes, 1>(sums, place);
}

template <class Lanes>
void term_sums(const TermSums<typename Lanes::Element>& sums) {
  // Enough sums that none waits for its last addition, and no more than there are registers.
  if (sums.outputs == 1) return add_runs<Lanes, 8>(sums);
  if (sums.outputs == 2) return add_runs<Lanes, 4>(sums);
  add_runs<Lanes, kOutputs == 8 ? 3 : 2>(sums);
}

}  // namespace

void fill_convolution(ConvolutionTable& table) {
  table.term_sums_float = term_sums<Float32Lanes>;
  table.term_sums_double = term_sums<Float64Lanes>;
}

}  // namespace thalweg::cpu::THALWEG_ISA
