// cast.cpp: kernels of astype, contiguous and to_device.
#include <cstdint>
#include <string>

#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/loops.h"
#include "kernels/cpu/register.h"
#include "kernels/cpu/strided_loop.h"

namespace thalweg::cpu {
namespace {

Loop copy_loop(std::int64_t item_bytes) {
  using functors::Positive;
  switch (item_bytes) {
    case 1: return unary_loop<Positive, std::uint8_t, std::uint8_t>;
    case 2: return unary_loop<Positive, std::uint16_t, std::uint16_t>;
    case 4: return unary_loop<Positive, std::uint32_t, std::uint32_t>;
    case 8: return unary_loop<Positive, std::uint64_t, std::uint64_t>;
    default: return unary_loop<Positive, functors::Item16, functors::Item16>;
  }
}

void run_copy(const KernelContext& context) {
  run_loop(context, copy_loop(item_size(context.output().dtype())), context.inputs());
}

void run_cast(const KernelContext& context, const ElementwiseTable& table) {
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
