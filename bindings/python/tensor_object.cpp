// tensor_object.cpp: life and death of Python tensors, and how in-place forms rebind them safely.
#include "tensor_object.h"

#include <new>
#include <vector>

#include <structmember.h>

#include <thalweg/autograd.h>

#include "engines.h"
#include "errors.h"
#include "sites.h"

namespace thalweg::python {

PyTypeObject* tensor_type = nullptr;

namespace {

constexpr int kFreeListCapacity = 256;
TensorObject* free_list[kFreeListCapacity];
int free_count = 0;

/// Object whose handle the running in-place form of this thread has taken.
thread_local TensorObject* object_in_update = nullptr;

/// Takes the handle out of an object and brings it back, whatever happens between.
class HandleLoan {
 public:
  explicit HandleLoan(TensorObject* object) : object_(object), outer_(object_in_update) {
    tensor = std::move(object->tensor);
    object_in_update = object;
  }
  ~HandleLoan() {
    object_->tensor = std::move(tensor);
    object_in_update = outer_;
  }
  HandleLoan(const HandleLoan&) = delete;
  HandleLoan& operator=(const HandleLoan&) = delete;

  Tensor tensor;

 private:
  TensorObject* object_;
  TensorObject* outer_;
};

void deallocate(PyObject* object) {
  auto* self = reinterpret_cast<TensorObject*>(object);
  PyTypeObject* type = Py_TYPE(object);
  if (self->tracked) PyObject_GC_UnTrack(object);
  if (self->weak_references != nullptr) PyObject_ClearWeakRefs(object);
  self->tensor.~Tensor();
  if (free_count < kFreeListCapacity) {
    free_list[free_count++] = self;
  } else {
    PyObject_GC_Del(self);
  }
  Py_DECREF(type);
}

int traverse(PyObject* object, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(object));
  struct Visitor {
    visitproc visit;
    void* argument;
  } visitor{visit, arg};
  return visit_host(
      reinterpret_cast<TensorObject*>(object)->tensor,
      [](void* found, void* self) {
        const auto& each = *static_cast<Visitor*>(self);
        return each.visit(static_cast<PyObject*>(found), each.argument);
      },
      &visitor);
}

/// Cuts the tensor off from its gradient, its hooks and the graph behind it.
int clear(PyObject* object) {
  reinterpret_cast<TensorObject*>(object)->tensor.set_autograd(nullptr);
  return 0;
}

Py_hash_t hash_by_identity(PyObject* self) { return PyBaseObject_Type.tp_hash(self); }

PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(TensorObject, weak_references), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

/// As every object, and for names of NumPy and PyTorch the error says what to write (_other_names.py).
PyObject* get_attribute(PyObject* self, PyObject* name) {
  PyObject* const found = PyObject_GenericGetAttr(self, name);
  if (found != nullptr || PyErr_ExceptionMatches(PyExc_AttributeError) == 0) return found;
  if (PyUnicode_GET_LENGTH(name) > 0 && PyUnicode_READ_CHAR(name, 0) == '_') return nullptr;
  PyErr_Clear();
  PyObject* const hints = PyImport_ImportModule("thalweg._other_names");
  if (hints == nullptr) return nullptr;
  PyObject* const error = PyObject_CallMethod(hints, "missing_in_tensor", "O", name);
  Py_DECREF(hints);
  if (error == nullptr) return nullptr;
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error)), error);
  Py_DECREF(error);
  return nullptr;
}

const char kDoc[] =
    R"(A multi-dimensional array of one dtype on one device. Array API standard, array object.

Operations on tensors return at once; the value is there when it is read. Values are immutable: in-place forms rebind
the tensor to a new value. Make tensors with thalweg.asarray, zeros, arange and so on; Tensor itself makes none (raises
TypeError).

>>> x = tw.asarray([[1, 2], [3, 4]])
>>> row = x[0]  # shares the bytes of x
>>> x[0, 0] = 9  # rebinds x; row keeps its value
>>> x.sum(), row
(tensor(18), tensor([1, 2]))
)";

template <class Function>
void* slot(Function* function) {
  return reinterpret_cast<void*>(function);
}

}  // namespace

Tensor& detail::wait_until_returned(TensorObject* object) {
  if (object_in_update == object) {
    throw EngineError("this tensor is being updated in place by the code that a signal handler interrupted");
  }
  while (!object->tensor) {
    if (PyErr_CheckSignals() != 0) throw_python_error();
    Py_BEGIN_ALLOW_THREADS;
    sleep_briefly();
    Py_END_ALLOW_THREADS;
  }
  return object->tensor;
}

