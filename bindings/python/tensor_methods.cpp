// tensor_methods.cpp: the properties and methods of Tensor that touch the handle itself; the package adds the
// others.
#include <memory>
#include <string>

#include <thalweg/engine.h>

#include "buffers.h"
#include "callback_lane.h"
#include "deferred.h"
#include "dlpack.h"
#include "engines.h"
#include "errors.h"
#include "tensor_object.h"
#include "values.h"

namespace thalweg::python {

namespace {

/// Runs `body` with the handle of `self`, and turns exceptions into Python errors.
template <class Body>
PyObject* with_tensor(PyObject* self, Body&& body) noexcept {
  return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
    run_deferred();
    return py::object(body(tensor_of(self))).release().ptr();
  });
}

py::object none() { return py::none(); }

PyObject* get_shape(PyObject* self, void*) {
  return with_tensor(self, [](const Tensor& t) { return to_tuple(t.shape()); });
}
PyObject* get_strides(PyObject* self, void*) {
  return with_tensor(self, [](const Tensor& t) { return to_tuple(t.strides(), item_size(t.dtype())); });
}
PyObject* get_dtype(PyObject* self, void*) {
  return with_tensor(
      self, [](const Tensor& t) { return py::reinterpret_borrow<py::object>(dtype_object(t.dtype())); });
}
PyObject* get_device(PyObject* self, void*) {
  return with_tensor(self, [](const Tensor& t) { return device_object(t.device()); });
}
PyObject* get_ndim(PyObject* self, void*) {
  return with_tensor(self, [](const Tensor& t) { return py::int_(t.rank()); });
}
PyObject* get_size(PyObject* self, void*) {
  return with_tensor(self, [](const Tensor& t) { return py::int_(t.numel()); });
}
PyObject* get_itemsize(PyObject* self, void*) {
  return with_tensor(self, [](const Tensor& t) { return py::int_(item_size(t.dtype())); });
}
PyObject* get_nbytes(PyObject* self, void*) {
  return with_tensor(self, [](const Tensor& t) { return py::int_(t.meta().bytes()); });
}
PyObject* get_array_priority(PyObject*, void*) { return PyFloat_FromDouble(1000.0); }

PyObject* item(PyObject* self, PyObject*) {
  return with_tensor(self, [](const Tensor& handle) {
    const Tensor tensor = handle;
    const BlockingRead read(tensor);
    try {
      return from_scalar(tensor.item());
    } catch (...) {
      set_read_error(tensor);
      throw_python_error();
    }
  });
}

PyObject* to_list(PyObject* self, PyObject*) {
  return with_tensor(self, [](const Tensor& handle) { return to_nested(Tensor(handle)); });
}

PyObject* wait(PyObject* self, PyObject*) {
  return with_tensor(self, [self](const Tensor& handle) {
    const Tensor tensor = handle;
    const BlockingRead read(tensor);
    try {
      tensor.wait();
    } catch (...) {
      set_read_error(tensor);
      throw_python_error();
    }
    return py::reinterpret_borrow<py::object>(self);
  });
}

PyObject* is_ready(PyObject* self, PyObject*) {
  return with_tensor(self, [](const Tensor& handle) { return py::bool_(Tensor(handle).is_ready()); });
}

PyObject* has_failed(PyObject* self, PyObject*) {
  return with_tensor(self, [](const Tensor& handle) { return py::bool_(handle.has_failed()); });
}

/// None, or the failure as (Python class, text); never raises it.
PyObject* failure(PyObject* self, PyObject*) {
  return with_tensor(self, [](const Tensor& handle) -> py::object {
    const Tensor tensor = handle;
    if (!tensor.has_failed()) return none();
    const FailureInfo info = tensor.failure();
    return py::make_tuple(py::handle(python_class_of(info.exception)), info.message);
  });
}

PyObject* recover(PyObject* self, PyObject*) {
  return with_tensor(self, [self](const Tensor& handle) {
    rebind(self, Tensor(handle).recover());
    return py::reinterpret_borrow<py::object>(self);
  });
}

PyObject* set_name(PyObject* self, PyObject* name) {
  return with_tensor(self, [&](const Tensor& handle) {
    if (!PyUnicode_Check(name)) throw DTypeError("name_: expected a str");
    handle.set_name(py::str(name));
    return py::reinterpret_borrow<py::object>(self);
  });
}

PyObject* on_ready(PyObject* self, PyObject* callback) {
  return with_tensor(self, [&](const Tensor& handle) {
    if (!PyCallable_Check(callback)) throw DTypeError("on_ready: expected a callable");
    call_when_ready(handle, py::reinterpret_borrow<py::object>(callback));
    return none();
  });
}

/// Another Python object for the same value: values are immutable, so the bytes are shared.
PyObject* copy(PyObject* self, PyObject*) {
  return with_tensor(self, [](const Tensor& handle) { return checked(wrap(handle)); });
}

