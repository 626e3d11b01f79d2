// values.cpp: conversions between the library's plain values and Python objects.
#include "values.h"

#include <cmath>
#include <complex>
#include <limits>
#include <string>
#include <vector>

#include <thalweg/errors.h>

namespace thalweg::python {

namespace {

struct DTypeValue {
  DType dtype;
};
struct DeviceValue {
  Device device;
};

PyObject* dtype_objects[kDTypeCount];

std::string_view text_of(PyObject* object) {
  Py_ssize_t size = 0;
  const char* text = PyUnicode_AsUTF8AndSize(object, &size);
  if (text == nullptr) throw_python_error();
  return {text, static_cast<std::size_t>(size)};
}

std::string type_name(PyObject* object) { return Py_TYPE(object)->tp_name; }

/// A NumPy dtype's name without importing NumPy; empty for other objects.
std::string numpy_dtype_name(PyObject* object) {
  const std::string_view module = PyType_Check(object) ? "" : Py_TYPE(object)->tp_name;
  if (module.starts_with("numpy.dtype")) return py::str(py::handle(object).attr("name"));
  if (!PyType_Check(object)) return {};
  const py::object of = py::reinterpret_steal<py::object>(PyObject_GetAttrString(object, "__module__"));
  if (!of) {
    PyErr_Clear();
    return {};
  }
  if (!py::isinstance<py::str>(of)) return {};
  const std::string_view from = text_of(of.ptr());
  if (from != "numpy" && from != "ml_dtypes") return {};
  return py::str(py::module_::import("numpy").attr("dtype")(py::handle(object)).attr("name"));
}

void import_ml_dtypes() {
  try {
    py::module_::import("ml_dtypes");
  } catch (py::error_already_set& error) {
    if (!error.matches(PyExc_ImportError)) throw;
    throw DTypeError(
        "bfloat16: NumPy has no such dtype of its own; install ml_dtypes, or cast with astype to float32");
  }
}

std::int64_t to_integer(PyObject* object) {
  const py::object index = checked(PyNumber_Index(object));
  const std::int64_t value = PyLong_AsLongLong(index.ptr());
  if (value == -1 && PyErr_Occurred()) {
    if (PyErr_ExceptionMatches(PyExc_OverflowError) == 0) throw_python_error();
    PyErr_Clear();
    raise_python(PyExc_OverflowError,
                 "integer " + std::string(py::str(index)) + " does not fit in 64 bits (int64)");
  }
  return value;
}

/// An int or what works as one. Arrays have __index__ whatever their size: those with a length are none.
bool is_integer_like(PyObject* object) noexcept {
  if (PyLong_Check(object)) return true;
  if (!PyIndex_Check(object)) return false;
  const bool has_length = PySequence_Check(object) && PySequence_Size(object) >= 0;
  PyErr_Clear();
  return !has_length;
}

[[noreturn]] void refuse(const Op& op, const AttrSpec& spec, const char* expected, PyObject* object) {
  throw AttributeError(op.name + ": '" + spec.name + "' must be " + expected + ", not " + type_name(object));
}

void check_integers(const Op& op, const AttrSpec& spec, PyObject* object) {
  constexpr const char* kExpected = "an int or a tuple of ints";
  if (!PySequence_Check(object) || PyUnicode_Check(object)) refuse(op, spec, kExpected, object);
  const py::object sequence = checked(PySequence_Fast(object, kExpected));
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(sequence.ptr()); ++i) {
    PyObject* item = PySequence_Fast_GET_ITEM(sequence.ptr(), i);
    if (!is_integer_like(item)) refuse(op, spec, kExpected, item);
  }
}

/// Seeds and counters are unsigned 64-bit numbers kept as int64 bits.
std::int64_t to_integer_bits(PyObject* object) {
  const py::object index = checked(PyNumber_Index(object));
  const std::uint64_t bits = PyLong_AsUnsignedLongLongMask(index.ptr());
  if (bits == ~std::uint64_t{0} && PyErr_Occurred()) throw_python_error();
  return static_cast<std::int64_t>(bits);
}

std::string kind_name(DType dtype) {
  switch (kind(dtype)) {
    case DTypeKind::boolean: return "bool";
    case DTypeKind::unsigned_integer: return "unsigned integer";
    case DTypeKind::signed_integer: return "signed integer";
    case DTypeKind::floating: return "real floating";
    case DTypeKind::complex_floating: break;
  }
  return "complex floating";
}

void add_dtype(py::module_& module) {
  py::class_<DTypeValue> type(module, "DType",
                              R"(An element type. Equal to its name and to NumPy's dtype of that name.

The 13 objects are attributes of the package; DType itself makes none (raises TypeError). Array API standard, data types.

>>> tw.float32 == "float32", tw.float32 == np.float32
(True, True)
)");
  const auto text = [](const DTypeValue& self) { return std::string(name(self.dtype)); };
  type.def_property_readonly("name", text, R"(The name in the array API standard, data types.

>>> tw.asarray(1j).dtype.name
'complex64'
)");
  type.def_property_readonly(
      "itemsize", [](const DTypeValue& self) { return item_size(self.dtype); },
      R"(Bytes of one element. NumPy's dtype.itemsize.

>>> tw.int16.itemsize
2
)");
  type.def_property_readonly(
      "kind", [](const DTypeValue& self) { return kind_name(self.dtype); },
      R"("bool", "signed integer", "unsigned integer", "real floating" or "complex floating". Array API standard,
data type functions (isdtype).

>>> tw.uint8.kind
'unsigned integer'
)");
  type.def_property_readonly(
      "__numpy_dtype__",
      [text](const DTypeValue& self) {
        // NumPy knows the name once ml_dtypes is imported.
        if (self.dtype == DType::bfloat16) import_ml_dtypes();
        return py::module_::import("numpy").attr("dtype")(text(self));
      },
      "NumPy's dtype of the same elements, for NumPy's functions that take a dtype.");
  type.def("__str__", text);
  type.def("__repr__", [text](const DTypeValue& self) { return "thalweg." + text(self); });
  type.def("__hash__", [text](const DTypeValue& self) { return py::hash(py::str(text(self))); });
  type.def("__eq__", [](const DTypeValue& self, py::handle other) -> py::object {
    if (py::isinstance<DTypeValue>(other)) return py::bool_(other.cast<DTypeValue&>().dtype == self.dtype);
    if (PyUnicode_Check(other.ptr())) return py::bool_(text_of(other.ptr()) == name(self.dtype));
    const std::string numpy_name = numpy_dtype_name(other.ptr());
    if (!numpy_name.empty()) return py::bool_(numpy_name == name(self.dtype));
    return py::reinterpret_borrow<py::object>(Py_NotImplemented);
  });
  type.def("__reduce__", [text](const DTypeValue& self) {
    return py::make_tuple(py::module_::import("thalweg._C").attr("dtype"), py::make_tuple(text(self)));
  });
  for (int i = 0; i < kDTypeCount; ++i) {
    py::object object = py::cast(DTypeValue{static_cast<DType>(i)});
    module.attr(std::string(name(static_cast<DType>(i))).c_str()) = object;
    dtype_objects[i] = object.release().ptr();
  }
  module.def(
      "dtype",
      [](py::handle of) { return py::reinterpret_borrow<py::object>(dtype_object(to_dtype(of.ptr()))); },
      py::arg("of"), py::pos_only(),
      R"(The DType called `of`, NumPy's dtype `of` as one, or that of Python's bool, int, float or complex.

Raises DTypeError for others. NumPy's dtype.

>>> tw.dtype("int8"), tw.dtype(np.uint16), tw.dtype(float)
(thalweg.int8, thalweg.uint16, thalweg.float64)
)");
}

void add_device(py::module_& module) {
  py::class_<DeviceValue> type(module, "Device",
                               R"(A device: cpu:0, cpu:1, … Equal to its name. Any engine may have it or not.

Raises DeviceError for a name that is none. Array API standard, design topics (device support).

>>> tw.Device("cpu"), tw.zeros(2).device == "cpu:0"
(Device('cpu:0'), True)
)");
  const auto text = [](const DeviceValue& self) { return to_string(self.device); };
  type.def(py::init([](py::handle of) { return DeviceValue{to_device(of.ptr())}; }), py::arg("name"),
           py::pos_only());
  type.def_property_readonly(
      "type", [text](const DeviceValue& self) { return text(self).substr(0, text(self).find(':')); },
      R"("cpu" or "cuda".

>>> tw.Device("cpu:1").type
'cpu'
)");
  type.def_property_readonly(
      "index", [](const DeviceValue& self) { return int(self.device.index); },
      R"(The number among the devices of its type.

>>> tw.Device("cpu:1").index
1
)");
  type.def("__str__", text);
  type.def("__repr__", [text](const DeviceValue& self) { return "Device('" + text(self) + "')"; });
  type.def("__hash__", [text](const DeviceValue& self) { return py::hash(py::str(text(self))); });
  type.def("__eq__", [](const DeviceValue& self, py::handle other) -> py::object {
    if (py::isinstance<DeviceValue>(other))
      return py::bool_(other.cast<DeviceValue&>().device == self.device);
    if (!PyUnicode_Check(other.ptr())) return py::reinterpret_borrow<py::object>(Py_NotImplemented);
    try {
      return py::bool_(parse_device(text_of(other.ptr())) == self.device);
    } catch (const DeviceError&) {
      return py::bool_(false);
    }
  });
  type.def("__reduce__", [text](const DeviceValue& self) {
    return py::make_tuple(py::module_::import("thalweg._C").attr("Device"), py::make_tuple(text(self)));
  });
}

}  // namespace