PyObject* wrap(Tensor tensor) {
  TensorObject* self;
  if (free_count > 0) {
    self = free_list[--free_count];
    PyObject_Init(reinterpret_cast<PyObject*>(self), tensor_type);
  } else {
    self = PyObject_GC_New(TensorObject, tensor_type);
    if (self == nullptr) return nullptr;
  }
  new (&self->tensor) Tensor(std::move(tensor));
  self->weak_references = nullptr;
  self->tracked = false;
  track_if_recorded(reinterpret_cast<PyObject*>(self));
  return reinterpret_cast<PyObject*>(self);
}

void apply_in_place(PyObject* self, const Op& op, std::span<const Tensor* const> others,
                    Attributes attributes) {
  Engine& engine = tensor_of(self).engine();
  const SiteId site = current_site();
  // `x += x`: the loan empties the object, so what the others point to must be a handle of its own.
  std::vector<const Tensor*> pointers;
  Tensor copy;
  for (const Tensor* other : others) {
    if (other != &tensor_of(self)) continue;
    copy = *other;
    pointers.assign(others.begin(), others.end());
    for (const Tensor*& pointer : pointers) {
      if (pointer == other) pointer = &copy;
    }
    others = pointers;
    break;
  }
  {
    HandleLoan loan(reinterpret_cast<TensorObject*>(self));
    engine.apply_in_place(op, loan.tensor, others, std::move(attributes), site);
  }
  track_if_recorded(self);
}

void recover(PyObject* self) {
  for (;;) {
    const Tensor before = tensor_of(self);
    Tensor good = before.recover();  // may wait, and others may rebind the tensor meanwhile
    if (good.operand() == before.operand()) return;
    Tensor& now = tensor_of(self);
    if (now.operand() != before.operand()) continue;  // what came of the failed value may have failed too
    now = std::move(good);
    return;
  }
}

static bool is_end(const PyMethodDef& entry) { return entry.ml_name == nullptr; }
static bool is_end(const PyGetSetDef& entry) { return entry.name == nullptr; }

/// The lists of two files as one that CPython may keep.
template <class Definition>
static Definition* joined(Definition* first, Definition* second) {
  static std::vector<Definition> all;
  for (Definition* list : {first, second}) {
    for (; !is_end(*list); ++list) all.push_back(*list);
  }
  all.push_back({});  // the end
  return all.data();
}

static PyObject* refuse_new(PyTypeObject*, PyObject*, PyObject*) {
  PyErr_SetString(PyExc_TypeError, "Tensor: is not called; make tensors with thalweg.asarray(data)");
  return nullptr;
}

void add_tensor_type(py::module_& module) {
  std::vector<PyType_Slot> slots = {
      {Py_tp_dealloc, slot(deallocate)},
      {Py_tp_new, slot(refuse_new)},
      {Py_tp_traverse, slot(traverse)},
      {Py_tp_clear, slot(clear)},
      {Py_tp_getattro, slot(get_attribute)},
      {Py_tp_hash, slot(hash_by_identity)},
      {Py_tp_richcompare, slot(tensor_compare)},
      {Py_tp_methods, joined(tensor_methods, autograd_methods)},
      {Py_tp_getset, joined(tensor_properties, autograd_properties)},
      {Py_tp_members, members},
      {Py_tp_doc, const_cast<char*>(kDoc)},
      {Py_mp_subscript, slot(tensor_subscript)},
      {Py_mp_ass_subscript, slot(tensor_assign_subscript)},
      {Py_mp_length, slot(tensor_length)},
      {Py_bf_getbuffer, slot(tensor_get_buffer)},
      {Py_bf_releasebuffer, slot(tensor_release_buffer)},
  };
  for (PyType_Slot* entry = number_slots; entry->slot != 0; ++entry) slots.push_back(*entry);
  slots.push_back({0, nullptr});
  // Not immutable: the package adds the methods it writes in Python.
  PyType_Spec spec = {"thalweg.Tensor", sizeof(TensorObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
                      slots.data()};
  py::object type = checked(PyType_FromSpec(&spec));
  tensor_type = reinterpret_cast<PyTypeObject*>(type.ptr());
  module.attr("Tensor") = type;
  type.release();
}

}  // namespace thalweg::python
