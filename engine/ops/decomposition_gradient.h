// decomposition_gradient.h: the derivatives of the Ops of decomposition.cpp.
#pragma once

#include <thalweg/op.h>

namespace thalweg {

void set_decomposition_derivative(Op& op);

}  // namespace thalweg
