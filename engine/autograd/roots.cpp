// roots.cpp: what users call: backward, gradients with respect to inputs, the order, and what a collector
// sees.
#include <algorithm>
#include <string>
#include <utility>

#include <thalweg/autograd.h>
#include <thalweg/errors.h>
#include <thalweg/gradient.h>

#include "autograd/backward.h"
#include "autograd/meta.h"

namespace thalweg {

namespace {

const BuiltinOp reshape_op("reshape");
const BuiltinOp astype_op("astype");

/// Starts several roots: its outputs are none, its inputs the roots.
class GraphRoot final : public Node {
 public:
  GraphRoot(std::span<const Edge> roots, std::vector<Tensor> gradients)
      : Node(roots.size(), 0, 0), gradients_(std::move(gradients)) {
    for (std::size_t i = 0; i < roots.size(); ++i) edge(i) = roots[i];
  }
  std::string name() const override { return "GraphRoot"; }
  void run(TensorList&, TensorList& results, const NeededEdges&, bool) override {
    for (std::size_t i = 0; i < results.size(); ++i) results[i] = std::move(gradients_[i]);
  }

 private:
  std::vector<Tensor> gradients_;
};

std::vector<Edge> edges_of(std::span<const Tensor> roots) {
  std::vector<Edge> edges;
  for (const Tensor& root : roots) edges.push_back(gradient_edge(root));
  return edges;
}

/// 1 for a root of one real element.
Tensor implicit_gradient(const ValueMeta& meta, Engine& engine) {
  if (numel(meta.shape) != 1 || is_complex(meta.dtype)) {
    throw EngineError("backward: a root of shape " + to_string(meta.shape) + " and dtype " +
                      std::string(name(meta.dtype)) +
                      " is no single real number; pass a gradient, or reduce it with sum()");
  }
  Tensor one = engine.constant(Scalar(1.0), meta.dtype, meta.device);
  if (meta.shape.empty()) return one;
  return engine.apply(reshape_op.in(engine), {&one}, attributes_of(meta.shape));
}

Tensor checked_gradient(const Tensor& gradient, const ValueMeta& meta) {
  if (gradient.shape() != meta.shape) {
    throw ShapeError("backward: a gradient of shape " + to_string(gradient.shape()) +
                     " does not fit a root of shape " + to_string(meta.shape));
  }
  if (is_complex(gradient.dtype()) != is_complex(meta.dtype)) {
    throw DTypeError("backward: a gradient of " + std::string(name(gradient.dtype())) +
                     " does not fit a root of " + std::string(name(meta.dtype)));
  }
  if (gradient.device() != meta.device) {
    throw DeviceError("backward: a gradient on " + to_string(gradient.device()) + " does not fit a root on " +
                      to_string(meta.device) + "; bring it there with .to(device)");
  }
  if (gradient.dtype() == meta.dtype) return gradient;
  Engine& engine = gradient.engine();
  return engine.apply(astype_op.in(engine), {&gradient}, attributes_of(meta.dtype));
}

std::vector<Tensor> initial_gradients(std::span<const Edge> roots, std::span<const Tensor> gradients,
                                      Engine& engine) {
  if (roots.empty()) throw ValueError("backward: there is no root");
  if (!gradients.empty() && gradients.size() != roots.size()) {
    throw ValueError("backward: " + std::to_string(gradients.size()) + " gradients for " +
                     std::to_string(roots.size()) + " roots; one for each is needed");
  }
  std::vector<Tensor> initial;
  for (std::size_t i = 0; i < roots.size(); ++i) {
    if (!roots[i].node) {
      throw EngineError("backward: root " + std::to_string(i) +
                        " does not require a gradient; nothing that it was computed from does");
    }
    const ValueMeta& meta = roots[i].node->output_meta(roots[i].output);
    initial.push_back(!gradients.empty() && gradients[i] ? checked_gradient(gradients[i], meta)
                                                         : implicit_gradient(meta, engine));
  }
  return initial;
}

/// One root starts itself, several start under a graph root.
struct Start {
  Start(std::span<const Edge> roots, std::vector<Tensor> initial) {
    if (roots.size() == 1) {
      node = roots[0].node;
      gradients.resize(node->output_count());
      if (!initial.empty()) gradients[roots[0].output] = std::move(initial[0]);
    } else {
      node = NodePtr(new GraphRoot(roots, std::move(initial)));
    }
  }
  NodePtr node;
  TensorList gradients;
};

/// Has only nodes on the way to the inputs run. Returns those whose gradients the task keeps instead of
/// adding them up itself.
std::vector<const Tensor*> choose_inputs(const char* what, BackwardTask& task, std::span<const Tensor> inputs,
                                         std::span<const Edge> input_edges) {
  std::vector<const Tensor*> captured;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Edge edge = gradient_edge(inputs[i]);
    if (!edge.node) {
      throw EngineError(std::string(what) + ": input " + std::to_string(i) +
                        " does not require a gradient; call requires_grad_() before it is used");
    }
    if (is_leaf(inputs[i])) {
      task.target(*edge.node);
    } else {
      task.capture(edge);
      captured.push_back(&inputs[i]);
    }
  }
  for (const Edge& edge : input_edges) task.target(*edge.node);
  return captured;
}

}  // namespace

