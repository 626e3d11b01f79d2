// autograd_methods.cpp: the properties and methods of Tensor that are about gradients.
#include <memory>
#include <string>

#include <thalweg/autograd.h>

#include "autograd_object.h"
#include "deferred.h"
#include "errors.h"
#include "tensor_object.h"

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

py::object itself(PyObject* self) { return py::reinterpret_borrow<py::object>(self); }

void require(PyObject* self, bool required) {
  Tensor& tensor = tensor_of(self);
  const bool before = tensor.requires_grad();
  set_requires_grad(tensor, required);
  // What AccumulateGrad.variable gives.
  if (required && !before) {
    const py::object weak = checked(PyWeakref_NewRef(self, nullptr));
    set_host_leaf(tensor, std::make_shared<HostReference>(weak.ptr()));
  }
  track_if_recorded(self);
}

PyObject* get_requires_grad(PyObject* self, void*) {
  return with_tensor(self, [](const Tensor& t) { return py::bool_(t.requires_grad()); });
}

int set_requires(PyObject* self, PyObject* value, void*) {
  return guarded(-1, [&] {
    if (value == nullptr) throw DTypeError("requires_grad: cannot be deleted");
    const int required = PyObject_IsTrue(value);
    if (required < 0) throw_python_error();
    require(self, required != 0);
    return 0;
  });
}

PyObject* requires_grad_in_place(PyObject* self, PyObject* args, PyObject* keywords) {
  return with_tensor(self, [&](const Tensor&) {
    static const char* names[] = {"requires_grad", nullptr};
    int required = 1;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|p:requires_grad_", const_cast<char**>(names),
                                     &required)) {
      throw_python_error();
    }
    require(self, required != 0);
    return itself(self);
  });
}

PyObject* get_is_leaf(PyObject* self, void*) {
  return with_tensor(self, [](const Tensor& t) { return py::bool_(is_leaf(t)); });
}

PyObject* get_grad_fn(PyObject* self, void*) {
  return with_tensor(self, [](const Tensor& t) { return checked(node_object(grad_fn(t))); });
}

PyObject* get_retains_grad(PyObject* self, void*) {
  return with_tensor(self, [](const Tensor& t) { return py::bool_(retains_grad(t)); });
}

PyObject* get_grad(PyObject* self, void*) {
  return with_tensor(self, [](const Tensor& handle) {
    const Tensor t = handle;
    py::object grad = checked(grad_object(t));
    if (grad.is_none() && !is_leaf(t) && !retains_grad(t) &&
        PyErr_WarnEx(PyExc_UserWarning,
                     "grad: backward keeps no gradient of a tensor that an operator made; call retain_grad() "
                     "on it before",
                     1) != 0) {
      throw_python_error();
    }
    return grad;
  });
}

int set_grad(PyObject* self, PyObject* value, void*) {
  return guarded(-1, [&] {
    run_deferred();
    Tensor& tensor = tensor_of(self);
    if (value == nullptr || value == Py_None) {
      set_grad_object(tensor, nullptr);
      return 0;
    }
    if (!is_tensor(value)) {
      throw DTypeError(std::string("grad: expected a Tensor or None, not ") + Py_TYPE(value)->tp_name);
    }
    if (value == self) throw ValueError("grad: a tensor cannot be its own gradient");
    if (tensor.autograd() == nullptr) {
      // As PyTorch's, a leaf that requires none may have one.
      if (is_inexact(tensor.dtype())) {
        set_requires_grad(tensor, true);
        set_requires_grad(tensor, false);
      }
      track_if_recorded(self);
    }
    set_grad_object(tensor, value);
    return 0;
  });
}

PyObject* retain(PyObject* self, PyObject*) {
  return with_tensor(self, [](const Tensor& t) {
    retain_grad(t);
    return py::object(py::none());
  });
}

PyObject* detach(PyObject* self, PyObject*) {
  return with_tensor(self, [](const Tensor& t) { return checked(wrap(t.detach())); });
}

PyObject* register_hook(PyObject* self, PyObject* function) {
  return with_tensor(self, [&](const Tensor& t) {
    if (!PyCallable_Check(function)) throw DTypeError("register_hook: expected a callable");
    const auto hook = make_hook(HookKind::tensor, function);
    return removable(add_tensor_hook(t, hook), hook);
  });
}

PyObject* register_post_accumulate(PyObject* self, PyObject* function) {
  return with_tensor(self, [&](const Tensor& t) {
    if (!PyCallable_Check(function)) {
      throw DTypeError("register_post_accumulate_grad_hook: expected a callable");
    }
    const auto hook = make_hook(HookKind::accumulate, function, self);
    return removable(add_post_accumulate_hook(t, hook), hook);
  });
}

