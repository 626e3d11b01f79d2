// buffers.h: bytes in and out: the buffer protocol (NumPy, memoryview, array) and nested lists.
#pragma once

#include <optional>
#include <string_view>

#include <thalweg/engine.h>

#include "python.h"

namespace thalweg::python {

/// Waits for the value of `tensor` and returns where it lies; errors are Python errors. GIL.
TensorView read_view(const Tensor& tensor);

/// The bytes of `tensor` as elements of another dtype of its size; waits, and shares them.
Tensor reinterpret(const Tensor& tensor, DType dtype);

/// A ready tensor with a copy of the bytes of an object that exports a buffer. `dtype` overrides the buffer's
/// format where that says nothing (bytes). Throws DTypeError for formats without a dtype.
Tensor copy_from_buffer(Engine& engine, PyObject* object, std::optional<DType> dtype, Device device);

/// A ready tensor from a number or nested lists and tuples of numbers; throws ShapeError naming a ragged row,
/// and returns an empty tensor if something else is among them.
Tensor from_nested(Engine& engine, PyObject* object, std::optional<DType> dtype, Device device);

/// What NumPy makes of lists that hold its scalars or arrays, for which `from_nested` returned nothing.
/// Throws DTypeError led by `op` for other things and for lists of tensors.
py::object array_of_mixed(std::string_view op, PyObject* lists);

/// Nested lists of the elements of `tensor`; waits.
py::object to_nested(const Tensor& tensor);

/// As `to_nested`, of the first and last `edge` positions of each axis that is longer than 2 * edge (all
/// positions if `edge` is negative). Reads nothing else.
py::object edges_to_nested(const Tensor& tensor, std::int64_t edge);

/// A tensor of `shape` and `dtype` from the C-ordered bytes of a buffer; for pickles.
Tensor from_bytes(Engine& engine, PyObject* buffer, DType dtype, const Shape& shape, Device device);

}  // namespace thalweg::python
