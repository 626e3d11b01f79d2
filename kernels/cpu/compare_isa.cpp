// compare_isa.cpp: inner loops whose output or condition is bool, compiled once per instruction set.
#include "kernels/cpu/loops.h"

namespace thalweg::cpu::THALWEG_ISA {
namespace {

using namespace functors;

template <class F>
void fill_comparison(ElementwiseTable& table, CompareFn fn) {
  int index = static_cast<int>(fn);
  fill_compare<F>(table.compare[index], NumericTypes{});
  fill_compare<F>(table.compare[index], BoolTypes{});
  table.compare_uint64_int64[index] = binary_loop<CompareMixed<F>, uint64_t, int64_t, bool>;
  table.compare_int64_uint64[index] = binary_loop<CompareMixed<F>, int64_t, uint64_t, bool>;
}

template <class F>
void fill_logic(ElementwiseTable& table, BinaryFn fn) {
  fill_compare<F>(table.binary[static_cast<int>(fn)], NumericTypes{});
  fill_compare<F>(table.binary[static_cast<int>(fn)], BoolTypes{});
}

template <class F>
void fill_test(ElementwiseTable& table, UnaryFn fn) {
  fill_predicate<F>(table.unary[static_cast<int>(fn)], NumericTypes{});
  fill_predicate<F>(table.unary[static_cast<int>(fn)], BoolTypes{});
}

/// The condition is read as a byte, because GCC does not vectorise a choice by a bool.
struct Select {
  template <class T>
  THALWEG_HD T operator()(uint8_t condition, T x, T y) const {
    return condition != 0 ? x : y;
  }
  /// By bits, as a jump for each element costs more than they do.
  THALWEG_HD Item16 operator()(uint8_t condition, Item16 x, Item16 y) const {
    const uint64_t mask = condition != 0 ? ~uint64_t{0} : 0;
    return {(x.low & mask) | (y.low & ~mask), (x.high & mask) | (y.high & ~mask)};
  }
};

template <class T>
void where_loop(char* const* data, const int64_t* steps, int64_t count) {
  if (steps[1] != 0) return ternary_loop<Select, uint8_t, T, T, T>(data, steps, count);
  // One condition for the whole row: a copy.
  const int chosen = *data[1] != 0 ? 2 : 3;
  char* const copy_data[] = {data[0], data[chosen]};
  const int64_t copy_steps[] = {steps[0], steps[chosen]};
  unary_loop<functors::Positive, T, T>(copy_data, copy_steps, count);
}

}  // namespace

void fill_compare_and_logic(ElementwiseTable& table) {
  fill_comparison<Equal>(table, CompareFn::equal);
  fill_comparison<NotEqual>(table, CompareFn::not_equal);
  fill_comparison<Less>(table, CompareFn::less);
  fill_comparison<LessEqual>(table, CompareFn::less_equal);
  fill_comparison<Greater>(table, CompareFn::greater);
  fill_comparison<GreaterEqual>(table, CompareFn::greater_equal);
  fill_logic<LogicalAnd>(table, BinaryFn::logical_and);
  fill_logic<LogicalOr>(table, BinaryFn::logical_or);
  fill_logic<LogicalXor>(table, BinaryFn::logical_xor);
  fill_test<LogicalNot>(table, UnaryFn::logical_not);
  fill_test<IsNan>(table, UnaryFn::isnan);
  fill_test<IsInf>(table, UnaryFn::isinf);
  fill_test<IsFinite>(table, UnaryFn::isfinite);
  fill_test<SignBit>(table, UnaryFn::signbit);
  table.where[0] = where_loop<uint8_t>;
  table.where[1] = where_loop<uint16_t>;
  table.where[2] = where_loop<uint32_t>;
  table.where[3] = where_loop<uint64_t>;
  table.where[4] = where_loop<Item16>;
}

}  // namespace thalweg::cpu::THALWEG_ISA
