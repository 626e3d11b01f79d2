// op_node.cpp: what a recorded operator keeps, and how its derivative is run.
#include "autograd/op_node.h"

#include <algorithm>
#include <cctype>
#include <new>
#include <string>

#include <thalweg/autograd.h>
#include <thalweg/errors.h>

#include "autograd/meta.h"
#include "autograd/packing_node.h"

namespace thalweg {

std::string backward_name(std::string_view op) {
  std::string name;
  bool upper = true;
  for (const char letter : op) {
    if (letter == '_') {
      upper = true;
      continue;
    }
    name += upper ? static_cast<char>(std::toupper(static_cast<unsigned char>(letter))) : letter;
    upper = false;
  }
  return name + "Backward";
}

OpNode* OpNode::make(const Op& op, std::span<const Tensor* const> inputs, SiteId site) {
  if (saved_tensors_hooks() != nullptr && !op.saves.empty()) [[unlikely]]
    return new PackingNode(op, inputs, site);
  static_assert(sizeof(OpNode) <= sizeof(Slot));
  Slot* const slot = SlabPool<Slot>::take();
  try {
    return new (slot) OpNode(op, inputs, site);
  } catch (...) {
    SlabPool<Slot>::give(slot);
    throw;
  }
}

void OpNode::free() noexcept {
  auto* const slot = reinterpret_cast<Slot*>(this);
  this->~OpNode();
  SlabPool<Slot>::give(slot);
}

OpNode::OpNode(const Op& op, std::span<const Tensor* const> inputs, SiteId site)
    : Node(inputs.size(), op.outputs, site), op_(op) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    edge(i) = gradient_edge(*inputs[i]);
    if (edge(i).node && edge(i).node->host_below()) set_host_below();
  }
  if (!op.saves.empty()) save_inputs(inputs);
  if (!op.saves_shapes) return;
  input_metas_ = std::make_unique<ValueMeta[]>(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const TensorMeta& meta = inputs[i]->meta();
    input_metas_[i] = {meta.dtype, meta.device, meta.shape};
  }
}

/// Whether an input for whose gradient the value is kept requires one.
bool OpNode::is_wanted(const SavedValue& entry) const noexcept {
  if (entry.needed_for == kForAll) return true;
  for (std::size_t i = 0; i < std::min<std::size_t>(edges().size(), 32); ++i) {
    if ((entry.needed_for >> i & 1) != 0 && edges()[i].node) return true;
  }
  return false;
}

void OpNode::save_inputs(std::span<const Tensor* const> inputs) {
  std::size_t count = op_.saves.size();
  const SavedValue& last = op_.saves.back();
  if (last.kind == SavedValue::Kind::inputs_from) count += inputs.size() - last.index - 1;
  saved_.resize(count);
  for (std::size_t at = 0; at < op_.saves.size(); ++at) {
    const SavedValue& entry = op_.saves[at];
    if (entry.kind == SavedValue::Kind::output || !is_wanted(entry)) continue;
    // A variadic Op may have been given fewer inputs.
    const std::size_t end = entry.kind == SavedValue::Kind::input
                                ? std::min<std::size_t>(entry.index + 1, inputs.size())
                                : inputs.size();
    for (std::size_t i = entry.index; i < end; ++i) saved_[at + i - entry.index] = inputs[i]->detach();
  }
}

void OpNode::finish(Attributes attributes, std::span<const Tensor> outputs) {
  attributes_ = std::move(attributes);
  for (std::size_t j = 0; j < outputs.size(); ++j) set_output_meta(j, outputs[j].meta());
  for (std::size_t at = 0; at < op_.saves.size(); ++at) {
    const SavedValue& entry = op_.saves[at];
    if (entry.kind == SavedValue::Kind::output && is_wanted(entry))
      saved_[at] = outputs[entry.index].detach();
  }
  set_sequence_nr(next_sequence_nr());
}

const ValueMeta& OpNode::input_meta(std::size_t i) const {
  if (input_metas_) return input_metas_[i];
  const Edge& to = edges()[i];
  if (!to.node) {
    throw EngineError(op_.name + ": the derivative asks for the shape of input " + std::to_string(i) +
                      ", which requires no gradient; set saves_shapes in the Op's record");
  }
  return to.node->output_meta(to.output);
}

Tensor OpNode::saved(const TensorList& values, SavedValue::Kind kind, std::size_t index) const {
  for (std::size_t at = 0; at < op_.saves.size(); ++at) {
    const SavedValue& entry = op_.saves[at];
    const bool found = entry.kind == kind ? entry.index == index
                                          : entry.kind == SavedValue::Kind::inputs_from &&
                                                kind == SavedValue::Kind::input && entry.index <= index;
    if (!found) continue;
    Tensor value = values[at + index - entry.index];
    if (!is_grad_enabled()) return value;
    if (kind == SavedValue::Kind::output) {
      if ((op_.not_differentiable >> index & 1) != 0 || !is_inexact(value.dtype())) return value;
      value.set_autograd(make_interior(NodePtr::share(const_cast<OpNode*>(this)), index));
    } else if (edges()[index].node) {
      value.set_autograd(make_interior(edges()[index].node, edges()[index].output));
    }
    return value;
  }
  throw EngineError(name() + ": the Op does not save " +
                    (kind == SavedValue::Kind::output ? "output " : "input ") + std::to_string(index));
}

TensorList OpNode::take_saved(bool keep) {
  const Lock guard(*this);
  return take_locked(keep);
}

TensorList OpNode::take_locked(bool keep) {
  if (released_) {
    throw EngineError(name() +
                      ": what it had saved was freed by an earlier backward; pass retain_graph=True to it");
  }
  TensorList values(saved_.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (keep) {
      values[i] = saved_[i];
    } else {
      values[i] = std::move(saved_[i]);
    }
  }
  if (!keep) released_ = true;
  return values;
}

void OpNode::run(TensorList& gradients, TensorList& results, const NeededEdges& needed, bool keep) {
  if (op_.gradient == nullptr) {
    throw EngineError(op_.name +
                      " has no derivative; compose it of operators that have one, or detach() its inputs");
  }
  TensorList saved;
  if (saved_.size() != 0) saved = take_saved(keep);
  Engine* engine = nullptr;
  for (const Tensor& gradient : gradients) {
    if (gradient) engine = &gradient.engine();
  }
  GradientContext context(*this, *engine, saved, gradients, results, needed);
  op_.gradient(context);
}

}  // namespace thalweg
