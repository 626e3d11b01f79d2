// fft.h: the Fourier transforms of lines by instruction set.
#pragma once

#include "kernels/cpu/fft_table.h"
#include "kernels/cpu/isa.h"

namespace thalweg::cpu {

/// The functions compiled for `isa`, which the processor must support.
FftTable fft_table(Isa isa);

}  // namespace thalweg::cpu
