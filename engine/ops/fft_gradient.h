// fft_gradient.h: the derivatives of the Ops of fft.cpp.
#pragma once

#include <thalweg/op.h>

namespace thalweg {

void set_fft_derivative(Op& op);

}  // namespace thalweg
