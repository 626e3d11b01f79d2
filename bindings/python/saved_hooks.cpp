// saved_hooks.cpp: saved-tensor hooks whose pack and unpack are Python functions, and anomaly mode.
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <thalweg/autograd.h>

#include "autograd_object.h"
#include "errors.h"
#include "sites.h"
#include "tensor_object.h"

namespace thalweg::python {

namespace {

/// What pack returned, and the function that makes a tensor of it again.
class PythonPackedValue final : public PackedValue {
 public:
  PythonPackedValue(PyObject* object, PyObject* unpack) : object_(object), unpack_(unpack) {}

  Tensor unpack() override {
    const WithGil gil;
    const auto function = py::reinterpret_borrow<py::object>(unpack_.get());
    const py::object value = function(py::handle(object_.get()));
    if (!is_tensor(value.ptr())) {
      throw DTypeError(std::string("saved_tensors_hooks: unpack returned ") + Py_TYPE(value.ptr())->tp_name +
                       ", not a Tensor");
    }
    return tensor_of(value.ptr());
  }
  int visit_host(VisitHost visit, void* argument) override {
    if (const int stop = object_.visit(visit, argument)) return stop;
    return unpack_.visit(visit, argument);
  }

 private:
  HostReference object_;
  HostReference unpack_;
};

class PythonHooks final : public SavedTensorsHooks {
 public:
  PythonHooks(PyObject* pack, PyObject* unpack) : pack_(pack), unpack_(unpack) {}

  std::unique_ptr<PackedValue> pack(const Tensor& value) override {
    const WithGil gil;
    // References of its own: pack may leave the very block that holds this.
    const auto function = py::reinterpret_borrow<py::object>(pack_.get());
    const auto unpack = py::reinterpret_borrow<py::object>(unpack_.get());
    const py::object packed = function(checked(wrap(value)));
    return std::make_unique<PythonPackedValue>(packed.ptr(), unpack.ptr());
  }
  py::tuple functions() const { return py::make_tuple(py::handle(pack_.get()), py::handle(unpack_.get())); }

 private:
  HostReference pack_;
  HostReference unpack_;
};

/// Those of this thread; the last are in force.
std::vector<std::unique_ptr<PythonHooks>>& stack() {
  thread_local std::vector<std::unique_ptr<PythonHooks>> hooks;
  return hooks;
}

void push_hooks(const py::object& pack, const py::object& unpack) {
  stack().push_back(std::make_unique<PythonHooks>(pack.ptr(), unpack.ptr()));
  set_saved_tensors_hooks(stack().back().get());
}

void pop_hooks() {
  if (stack().empty()) throw EngineError("saved_tensors_hooks: this thread has entered none");
  const std::unique_ptr<PythonHooks> last = std::move(stack().back());
  stack().pop_back();
  set_saved_tensors_hooks(stack().empty() ? nullptr : stack().back().get());
}

py::object current_hooks() {
  return stack().empty() ? py::object(py::none()) : py::object(stack().back()->functions());
}

py::tuple pair_of(AnomalyMode mode) { return py::make_tuple(mode.enabled, mode.check_nan); }

/// (name, "file:line") of the node that the last backward failed at, if it ran in anomaly mode.
py::object failed_node() {
  const std::optional<FailedNode> failed = take_failed_node();
  if (!failed) return py::none();
  return py::make_tuple(failed->name, describe_site(failed->site));
}

}  // namespace

void add_saved_hooks(py::module_& module) {
  module.def("push_saved_tensors_hooks", &push_hooks, py::arg("pack"), py::arg("unpack"),
             "From now on operators of this thread pack what they save.");
  module.def("pop_saved_tensors_hooks", &pop_hooks, "Goes back to the hooks before.");
  module.def("saved_tensors_hooks", &current_hooks, "(pack, unpack) of this thread, or None.");
  module.def(
      "anomaly_mode", [] { return pair_of(anomaly_mode()); }, "(enabled, check_nan) of this thread.");
  module.def(
      "set_anomaly_mode",
      [](bool enabled, bool check_nan) {
        return pair_of(set_anomaly_mode({enabled, check_nan}));
      },
      py::arg("enabled"), py::arg("check_nan"), "Sets the mode; returns what it was.");
  module.def(
      "take_failed_node", &failed_node,
      "(name, place) of the node at which a backward in anomaly mode ended with an exception, or None.");
}

}  // namespace thalweg::python