PyCFunction with_keywords(PyObject* (*function)(PyObject*, PyObject*, PyObject*)) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

}  // namespace

PyGetSetDef autograd_properties[] = {
    {"requires_grad", get_requires_grad, set_requires,
     R"(True if backward is to compute its gradient. Setting it raises DTypeError for dtypes that are neither floating nor
complex, and EngineError for False on a tensor that an operator made. PyTorch's Tensor.requires_grad.

>>> x = tw.ones(3).requires_grad_()
>>> x.requires_grad, (x * 2).requires_grad, tw.ones(3).requires_grad
(True, True, False)
)",
     nullptr},
    {"is_leaf", get_is_leaf, nullptr,
     R"(False if a recorded operator made it. PyTorch's Tensor.is_leaf.

>>> x = tw.ones(3).requires_grad_()
>>> x.is_leaf, (x * 2).is_leaf
(True, False)
)",
     nullptr},
    {"grad", get_grad, set_grad,
     R"(The gradient that backward added up, or None. It stays the same tensor object while more is added.

Setting it raises ShapeError, DTypeError or DeviceError for one that does not look like the tensor, and EngineError for
one of another engine. PyTorch's Tensor.grad.

>>> x = tw.asarray([1.0, 2.0]).requires_grad_()
>>> (x * x).sum().backward()
>>> x.grad
tensor([2., 4.])
)",
     nullptr},
    {"grad_fn", get_grad_fn, nullptr,
     R"(The node of the recorded operator that made it, or None. PyTorch's Tensor.grad_fn.

>>> x = tw.ones(3).requires_grad_()
>>> (x * 2).grad_fn.name()
'MultiplyBackward'
)",
     nullptr},
    {"retains_grad", get_retains_grad, nullptr,
     R"(True after retain_grad on a tensor that an operator made. PyTorch's Tensor.retains_grad.

>>> y = tw.ones(3).requires_grad_() * 2
>>> y.retain_grad()
>>> y.retains_grad
True
)",
     nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyMethodDef autograd_methods[] = {
    {"requires_grad_", with_keywords(requires_grad_in_place), METH_VARARGS | METH_KEYWORDS,
     R"(requires_grad_($self, /, requires_grad=True)
--

Sets requires_grad and returns the tensor. Raises as that does. PyTorch's Tensor.requires_grad_.

>>> tw.ones(2).requires_grad_()
tensor([1., 1.], requires_grad=True)
)"},
    {"retain_grad", retain, METH_NOARGS, R"(retain_grad($self, /)
--

Has backward keep the gradient of a tensor that an operator made; leaves keep theirs anyway.

Raises EngineError if the tensor does not require a gradient. PyTorch's Tensor.retain_grad.

>>> x = tw.asarray([1.0, 2.0]).requires_grad_()
>>> y = x * 3
>>> y.retain_grad()
>>> (y * y).sum().backward()
>>> y.grad
tensor([ 6., 12.])
)"},
    {"detach", detach, METH_NOARGS, R"(detach($self, /)
--

Another tensor of the same value that has nothing to do with gradients. PyTorch's Tensor.detach; values are
immutable, so neither sees in-place forms of the other.

>>> x = tw.ones(2).requires_grad_()
>>> x.detach().requires_grad
False
)"},
    {"register_hook", register_hook, METH_O, R"(register_hook($self, hook, /)
--

Calls hook(grad) in backward when the gradient of the tensor is complete; what it returns, unless None, takes the
gradient's place. Hooks run in the order of registration. Returns a handle with remove().

Raises EngineError if the tensor does not require a gradient and DTypeError for what cannot be called. PyTorch's
Tensor.register_hook.

>>> x = tw.asarray([1.0, 2.0]).requires_grad_()
>>> handle = x.register_hook(lambda grad: grad * 10)
>>> x.sum().backward()
>>> x.grad
tensor([10., 10.])
)"},
    {"register_post_accumulate_grad_hook", register_post_accumulate, METH_O,
     R"(register_post_accumulate_grad_hook($self, hook, /)
--

Calls hook(tensor) each time that backward has added to the gradient of this leaf. Returns a handle with remove().

Raises EngineError for tensors that are no leaves or require no gradient, and DTypeError for what cannot be called.
PyTorch's Tensor.register_post_accumulate_grad_hook.

>>> x = tw.asarray([1.0, 2.0]).requires_grad_()
>>> handle = x.register_post_accumulate_grad_hook(lambda leaf: print(leaf.grad))
>>> (x * x).sum().backward()
tensor([2., 4.])
)"},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace thalweg::python
