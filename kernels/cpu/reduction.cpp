// reduction.cpp: registers the reductions' kernels.
#include "kernels/cpu/reduction.h"

#include <utility>

#include "kernels/cpu/dense_table.h"
#include "kernels/cpu/half.h"
#include "kernels/cpu/register.h"

namespace thalweg::cpu {

void register_reduction_kernels(KernelRegistry& registry) {
  const std::pair<const char*, void (*)(const KernelContext&)> kernels[] = {
      {"sum", sum_kernel},       {"prod", prod_kernel},     {"mean", mean_kernel},
      {"var", var_kernel},       {"std", std_kernel},       {"max", max_kernel},
      {"min", min_kernel},       {"any", any_kernel},       {"all", all_kernel},
      {"argmax", argmax_kernel}, {"argmin", argmin_kernel}, {"count_nonzero", count_nonzero_kernel},
  };
  // The kernels must not throw where they use it: a bad THALWEG_CPU_ISA is reported here.
  dense_table();
  for (const auto& [name, kernel] : kernels) {
    registry.add(name, DeviceType::cpu, in_float32(kernel));
  }
}

}  // namespace thalweg::cpu
