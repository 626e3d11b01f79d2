// errors.cpp: the Python exception classes and the table that pairs them with C++ types.
#include "errors.h"

#include <cstring>
#include <iterator>
#include <new>
#include <stdexcept>

namespace thalweg::python {

namespace {

template <class Exception>
bool is_a(const std::exception& error) {
  return dynamic_cast<const Exception*>(&error) != nullptr;
}

/// One class of ours: its name, the Python class it also derives from, what it is for.
struct ErrorType {
  const char* name;
  PyObject** python_base;
  bool (*matches)(const std::exception&);
  const char* doc;
  PyObject* type = nullptr;
};

ErrorType error_types[] = {
    {"thalweg.ShapeError", &PyExc_ValueError, is_a<ShapeError>,
     R"(Shapes that do not go together. A ValueError.

>>> tw.ones((2, 3)) + tw.ones(4)
Traceback (most recent call last):
    ...
thalweg.ShapeError: add: shapes (2, 3) and (4,) do not broadcast at axis -1 ...
)"},
    {"thalweg.DTypeError", &PyExc_TypeError, is_a<DTypeError>,
     R"(A dtype that an operator does not take. A TypeError.

>>> tw.floor(tw.asarray(1.5 + 2j))
Traceback (most recent call last):
    ...
thalweg.DTypeError: floor: not defined for complex64; use abs(), real() or imag()
)"},
    {"thalweg.IndexError", &PyExc_IndexError, is_a<IndexError>,
     R"(An index or axis out of range. An IndexError.

>>> tw.sum(tw.ones((2, 3)), axis=2)
Traceback (most recent call last):
    ...
thalweg.IndexError: sum: axis 2 is out of bounds for 2 dimensions ...
)"},
    {"thalweg.DeviceError", &PyExc_ValueError, is_a<DeviceError>,
     R"(A device that is not there, or mixed devices. A ValueError.

>>> tw.ones(2, device="cpu:99")
Traceback (most recent call last):
    ...
thalweg.DeviceError: device cpu:99 does not exist here; there are: cpu:0...
)"},
    {"thalweg.ArgumentError", &PyExc_TypeError, is_a<AttributeError>,
     R"(An attribute (keyword argument) that an operator does not have or take. A TypeError.

>>> tw.eye(2, k="upper")
Traceback (most recent call last):
    ...
thalweg.ArgumentError: eye: 'k' must be an int, not str
)"},
    {"thalweg.ValueError", &PyExc_ValueError, is_a<ValueError>,
     R"(A value that an operator does not take. A ValueError.

>>> tw.arange(0, 1, 0)
Traceback (most recent call last):
    ...
thalweg.ValueError: arange: step is 0; it must go up or down
)"},
    {"thalweg.OutOfMemoryError", &PyExc_MemoryError, is_a<OutOfMemoryError>,
     R"(No memory for an operator's outputs. A MemoryError.

>>> with tw.Engine(memory_limit=2**20):
...     tw.zeros(2**20).wait()
Traceback (most recent call last):
    ...
thalweg.OutOfMemoryError: full...
)"},
    {"thalweg.EngineError", &PyExc_RuntimeError, is_a<EngineError>,
     R"(A misuse of the engine, or its shutdown. A RuntimeError.

>>> tw.Engine().stop_recording()
Traceback (most recent call last):
    ...
thalweg.EngineError: stop_recording: no recording is on; call start_recording first
)"},
    {"thalweg.KernelError", &PyExc_RuntimeError, is_a<KernelError>,
     R"(A kernel failed in a way that has no class of its own: a C++ error of an operator of your own, say. A RuntimeError.

>>> issubclass(tw.KernelError, RuntimeError), issubclass(tw.KernelError, tw.Error)
(True, True)
)"},
    {"thalweg.linalg.LinAlgError", &PyExc_ValueError, is_a<LinAlgError>,
     R"(A matrix that has no inverse or no such decomposition. A ValueError.

>>> tw.linalg.inv(tw.zeros((2, 2))).wait()
Traceback (most recent call last):
    ...
thalweg.linalg.LinAlgError: inv... the matrix is singular: pivot 1 of its LU factorization is 0
)"},
};
PyObject* base_error = nullptr;
PyObject* sync_error = nullptr;

PyObject* class_named(std::string_view name) {
  for (const ErrorType& entry : error_types) {
    if (name == entry.name) return entry.type;
  }
  return base_error;
}

/// The class for a C++ exception object; standard exceptions map to the closest of Python's.
PyObject* class_for(const std::exception& error) {
  for (const ErrorType& entry : error_types) {
    if (entry.matches(error)) return entry.type;
  }
  if (is_a<Error>(error)) return base_error;
  if (is_a<std::bad_alloc>(error)) return class_named("thalweg.OutOfMemoryError");
  if (is_a<std::out_of_range>(error)) return PyExc_IndexError;
  if (is_a<std::overflow_error>(error)) return PyExc_OverflowError;
  if (is_a<std::invalid_argument>(error) || is_a<std::domain_error>(error) ||
      is_a<std::length_error>(error)) {
    return PyExc_ValueError;
  }
  return PyExc_RuntimeError;
}

py::object new_class(const char* name, const char* doc, py::handle bases) {
  return checked(PyErr_NewExceptionWithDoc(name, doc, bases.ptr(), nullptr));
}

void set_failure(const FailureInfo& info) {
  PyObject* type = python_class_of(info.exception);
  py::object error =
      checked(PyObject_CallFunction(type, "s#", info.message.data(), Py_ssize_t(info.message.size())));
  const auto attach = [&](const char* name, const std::string& text) {
    error.attr(name) = text.empty() ? py::object(py::none()) : py::object(py::str(text));
  };
  attach("op", info.op);
  attach("device", to_string(info.device));
  attach("site", info.site);
  PyErr_SetObject(type, error.ptr());
}

}  // namespace

void add_error_types(py::module_& module) {
  base_error = new_class("thalweg.Error", R"(Base of the errors thalweg raises.

>>> try:
...     tw.ones(2) + tw.ones(3)
... except tw.Error as error:
...     print(type(error).__name__)
ShapeError
)",
                         py::handle(PyExc_Exception))
                   .release()
                   .ptr();
  module.attr("Error") = py::handle(base_error);
  for (ErrorType& entry : error_types) {
    py::tuple bases = py::make_tuple(py::handle(base_error), py::handle(*entry.python_base));
    entry.type = new_class(entry.name, entry.doc, bases).release().ptr();
    module.attr(std::strrchr(entry.name, '.') + 1) = py::handle(entry.type);
  }
  py::tuple bases = py::make_tuple(py::handle(base_error), py::handle(PyExc_RuntimeError));
  sync_error =
      new_class(
          "thalweg.SyncError",
          R"(A blocking read of a value that is not there yet, while on_sync("error") is set. A RuntimeError.

>>> with tw.on_sync("error"):
...     x = tw.arange(3) + 1  # x.tolist() here would raise it, unless x is ready by then
)",
          bases)
          .release()
          .ptr();
  module.attr("SyncError") = py::handle(sync_error);
  py::register_exception_translator([](std::exception_ptr exception) {
    if (!exception) return;
    try {
      std::rethrow_exception(exception);
    } catch (...) {
      set_python_error();
    }
  });
}

