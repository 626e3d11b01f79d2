// convolution_gradient.h: the derivative of the Ops of convolution.cpp.
#pragma once

#include <thalweg/op.h>

namespace thalweg {

void set_convolution_derivative(Op& op);

}  // namespace thalweg
