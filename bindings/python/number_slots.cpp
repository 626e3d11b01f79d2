// number_slots.cpp: Python's operators on tensors. The path of `a + b` is the hot one: no allocation, no GIL
// release.
#include <thalweg/engine.h>

#include "deferred.h"
#include "engines.h"
#include "errors.h"
#include "operands.h"
#include "sites.h"
#include "tensor_object.h"

namespace thalweg::python {

namespace {

PyObject* not_implemented() noexcept { return Py_NewRef(Py_NotImplemented); }

PyObject* apply_binary(Builtin which, const Tensor& left, const Tensor& right) {
  Engine& engine = left.engine();
  const Tensor* const inputs[] = {&left, &right};
  return wrap(engine.apply(builtin(which), std::span(inputs), {}, current_site()));
}

/// One side is not a tensor: a number or an array becomes one, anything else is for the other side to handle.
PyObject* mixed_binary(Builtin which, PyObject* left, PyObject* right) {
  const bool tensor_is_left = is_tensor(left);
  PyObject* self = tensor_is_left ? left : right;
  PyObject* other = tensor_is_left ? right : left;
  if (!is_operand(other)) return not_implemented();
  const Tensor& model = tensor_of(self);
  Engine& engine = model.engine();
  const Op& op = builtin(which);
  const Tensor converted = to_operand(engine, op.name, other, model.dtype(), model.device());
  const Tensor& tensor = tensor_of(self);  // again, as the conversion may have run Python code
  return tensor_is_left ? apply_binary(which, tensor, converted) : apply_binary(which, converted, tensor);
}

PyObject* binary(Builtin which, PyObject* left, PyObject* right) noexcept {
  try {
    run_deferred();
    if (!is_tensor(left) || !is_tensor(right)) [[unlikely]]
      return mixed_binary(which, left, right);
    for (;;) {
      const Tensor& first = tensor_of(left);
      const Tensor& second = tensor_of(right);
      // A wait for the second may have let somebody take the first.
      if (first) [[likely]]
        return apply_binary(which, first, second);
    }
  } catch (...) {
    set_python_error();
    return nullptr;
  }
}

PyObject* in_place(Builtin which, PyObject* self, PyObject* other) noexcept {
  try {
    run_deferred();
    if (!is_tensor(other) && !is_operand(other)) return not_implemented();
    const Tensor& tensor = tensor_of(self);
    Engine& engine = tensor.engine();
    const Op& op = builtin(which);
    // A handle of its own: it may be emptied while apply_in_place waits for self.
    const Tensor operand = is_tensor(other)
                               ? tensor_of(other)
                               : to_operand(engine, op.name, other, tensor.dtype(), tensor.device());
    const Tensor* const pointer = &operand;
    apply_in_place(self, op, {&pointer, 1});
    return Py_NewRef(self);
  } catch (...) {
    set_python_error();
    return nullptr;
  }
}

template <Builtin which>
PyObject* unary(PyObject* self) {
  try {
    run_deferred();
    const Tensor& tensor = tensor_of(self);
    Engine& engine = tensor.engine();
    const Tensor* const input = &tensor;
    return wrap(engine.apply(builtin(which), {&input, 1}, {}, current_site()));
  } catch (...) {
    set_python_error();
    return nullptr;
  }
}

template <Builtin which>
PyObject* binary_slot(PyObject* left, PyObject* right) {
  return binary(which, left, right);
}
template <Builtin which>
PyObject* in_place_slot(PyObject* self, PyObject* other) {
  return in_place(which, self, other);
}

bool has_modulus(PyObject* modulus) {
  if (modulus == Py_None) return false;
  PyErr_SetString(PyExc_TypeError, "pow: a modulus is not supported for tensors");
  return true;
}
PyObject* power(PyObject* base, PyObject* exponent, PyObject* modulus) {
  return has_modulus(modulus) ? nullptr : binary(Builtin::pow, base, exponent);
}
PyObject* power_in_place(PyObject* base, PyObject* exponent, PyObject* modulus) {
  return has_modulus(modulus) ? nullptr : in_place(Builtin::pow, base, exponent);
}

/// Waits for the only element, for bool(), int() and float(); throws ValueError for another number of
/// elements.
Scalar only_element(PyObject* self, const char* function) {
  const Tensor tensor = tensor_of(self);
  if (tensor.numel() != 1) {
    throw ValueError(std::string(function) + ": the value of a tensor of shape " + to_string(tensor.shape()) +
                     " with " + std::to_string(tensor.numel()) +
                     " elements is ambiguous; it takes exactly one" +
                     (std::string_view(function) == "bool" ? " (use any() or all())" : ""));
  }
  const BlockingRead read(tensor);
  try {
    return tensor.item();
  } catch (...) {
    set_read_error(tensor);
    throw_python_error();
  }
}

int truth(PyObject* self) {
  return guarded(-1, [&] { return only_element(self, "bool").to<bool>(); });
}

/// float() and int() of a complex value raise TypeError, as in Python, before they wait.
void refuse_complex(PyObject* self, const char* function) {
  const DType dtype = tensor_of(self).dtype();
  if (!is_complex(dtype)) return;
  throw DTypeError(std::string(function) + ": a value of " + std::string(name(dtype)) +
                   " is no real number; take its real, imag or abs() first");
}

PyObject* as_int(PyObject* self) {
  return guarded<PyObject*>(nullptr, [&] {
    refuse_complex(self, "int");
    const Scalar value = only_element(self, "int");
    switch (value.kind()) {
      case DTypeKind::floating: return PyLong_FromDouble(value.to<double>());
      case DTypeKind::unsigned_integer: return PyLong_FromUnsignedLongLong(value.to<std::uint64_t>());
      default: return PyLong_FromLongLong(value.to<std::int64_t>());
    }
  });
}

PyObject* as_float(PyObject* self) {
  return guarded<PyObject*>(nullptr, [&] {
    refuse_complex(self, "float");
    return PyFloat_FromDouble(only_element(self, "float").to<double>());
  });
}

PyObject* as_index(PyObject* self) {
  return guarded<PyObject*>(nullptr, [&] {
    const Tensor& tensor = tensor_of(self);
    if (tensor.rank() != 0 || !is_integer(tensor.dtype())) {
      throw DTypeError("index: only a 0-d tensor of integers can be an index, not " +
                       std::string(name(tensor.dtype())) + to_string(tensor.shape()));
    }
    return as_int(self);
  });
}

template <class Function>
void* slot(Function* function) {
  return reinterpret_cast<void*>(function);
}

}  // namespace

PyType_Slot number_slots[] = {
    {Py_nb_add, slot(binary_slot<Builtin::add>)},
    {Py_nb_subtract, slot(binary_slot<Builtin::subtract>)},
    {Py_nb_multiply, slot(binary_slot<Builtin::multiply>)},
    {Py_nb_true_divide, slot(binary_slot<Builtin::divide>)},
    {Py_nb_floor_divide, slot(binary_slot<Builtin::floor_divide>)},
    {Py_nb_remainder, slot(binary_slot<Builtin::remainder>)},
    {Py_nb_power, slot(power)},
    {Py_nb_matrix_multiply, slot(binary_slot<Builtin::matmul>)},
    {Py_nb_and, slot(binary_slot<Builtin::bitwise_and>)},
    {Py_nb_or, slot(binary_slot<Builtin::bitwise_or>)},
    {Py_nb_xor, slot(binary_slot<Builtin::bitwise_xor>)},
    {Py_nb_lshift, slot(binary_slot<Builtin::bitwise_left_shift>)},
    {Py_nb_rshift, slot(binary_slot<Builtin::bitwise_right_shift>)},
    {Py_nb_inplace_add, slot(in_place_slot<Builtin::add>)},
    {Py_nb_inplace_subtract, slot(in_place_slot<Builtin::subtract>)},
    {Py_nb_inplace_multiply, slot(in_place_slot<Builtin::multiply>)},
    {Py_nb_inplace_true_divide, slot(in_place_slot<Builtin::divide>)},
    {Py_nb_inplace_floor_divide, slot(in_place_slot<Builtin::floor_divide>)},
    {Py_nb_inplace_remainder, slot(in_place_slot<Builtin::remainder>)},
    {Py_nb_inplace_power, slot(power_in_place)},
    {Py_nb_inplace_matrix_multiply, slot(in_place_slot<Builtin::matmul>)},
    {Py_nb_inplace_and, slot(in_place_slot<Builtin::bitwise_and>)},
    {Py_nb_inplace_or, slot(in_place_slot<Builtin::bitwise_or>)},
    {Py_nb_inplace_xor, slot(in_place_slot<Builtin::bitwise_xor>)},
    {Py_nb_inplace_lshift, slot(in_place_slot<Builtin::bitwise_left_shift>)},
    {Py_nb_inplace_rshift, slot(in_place_slot<Builtin::bitwise_right_shift>)},
    {Py_nb_negative, slot(unary<Builtin::negative>)},
    {Py_nb_positive, slot(unary<Builtin::positive>)},
    {Py_nb_absolute, slot(unary<Builtin::abs>)},
    {Py_nb_invert, slot(unary<Builtin::bitwise_invert>)},
    {Py_nb_bool, slot(truth)},
    {Py_nb_int, slot(as_int)},
    {Py_nb_float, slot(as_float)},
    {Py_nb_index, slot(as_index)},
    {0, nullptr},
};

PyObject* tensor_compare(PyObject* left, PyObject* right, int comparison) {
  switch (comparison) {
    case Py_LT: return binary(Builtin::less, left, right);
    case Py_LE: return binary(Builtin::less_equal, left, right);
    case Py_EQ: return binary(Builtin::equal, left, right);
    case Py_NE: return binary(Builtin::not_equal, left, right);
    case Py_GT: return binary(Builtin::greater, left, right);
    default: return binary(Builtin::greater_equal, left, right);
  }
}

}  // namespace thalweg::python