PyObject* sync_error_type() noexcept { return sync_error; }

PyObject* python_class_of(const std::exception_ptr& exception, std::string* text) {
  try {
    std::rethrow_exception(exception);
  } catch (const std::exception& error) {
    if (text != nullptr) *text = error.what();
    return class_for(error);
  } catch (...) {
    if (text != nullptr) *text = "unknown exception";
    return class_named("thalweg.KernelError");
  }
}

void set_python_error() noexcept {
  try {
    throw;
  } catch (py::error_already_set& error) {
    error.restore();
  } catch (const py::builtin_exception& error) {
    error.set_error();
  } catch (const Interrupted&) {
    // The interrupt check left the signal handler's error in place; without one it was a plain Ctrl-C.
    if (!PyErr_Occurred()) PyErr_SetNone(PyExc_KeyboardInterrupt);
  } catch (const std::exception& error) {
    PyErr_SetString(class_for(error), error.what());
  } catch (...) {
    PyErr_SetString(class_named("thalweg.KernelError"), "unknown exception");
  }
}

void set_read_error(const Tensor& tensor) noexcept {
  const bool foreign = [] {
    try {
      throw;
    } catch (const Interrupted&) {
      return true;
    } catch (const py::error_already_set&) {
      return true;
    } catch (...) {
      return false;
    }
  }();
  if (foreign || !tensor || !tensor.has_failed()) return set_python_error();
  try {
    set_failure(tensor.failure());
  } catch (...) {
    set_python_error();
  }
}

}  // namespace thalweg::python
