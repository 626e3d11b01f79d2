// autograd_functions.cpp: backward, gradients and modes for the package's Python functions.
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <thalweg/autograd.h>

#include "autograd_object.h"
#include "deferred.h"
#include "engines.h"
#include "errors.h"
#include "tensor_object.h"
#include "values.h"

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

/// (node, output), as gradient_edge gives it.
Edge edge_in(const char* what, const py::handle& object) {
  if (!PyTuple_Check(object.ptr()) || PyTuple_Size(object.ptr()) != 2) {
    throw DTypeError(std::string(what) + ": expected tensors or gradient edges, got " +
                     Py_TYPE(object.ptr())->tp_name);
  }
  const auto pair = py::reinterpret_borrow<py::tuple>(object);
  NodePtr node = node_of(py::object(pair[0]).ptr());
  const Py_ssize_t output = PyLong_AsSsize_t(py::object(pair[1]).ptr());
  if (output == -1 && PyErr_Occurred() != nullptr) throw py::error_already_set();
  if (output < 0 || static_cast<std::size_t>(output) >= node->output_count()) {
    throw IndexError(std::string(what) + ": " + node->name() + " has " +
                     std::to_string(node->output_count()) + " outputs, and none with the number " +
                     std::to_string(output));
  }
  return {std::move(node), static_cast<std::uint32_t>(output)};
}

/// Tensors and gradient edges, as edges.
std::vector<Edge> edges_in(const char* what, const py::handle& sequence) {
  std::vector<Edge> edges;
  for (const py::handle each : py::reinterpret_borrow<py::sequence>(sequence)) {
    edges.push_back(is_tensor(each.ptr()) ? gradient_edge(tensor_of(each.ptr())) : edge_in(what, each));
  }
  return edges;
}

/// The tensors of a sequence, and its gradient edges.
std::pair<std::vector<Tensor>, std::vector<Edge>> inputs_in(const char* what, const py::handle& sequence) {
  std::pair<std::vector<Tensor>, std::vector<Edge>> inputs;
  for (const py::handle each : py::reinterpret_borrow<py::sequence>(sequence)) {
    if (is_tensor(each.ptr())) {
      inputs.first.push_back(tensor_of(each.ptr()));
    } else {
      inputs.second.push_back(edge_in(what, each));
    }
  }
  return inputs;
}

/// That of the first tensor in a list; edges have none, so the current one if there is no tensor.
Engine& engine_of(std::initializer_list<py::handle> lists) {
  for (const py::handle list : lists) {
    for (const py::handle each : py::reinterpret_borrow<py::sequence>(list)) {
      if (is_tensor(each.ptr())) return tensor_of(each.ptr()).engine();
    }
  }
  return current_engine();
}

void run_backward(const py::handle& roots, const py::handle& gradients, bool retain_graph, bool create_graph,
                  const py::handle& inputs) {
  run_deferred();
  const std::vector<Edge> from = edges_in("backward", roots);
  const auto [tensors, edges] = inputs_in("backward", inputs);
  backward(from, tensors_in("backward", gradients, true), engine_of({roots, gradients, inputs}),
           {retain_graph, create_graph}, tensors, edges);
}

py::list run_grad(const py::handle& outputs, const py::handle& inputs, const py::handle& gradients,
                  bool retain_graph, bool create_graph) {
  run_deferred();
  const std::vector<Edge> from = edges_in("grad", outputs);
  if (from.empty()) throw ValueError("grad: there is no output");
  const std::vector<Edge> to = edges_in("grad", inputs);
  Engine& engine = engine_of({outputs, gradients, inputs});
  py::list results;
  for (Tensor& gradient :
       gradients_of(from, tensors_in("grad", gradients, true), to, engine, {retain_graph, create_graph})) {
    results.append(gradient ? checked(wrap(std::move(gradient))) : py::object(py::none()));
  }
  return results;
}

py::list run_order(const py::handle& roots, const py::handle& inputs) {
  py::list nodes;
  const auto [tensors, edges] = inputs_in("execution_order", inputs);
  for (const NodePtr& node : execution_order(edges_in("execution_order", roots), tensors, edges)) {
    nodes.append(checked(node_object(node)));
  }
  return nodes;
}

py::tuple edge_of(const py::handle& tensor) {
  if (!is_tensor(tensor.ptr())) {
    throw DTypeError(std::string("get_gradient_edge: expected a Tensor, got ") +
                     Py_TYPE(tensor.ptr())->tp_name);
  }
  const Edge edge = gradient_edge(tensor_of(tensor.ptr()));
  if (!edge.node) {
    throw EngineError(
        "get_gradient_edge: the tensor does not require a gradient; call requires_grad_() first");
  }
  return py::make_tuple(checked(node_object(edge.node)), edge.output);
}

/// (shape, dtype, device) of the gradient at an edge.
py::tuple edge_meta(const py::handle& object) {
  const Edge edge = edge_in("grad", object);
  const ValueMeta& meta = edge.node->output_meta(edge.output);
  py::tuple shape(meta.shape.size());
  for (std::size_t axis = 0; axis < meta.shape.size(); ++axis) shape[axis] = meta.shape[axis];
  return py::make_tuple(shape, py::reinterpret_borrow<py::object>(dtype_object(meta.dtype)),
                        device_object(meta.device));
}

/// A dict that lives as long as the innermost backward of this thread; None outside of one.
py::object state_of_backward() {
  std::shared_ptr<void>* const state = backward_state();
  if (state == nullptr) return py::none();
  if (*state == nullptr) *state = std::make_shared<HostReference>(py::dict().ptr());
  return py::reinterpret_borrow<py::object>(static_cast<HostReference*>(state->get())->get());
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
  module.def("execution_order", &run_order, py::arg("roots"), py::arg("inputs"),
             "The nodes that backward would run, in order.");
  module.def("gradient_edge", &edge_of, py::arg("tensor"), "(node, output) where its gradient goes.");
  module.def("edge_meta", &edge_meta, py::arg("edge"), "(shape, dtype, device) of the gradient at an edge.");
  module.def("backward_state", &state_of_backward,
             "A dict that lives as long as the innermost backward of this thread, or None.");
  module.def(
      "backward_reaches", [](const py::object& node) { return backward_reaches(*node_of(node.ptr())); },
      py::arg("node"), "Whether the innermost backward of this thread has a gradient for the node.");
}

}  // namespace thalweg::python
