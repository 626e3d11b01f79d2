// half_isa.cpp: conversions of half-precision numbers, compiled once per instruction set.
#include <thalweg/half.h>

#include "kernels/cpu/half_table.h"
#include "kernels/cpu/loops.h"

namespace thalweg::cpu::THALWEG_ISA {
namespace {

struct WidenFloat16 {
  THALWEG_HD float operator()(uint16_t x) const { return widen_float16(x); }
};
struct WidenBfloat16 {
  THALWEG_HD float operator()(uint16_t x) const { return widen_bfloat16(x); }
};
struct NarrowFloat16 {
  THALWEG_HD uint16_t operator()(float x) const { return narrow_float16(x); }
};
struct NarrowBfloat16 {
  THALWEG_HD uint16_t operator()(float x) const { return narrow_bfloat16(x); }
};
template <class Wide>
struct ToOdd {
  template <class T>
  THALWEG_HD float operator()(T x) const {
    return round_to_odd(static_cast<Wide>(x));
  }
};

}  // namespace

void fill_half(HalfTable& table) {
  table.widen[0] = unary_loop<WidenFloat16, uint16_t, float>;
  table.widen[1] = unary_loop<WidenBfloat16, uint16_t, float>;
  table.narrow[0] = unary_loop<NarrowFloat16, float, uint16_t>;
  table.narrow[1] = unary_loop<NarrowBfloat16, float, uint16_t>;
  table.to_odd[kLoopIndex<int32_t>] = unary_loop<ToOdd<double>, int32_t, float>;
  table.to_odd[kLoopIndex<int64_t>] = unary_loop<ToOdd<int64_t>, int64_t, float>;
  table.to_odd[kLoopIndex<uint32_t>] = unary_loop<ToOdd<double>, uint32_t, float>;
  table.to_odd[kLoopIndex<uint64_t>] = unary_loop<ToOdd<uint64_t>, uint64_t, float>;
  table.to_odd[kLoopIndex<double>] = unary_loop<ToOdd<double>, double, float>;
}

}  // namespace thalweg::cpu::THALWEG_ISA
