// register.cpp: the list of CPU kernel families. Explicit, because self-registering objects vanish from
// static libraries.
#include "kernels/cpu/register.h"

namespace thalweg {

void register_cpu_kernels(KernelRegistry& registry) {
  cpu::register_creation_kernels(registry);
  cpu::register_elementwise_kernels(registry);
  cpu::register_cast_kernels(registry);
  cpu::register_random_kernels(registry);
  cpu::register_gamma_kernel(registry);
  cpu::register_reduction_kernels(registry);
  cpu::register_linear_algebra_kernels(registry);
  cpu::register_convolution_kernels(registry);
  cpu::register_normalization_kernels(registry);
  cpu::register_factorization_kernels(registry);
  cpu::register_spectrum_kernels(registry);
  cpu::register_manipulation_kernels(registry);
  cpu::register_indexing_kernels(registry);
  cpu::register_take_along_axis_kernel(registry);
  cpu::register_selection_kernels(registry);
  cpu::register_sort_kernels(registry);
  cpu::register_topk_kernel(registry);
  cpu::register_search_kernels(registry);
  cpu::register_scan_kernels(registry);
  cpu::register_fft_kernels(registry);
}

}  // namespace thalweg