void backward(std::span<const Edge> roots, std::span<const Tensor> gradients, Engine& engine,
              BackwardOptions options, std::span<const Tensor> inputs, std::span<const Edge> input_edges) {
  const GradMode mode(options.create_graph);
  Start start(roots, initial_gradients(roots, gradients, engine));
  BackwardTask task(*start.node);
  const std::vector<const Tensor*> captured = choose_inputs("backward", task, inputs, input_edges);
  task.run(std::move(start.gradients), options.retain_graph || options.create_graph);
  for (std::size_t i = 0; i < captured.size(); ++i) {
    if (task.captured()[i]) accumulate(*captured[i]->autograd()->state(), task.captured()[i], 0);
  }
}

void backward(std::span<const Tensor> roots, std::span<const Tensor> gradients, BackwardOptions options,
              std::span<const Tensor> inputs) {
  if (roots.empty()) throw ValueError("backward: there is no root");
  backward(edges_of(roots), gradients, roots[0].engine(), options, inputs, {});
}

std::vector<Tensor> gradients_of(std::span<const Edge> roots, std::span<const Tensor> gradients,
                                 std::span<const Edge> inputs, Engine& engine, BackwardOptions options) {
  const GradMode mode(options.create_graph);
  Start start(roots, initial_gradients(roots, gradients, engine));
  BackwardTask task(*start.node);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].node) {
      throw EngineError("grad: input " + std::to_string(i) +
                        " does not require a gradient; call requires_grad_() before it is used");
    }
    task.capture(inputs[i]);
  }
  task.run(std::move(start.gradients), options.retain_graph || options.create_graph);
  return std::move(task.captured());
}

std::vector<NodePtr> execution_order(std::span<const Tensor> roots) {
  return execution_order(edges_of(roots));
}

std::vector<NodePtr> execution_order(std::span<const Edge> edges, std::span<const Tensor> inputs,
                                     std::span<const Edge> input_edges) {
  for (std::size_t i = 0; i < edges.size(); ++i) {
    if (edges[i].node) continue;
    throw EngineError("execution_order: root " + std::to_string(i) + " does not require a gradient");
  }
  if (edges.empty()) return {};
  const Start start(edges, {});
  BackwardTask task(*start.node);
  choose_inputs("execution_order", task, inputs, input_edges);
  return task.order();
}

std::shared_ptr<void>* backward_state() noexcept {
  BackwardTask* const task = BackwardTask::current();
  return task == nullptr ? nullptr : &task->host_state;
}

bool backward_reaches(const Node& node) noexcept {
  const BackwardTask* const task = BackwardTask::current();
  return task != nullptr && task->reaches(node);
}

int visit_host(const Tensor& tensor, VisitHost visit, void* argument) {
  AutogradMeta* const meta = tensor.autograd();
  if (meta == nullptr || meta->references() != 1) return 0;
  if (const std::shared_ptr<GradSlot> slot = meta->slot_if_any()) {
    if (const int stop = slot->visit_host(visit, argument)) return stop;
  }
  if (const auto* const state = meta->state_if_any(); state != nullptr && state->use_count() == 1) {
    for (const auto& list : {(*state)->hooks, (*state)->post_hooks}) {
      if (const int stop = list->visit_host(visit, argument)) return stop;
    }
  }
  if (!meta->grad_fn) return 0;
  const bool all = Node::hooked() > 0;
  std::vector<Node*> open{meta->grad_fn.get()};
  while (!open.empty()) {
    Node& node = *open.back();
    open.pop_back();
    if (node.references() != 1) continue;
    if (const int stop = node.visit_host(visit, argument)) return stop;
    if (!all && !node.host_below()) continue;
    for (const Edge& edge : node.edges()) {
      if (edge.node) open.push_back(edge.node.get());
    }
  }
  return 0;
}

}  // namespace thalweg
