// cast.cpp: kernels of astype, contiguous and to_device.
#include <cstdint>
#include <string>

#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/half.h"
#include "kernels/cpu/register.h"
#include "kernels/cpu/strided_loop.h"

namespace thalweg::cpu {
namespace {

/// From or to a half-precision dtype, each element rounded once.
void run_half_cast(const KernelContext& context, const ElementwiseTable& table) {
  constexpr int kFloat32 = static_cast<int>(DType::float32);
  const DType from = context.input(0).dtype();
  const DType to = context.output().dtype();
  const HalfTable& halves = half_table();
  if (from == to) return run_copy(context);
  if (to == DType::float32) return run_loop(context, halves.widen[half_format(from)], context.inputs());
  if (from == DType::float32) return run_loop(context, halves.narrow[half_format(to)], context.inputs());
  Loop loop = table.cast[kFloat32][static_cast<int>(is_half(to) ? DType::float32 : to)];
  if (!is_half(from)) {
    loop = halves.to_odd[static_cast<int>(from)];
    if (loop == nullptr) loop = table.cast[static_cast<int>(from)][kFloat32];
  }
  run_half_loop(context, loop, context.inputs());
}

void run_cast(const KernelContext& context, const ElementwiseTable& table) {
  if (has_half(context)) return run_half_cast(context, table);
  int from = static_cast<int>(context.input(0).dtype());
  int to = static_cast<int>(context.output().dtype());
  run_loop(context, table.cast[from][to], context.inputs());
}

}  // namespace

void register_cast_kernels(KernelRegistry& registry) {
  const ElementwiseTable& table = elementwise_table(active_isa());
  registry.add("astype", DeviceType::cpu,
               [&table](const KernelContext& context) { run_cast(context, table); });
  registry.add("contiguous", DeviceType::cpu, run_copy);
  registry.add("to_device", DeviceType::cpu, run_copy);
}

}  // namespace thalweg::cpu
