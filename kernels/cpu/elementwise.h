// elementwise.h: the elementwise kernels' loops by instruction set.
#pragma once

#include "kernels/cpu/elementwise_table.h"
#include "kernels/cpu/isa.h"

namespace thalweg::cpu {

/// The loops compiled for `isa`, which the processor must support.
const ElementwiseTable& elementwise_table(Isa isa);

/// Adds the mathematical functions of complex numbers, which are the same code for every instruction set.
void fill_complex_math(ElementwiseTable& table);

}  // namespace thalweg::cpu