void add_value_types(py::module_& module) {
  add_dtype(module);
  add_device(module);
}

PyObject* dtype_object(DType dtype) noexcept { return dtype_objects[static_cast<int>(dtype)]; }

py::object device_object(Device device) {
  static PyObject* const first = py::cast(DeviceValue{}).release().ptr();
  if (device == Device{}) return py::reinterpret_borrow<py::object>(first);
  return py::cast(DeviceValue{device});
}

DType to_dtype(PyObject* object) {
  for (int i = 0; i < kDTypeCount; ++i) {
    if (object == dtype_objects[i]) return static_cast<DType>(i);
  }
  if (PyUnicode_Check(object)) return parse_dtype(text_of(object));
  if (object == reinterpret_cast<PyObject*>(&PyBool_Type)) return DType::bool_;
  if (object == reinterpret_cast<PyObject*>(&PyLong_Type)) return DType::int64;
  if (object == reinterpret_cast<PyObject*>(&PyFloat_Type)) return DType::float64;
  if (object == reinterpret_cast<PyObject*>(&PyComplex_Type)) return DType::complex128;
  if (py::isinstance<DTypeValue>(object)) return py::handle(object).cast<DTypeValue&>().dtype;
  const std::string numpy_name = numpy_dtype_name(object);
  if (!numpy_name.empty()) return parse_dtype(numpy_name);
  const char* hint = PyLong_Check(object) ? "; the sizes of several axes go in one tuple, as (2, 3)" : "";
  throw DTypeError("expected a dtype or its name, not " + type_name(object) + hint);
}

