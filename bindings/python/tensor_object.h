// tensor_object.h: thalweg.Tensor, a hand-written Python type that holds one handle in place.
#pragma once

#include <span>

#include <thalweg/engine.h>
#include <thalweg/tensor.h>

#include "python.h"

namespace thalweg::python {

/// A Python tensor; the garbage collector tracks it once it has something to do with gradients, through which
/// it may refer to Python objects. `tensor` is empty while an in-place form on some thread has taken the
/// handle; read it through `tensor_of`. GIL.
struct TensorObject {
  PyObject ob_base;
  Tensor tensor;
  PyObject* weak_references;
  bool tracked;
};

/// The type; no subclasses, so exact comparison answers "is it a tensor".
extern PyTypeObject* tensor_type;

inline bool is_tensor(PyObject* object) noexcept { return Py_TYPE(object) == tensor_type; }

namespace detail {
Tensor& wait_until_returned(TensorObject* object);
}

/// The handle in `object`, which is a Tensor; waits for an in-place form under way on another thread. What it
/// refers to may change and be empty as soon as the GIL has been let go, so whoever goes on after a wait or
/// after Python code asks again or has a copy. The engine takes what it needs of its inputs before it waits.
inline Tensor& tensor_of(PyObject* object) {
  auto* self = reinterpret_cast<TensorObject*>(object);
  if (!self->tensor) [[unlikely]]
    return detail::wait_until_returned(self);
  return self->tensor;
}

/// The handle in an argument of function `what`; raises DTypeError for other objects.
inline Tensor& tensor_argument(const char* what, pybind11::handle object) {
  if (!is_tensor(object.ptr())) {
    throw DTypeError(std::string(what) + ": expected a Tensor, not " + Py_TYPE(object.ptr())->tp_name);
  }
  return tensor_of(object.ptr());
}

/// Has the garbage collector look at `object`, a tensor, if that has something to do with gradients.
inline void track_if_recorded(PyObject* object) noexcept {
  auto* self = reinterpret_cast<TensorObject*>(object);
  if (self->tensor.autograd() == nullptr || self->tracked) return;
  self->tracked = true;
  PyObject_GC_Track(object);
}

/// A new Python tensor around `tensor`.
PyObject* wrap(Tensor tensor);

/// The in-place form of `op` on `self`, whose handle is rebound.
void apply_in_place(PyObject* self, const Op& op, std::span<const Tensor* const> others,
                    Attributes attributes = {});

/// Waits; if the value failed, rebinds the handle in `self` to the last good one (see Tensor::recover).
void recover(PyObject* self);

/// Makes the type and adds it to `module`.
void add_tensor_type(py::module_& module);

// Slots, by file.
// ---------------------------------------------------------------------------------------------------
extern PyType_Slot number_slots[];    // number_slots.cpp, ends with {0, nullptr}
extern PyMethodDef tensor_methods[];  // tensor_methods.cpp
extern PyGetSetDef tensor_properties[];
extern PyMethodDef autograd_methods[];  // autograd_methods.cpp
extern PyGetSetDef autograd_properties[];
PyObject* tensor_compare(PyObject* left, PyObject* right, int comparison);
PyObject* tensor_subscript(PyObject* self, PyObject* key);  // subscript.cpp
int tensor_assign_subscript(PyObject* self, PyObject* key, PyObject* value);
Py_ssize_t tensor_length(PyObject* self);
int tensor_get_buffer(PyObject* self, Py_buffer* view, int flags);  // buffers.cpp
void tensor_release_buffer(PyObject* self, Py_buffer* view);

}  // namespace thalweg::python
