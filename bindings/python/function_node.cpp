// function_node.cpp: nodes of autograd.Function, whose derivative is Python code.
#include <memory>
#include <string>
#include <vector>

#include <thalweg/autograd.h>

#include "autograd_object.h"
#include "errors.h"
#include "sites.h"
#include "tensor_object.h"

namespace thalweg::python {

namespace {

/// Calls `context._run_backward(node, gradients, needed, keep)`, which returns the gradients of the inputs.
class FunctionNode final : public Node {
 public:
  FunctionNode(std::string name, PyObject* context, std::span<const Edge> edges,
               std::span<const Tensor> outputs)
      : Node(edges.size(), outputs.size(), current_site()), name_(std::move(name)), context_(context) {
    for (std::size_t i = 0; i < edges.size(); ++i) edge(i) = edges[i];
    for (std::size_t j = 0; j < outputs.size(); ++j) {
      if (outputs[j]) set_output_meta(j, outputs[j].meta());
    }
    set_host_below();
    set_sequence_nr(next_sequence_nr());
  }

  std::string name() const override { return name_ + "Backward"; }

  void run(TensorList& gradients, TensorList& results, const NeededEdges& needed, bool keep) override {
    const WithGil gil;
    py::tuple given(gradients.size());
    for (std::size_t j = 0; j < gradients.size(); ++j) {
      given[j] = gradients[j] ? checked(wrap(gradients[j])) : py::object(py::none());
    }
    py::tuple wanted(results.size());
    for (std::size_t i = 0; i < results.size(); ++i) wanted[i] = py::bool_(needed(i));
    const py::object node = checked(node_object(NodePtr::share(this)));
    const py::tuple found =
        py::handle(context_.get()).attr("_run_backward")(node, given, wanted, py::bool_(keep));
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (!py::object(found[i]).is_none()) results[i] = tensor_argument("backward", py::object(found[i]));
    }
  }

  int visit_host(VisitHost visit, void* argument) override {
    if (const int stop = context_.visit(visit, argument)) return stop;
    return Node::visit_host(visit, argument);
  }

 private:
  const std::string name_;
  HostReference context_;
};

/// Makes the tensors among `outputs` (others are None) results of a node behind `inputs` (tensors or None).
/// An output whose `rebind` is false is left alone: what is returned for it is another tensor.
py::tuple attach(const std::string& name, const py::object& context, const py::sequence& inputs,
                 const py::sequence& outputs, const py::sequence& rebind) {
  std::vector<Edge> edges;
  for (const py::handle each : inputs) {
    edges.push_back(each.is_none() ? Edge{} : gradient_edge(tensor_argument("attach_function", each)));
  }
  std::vector<Tensor> results;
  for (const py::handle each : outputs) {
    results.push_back(each.is_none() ? Tensor() : tensor_argument("attach_function", each).detach());
  }
  const NodePtr node(new FunctionNode(name, context.ptr(), edges, results));
  py::tuple attached(results.size());
  for (std::size_t j = 0; j < results.size(); ++j) {
    attached[j] = py::none();
    if (!results[j]) continue;
    Tensor result = output_of(node, j, results[j]);
    if (py::object(rebind[j]).cast<bool>()) {
      const py::object object = outputs[j];
      tensor_of(object.ptr()) = std::move(result);
      track_if_recorded(object.ptr());
      attached[j] = object;
    } else {
      attached[j] = checked(wrap(std::move(result)));
    }
  }
  return attached;
}

}  // namespace

void add_function_node(py::module_& module) {
  module.def("attach_function", &attach, py::arg("name"), py::arg("context"), py::arg("inputs"),
             py::arg("outputs"), py::arg("rebind"), "Puts the node of an autograd.Function into the graph.");
  module.def(
      "output_of",
      [](const py::object& node, std::size_t output, const py::object& value) {
        return checked(wrap(output_of(node_of(node.ptr()), output, tensor_argument("output_of", value))));
      },
      py::arg("node"), py::arg("output"), py::arg("value"), "`value` as an output of a node.");
  module.def(
      "alias", [](const py::object& x) { return checked(wrap(tensor_argument("alias", x))); }, py::arg("x"),
      "Another object for the same tensor, leaf or result: in-place forms of one leave the other alone.");
}

}  // namespace thalweg::python
