// subscript_mask.h: what a mask in x[key] selects. How much that is has to be read from the mask.
#pragma once

#include <vector>

#include <thalweg/engine.h>

#include "python.h"

namespace thalweg::python {

/// The elements of `x` that a mask over its first axes selects. Waits for the number of them.
Tensor take_mask(const Tensor& x, const Tensor& mask);

/// The positions of a mask's true elements: one index array for each of its axes, one of zeros for a 0-d
/// mask. Waits for the number of them.
std::vector<Tensor> positions_of(const Tensor& mask);

/// `x[mask] = value` on the Tensor object `self`. Never waits.
void assign_mask(PyObject* self, Tensor mask, const Tensor& value);

}  // namespace thalweg::python
