// operands.cpp: numbers become constants, arrays are copied in.
#include "operands.h"

#include <limits>
#include <optional>
#include <string>

#include "buffers.h"
#include "values.h"

namespace thalweg::python {

namespace {

bool is_array(PyObject* object) noexcept {
  return PyObject_CheckBuffer(object) && PyObject_HasAttrString(object, "__array__");
}

Tensor constant(Engine& engine, std::string_view op, const Scalar& scalar, DType dtype, Device device) {
  if (!fits(scalar, dtype)) {
    if (is_comparison(op)) return engine.constant(scalar, default_dtype(scalar), device);
    const std::string value = py::str(from_scalar(scalar));
    raise_python(PyExc_OverflowError, std::string(op) + ": Python integer " + value + " out of bounds for " +
                                          std::string(name(dtype)));
  }
  return engine.constant(scalar, dtype, device);
}

/// An int that no integer dtype holds: next to floating values it is rounded, compared with integers it is
/// beyond all of them.
Tensor constant_of_large(Engine& engine, std::string_view op, PyObject* object, int sign, DType other,
                         Device device) {
  if (is_inexact(other)) {
    const double value = PyLong_AsDouble(object);
    if (value == -1 && PyErr_Occurred()) throw_python_error();
    return engine.constant(Scalar(value), other, device);
  }
  if (is_comparison(op)) {
    return engine.constant(Scalar(sign * std::numeric_limits<double>::infinity()), DType::float64, device);
  }
  raise_python(PyExc_OverflowError, std::string(op) + ": Python integer " +
                                        std::string(py::str(py::handle(object))) + " out of bounds for " +
                                        std::string(name(other)));
}

[[noreturn]] void refuse(std::string_view op, PyObject* object) {
  std::string text =
      std::string(op) + ": expected a Tensor, a number or an array, not " + Py_TYPE(object)->tp_name;
  if (PySequence_Check(object) && !PyUnicode_Check(object))
    text += "; make a tensor of it with thalweg.asarray";
  throw DTypeError(text);
}

}  // namespace

bool is_operand(PyObject* object) noexcept {
  return PyFloat_Check(object) || PyLong_Check(object) || PyComplex_Check(object) || is_array(object);
}

bool is_comparison(std::string_view op) noexcept {
  return op == "equal" || op == "not_equal" || op.starts_with("less") || op.starts_with("greater");
}

Tensor to_operand(Engine& engine, std::string_view op, PyObject* object, DType other, Device device) {
  int beyond = 0;
  if (const std::optional<Scalar> scalar = to_scalar(object, &beyond)) {
    return constant(engine, op, *scalar, promote_scalar(other, *scalar), device);
  }
  if (beyond != 0) return constant_of_large(engine, op, object, beyond, other, device);
  if (!is_array(object)) refuse(op, object);
  return copy_from_buffer(engine, object, std::nullopt, device);
}

Tensor to_operand(Engine& engine, std::string_view op, PyObject* object) {
  if (const std::optional<Scalar> scalar = to_scalar(object)) {
    const bool inexact = scalar->kind() >= DTypeKind::floating;
    return engine.constant(*scalar,
                           inexact ? promote_scalar(kDefaultFloat, *scalar) : default_dtype(*scalar));
  }
  if (!is_array(object)) refuse(op, object);
  return copy_from_buffer(engine, object, std::nullopt, Device{});
}

}  // namespace thalweg::python
