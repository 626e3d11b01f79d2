// autograd_object.h: Python's side of gradients: `.grad` objects, hooks and nodes.
#pragma once

#include <memory>

#include <thalweg/autograd.h>

#include "python.h"

namespace thalweg::python {

/// Holds the GIL as long as it lives, whether this thread had it or not.
class WithGil {
 public:
  WithGil() noexcept : had_(PyGILState_Check() != 0) {
    if (!had_) state_ = PyGILState_Ensure();
  }
  ~WithGil() {
    if (!had_) PyGILState_Release(state_);
  }
  WithGil(const WithGil&) = delete;
  WithGil& operator=(const WithGil&) = delete;

 private:
  bool had_;
  PyGILState_STATE state_{};
};

/// A reference on a Python object for C++ objects that any thread may free.
class HostReference {
 public:
  explicit HostReference(PyObject* object) noexcept : object_(Py_XNewRef(object)) {}
  ~HostReference() { reset(nullptr); }
  HostReference(const HostReference&) = delete;
  HostReference& operator=(const HostReference&) = delete;

  PyObject* get() const noexcept { return object_; }
  /// Takes a reference over.
  void reset(PyObject* adopted) noexcept;
  int visit(VisitHost visit, void* argument) const {
    return object_ == nullptr ? 0 : visit(object_, argument);
  }

 private:
  PyObject* object_;
};

/// The Python object of a tensor's gradient (a new reference, or None). It stays the same object while
/// backward adds to it.
PyObject* grad_object(const Tensor& tensor);
/// Makes `gradient`, a Python tensor or null, the gradient of `tensor`. Throws as set_gradient.
void set_grad_object(const Tensor& tensor, PyObject* gradient);

/// What a Python hook is for, which says what it is called with.
enum class HookKind { tensor, pre, post, accumulate };
/// `leaf`: for HookKind::accumulate the tensor's object, which is held weakly.
std::shared_ptr<Hook> make_hook(HookKind kind, PyObject* function, PyObject* leaf = nullptr);
/// A Python RemovableHandle for `hook` in `list`.
py::object removable(const std::shared_ptr<HookList>& list, const std::shared_ptr<Hook>& hook);

/// The Python object of a node (a new reference), the same one as long as it lives; None for none.
PyObject* node_object(const NodePtr& node);
/// The node of such an object; throws DTypeError for others.
NodePtr node_of(PyObject* object);

/// function_node.cpp
void add_function_node(py::module_& module);

/// Adds Node, RemovableHandle and the functions of thalweg.autograd to `module`.
void add_autograd(py::module_& module);

}  // namespace thalweg::python
