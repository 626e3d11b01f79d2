// test_operators.h: operators that only tests need: they fail, wait or sleep on request.
#pragma once

#include <thalweg/engine.h>

#include "python.h"

namespace thalweg::python {

/// Adds to an engine that has issued nothing yet:
/// test_fail(x; kind, message) throws instead of computing; test_gate(x; gate) copies x once its gate is
/// open; test_sleep(x; milliseconds) copies x after a sleep.
void register_test_operators(Engine& engine);

/// Adds `testing`, with new_gate() and open_gate(gate), to `module`.
void add_testing(py::module_& module);

}  // namespace thalweg::python
