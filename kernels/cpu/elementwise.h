// elementwise.h: the elementwise kernels' loops by instruction set.
#pragma once

#include "kernels/cpu/elementwise_table.h"
#include "kernels/cpu/isa.h"

namespace thalweg::cpu {

/// The loops compiled for `isa`, which the processor must support.
const ElementwiseTable& elementwise_table(Isa isa);

}  // namespace thalweg::cpu
