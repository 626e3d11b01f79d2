// tensor_methods.cpp: the properties and methods of Tensor that touch the handle itself; the package adds the
// others.
#include <memory>
#include <string>

#include <thalweg/autograd.h>
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
  return with_tensor(self, [self](const Tensor&) {
    python::recover(self);
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

/// Another Python object for the same value: values are immutable, so the bytes are shared. Of a leaf comes
/// another leaf.
PyObject* copy(PyObject* self, PyObject*) {
  return with_tensor(self, [](const Tensor& handle) {
    if (!is_leaf(handle)) return checked(wrap(handle));
    Tensor fresh = handle.detach();
    set_requires_grad(fresh, handle.requires_grad());
    return checked(wrap(std::move(fresh)));
  });
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
    if (handle.requires_grad()) {
      raise_python(PyExc_BufferError, "__dlpack__: a tensor that requires a gradient; use x.detach()");
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
    {"shape", get_shape, nullptr,
     R"(The sizes of the axes, as a tuple of ints. Never waits. Array API standard, array object.

>>> tw.zeros((2, 3)).shape
(2, 3)
)",
     nullptr},
    {"dtype", get_dtype, nullptr, R"(The element type. Never waits. Array API standard, array object.

>>> (tw.arange(3) / 2).dtype
thalweg.float64
)",
     nullptr},
    {"device", get_device, nullptr, R"(Where the value lives. Never waits. Array API standard, array object.

>>> tw.zeros(2).device
Device('cpu:0')
)",
     nullptr},
    {"ndim", get_ndim, nullptr, R"(The number of axes. Never waits. Array API standard, array object.

>>> tw.asarray(1.5).ndim, tw.zeros((2, 3)).ndim
(0, 2)
)",
     nullptr},
    {"size", get_size, nullptr, R"(The number of elements. Never waits. Array API standard, array object.

>>> tw.zeros((2, 3)).size
6
)",
     nullptr},
    {"strides", get_strides, nullptr,
     R"(Bytes from one position to the next along each axis. Never waits. NumPy's ndarray.strides.

>>> x = tw.zeros((2, 3))
>>> x.strides, x.T.strides, tw.broadcast_to(x, (4, 2, 3)).strides
((12, 4), (4, 12), (0, 12, 4))
)",
     nullptr},
    {"itemsize", get_itemsize, nullptr, R"(Bytes of one element. Never waits. NumPy's ndarray.itemsize.

>>> tw.zeros(3, dtype="complex64").itemsize
8
)",
     nullptr},
    {"nbytes", get_nbytes, nullptr, R"(Bytes of all elements. Never waits. NumPy's ndarray.nbytes.

>>> tw.zeros((2, 3)).nbytes
24
)",
     nullptr},
    {"__array_priority__", get_array_priority, nullptr, "Has NumPy leave `array + tensor` to the tensor.",
     nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyMethodDef tensor_methods[] = {
    {"item", item, METH_NOARGS, R"(item($self, /)
--

Waits, then the only element as a Python number of the dtype's kind.

Raises ValueError for more or fewer elements than one, and the failure of the tensor. NumPy's ndarray.item.

>>> tw.sum(tw.asarray([1.5, 2.0])).item()
3.5
)"},
    {"tolist", to_list, METH_NOARGS, R"(tolist($self, /)
--

Waits, then the elements as nested lists of Python numbers; a 0-d tensor gives a number.

Raises the failure of the tensor. NumPy's ndarray.tolist.

>>> tw.asarray([[1, 2], [3, 4]]).tolist()
[[1, 2], [3, 4]]
)"},
    {"wait", wait, METH_NOARGS,
     R"(wait($self, /)
--

Waits for the value; raises its failure. Returns the tensor.

>>> (tw.arange(3) + 1).wait().is_ready()
True
>>> tw.take(tw.arange(3), tw.asarray([7])).wait()
Traceback (most recent call last):
    ...
thalweg.IndexError: take... index 7 is out of bounds for axis 0 with size 3
)"},
    {"is_ready", is_ready, METH_NOARGS,
     R"(is_ready($self, /)
--

True once the value is there or has failed. Never waits.

>>> x = tw.arange(3) + 1
>>> tw.synchronize()
>>> x.is_ready()
True
)"},
    {"has_failed", has_failed, METH_NOARGS,
     R"(has_failed($self, /)
--

True if the value has failed by now. Never waits and raises nothing.

>>> (tw.arange(3) + 1).wait().has_failed()
False
)"},
    {"failure", failure, METH_NOARGS,
     R"(failure($self, /)
--

None, or the failure's class and text, which is not raised. Never waits.

>>> (tw.arange(3) + 1).wait().failure() is None
True
)"},
    {"recover", recover, METH_NOARGS,
     R"(recover($self, /)
--

Rebinds a tensor whose in-place form failed to its last good value, and returns it. Other tensors stay as they are.

>>> x = tw.asarray([2, 3])
>>> try:
...     x **= tw.asarray([1, -1])  # an integer to a negative power fails
...     x.wait()
... except ValueError:
...     print(x.recover())
tensor([2, 3])
)"},
    {"name_", set_name, METH_O,
     R"(name_($self, name, /)
--

Names the value in graph dumps. Returns the tensor. Raises DTypeError for a name that is no str.

>>> weights = tw.ones(3).name_("weights")
)"},
    {"on_ready", on_ready, METH_O,
     R"(on_ready($self, callback, /)
--

Calls callback() on the callback thread once the value is there or has failed.

Raises DTypeError for what cannot be called.

>>> import threading
>>> done = threading.Event()
>>> (tw.arange(3) + 1).on_ready(done.set)
>>> done.wait(timeout=60)
True
)"},
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
