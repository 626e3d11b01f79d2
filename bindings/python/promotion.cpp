// promotion.cpp: the dtype that two dtypes, or a dtype and a number, give together.
#include "promotion.h"

#include <optional>
#include <string>

#include <thalweg/errors.h>

#include "values.h"

namespace thalweg::python {

namespace {

py::object object_of(DType dtype) { return py::reinterpret_borrow<py::object>(dtype_object(dtype)); }

py::object promote_number(py::handle dtype, py::handle number) {
  const std::optional<Scalar> scalar = to_scalar(number.ptr());
  if (!scalar) throw DTypeError(std::string("promote: no number: ") + Py_TYPE(number.ptr())->tp_name);
  return object_of(promote_scalar(to_dtype(dtype.ptr()), *scalar));
}

}  // namespace

void add_promotion(py::module_& module) {
  module.def(
      "promote",
      [](py::handle a, py::handle b) { return object_of(promote(to_dtype(a.ptr()), to_dtype(b.ptr()))); },
      py::arg("a"), py::arg("b"), py::pos_only(), "The dtype of operations on tensors of two dtypes.");
  module.def("promote_number", promote_number, py::arg("dtype"), py::arg("number"), py::pos_only(),
             "The dtype of operations on a tensor of `dtype` and a number, which counts by its kind.");
}

}  // namespace thalweg::python
