// python.h: the one place that includes Python and pybind11, before anything else as Python asks.
#pragma once

#ifndef PY_SSIZE_T_CLEAN
#define PY_SSIZE_T_CLEAN
#endif
#include <pybind11/pybind11.h>

namespace thalweg::python {

namespace py = pybind11;

/// Leaves by a C++ exception that carries the Python error just set.
[[noreturn]] inline void throw_python_error() { throw py::error_already_set(); }

/// Sets a Python error of type `type` and leaves with it.
[[noreturn]] inline void raise_python(PyObject* type, const std::string& text) {
  PyErr_SetString(type, text.c_str());
  throw py::error_already_set();
}

/// `object` as a new reference held by pybind11; throws if it is null because a Python call failed.
inline py::object checked(PyObject* object) {
  if (object == nullptr) throw_python_error();
  return py::reinterpret_steal<py::object>(object);
}

}  // namespace thalweg::python
