// register.h: the families of CPU kernels, each registered by its own file.
#pragma once

#include <thalweg/kernel.h>

namespace thalweg::cpu {

void register_creation_kernels(KernelRegistry& registry);
void register_elementwise_kernels(KernelRegistry& registry);
void register_cast_kernels(KernelRegistry& registry);
void register_random_kernels(KernelRegistry& registry);
void register_gamma_kernel(KernelRegistry& registry);
void register_reduction_kernels(KernelRegistry& registry);
void register_linear_algebra_kernels(KernelRegistry& registry);
void register_convolution_kernels(KernelRegistry& registry);
void register_normalization_kernels(KernelRegistry& registry);
void register_factorization_kernels(KernelRegistry& registry);
void register_spectrum_kernels(KernelRegistry& registry);
void register_manipulation_kernels(KernelRegistry& registry);
void register_indexing_kernels(KernelRegistry& registry);
void register_take_along_axis_kernel(KernelRegistry& registry);
void register_selection_kernels(KernelRegistry& registry);
void register_sort_kernels(KernelRegistry& registry);
void register_topk_kernel(KernelRegistry& registry);
void register_search_kernels(KernelRegistry& registry);
void register_scan_kernels(KernelRegistry& registry);
void register_fft_kernels(KernelRegistry& registry);

}  // namespace thalweg::cpu
