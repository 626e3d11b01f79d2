// random.h: the random kernels' loops by instruction set.
#pragma once

#include "kernels/cpu/isa.h"
#include "kernels/cpu/random_table.h"

namespace thalweg::cpu {

/// The loops compiled for `isa`, which the processor must support.
RandomTable random_table(Isa isa);

}  // namespace thalweg::cpu
