// cast_isa.cpp: inner loops of astype, compiled once per instruction set.
#include "kernels/cpu/loops.h"

namespace thalweg::cpu::THALWEG_ISA {
namespace {

using functors::Convert;

template <class From, class... To>
void fill_row(Loop* row, Types<To...>) {
  ((row[kLoopIndex<To>] = unary_loop<Convert<To, From>, From, To>), ...);
}

template <class... From>
void fill_rows(ElementwiseTable& table, Types<From...>) {
  (fill_row<From>(table.cast[kLoopIndex<From>], NumericTypes{}), ...);
  (fill_row<From>(table.cast[kLoopIndex<From>], BoolTypes{}), ...);
}

}  // namespace

void fill_casts(ElementwiseTable& table) {
  fill_rows(table, NumericTypes{});
  fill_rows(table, BoolTypes{});
}

}  // namespace thalweg::cpu::THALWEG_ISA