/// The edge items for repr; like tolist where `edge` is negative.
PyObject* edge_items(PyObject* self, PyObject* edge) {
  return with_tensor(self, [&](const Tensor& handle) {
    return edges_to_nested(Tensor(handle), py::reinterpret_borrow<py::object>(edge).cast<std::int64_t>());
  });
}

PyObject* export_dlpack(PyObject* self, PyObject* args, PyObject* keywords) {
  return with_tensor(self, [&](const Tensor& handle) {
    static const char* names[] = {"stream", "max_version", "dl_device", "copy", nullptr};
    PyObject *stream = Py_None, *max_version = Py_None, *dl_device = Py_None, *copy = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|$OOOO:__dlpack__", const_cast<char**>(names), &stream,
                                     &max_version, &dl_device, &copy)) {
      throw_python_error();
    }
    if (stream != Py_None) throw ValueError("__dlpack__: stream must be None for a cpu tensor");
    if (dl_device != Py_None && to_dims(dl_device)[0] != dlpack::kCpu) {
      raise_python(PyExc_BufferError, "__dlpack__: cannot export to another device; use to_device");
    }
    DlpackRequest request;
    request.versioned = max_version != Py_None && to_dims(max_version)[0] >= 1;
    request.copy = copy == Py_True;
    request.no_copy = copy == Py_False;
    return to_dlpack(Tensor(handle), request);
  });
}

PyObject* export_device(PyObject*, PyObject*) { return Py_BuildValue("(ii)", dlpack::kCpu, 0); }

PyCFunction with_keywords(PyObject* (*function)(PyObject*, PyObject*, PyObject*)) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

}  // namespace

PyGetSetDef tensor_properties[] = {
    {"shape", get_shape, nullptr, "The sizes of the axes, as a tuple. Never waits.", nullptr},
    {"dtype", get_dtype, nullptr, "The element type. Never waits.", nullptr},
    {"device", get_device, nullptr, "Where the value lives. Never waits.", nullptr},
    {"ndim", get_ndim, nullptr, "The number of axes.", nullptr},
    {"size", get_size, nullptr, "The number of elements.", nullptr},
    {"strides", get_strides, nullptr, "Bytes from one position to the next along each axis, as in NumPy.",
     nullptr},
    {"itemsize", get_itemsize, nullptr, "Bytes of one element.", nullptr},
    {"nbytes", get_nbytes, nullptr, "Bytes of all elements.", nullptr},
    {"__array_priority__", get_array_priority, nullptr, "Has NumPy leave `array + tensor` to the tensor.",
     nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyMethodDef tensor_methods[] = {
    {"item", item, METH_NOARGS, "item($self, /)\n--\n\nWaits, then the only element as a Python number."},
    {"tolist", to_list, METH_NOARGS, "tolist($self, /)\n--\n\nWaits, then the elements as nested lists."},
    {"wait", wait, METH_NOARGS,
     "wait($self, /)\n--\n\nWaits for the value; raises its failure. Returns the tensor."},
    {"is_ready", is_ready, METH_NOARGS,
     "is_ready($self, /)\n--\n\nTrue once the value is there or has failed. Never waits."},
    {"has_failed", has_failed, METH_NOARGS,
     "has_failed($self, /)\n--\n\nTrue if the value has failed by now."},
    {"failure", failure, METH_NOARGS,
     "failure($self, /)\n--\n\nNone, or the failure's class and text, which is not raised."},
    {"recover", recover, METH_NOARGS,
     "recover($self, /)\n--\n\nRebinds a tensor whose in-place form failed to its last good value."},
    {"name_", set_name, METH_O,
     "name_($self, name, /)\n--\n\nNames the value in graph dumps. Returns the tensor."},
    {"on_ready", on_ready, METH_O,
     "on_ready($self, callback, /)\n--\n\nCalls callback() on the callback thread once the value is there or "
     "has "
     "failed."},
    {"__copy__", copy, METH_NOARGS, "__copy__($self, /)\n--\n\nAnother tensor of the same value."},
    {"_edge_items", edge_items, METH_O,
     "_edge_items($self, edge, /)\n--\n\nNested lists of the edges, for repr."},
    {"__dlpack__", with_keywords(export_dlpack), METH_VARARGS | METH_KEYWORDS,
     "__dlpack__($self, /, *, stream=None, max_version=None, dl_device=None, copy=None)\n--\n\nWaits, then a "
     "DLPack "
     "capsule: read-only and without a copy for DLPack 1.x, a copy for older consumers."},
    {"__dlpack_device__", export_device, METH_NOARGS,
     "__dlpack_device__($self, /)\n--\n\n(1, 0): cpu memory."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace thalweg::python
