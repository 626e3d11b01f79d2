// nested.cpp: numbers between tensors and nested Python lists.
#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <string>
#include <vector>

#include "buffers.h"
#include "errors.h"
#include "operands.h"
#include "tensor_object.h"
#include "values.h"

namespace thalweg::python {

namespace {

bool is_sequence(PyObject* object) noexcept { return PyList_Check(object) || PyTuple_Check(object); }

/// Collects the numbers of nested lists in C order and checks that all rows of a level have one length.
class NestedReader {
 public:
  /// False if something other than numbers, lists and tuples is among them.
  bool read(PyObject* object) {
    for (PyObject* level = object; is_sequence(level);) {
      const Py_ssize_t size = PySequence_Fast_GET_SIZE(level);
      shape.push_back(size);
      if (shape.size() > std::size_t(kMaxRank))
        throw ShapeError("asarray: lists nested deeper than 64 levels");
      if (size == 0) break;
      level = PySequence_Fast_GET_ITEM(level, 0);
    }
    return visit(object, 0);
  }

  Shape shape;
  std::vector<Scalar> values;
  DTypeKind widest = DTypeKind::boolean;
  bool beyond_int64 = false;
  bool beyond_64_bits = false;
  bool negative = false;

 private:
  bool visit(PyObject* object, std::size_t level) {
    if (level == shape.size()) return is_sequence(object) ? ragged(object, level) : add(object);
    if (!is_sequence(object)) return is_number(object) ? ragged(object, level) : false;
    const Py_ssize_t size = PySequence_Fast_GET_SIZE(object);
    if (size != shape[level]) ragged(object, level);
    path_.push_back(0);
    for (Py_ssize_t i = 0; i < size; ++i) {
      path_.back() = i;
      if (!visit(PySequence_Fast_GET_ITEM(object, i), level + 1)) return false;
    }
    path_.pop_back();
    return true;
  }

  bool add(PyObject* object) {
    // NumPy's float64 is a Python float as well and its complex128 a complex, but with dtypes of their own.
    const bool subclass = (PyFloat_Check(object) && !PyFloat_CheckExact(object)) ||
                          (PyComplex_Check(object) && !PyComplex_CheckExact(object));
    if (subclass && PyObject_HasAttrString(object, "dtype")) return false;
    int beyond = 0;
    const std::optional<Scalar> scalar = to_scalar(object, &beyond);
    if (beyond != 0) {
      const double rounded = PyLong_AsDouble(object);
      if (rounded == -1 && PyErr_Occurred()) throw_python_error();
      beyond_64_bits = true;
      values.push_back(Scalar(rounded));
      return true;
    }
    if (!scalar) return false;
    if (scalar->kind() >= DTypeKind::floating) {
      widest = std::max(widest, scalar->kind());
    } else if (scalar->kind() != DTypeKind::boolean && widest == DTypeKind::boolean) {
      widest = DTypeKind::signed_integer;
    }
    if (scalar->kind() == DTypeKind::unsigned_integer) beyond_int64 = true;
    if (scalar->kind() == DTypeKind::signed_integer && scalar->to<std::int64_t>() < 0) negative = true;
    values.push_back(*scalar);
    return true;
  }

  static bool is_number(PyObject* object) noexcept {
    return PyLong_Check(object) || PyFloat_Check(object) || PyComplex_Check(object);
  }

  [[noreturn]] bool ragged(PyObject* object, std::size_t level) const {
    std::string row;
    for (const Py_ssize_t index : path_) row.append("[").append(std::to_string(index)).append("]");
    const std::string found = is_sequence(object)
                                  ? "has length " + std::to_string(PySequence_Fast_GET_SIZE(object))
                                  : "is a number";
    const std::string expected =
        level < shape.size() ? "rows of length " + std::to_string(shape[level]) : std::string("numbers");
    throw ShapeError("asarray: ragged rows: " + (row.empty() ? "the list" : "row " + row) + " " + found +
                     " where the first ones are " + expected);
  }

