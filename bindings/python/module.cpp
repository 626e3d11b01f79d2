// module.cpp: the extension module thalweg._C, put together from its parts.
#include <optional>

#include "autograd_object.h"
#include "buffers.h"
#include "dlpack.h"
#include "engines.h"
#include "errors.h"
#include "generator_class.h"
#include "op_object.h"
#include "promotion.h"
#include "tensor_object.h"
#include "test_operators.h"
#include "values.h"

namespace thalweg::python {

namespace {

std::optional<DType> optional_dtype(py::handle dtype) {
  if (dtype.is_none()) return std::nullopt;
  return to_dtype(dtype.ptr());
}

Device checked_device(Engine& engine, py::handle device) {
  const Device where = to_device(device.ptr());
  engine.check_device(where);
  return where;
}

/// The engine of creation functions, after an exit whose tensors outlived it: allocating needs no running
/// engine.
py::object wrapped(Tensor tensor) { return checked(wrap(std::move(tensor))); }

void add_imports(py::module_& module) {
  module.def(
      "from_nested",
      [](py::handle object, py::handle dtype, py::handle device) -> py::object {
        Engine& engine = current_engine();
        Tensor tensor =
            from_nested(engine, object.ptr(), optional_dtype(dtype), checked_device(engine, device));
        return tensor ? wrapped(std::move(tensor)) : py::object(py::none());
      },
      py::arg("object"), py::arg("dtype") = py::none(), py::arg("device") = py::none(),
      "A tensor from a number or nested lists of numbers; None if something else is among them.");
  module.def(
      "array_of_mixed",
      [](const std::string& name, py::handle lists) { return array_of_mixed(name, lists.ptr()); },
      py::arg("name"), py::arg("lists"),
      "What NumPy makes of nested lists that hold its scalars or arrays; DTypeError for other things.");
  module.def(
      "from_buffer",
      [](py::handle object, py::handle device) {
        Engine& engine = current_engine();
        return wrapped(copy_from_buffer(engine, object.ptr(), std::nullopt, checked_device(engine, device)));
      },
      py::arg("object"), py::arg("device") = py::none(), "A tensor with a copy of the bytes of a buffer.");
  module.def(
      "reinterpret",
      [](py::handle x, py::handle dtype) {
        return wrapped(reinterpret(tensor_argument("reinterpret", x), to_dtype(dtype.ptr())));
      },
      py::arg("x"), py::arg("dtype"), "The bytes of a tensor as another dtype of its size; waits.");
  module.def(
      "from_bytes",
      [](py::handle buffer, py::handle dtype, py::handle shape, py::handle device) {
        Engine& engine = current_engine();
        return wrapped(from_bytes(engine, buffer.ptr(), to_dtype(dtype.ptr()), to_dims(shape.ptr()),
                                  checked_device(engine, device)));
      },
      py::arg("buffer"), py::arg("dtype"), py::arg("shape"), py::arg("device") = py::none(),
      "A tensor from C-ordered bytes, for pickles.");
  module.def(
      "from_dlpack",
      [](py::handle capsule, bool copy) {
        return wrapped(from_dlpack(current_engine(), capsule.ptr(), copy));
      },
      py::arg("capsule"), py::arg("copy") = false, "A tensor over the bytes in a DLPack capsule.");
}

}  // namespace

PYBIND11_MODULE(_C, module) {
  module.doc() = "The C++ side of thalweg.";
#ifdef THALWEG_VERSION
  module.attr("__version__") = THALWEG_VERSION;
#else
  module.attr("__version__") = "0";
#endif
  remember_main_thread();
  add_error_types(module);
  add_value_types(module);
  add_promotion(module);
  add_tensor_type(module);
  add_op_type(module);
  add_autograd(module);
  add_engine_class(module);
  add_generator_class(module);
  add_imports(module);
  add_testing(module);
}

}  // namespace thalweg::python
