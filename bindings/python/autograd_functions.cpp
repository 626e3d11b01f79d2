// autograd_functions.cpp: backward, gradients and modes for the package's Python functions.
#include <optional>
#include <string>
#include <vector>

#include <thalweg/autograd.h>

#include "autograd_object.h"
#include "deferred.h"
#include "errors.h"
#include "tensor_object.h"

namespace thalweg::python {

namespace {

std::vector<Tensor> tensors_in(const char* what, const py::handle& sequence, bool may_be_none = false) {
  std::vector<Tensor> tensors;
  for (const py::handle each : py::reinterpret_borrow<py::sequence>(sequence)) {
    if (may_be_none && each.is_none()) {
      tensors.emplace_back();
      continue;
    }
    if (!is_tensor(each.ptr())) {
      throw DTypeError(std::string(what) + ": expected tensors, got " + Py_TYPE(each.ptr())->tp_name);
    }
    tensors.push_back(tensor_of(each.ptr()));
  }
  return tensors;
}

void run_backward(const py::handle& roots, const py::handle& gradients, bool retain_graph, bool create_graph,
                  const py::handle& inputs) {
  run_deferred();
  backward(tensors_in("backward", roots), tensors_in("backward", gradients, true),
           {retain_graph, create_graph}, tensors_in("backward", inputs));
}

py::list run_grad(const py::handle& outputs, const py::handle& inputs, const py::handle& gradients,
                  bool retain_graph, bool create_graph) {
  run_deferred();
  const std::vector<Tensor> roots = tensors_in("grad", outputs);
  std::vector<Edge> from;
  for (const Tensor& root : roots) from.push_back(gradient_edge(root));
  std::vector<Edge> to;
  for (const Tensor& input : tensors_in("grad", inputs)) to.push_back(gradient_edge(input));
  if (roots.empty()) throw ValueError("grad: there is no output");
  py::list results;
  for (Tensor& gradient : gradients_of(from, tensors_in("grad", gradients, true), to, roots[0].engine(),
                                       {retain_graph, create_graph})) {
    results.append(gradient ? checked(wrap(std::move(gradient))) : py::object(py::none()));
  }
  return results;
}

py::list run_order(const py::handle& roots) {
  py::list nodes;
  for (const NodePtr& node : execution_order(tensors_in("execution_order", roots))) {
    nodes.append(checked(node_object(node)));
  }
  return nodes;
}

}  // namespace

void add_autograd_functions(py::module_& module) {
  module.def("is_grad_enabled", &is_grad_enabled, "Whether operators are recorded in this thread.");
  module.def("set_grad_mode", &set_grad_enabled, py::arg("enabled"), "Sets the mode; returns what it was.");
  module.def("is_inference_mode", &is_inference_mode, "Whether this thread is in inference mode.");
  module.def("set_inference_mode", &set_inference_mode, py::arg("enabled"),
             "Sets the mode; returns what it was.");
  module.def("backward", &run_backward, py::arg("roots"), py::arg("gradients"), py::arg("retain_graph"),
             py::arg("create_graph"), py::arg("inputs"), "Adds gradients into leaves or `inputs`.");
  module.def("grad", &run_grad, py::arg("outputs"), py::arg("inputs"), py::arg("gradients"),
             py::arg("retain_graph"), py::arg("create_graph"),
             "Gradients with respect to `inputs`; None for those that do not matter.");
  module.def("execution_order", &run_order, py::arg("roots"), "The nodes that backward would run, in order.");
}

}  // namespace thalweg::python
