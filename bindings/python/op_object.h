// op_object.h: one Op as a Python callable: tensors by position, attributes by name.
#pragma once

#include "python.h"

namespace thalweg::python {

/// Adds the type Operation and the function `op(name)` to `module`.
void add_op_type(py::module_& module);

}  // namespace thalweg::python
