// autograd_object.cpp: gradients and hooks that are Python objects.
#include "autograd_object.h"

#include <string>
#include <utility>
#include <vector>

#include "deferred.h"
#include "errors.h"
#include "tensor_object.h"

namespace thalweg::python {

void HostReference::reset(PyObject* adopted) noexcept {
  PyObject* const before = std::exchange(object_, adopted);
  if (before == nullptr) return;
  if (Py_IsInitialized() && PyGILState_Check() != 0) {
    Py_DECREF(before);
  } else {
    defer_decref(before);
  }
}

namespace {

// --- gradients
// ------------------------------------------------------------------------------------------------------

/// The slot of a tensor whose `.grad` Python has seen. Guarded by the GIL.
class PythonGradSlot final : public GradSlot {
 public:
  Tensor load() override {
    const WithGil gil;
    return object_.get() == nullptr ? Tensor() : tensor_of(object_.get());
  }
  bool exchange(const Operand* expected, Tensor value) override {
    const WithGil gil;
    if (object_.get() == nullptr) {
      if (expected != nullptr) return false;
      if (value) object_.reset(checked(wrap(std::move(value))).release().ptr());
      return true;
    }
    Tensor& now = tensor_of(object_.get());
    if (now.operand() != expected) return false;
    if (value) {
      std::swap(now, value);
      track_if_recorded(object_.get());
    } else {
      object_.reset(nullptr);
    }
    return true;
  }
  int visit_host(VisitHost visit, void* argument) override { return object_.visit(visit, argument); }

  PyObject* object() const noexcept { return object_.get(); }
  void set_object(PyObject* object) noexcept { object_.reset(Py_XNewRef(object)); }

 private:
  HostReference object_{nullptr};
};

PythonGradSlot& python_slot(const Tensor& tensor, std::shared_ptr<GradSlot>* keep) {
  *keep = grad_slot(tensor);
  if (auto* const slot = dynamic_cast<PythonGradSlot*>(keep->get())) return *slot;
  *keep = replace_grad_slot(tensor, std::make_shared<PythonGradSlot>());
  return dynamic_cast<PythonGradSlot&>(**keep);
}

// --- hooks
// ----------------------------------------------------------------------------------------------------------

py::object wrapped_or_none(const Tensor& tensor) {
  return tensor ? checked(wrap(tensor)) : py::object(py::none());
}

py::tuple wrapped_all(std::span<const Tensor> tensors) {
  py::tuple all(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) all[i] = wrapped_or_none(tensors[i]);
  return all;
}

/// The gradient that a hook returned in the place of `before`.
Tensor replacement(const char* what, py::handle object, const Tensor& before) {
  if (object.is_none()) return {};
  if (!is_tensor(object.ptr())) {
    throw DTypeError(std::string(what) + ": a hook returns None or a Tensor, not " +
                     Py_TYPE(object.ptr())->tp_name);
  }
  Tensor tensor = tensor_of(object.ptr());
  if (before && tensor.shape() != before.shape()) {
    throw ShapeError(std::string(what) + ": a hook changed the shape of the gradient from " +
                     to_string(before.shape()) + " to " + to_string(tensor.shape()));
  }
  if (before && tensor.dtype() != before.dtype()) {
    throw DTypeError(std::string(what) + ": a hook changed the dtype of the gradient from " +
                     std::string(name(before.dtype())) + " to " + std::string(name(tensor.dtype())));
  }
  return tensor;
}

class PythonHook final : public Hook {
 public:
  PythonHook(HookKind kind, PyObject* function, PyObject* leaf) : kind_(kind), function_(function) {
    if (leaf != nullptr) leaf_.reset(checked(PyWeakref_NewRef(leaf, nullptr)).release().ptr());
  }

  void run(std::span<Tensor> gradients, std::span<const Tensor> seen) override {
    const WithGil gil;
    const auto function = py::reinterpret_borrow<py::object>(function_.get());
    switch (kind_) {
      case HookKind::tensor: {
        const py::object result = function(wrapped_or_none(gradients[0]));
        if (!result.is_none()) gradients[0] = replacement("register_hook", result, gradients[0]);
        return;
      }
      case HookKind::pre: return take("register_prehook", function(wrapped_all(gradients)), gradients);
      case HookKind::post:
        return take("register_hook", function(wrapped_all(gradients), wrapped_all(seen)), gradients);
      case HookKind::accumulate: {
        // A leaf that nobody has any more has no gradient to look at.
        const py::object leaf = leaf_object();
        if (leaf.is_none() || function(leaf).is_none()) return;
        throw EngineError("register_post_accumulate_grad_hook: hooks must return None");
      }
    }
  }
  int visit_host(VisitHost visit, void* argument) override { return function_.visit(visit, argument); }

 private:
  py::object leaf_object() const { return checked(PyObject_CallNoArgs(leaf_.get())); }