  std::vector<Py_ssize_t> path_;
};

DType natural_dtype(const NestedReader& reader) {
  if (reader.values.empty()) return kDefaultFloat;
  switch (reader.widest) {
    case DTypeKind::boolean:
      if (!reader.beyond_64_bits) return DType::bool_;
      break;
    case DTypeKind::floating: return kDefaultFloat;
    case DTypeKind::complex_floating: return complex_dtype(kDefaultFloat);
    default: break;
  }
  if (reader.beyond_64_bits) {
    raise_python(PyExc_OverflowError,
                 "asarray: Python integer does not fit in 64 bits; give a floating dtype to round it");
  }
  if (reader.beyond_int64 && reader.negative) {
    raise_python(PyExc_OverflowError, "asarray: integers from below 0 to above 2**63 have no common dtype");
  }
  return reader.beyond_int64 ? DType::uint64 : DType::int64;
}

void check_value(const Scalar& value, DType dtype) {
  if (value.kind() == DTypeKind::complex_floating) {
    if (is_complex(dtype) || dtype == DType::bool_) return;
    throw DTypeError("asarray: " + to_string(AttrValue(value)) + " is complex and does not fit " +
                     std::string(name(dtype)) + "; give a complex dtype");
  }
  if (!is_integer(dtype)) return;
  if (value.kind() == DTypeKind::floating) {
    const double number = value.to<double>();
    if (std::isnan(number)) throw ValueError("asarray: cannot convert nan to " + std::string(name(dtype)));
    if (std::isinf(number))
      raise_python(PyExc_OverflowError, "asarray: cannot convert an infinity to an integer");
    const Scalar whole = number >= 0x1p63 && number < 0x1p64 ? Scalar(static_cast<std::uint64_t>(number))
                                                             : Scalar(static_cast<std::int64_t>(number));
    if (std::abs(number) < 0x1p64 && fits(whole, dtype)) return;
  } else if (fits(value, dtype)) {
    return;
  }
  const std::string text = py::str(from_scalar(value));
  raise_python(PyExc_OverflowError, "asarray: " + text + " out of bounds for " + std::string(name(dtype)));
}

PyObject* element(const void* address, DType dtype) {
  if (is_half(dtype)) {
    return PyFloat_FromDouble(double{from_half(*static_cast<const std::uint16_t*>(address), dtype)});
  }
  return visit_dtype(dtype, [address]<class T>() -> PyObject* {
    const T value = *static_cast<const T*>(address);
    if constexpr (std::is_same_v<T, bool>) {
      return PyBool_FromLong(value);
    } else if constexpr (std::is_floating_point_v<T>) {
      return PyFloat_FromDouble(double(value));
    } else if constexpr (kIsStdComplex<T>) {
      return PyComplex_FromDoubles(double(value.real()), double(value.imag()));
    } else if constexpr (std::is_signed_v<T>) {
      return PyLong_FromLongLong(value);
    } else {
      return PyLong_FromUnsignedLongLong(value);
    }
  });
}

/// Lists of the elements from axis `axis` on, without the middle of axes longer than 2 * edge.
py::object list_of(const TensorView& view, const std::byte* data, std::size_t axis, std::int64_t edge) {
  if (axis == view.shape().size()) return checked(element(data, view.dtype()));
  const std::int64_t size = view.shape()[axis];
  const std::int64_t stride = view.strides()[axis] * item_size(view.dtype());
  const bool cut = edge >= 0 && size > 2 * edge;
  const std::int64_t count = cut ? 2 * edge : size;
  py::object list = checked(PyList_New(count));
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t position = cut && i >= edge ? size - count + i : i;
    PyList_SET_ITEM(list.ptr(), i, list_of(view, data + position * stride, axis + 1, edge).release().ptr());
  }
  return list;
}

}  // namespace

Tensor from_nested(Engine& engine, PyObject* object, std::optional<DType> dtype, Device device) {
  NestedReader reader;
  if (!reader.read(object)) return {};
  const DType target = dtype ? *dtype : natural_dtype(reader);
  for (const Scalar& value : reader.values) check_value(value, target);
  Tensor result = engine.allocate(target, reader.shape, device);
  if (is_half(target)) {
    auto* out = static_cast<std::uint16_t*>(Engine::mutable_data(result));
    for (const Scalar& value : reader.values) *out++ = to_half(value, target);
    return result;
  }
  visit_dtype(target, [&]<class T>() {
    T* out = static_cast<T*>(Engine::mutable_data(result));
    for (const Scalar& value : reader.values) *out++ = value.to<T>();
  });
  return result;
}

namespace {

/// The first leaf of nested lists that is no Python number, borrowed; nullptr if there is none.
PyObject* odd_leaf(PyObject* object) noexcept {
  if (!is_sequence(object)) {
    return PyLong_CheckExact(object) || PyBool_Check(object) || PyFloat_CheckExact(object) ||
                   PyComplex_CheckExact(object)
               ? nullptr
               : object;
  }
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); ++i) {
    if (PyObject* odd = odd_leaf(PySequence_Fast_GET_ITEM(object, i))) return odd;
  }
  return nullptr;
}

}  // namespace

py::object array_of_mixed(std::string_view op, PyObject* lists) {
  PyObject* const odd = odd_leaf(lists);
  if (odd != nullptr && is_tensor(odd)) {
    throw DTypeError(std::string(op) + ": a list of tensors; join them with thalweg.stack or concat");
  }
  const py::dict modules = py::module_::import("sys").attr("modules");
  if (modules.contains("numpy") && odd != nullptr && PyObject_HasAttrString(odd, "dtype")) {
    const py::object array = modules["numpy"].attr("asarray")(py::handle(lists));
    if (!array.attr("dtype").attr("hasobject").cast<bool>()) return array;
  }
  throw DTypeError(std::string(op) + ": expected numbers, found " +
                   (odd == nullptr ? "rows of several lengths" : Py_TYPE(odd)->tp_name));
}

py::object edges_to_nested(const Tensor& tensor, std::int64_t edge) {
  const TensorView view = read_view(tensor);
  return list_of(view, static_cast<const std::byte*>(view.data), 0, edge);
}

py::object to_nested(const Tensor& tensor) { return edges_to_nested(tensor, -1); }

}  // namespace thalweg::python
