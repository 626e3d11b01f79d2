// values.h: the plain values of the library as Python sees them: dtypes, devices, shapes, scalars,
// attributes.
#pragma once

#include <optional>
#include <string_view>

#include <thalweg/attributes.h>
#include <thalweg/op.h>

#include "python.h"

namespace thalweg::python {

/// Adds DType (with its fifteen objects) and Device to `module`.
void add_value_types(py::module_& module);

/// The one Python object of a dtype, borrowed.
PyObject* dtype_object(DType dtype) noexcept;
py::object device_object(Device device);

/// From a DType, its name, a NumPy dtype or scalar type, or bool, int, float, complex; throws DTypeError.
DType to_dtype(PyObject* object);
/// From a Device, "cpu:0", or None for the default; throws DeviceError.
Device to_device(PyObject* object);
/// From an int or a sequence of ints.
Dims to_dims(PyObject* object);
py::tuple to_tuple(const Dims& dims, std::int64_t factor = 1);

/// The Scalar of a Python bool, int, float or complex (and their subclasses); nothing for other objects.
/// Throws OverflowError for an int beyond 64 bits.
std::optional<Scalar> to_scalar(PyObject* object);
/// The same, but sets `beyond` to -1 or 1 for an int below or above what 64 bits hold; nothing then.
std::optional<Scalar> to_scalar(PyObject* object, int* beyond);
/// The Scalar of a Python complex.
Scalar to_complex(PyObject* object);
py::object from_scalar(const Scalar& scalar);

/// True if `scalar` can be held by `dtype`: an integer within the range of an integer dtype, anything else
/// always.
bool fits(const Scalar& scalar, DType dtype) noexcept;

/// The value of an attribute of `op` from a Python object; throws AttributeError naming both.
AttrValue to_attribute(const Op& op, const AttrSpec& spec, PyObject* object);

/// The attribute values of one call, set by name over the Op's defaults.
class AttributeList {
 public:
  explicit AttributeList(const Op& op);
  /// Position of the attribute called `name`; throws AttributeError naming the ones there are.
  static std::size_t position(const Op& op, std::string_view name);
  void set(std::string_view name, AttrValue value) { values_[position(op_, name)] = std::move(value); }
  /// Converts as the attribute's kind asks; throws AttributeError if it does not take `value`.
  void set(std::size_t position, PyObject* value);
  Attributes take() { return Attributes(std::move(values_)); }

 private:
  const Op& op_;
  std::vector<AttrValue> values_;
};

}  // namespace thalweg::python
