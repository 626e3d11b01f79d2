// op_object.cpp: calls of Ops from the package's Python functions.
#include "op_object.h"

#include <array>
#include <cstddef>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include <structmember.h>

#include <thalweg/engine.h>

#include "deferred.h"
#include "engines.h"
#include "errors.h"
#include "operands.h"
#include "sites.h"
#include "tensor_object.h"
#include "values.h"

namespace thalweg::python {

namespace {

struct OpObject {
  PyObject ob_base;
  vectorcallfunc vectorcall;
  /// The record of a built-in Op; null for an Op that only some engines have.
  const Op* builtin;
  std::string name;
  /// The keyword tuple of the last call (a reference) and its attributes' positions: a call site always
  /// passes the same tuple object.
  PyObject* known_names;
  std::vector<std::uint8_t> known_positions;
};

PyTypeObject* op_type = nullptr;

const Op& record_for(const OpObject* self, const Engine& engine) {
  return self->builtin != nullptr ? *self->builtin : engine.op(self->name);
}

/// The inputs of one call: tensors as they are, numbers and arrays converted.
class Inputs {
 public:
  Inputs(const OpObject* self, PyObject* const* args, std::size_t count)
      : self_(self), args_(args), count_(count) {
    if (count > kFew) {
      many_.resize(count);
      many_converted_.resize(count);
    }
    // The condition of `where` says nothing about the dtype of the numbers beside it.
    const std::size_t first = self->name == "where" ? 1 : 0;
    for (std::size_t i = 0; i < count; ++i) {
      any_float_ |= i >= first && (PyFloat_Check(args[i]) || PyComplex_Check(args[i]));
      if (!is_tensor(args[i])) continue;
      const Tensor& tensor = tensor_of(args[i]);
      if (engine_ == nullptr) engine_ = &tensor.engine();
      if (i < first) continue;
      model_dtype_ = has_model_ ? promote(model_dtype_, tensor.dtype()) : tensor.dtype();
      if (!has_model_) model_device_ = tensor.device();
      has_model_ = true;
    }
  }

  Engine& engine() const { return engine_ != nullptr ? *engine_ : current_engine(); }

  std::span<const Tensor* const> convert(Engine& engine) {
    for (std::size_t i = 0; i < count_; ++i) {
      if (is_tensor(args_[i])) continue;
      Tensor& converted = (count_ > kFew ? many_converted_.data() : few_converted_.data())[i];
      if (has_model_) {
        converted = to_operand(engine, self_->name, args_[i], model_dtype_, model_device_);
      } else if (any_float_) {
        converted = to_operand(engine, self_->name, args_[i], kDefaultFloat, Device{});
      } else {
        converted = to_operand(engine, self_->name, args_[i]);
      }
      pointers()[i] = &converted;
    }
    // Last, as conversions may run Python code; and again where one wait may have let somebody take another.
    for (bool complete = false; !complete;) {
      complete = true;
      for (std::size_t i = 0; i < count_; ++i) {
        if (is_tensor(args_[i])) pointers()[i] = &tensor_of(args_[i]);
      }
      for (std::size_t i = 0; i < count_; ++i) complete &= bool(*pointers()[i]);
    }
    return {pointers(), count_};
  }

 private:
  static constexpr std::size_t kFew = 4;
  const Tensor** pointers() noexcept { return count_ > kFew ? many_.data() : few_.data(); }

  const OpObject* self_;
  PyObject* const* args_;
  std::size_t count_;
  /// Of the first tensor.
  Engine* engine_ = nullptr;
  /// What all the tensors beside which a number stands promote to, and the device of the first.
  bool has_model_ = false;
  DType model_dtype_ = DType::bool_;
  Device model_device_;
  bool any_float_ = false;
  std::array<const Tensor*, kFew> few_{};
  std::array<Tensor, kFew> few_converted_;
  std::vector<const Tensor*> many_;
  std::vector<Tensor> many_converted_;
};

/// Positions of the attributes called `names`; throws AttributeError for one that `op` does not have.
std::vector<std::uint8_t> find_positions(const Op& op, PyObject* names) {
  std::vector<std::uint8_t> positions;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); ++i) {
    Py_ssize_t size = 0;
    const char* text = PyUnicode_AsUTF8AndSize(PyTuple_GET_ITEM(names, i), &size);
    if (text == nullptr) throw_python_error();
    positions.push_back(static_cast<std::uint8_t>(AttributeList::position(op, {text, std::size_t(size)})));
  }
  return positions;
}

Attributes attributes_of(OpObject* self, const Op& op, PyObject* const* values, PyObject* names) {
  if (names == nullptr) return op.attributes.empty() ? Attributes{} : AttributeList(op).take();
  // An Op that is not built in may differ between engines.
  if (names != self->known_names || self->builtin == nullptr) {
    self->known_positions = find_positions(op, names);
    Py_XDECREF(std::exchange(self->known_names, Py_NewRef(names)));
  }
  AttributeList attributes(op);
  for (std::size_t i = 0; i < std::size_t(PyTuple_GET_SIZE(names)); ++i) {
    // The conversion of a value may run Python code that calls this operation otherwise.
    const std::size_t position =
        names == self->known_names ? self->known_positions[i] : find_positions(op, names)[i];
    attributes.set(position, values[i]);
  }
  return attributes.take();
}

