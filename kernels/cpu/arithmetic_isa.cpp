// arithmetic_isa.cpp: inner loops of arithmetic and bit operations, compiled once per instruction set.
#include "kernels/cpu/loops.h"

namespace thalweg::cpu::THALWEG_ISA {
namespace {

using namespace functors;

Loop* row(ElementwiseTable& table, UnaryFn fn) { return table.unary[static_cast<int>(fn)]; }
Loop* row(ElementwiseTable& table, BinaryFn fn) { return table.binary[static_cast<int>(fn)]; }

void fill_unary_rows(ElementwiseTable& table) {
  fill_unary<Negative>(row(table, UnaryFn::negative), NumericTypes{});
  fill_unary<Positive>(row(table, UnaryFn::positive), NumericTypes{});
  fill_unary<Positive>(row(table, UnaryFn::conj), NumericTypes{});
  fill_unary<Absolute>(row(table, UnaryFn::abs), NumericTypes{});
  fill_unary<Absolute>(row(table, UnaryFn::abs), BoolTypes{});
  fill_unary<Sign>(row(table, UnaryFn::sign), NumericTypes{});
  fill_unary<Square>(row(table, UnaryFn::square), NumericTypes{});
  fill_unary<Reciprocal>(row(table, UnaryFn::reciprocal), NumericTypes{});
  fill_unary<Relu>(row(table, UnaryFn::relu), NumericTypes{});
  fill_unary<Cube>(table.cube, FloatingTypes{});
  fill_unary<BitwiseInvert>(row(table, UnaryFn::bitwise_invert), IntegerTypes{});
  fill_unary<BitwiseInvert>(row(table, UnaryFn::bitwise_invert), BoolTypes{});
  constexpr UnaryFn roundings[] = {UnaryFn::floor, UnaryFn::ceil, UnaryFn::trunc, UnaryFn::round};
  for (UnaryFn fn : roundings) {
    fill_unary<Positive>(row(table, fn), IntegerTypes{});
    fill_unary<Positive>(row(table, fn), BoolTypes{});
  }
}

void fill_binary_rows(ElementwiseTable& table) {
  fill_binary<Add>(row(table, BinaryFn::add), NumericTypes{});
  fill_binary<Add>(row(table, BinaryFn::add), BoolTypes{});
  fill_binary<Subtract>(row(table, BinaryFn::subtract), NumericTypes{});
  fill_binary<Multiply>(row(table, BinaryFn::multiply), NumericTypes{});
  fill_binary<Multiply>(row(table, BinaryFn::multiply), BoolTypes{});
  fill_binary<Divide>(row(table, BinaryFn::divide), FloatingTypes{});
  fill_binary<IntegerPower>(row(table, BinaryFn::pow), IntegerTypes{});
  fill_binary<Minimum>(row(table, BinaryFn::minimum), NumericTypes{});
  fill_binary<Minimum>(row(table, BinaryFn::minimum), BoolTypes{});
  fill_binary<Maximum>(row(table, BinaryFn::maximum), NumericTypes{});
  fill_binary<Maximum>(row(table, BinaryFn::maximum), BoolTypes{});
  fill_binary<CopySign>(row(table, BinaryFn::copysign), FloatingTypes{});
  fill_binary<NextAfter>(row(table, BinaryFn::nextafter), FloatingTypes{});
  fill_binary<ReluGradient>(row(table, BinaryFn::relu_gradient), FloatingTypes{});
  fill_binary<TanhGradient>(row(table, BinaryFn::tanh_gradient), FloatingTypes{});
  fill_binary<SigmoidGradient>(row(table, BinaryFn::sigmoid_gradient), FloatingTypes{});
}

void fill_bit_rows(ElementwiseTable& table) {
  fill_binary<BitwiseAnd>(row(table, BinaryFn::bitwise_and), IntegerTypes{});
  fill_binary<BitwiseAnd>(row(table, BinaryFn::bitwise_and), BoolTypes{});
  fill_binary<BitwiseOr>(row(table, BinaryFn::bitwise_or), IntegerTypes{});
  fill_binary<BitwiseOr>(row(table, BinaryFn::bitwise_or), BoolTypes{});
  fill_binary<BitwiseXor>(row(table, BinaryFn::bitwise_xor), IntegerTypes{});
  fill_binary<BitwiseXor>(row(table, BinaryFn::bitwise_xor), BoolTypes{});
  fill_binary<LeftShift>(row(table, BinaryFn::bitwise_left_shift), IntegerTypes{});
  fill_binary<RightShift>(row(table, BinaryFn::bitwise_right_shift), IntegerTypes{});
}

template <class... T>
void fill_clip(Loop* row, Types<T...>) {
  ((row[kLoopIndex<T>] = ternary_loop<Clip, T, T, T, T>), ...);
}

}  // namespace

void fill_arithmetic(ElementwiseTable& table) {
  fill_unary_rows(table);
  fill_binary_rows(table);
  fill_bit_rows(table);
  fill_clip(table.clip, NumericTypes{});
  fill_clip(table.clip, BoolTypes{});
}

}  // namespace thalweg::cpu::THALWEG_ISA
