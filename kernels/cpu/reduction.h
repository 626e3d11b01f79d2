// reduction.h: the kernels of the reductions, one file each group; register_reduction_kernels lists them.
#pragma once

#include <thalweg/kernel.h>

namespace thalweg::cpu {

void sum_kernel(const KernelContext& ctx);
void prod_kernel(const KernelContext& ctx);
void mean_kernel(const KernelContext& ctx);
void var_kernel(const KernelContext& ctx);
void std_kernel(const KernelContext& ctx);
void max_kernel(const KernelContext& ctx);
void min_kernel(const KernelContext& ctx);
void any_kernel(const KernelContext& ctx);
void all_kernel(const KernelContext& ctx);
void count_nonzero_kernel(const KernelContext& ctx);
void argmax_kernel(const KernelContext& ctx);
void argmin_kernel(const KernelContext& ctx);

}  // namespace thalweg::cpu