PyObject* call(PyObject* callable, PyObject* const* args, std::size_t flags, PyObject* names) {
  return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
    run_deferred();
    auto* self = reinterpret_cast<OpObject*>(callable);
    const auto count = std::size_t(PyVectorcall_NARGS(flags));
    Inputs inputs(self, args, count);
    Engine& engine = inputs.engine();
    const Op& op = record_for(self, engine);
    Attributes attributes = attributes_of(self, op, args + count, names);
    const auto operands = inputs.convert(engine);
    const SiteId site = current_site();
    if (op.outputs == 1) return wrap(engine.apply(op, operands, std::move(attributes), site));
    std::vector<Tensor> results = engine.apply_many(op, operands, std::move(attributes), site);
    py::tuple wrapped(results.size());
    for (std::size_t i = 0; i < results.size(); ++i) {
      wrapped[i] = checked(wrap(std::move(results[i])));
    }
    return wrapped.release().ptr();
  });
}

/// op.in_place(x, *others, **attributes): the in-place form on x.
PyObject* in_place(PyObject* callable, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return guarded<PyObject*>(nullptr, [&] {
    run_deferred();
    auto* self = reinterpret_cast<OpObject*>(callable);
    if (count == 0 || !is_tensor(args[0]))
      throw DTypeError(self->name + ": the in-place form needs a Tensor first");
    Inputs inputs(self, args, std::size_t(count));
    Engine& engine = inputs.engine();
    const Op& op = record_for(self, engine);
    Attributes attributes = attributes_of(self, op, args + count, names);
    apply_in_place(args[0], op, inputs.convert(engine).subspan(1), std::move(attributes));
    return Py_NewRef(args[0]);
  });
}

void deallocate(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  auto* self = reinterpret_cast<OpObject*>(object);
  self->name.~basic_string();
  self->known_positions.~vector();
  Py_XDECREF(self->known_names);
  PyObject_Free(object);
  Py_DECREF(type);
}

const Op* known(PyObject* object) { return reinterpret_cast<OpObject*>(object)->builtin; }

PyObject* represent(PyObject* object) {
  return PyUnicode_FromFormat("<operation '%s'>", reinterpret_cast<OpObject*>(object)->name.c_str());
}

PyObject* get_name(PyObject* self, void*) {
  return guarded<PyObject*>(nullptr,
                            [&] { return py::str(reinterpret_cast<OpObject*>(self)->name).release().ptr(); });
}
PyObject* get_doc(PyObject* self, void*) {
  return guarded<PyObject*>(nullptr, [&] {
    const Op* op = known(self);
    return py::str(op == nullptr ? std::string() : op->doc).release().ptr();
  });
}
PyObject* get_inputs(PyObject* self, void*) {
  return guarded<PyObject*>(nullptr, [&] {
    py::list names;
    if (const Op* op = known(self)) {
      for (const std::string& input : op->inputs) names.append(input);
    }
    return py::tuple(names).release().ptr();
  });
}
PyObject* get_attributes(PyObject* self, void*) {
  return guarded<PyObject*>(nullptr, [&] {
    py::dict defaults;
    if (const Op* op = known(self)) {
      for (const AttrSpec& spec : op->attributes) {
        defaults[py::str(spec.name)] =
            spec.required ? py::str("required") : py::str(to_string(spec.fallback));
      }
    }
    return defaults.release().ptr();
  });
}

PyObject* get_is_differentiable(PyObject* self, void*) {
  const Op* op = known(self);
  return PyBool_FromLong(op != nullptr && op->is_differentiable());
}

PyMethodDef methods[] = {
    {"in_place", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(in_place)),
     METH_FASTCALL | METH_KEYWORDS,
     "in_place($self, x, /, *others, **attributes)\n--\n\nThe in-place form: rebinds x to the result and "
     "returns it."},
    {nullptr, nullptr, 0, nullptr},
};
PyGetSetDef properties[] = {
    {"__name__", get_name, nullptr, nullptr, nullptr},
    {"__doc__", get_doc, nullptr, nullptr, nullptr},
    {"inputs", get_inputs, nullptr, "Names of the inputs.", nullptr},
    {"attributes", get_attributes, nullptr, "Names and defaults of the attributes.", nullptr},
    {"is_differentiable", get_is_differentiable, nullptr,
     "True for a built-in operation if a gradient may pass it.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(OpObject, vectorcall), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};
PyType_Slot slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(deallocate)},
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {Py_tp_repr, reinterpret_cast<void*>(represent)},
    {Py_tp_methods, methods},
    {Py_tp_getset, properties},
    {Py_tp_members, members},
    {0, nullptr},
};
PyType_Spec spec = {"thalweg._C.Operation", sizeof(OpObject), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_HAVE_VECTORCALL,
                    slots};

py::object make_op_object(std::string name) {
  auto* self = static_cast<OpObject*>(PyObject_Malloc(sizeof(OpObject)));
  if (self == nullptr) throw std::bad_alloc();
  PyObject_Init(reinterpret_cast<PyObject*>(self), op_type);
  self->vectorcall = call;
  self->builtin = builtin_ops().try_find(name);
  new (&self->name) std::string(std::move(name));
  new (&self->known_positions) std::vector<std::uint8_t>;
  self->known_names = nullptr;
  return py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(self));
}

}  // namespace

void add_op_type(py::module_& module) {
  py::object type = checked(PyType_FromSpec(&spec));
  op_type = reinterpret_cast<PyTypeObject*>(type.ptr());
  module.attr("Operation") = type;
  type.release();
  module.def(
      "op", make_op_object, py::arg("name"), py::pos_only(),
      "The operation called `name`. One that is not built in is looked up in the engine of each call.");
  module.def(
      "op_names",
      [] {
        py::list names;
        for (const Op* op : builtin_ops().all()) names.append(op->name);
        return names;
      },
      "Names of the built-in operations.");
}

}  // namespace thalweg::python
