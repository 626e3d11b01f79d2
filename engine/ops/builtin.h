// builtin.h: the families of built-in Ops, each registered by its own file.
#pragma once

#include <thalweg/op.h>

namespace thalweg {

void register_creation(OpRegistry& registry);
void register_elementwise(OpRegistry& registry);
void register_cast(OpRegistry& registry);
void register_random(OpRegistry& registry);
void register_reduction(OpRegistry& registry);
void register_linear_algebra(OpRegistry& registry);
void register_convolution(OpRegistry& registry);
void register_normalization(OpRegistry& registry);
void register_decomposition(OpRegistry& registry);
void register_manipulation(OpRegistry& registry);
void register_indexing(OpRegistry& registry);
void register_selection(OpRegistry& registry);
void register_sorting(OpRegistry& registry);
void register_scan(OpRegistry& registry);
void register_complex(OpRegistry& registry);
void register_fft(OpRegistry& registry);

}  // namespace thalweg