  /// Puts the gradients that a node's hook returned in the place of those that there were.
  static void take(const char* what, const py::object& result, std::span<Tensor> gradients) {
    if (result.is_none()) return;
    const py::tuple all =
        PyTuple_Check(result.ptr()) ? py::reinterpret_borrow<py::tuple>(result) : py::make_tuple(result);
    if (all.size() != gradients.size()) {
      throw ValueError(std::string(what) + ": a hook returned " + std::to_string(all.size()) +
                       " gradients, not " + std::to_string(gradients.size()));
    }
    for (std::size_t i = 0; i < gradients.size(); ++i) gradients[i] = replacement(what, all[i], gradients[i]);
  }

  HookKind kind_;
  HostReference function_;
  HostReference leaf_{nullptr};
};

struct RemovableHandle {
  std::weak_ptr<HookList> list;
  std::weak_ptr<Hook> hook;

  void remove() const {
    const auto from = list.lock();
    const auto what = hook.lock();
    if (from && what) from->remove(what.get());
  }
};

// --- nodes
// ----------------------------------------------------------------------------------------------------------

struct NodeObject {
  PyObject ob_base;
  Node* node;  // a reference
  PyObject* metadata;
};

PyTypeObject* node_type = nullptr;

Node& node_in(PyObject* self) { return *reinterpret_cast<NodeObject*>(self)->node; }

void deallocate_node(PyObject* object) {
  auto* self = reinterpret_cast<NodeObject*>(object);
  PyTypeObject* type = Py_TYPE(object);
  if (self->node->host_object == object) self->node->host_object = nullptr;
  self->node->unref();
  Py_XDECREF(self->metadata);
  PyObject_Free(self);
  Py_DECREF(type);
}

PyObject* represent_node(PyObject* self) {
  return guarded<PyObject*>(nullptr,
                            [&] { return PyUnicode_FromFormat("<%s>", node_in(self).name().c_str()); });
}

PyObject* get_name(PyObject* self, PyObject*) {
  return guarded<PyObject*>(nullptr, [&] { return py::str(node_in(self).name()).release().ptr(); });
}

PyObject* get_sequence_nr(PyObject* self, PyObject*) {
  return PyLong_FromUnsignedLongLong(node_in(self).sequence_nr());
}

PyObject* set_sequence_nr(PyObject* self, PyObject* number) {
  const unsigned long long value = PyLong_AsUnsignedLongLong(number);
  if (PyErr_Occurred() != nullptr) return nullptr;
  node_in(self).set_sequence_nr(value);
  Py_RETURN_NONE;
}

PyObject* get_next_functions(PyObject* self, void*) {
  return guarded<PyObject*>(nullptr, [&] {
    const auto edges = node_in(self).edges();
    py::tuple all(edges.size());
    for (std::size_t i = 0; i < edges.size(); ++i) {
      all[i] = py::make_tuple(checked(node_object(edges[i].node)), edges[i].output);
    }
    return all.release().ptr();
  });
}

PyObject* get_metadata(PyObject* self, void*) {
  auto* const object = reinterpret_cast<NodeObject*>(self);
  if (object->metadata == nullptr) object->metadata = PyDict_New();
  return Py_XNewRef(object->metadata);
}

PyObject* get_variable(PyObject* self, void*) {
  return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
    Node& node = node_in(self);
    if (!node.is_accumulation()) {
      PyErr_Format(PyExc_AttributeError, "%s has no variable, only AccumulateGrad does", node.name().c_str());
      return nullptr;
    }
    const std::shared_ptr<void> host = host_leaf(node);
    if (host == nullptr) Py_RETURN_NONE;
    const py::object leaf = checked(PyObject_CallNoArgs(static_cast<HostReference*>(host.get())->get()));
    if (leaf.is_none() || !accumulates_into(node, tensor_of(leaf.ptr()))) Py_RETURN_NONE;
    return Py_NewRef(leaf.ptr());
  });
}

PyObject* add_hook(PyObject* self, PyObject* function, HookKind kind, const char* what) {
  return guarded<PyObject*>(nullptr, [&] {
    if (!PyCallable_Check(function)) throw DTypeError(std::string(what) + ": expected a callable");
    const NodeHooks& hooks = node_in(self).make_hooks();
    const auto& list = kind == HookKind::pre ? hooks.pre : hooks.post;
    const auto hook = make_hook(kind, function);
    list->add(hook);
    return removable(list, hook).release().ptr();
  });
}

PyObject* register_hook(PyObject* self, PyObject* function) {
  return add_hook(self, function, HookKind::post, "register_hook");
}
PyObject* register_prehook(PyObject* self, PyObject* function) {
  return add_hook(self, function, HookKind::pre, "register_prehook");
}

