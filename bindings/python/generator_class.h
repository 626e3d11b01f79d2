// generator_class.h: the Python class Generator.
#pragma once

#include "python.h"

namespace thalweg::python {

/// Adds Generator and default_generator to `module`.
void add_generator_class(py::module_& module);

}  // namespace thalweg::python