Device to_device(PyObject* object) {
  if (object == nullptr || object == Py_None) return {};
  if (py::isinstance<DeviceValue>(object)) return py::handle(object).cast<DeviceValue&>().device;
  if (PyUnicode_Check(object)) return parse_device(text_of(object));
  const char* hint = py::isinstance<DTypeValue>(object) ? "; astype changes the dtype" : "";
  throw DeviceError("expected a Device or a name such as \"cpu:0\", not " + type_name(object) + hint);
}

Dims to_dims(PyObject* object) {
  if (is_integer_like(object)) return Dims{to_integer(object)};
  Dims dims;
  const py::object sequence = checked(PySequence_Fast(object, "expected an int or a sequence of ints"));
  const Py_ssize_t size = PySequence_Fast_GET_SIZE(sequence.ptr());
  for (Py_ssize_t i = 0; i < size; ++i)
    dims.push_back(to_integer(PySequence_Fast_GET_ITEM(sequence.ptr(), i)));
  return dims;
}

py::tuple to_tuple(const Dims& dims, std::int64_t factor) {
  py::tuple result(dims.size());
  for (std::size_t i = 0; i < dims.size(); ++i) {
    PyTuple_SET_ITEM(result.ptr(), Py_ssize_t(i), PyLong_FromLongLong(dims[i] * factor));
  }
  return result;
}

Scalar to_complex(PyObject* object) {
  const Py_complex value = PyComplex_AsCComplex(object);
  if (value.real == -1 && PyErr_Occurred()) throw_python_error();
  return Scalar(std::complex<double>(value.real, value.imag));
}

std::optional<Scalar> to_scalar(PyObject* object, int* beyond) {
  *beyond = 0;
  if (PyFloat_Check(object)) return Scalar(PyFloat_AS_DOUBLE(object));
  if (PyBool_Check(object)) return Scalar(object == Py_True);
  if (PyComplex_Check(object)) return to_complex(object);
  if (!PyLong_Check(object)) return std::nullopt;
  const long long value = PyLong_AsLongLongAndOverflow(object, beyond);
  if (value == -1 && PyErr_Occurred()) throw_python_error();
  if (*beyond == 0) return Scalar(static_cast<std::int64_t>(value));
  if (*beyond < 0) return std::nullopt;
  const unsigned long long large = PyLong_AsUnsignedLongLong(object);
  if (large == ~0ull && PyErr_Occurred()) {
    PyErr_Clear();
    return std::nullopt;
  }
  *beyond = 0;
  return Scalar(static_cast<std::uint64_t>(large));
}