PyMethodDef node_methods[] = {
    {"name", get_name, METH_NOARGS, "name($self, /)\n--\n\nThe name, as \"MultiplyBackward\"."},
    {"_sequence_nr", get_sequence_nr, METH_NOARGS,
     "_sequence_nr($self, /)\n--\n\nThe number among the operators that its thread recorded."},
    {"_set_sequence_nr", set_sequence_nr, METH_O,
     "_set_sequence_nr($self, number, /)\n--\n\nReplaces the number; of ready nodes the larger runs first."},
    {"register_hook", register_hook, METH_O,
     "register_hook($self, function, /)\n--\n\nCalls function(grad_inputs, grad_outputs) after the node ran; "
     "what it returns replaces grad_inputs. Returns a handle with remove()."},
    {"register_prehook", register_prehook, METH_O,
     "register_prehook($self, function, /)\n--\n\nCalls function(grad_outputs) before the node runs; what it "
     "returns replaces them. Returns a handle with remove()."},
    {nullptr, nullptr, 0, nullptr},
};
PyGetSetDef node_properties[] = {
    {"next_functions", get_next_functions, nullptr,
     "(node, output) of each input's producer; (None, 0) where no gradient goes.", nullptr},
    {"variable", get_variable, nullptr,
     "Of AccumulateGrad: the leaf whose gradient it adds up, or None once that is gone; other nodes have "
     "none.",
     nullptr},
    {"metadata", get_metadata, nullptr, "A dict of the user's, as long as this object lives.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyType_Slot node_slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(deallocate_node)},
    {Py_tp_repr, reinterpret_cast<void*>(represent_node)},
    {Py_tp_methods, node_methods},
    {Py_tp_getset, node_properties},
    {Py_tp_doc, const_cast<char*>("A recorded operator, as Tensor.grad_fn gives it.")},
    {0, nullptr},
};
PyType_Spec node_spec = {"thalweg._C.Node", sizeof(NodeObject), 0,
                         Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, node_slots};

void add_node_type(py::module_& module) {
  py::object type = checked(PyType_FromSpec(&node_spec));
  node_type = reinterpret_cast<PyTypeObject*>(type.ptr());
  module.attr("Node") = type;
  type.release();
}

}  // namespace

PyObject* grad_object(const Tensor& tensor) {
  if (!gradient_of(tensor)) Py_RETURN_NONE;
  std::shared_ptr<GradSlot> keep;
  PyObject* const object = python_slot(tensor, &keep).object();
  return Py_NewRef(object == nullptr ? Py_None : object);
}

void set_grad_object(const Tensor& tensor, PyObject* gradient) {
  if (gradient == nullptr) return set_gradient(tensor, {});
  set_gradient(tensor, tensor_of(gradient));  // checks it
  std::shared_ptr<GradSlot> keep;
  python_slot(tensor, &keep).set_object(gradient);
}

std::shared_ptr<Hook> make_hook(HookKind kind, PyObject* function, PyObject* leaf) {
  return std::make_shared<PythonHook>(kind, function, leaf);
}

py::object removable(const std::shared_ptr<HookList>& list, const std::shared_ptr<Hook>& hook) {
  return py::cast(RemovableHandle{list, hook});
}

PyObject* node_object(const NodePtr& node) {
  if (!node) Py_RETURN_NONE;
  if (node->host_object != nullptr) return Py_NewRef(static_cast<PyObject*>(node->host_object));
  auto* const self = static_cast<NodeObject*>(PyObject_Malloc(sizeof(NodeObject)));
  if (self == nullptr) return PyErr_NoMemory();
  PyObject_Init(reinterpret_cast<PyObject*>(self), node_type);
  node->ref();
  self->node = node.get();
  self->metadata = nullptr;
  node->host_object = self;
  return reinterpret_cast<PyObject*>(self);
}

NodePtr node_of(PyObject* object) {
  if (Py_TYPE(object) == node_type) return NodePtr::share(&node_in(object));
  throw DTypeError(std::string("expected a node, as Tensor.grad_fn gives it, not ") +
                   Py_TYPE(object)->tp_name);
}

void add_autograd_functions(py::module_& module);  // autograd_functions.cpp
void add_saved_hooks(py::module_& module);         // saved_hooks.cpp

void add_autograd(py::module_& module) {
  add_node_type(module);
  py::class_<RemovableHandle>(module, "RemovableHandle",
                              "What registering a hook returns: remove(), or leaving a with block, takes the "
                              "hook away.")
      .def("remove", &RemovableHandle::remove, "Takes the hook away; once is enough.")
      .def("__enter__", [](py::object self) { return self; })
      .def("__exit__", [](const RemovableHandle& self, const py::args&) {
        self.remove();
        return false;
      });
  add_autograd_functions(module);
  add_saved_hooks(module);
  add_function_node(module);
}

}  // namespace thalweg::python
