// half.h: how kernels take float16 and bfloat16. Kernels that only move elements go by their size and need
// nothing. Elementwise ones run their float32 loop over pieces that stay in cache (run_half_loop). All others
// see float32 (or float64) copies of their half-precision operands (in_float32, in_float64).
#pragma once

#include <cstdint>
#include <span>

#include <thalweg/kernel.h>

#include "kernels/cpu/elementwise_table.h"
#include "kernels/cpu/half_table.h"
#include "kernels/cpu/isa.h"

namespace thalweg::cpu {

/// The loops compiled for `isa`, which the processor must support.
HalfTable half_table(Isa isa);

/// Those for the processor.
const HalfTable& half_table();

/// The place of a half-precision dtype in the rows of HalfTable.
constexpr int half_format(DType dtype) noexcept { return dtype == DType::bfloat16 ? 1 : 0; }

/// `loop` over float32 with the conversions that its half-precision operands need. Operands of other dtypes
/// pass as they are.
class HalfLoop {
 public:
  HalfLoop(Loop loop, const TensorView& output, std::span<const TensorView> inputs);

  void operator()(char* const* data, const std::int64_t* steps, std::int64_t count) const;

 private:
  Loop loop_;
  Loop narrow_ = nullptr;
  Loop widen_[3] = {};
  int inputs_;
};

/// True if an operand of the call has a half-precision dtype.
bool has_half(const KernelContext& context) noexcept;

/// `kernel`, and for calls with half-precision operands the same on copies in float32, whose results are
/// rounded once. Sums of such inputs thus accumulate in float32.
KernelFn in_float32(KernelFn kernel);

/// As in_float32, of a kernel that computes in float64.
KernelFn in_float64(KernelFn kernel);

/// Rounds `values` to the output, which has a half-precision dtype: elements [begin, end).
void narrow(const float* values, const TensorView& output, std::int64_t begin, std::int64_t end);

}  // namespace thalweg::cpu
