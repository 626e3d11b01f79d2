// errors.h: the one mapping from C++ exceptions to Python's.
#pragma once

#include <exception>
#include <string>

#include <thalweg/errors.h>
#include <thalweg/tensor.h>

#include "python.h"

namespace thalweg::python {

/// Makes thalweg.Error and its subclasses, adds them to `module`, and has pybind11 use them too.
void add_error_types(py::module_& module);

/// Sets the Python error for the exception being handled. Call in a catch block with the GIL.
void set_python_error() noexcept;

/// As `set_python_error`, for a read of `tensor`: a failed value raises its original type with the text that
/// names operator, device and place, and with the attributes op, device and site.
void set_read_error(const Tensor& tensor) noexcept;

/// The Python class for what `exception` holds, and its plain text.
PyObject* python_class_of(const std::exception_ptr& exception, std::string* text = nullptr);

/// thalweg.SyncError, raised by a blocking read under on_sync("error").
PyObject* sync_error_type() noexcept;

/// Runs `body`; on a C++ exception sets the Python error and returns `on_error`.
template <class Result, class Body>
Result guarded(Result on_error, Body&& body) noexcept {
  try {
    return body();
  } catch (...) {
    set_python_error();
    return on_error;
  }
}

}  // namespace thalweg::python
