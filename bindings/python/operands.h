// operands.h: Python numbers and arrays as inputs of operators.
#pragma once

#include <string_view>

#include <thalweg/engine.h>

#include "python.h"

namespace thalweg::python {

/// True for what an operator takes beside tensors: bool, int, float, complex, and arrays (objects with
/// __array__ and a buffer).
bool is_operand(PyObject* object) noexcept;

/// True where the result is a bool whatever the inputs are, so that an int out of the tensor's range is still
/// fine.
bool is_comparison(std::string_view op) noexcept;

/// A tensor of `object`, a number or an array. A number takes the dtype that promotion with `other` gives and
/// the device `device`; throws OverflowError if it does not fit. Arrays are copied. Throws DTypeError for
/// other objects.
Tensor to_operand(Engine& engine, std::string_view op, PyObject* object, DType other, Device device);

/// As above for a call that has no tensor at all.
Tensor to_operand(Engine& engine, std::string_view op, PyObject* object);

/// The dtype of Python floats where nothing else decides; complex numbers get the complex one of its
/// precision.
inline constexpr DType kDefaultFloat = DType::float32;

}  // namespace thalweg::python