std::optional<Scalar> to_scalar(PyObject* object) {
  int beyond = 0;
  std::optional<Scalar> scalar = to_scalar(object, &beyond);
  if (beyond != 0) raise_python(PyExc_OverflowError, "Python integer does not fit in 64 bits");
  return scalar;
}

py::object from_scalar(const Scalar& scalar) {
  switch (scalar.kind()) {
    case DTypeKind::boolean: return py::bool_(scalar.to<bool>());
    case DTypeKind::unsigned_integer: return py::int_(scalar.to<std::uint64_t>());
    case DTypeKind::signed_integer: return py::int_(scalar.to<std::int64_t>());
    case DTypeKind::floating: return py::float_(scalar.to<double>());
    case DTypeKind::complex_floating: break;
  }
  const auto value = scalar.to<std::complex<double>>();
  return checked(PyComplex_FromDoubles(value.real(), value.imag()));
}

bool fits(const Scalar& scalar, DType dtype) noexcept {
  if (!is_integer(dtype) || scalar.kind() >= DTypeKind::floating) return true;
  const bool beyond_int64 =
      scalar.kind() == DTypeKind::unsigned_integer && scalar.to<std::uint64_t>() > std::uint64_t{INT64_MAX};
  if (beyond_int64) return dtype == DType::uint64;
  const std::int64_t value = scalar.to<std::int64_t>();
  return visit_dtype(dtype, [value]<class T>() {
    if constexpr (!std::is_integral_v<T> || std::is_same_v<T, bool>) {
      return true;
    } else if constexpr (std::is_same_v<T, std::uint64_t>) {
      return value >= 0;
    } else {
      return value >= std::int64_t{std::numeric_limits<T>::min()} &&
             value <= std::int64_t{std::numeric_limits<T>::max()};
    }
  });
}

AttrValue to_attribute(const Op& op, const AttrSpec& spec, PyObject* object) {
  if (object == Py_None && !spec.required) return spec.kind == AttrKind::axes ? AttrValue{} : spec.fallback;
  switch (spec.kind) {
    case AttrKind::boolean: {
      if (PyBool_Check(object)) return object == Py_True;
      if (type_name(object).starts_with("numpy.bool")) return PyObject_IsTrue(object) == 1;
      refuse(op, spec, "a bool", object);
    }
    case AttrKind::integer:
      if (!is_integer_like(object)) refuse(op, spec, "an int", object);
      if (spec.name == "seed" || spec.name == "counter") return to_integer_bits(object);
      return to_integer(object);
    case AttrKind::floating: {
      if (!PyNumber_Check(object)) refuse(op, spec, "a float", object);
      const double value = PyFloat_AsDouble(object);
      if (value == -1 && PyErr_Occurred()) throw_python_error();
      return value;
    }
    case AttrKind::dtype: return to_dtype(object);
    case AttrKind::device: return to_device(object);
    case AttrKind::scalar: {
      std::optional<Scalar> scalar = to_scalar(object);
      if (!scalar && PyIndex_Check(object)) scalar = to_scalar(checked(PyNumber_Index(object)).ptr());
      // Before float(), which would drop the imaginary part.
      if (!scalar && type_name(object).starts_with("numpy.complex")) scalar = to_complex(object);
      if (!scalar && PyNumber_Check(object)) scalar = to_scalar(checked(PyNumber_Float(object)).ptr());
      if (!scalar) refuse(op, spec, "a number", object);
      return *scalar;
    }
    case AttrKind::dims:
    case AttrKind::axes:
      if (!is_integer_like(object)) check_integers(op, spec, object);
      return to_dims(object);
    case AttrKind::string:
      if (!PyUnicode_Check(object)) refuse(op, spec, "a str", object);
      return std::string(text_of(object));
  }
  return {};
}

AttributeList::AttributeList(const Op& op) : op_(op) {
  values_.reserve(op.attributes.size());
  for (const AttrSpec& spec : op.attributes) values_.push_back(spec.fallback);
}

std::size_t AttributeList::position(const Op& op, std::string_view name) {
  for (std::size_t i = 0; i < op.attributes.size(); ++i) {
    if (op.attributes[i].name == name) return i;
  }
  std::string known;
  for (const AttrSpec& spec : op.attributes) known += (known.empty() ? "" : ", ") + spec.name;
  throw AttributeError(op.name + ": has no attribute '" + std::string(name) +
                       "'; it has: " + (known.empty() ? "none" : known));
}

void AttributeList::set(std::size_t position, PyObject* value) {
  values_[position] = to_attribute(op_, op_.attributes[position], value);
}

}  // namespace thalweg::python
