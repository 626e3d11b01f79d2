// cast.cpp: kernels of astype, contiguous, to_device and check_nan.
#include <atomic>
#include <cstdint>
#include <string>

#include <thalweg/errors.h>

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

template <class T>
bool has_nan(const T* values, std::int64_t count) noexcept {
  bool found = false;
  for (std::int64_t i = 0; i < count; ++i) found |= values[i] != values[i];
  return found;
}

/// Exponent all ones, and a fraction.
bool has_half_nan(const std::uint16_t* bits, std::int64_t count, std::uint16_t infinity) noexcept {
  bool found = false;
  for (std::int64_t i = 0; i < count; ++i) found |= (bits[i] & 0x7fff) > infinity;
  return found;
}

/// Looks before it writes: the output may lie over the input.
void run_check_nan(const KernelContext& context) {
  const TensorView& x = context.input(0);
  const DType dtype = x.dtype();
  const std::int64_t parts = is_complex(dtype) ? 2 : 1;
  std::atomic<bool> found{false};
  for_ranges(context, x.numel(), [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t count = (end - begin) * parts;
    begin *= parts;
    bool here = false;
    if (is_half(dtype)) {
      here = has_half_nan(x.as<std::uint16_t>() + begin, count, dtype == DType::float16 ? 0x7c00 : 0x7f80);
    } else if (item_size(dtype) / parts == sizeof(float)) {
      here = has_nan(x.as<float>() + begin, count);
    } else {
      here = has_nan(x.as<double>() + begin, count);
    }
    if (here) found.store(true, std::memory_order_relaxed);
  });
  if (found) {
    throw ValueError(context.op().name + ": " + context.attributes().get<std::string>(0) +
                     " gave NaN as the gradient of its input " +
                     std::to_string(context.attributes().get<std::int64_t>(1)));
  }
  if (context.output().data != x.data) run_copy(context);
}

}  // namespace

void register_cast_kernels(KernelRegistry& registry) {
  const ElementwiseTable& table = elementwise_table(active_isa());
  registry.add("astype", DeviceType::cpu,
               [&table](const KernelContext& context) { run_cast(context, table); });
  registry.add("contiguous", DeviceType::cpu, run_copy);
  registry.add("to_device", DeviceType::cpu, run_copy);
  registry.add("check_nan", DeviceType::cpu, run_check_nan);
}

}  // namespace thalweg::cpu
