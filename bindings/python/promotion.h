// promotion.h: the engine's promotion rules for Python.
#pragma once

#include "python.h"

namespace thalweg::python {

/// Adds promote and promote_number to `module`.
void add_promotion(py::module_& module);

}  // namespace thalweg::python
