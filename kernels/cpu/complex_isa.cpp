// complex_isa.cpp: inner loops of complex arithmetic, comparison and casts, compiled once per instruction
// set.
#include "kernels/complex_functors.h"
#include "kernels/cpu/loops.h"

namespace thalweg::cpu::THALWEG_ISA {
namespace {

using namespace functors;

using ComplexTypes = Types<Complex<float>, Complex<double>>;

Loop* row(ElementwiseTable& table, UnaryFn fn) { return table.unary[static_cast<int>(fn)]; }
Loop* row(ElementwiseTable& table, BinaryFn fn) { return table.binary[static_cast<int>(fn)]; }
Loop* row(ElementwiseTable& table, CompareFn fn) { return table.compare[static_cast<int>(fn)]; }

void fill_unary_rows(ElementwiseTable& table) {
  fill_unary<Negative>(row(table, UnaryFn::negative), ComplexTypes{});
  fill_unary<Positive>(row(table, UnaryFn::positive), ComplexTypes{});
  fill_unary<ComplexSign>(row(table, UnaryFn::sign), ComplexTypes{});
  fill_unary<Square>(row(table, UnaryFn::square), ComplexTypes{});
  fill_unary<ComplexReciprocal>(row(table, UnaryFn::reciprocal), ComplexTypes{});
  fill_unary<ComplexRound>(row(table, UnaryFn::round), ComplexTypes{});
  fill_unary<Conjugate>(row(table, UnaryFn::conj), ComplexTypes{});
  fill_predicate<LogicalNot>(row(table, UnaryFn::logical_not), ComplexTypes{});
  fill_predicate<IsNan>(row(table, UnaryFn::isnan), ComplexTypes{});
  fill_predicate<ComplexIsInf>(row(table, UnaryFn::isinf), ComplexTypes{});
  fill_predicate<ComplexIsFinite>(row(table, UnaryFn::isfinite), ComplexTypes{});
  Loop* abs = row(table, UnaryFn::abs);
  abs[kLoopIndex<Complex<float>>] = unary_loop<ComplexAbsolute, Complex<float>, float>;
  abs[kLoopIndex<Complex<double>>] = unary_loop<ComplexAbsolute, Complex<double>, double>;
}

void fill_binary_rows(ElementwiseTable& table) {
  fill_binary<Add>(row(table, BinaryFn::add), ComplexTypes{});
  fill_binary<Subtract>(row(table, BinaryFn::subtract), ComplexTypes{});
  fill_binary<Multiply>(row(table, BinaryFn::multiply), ComplexTypes{});
  fill_binary<Divide>(row(table, BinaryFn::divide), ComplexTypes{});
  fill_compare<LogicalAnd>(row(table, BinaryFn::logical_and), ComplexTypes{});
  fill_compare<LogicalOr>(row(table, BinaryFn::logical_or), ComplexTypes{});
  fill_compare<LogicalXor>(row(table, BinaryFn::logical_xor), ComplexTypes{});
  fill_compare<Equal>(row(table, CompareFn::equal), ComplexTypes{});
  fill_compare<NotEqual>(row(table, CompareFn::not_equal), ComplexTypes{});
}

template <class To, class... From>
void fill_casts_to(ElementwiseTable& table, Types<From...>) {
  ((table.cast[kLoopIndex<From>][kLoopIndex<To>] = unary_loop<Convert<To, From>, From, To>), ...);
}

template <class... To>
void fill_casts_to_complex(ElementwiseTable& table, Types<To...>) {
  (fill_casts_to<To>(table, NumericTypes{}), ...);
  (fill_casts_to<To>(table, BoolTypes{}), ...);
  (fill_casts_to<To>(table, ComplexTypes{}), ...);
}

}  // namespace

void fill_complex(ElementwiseTable& table) {
  fill_unary_rows(table);
  fill_binary_rows(table);
  fill_casts_to_complex(table, ComplexTypes{});
  fill_casts_to<bool>(table, ComplexTypes{});
}

}  // namespace thalweg::cpu::THALWEG_ISA
