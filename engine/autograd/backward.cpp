// backward.cpp: dependency counts, the queue of ready nodes, hooks and buffers of one backward.
#include "autograd/backward.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include <thalweg/gradient.h>

namespace thalweg {

namespace {

const BuiltinOp add_op("add");
const BuiltinOp check_nan_op("check_nan");

/// The gradients are passed through each hook in turn; those of a tensor see one.
void run_tensor_hooks(const HookList& list, TensorList& gradients) {
  for (const std::shared_ptr<Hook>& hook : list.snapshot()) {
    if (hook->output >= gradients.size() || !gradients[hook->output] || !list.contains(hook.get())) continue;
    hook->run({&gradients[hook->output], 1}, {});
  }
}

void run_node_hooks(const HookList& list, TensorList& gradients, std::span<const Tensor> seen) {
  for (const std::shared_ptr<Hook>& hook : list.snapshot()) {
    if (list.contains(hook.get())) hook->run({gradients.begin(), gradients.size()}, seen);
  }
}

thread_local constinit BackwardTask* running = nullptr;
thread_local std::optional<FailedNode> last_failed;

/// Puts operators in the way that fail where a gradient has NaN; nothing waits for them.
void check_nan(const Node& node, TensorList& results) {
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!results[i] || !is_inexact(results[i].dtype())) continue;
    Engine& engine = results[i].engine();
    results[i] = engine.apply(check_nan_op.in(engine), {&results[i]},
                              attributes_of(node.name(), static_cast<std::int64_t>(i)), node.site());
  }
}

bool any_defined(const TensorList& gradients) noexcept {
  return std::any_of(gradients.begin(), gradients.end(), [](const Tensor& each) { return bool(each); });
}

}  // namespace

BackwardTask::BackwardTask(Node& root) {
  claim(root, nullptr);
  discover();
}

BackwardTask::~BackwardTask() {
  for (const State& state : states_) {
    if (state.node->owner_.load(std::memory_order_relaxed) == this) {
      // Release pairs with the acquire in claim(): the next task may write the index.
      state.node->owner_.store(nullptr, std::memory_order_release);
    }
  }
}

/// The state of `node`, made if this task has not seen it. The first task that walks over a node keeps its
/// index in the node itself; tasks of other threads, or within that one, look it up.
std::uint32_t BackwardTask::claim(Node& node, bool* fresh) {
  void* owner = node.owner_.load(std::memory_order_acquire);
  if (owner == this) return node.owner_index_;
  if (!shared_.empty()) {
    if (const auto found = shared_.find(&node); found != shared_.end()) return found->second;
  }
  const auto index = static_cast<std::uint32_t>(states_.size());
  states_.emplace_back();
  states_.back().node = &node;
  if (owner == nullptr && node.owner_.compare_exchange_strong(owner, this, std::memory_order_acq_rel)) {
    node.owner_index_ = index;
  } else {
    shared_.emplace(&node, index);
  }
  if (fresh != nullptr) *fresh = true;
  return index;
}

/// As `claim`, of a node that may not have been seen: kNone then.
std::uint32_t BackwardTask::find(const Node& node) const noexcept {
  if (node.owner_.load(std::memory_order_acquire) == this) return node.owner_index_;
  const auto found = shared_.find(&node);
  return found == shared_.end() ? kNone : found->second;
}

void BackwardTask::discover() {
  std::vector<std::uint32_t> open{0};
  while (!open.empty()) {
    Node& node = *states_[open.back()].node;
    open.pop_back();
    for (const Edge& edge : node.edges()) {
      if (!edge.node) continue;
      bool fresh = false;
      const std::uint32_t index = claim(*edge.node, &fresh);
      ++states_[index].missing;
      if (fresh) open.push_back(index);
    }
  }
}

void BackwardTask::capture(const Edge& edge) {
  chosen_ = true;
  captured_.emplace_back();
  captures_.push_back({edge.output, kNone});
  const std::uint32_t index = edge.node ? find(*edge.node) : kNone;
  if (index == kNone) return;
  captures_.back().next =
      std::exchange(states_[index].first_capture, static_cast<std::uint32_t>(captures_.size() - 1));
}

void BackwardTask::target(const Node& node) {
  chosen_ = true;
  if (const std::uint32_t index = find(node); index != kNone) states_[index].is_target = true;
}

/// A node runs if it is a target or one of those behind it is visited. Those behind come later in topological
/// order.
void BackwardTask::choose_nodes() {
  std::vector<std::uint32_t> missing;
  for (const State& state : states_) missing.push_back(state.missing);
  std::vector<std::uint32_t> order{0};
  for (std::size_t at = 0; at < order.size(); ++at) {
    for (const Edge& edge : states_[order[at]].node->edges()) {
      if (!edge.node) continue;
      const std::uint32_t index = find(*edge.node);
      if (--missing[index] == 0) order.push_back(index);
    }
  }
  for (std::size_t at = order.size(); at-- > 0;) {
    State& state = states_[order[at]];
    state.runs = state.is_target;
    for (const Edge& edge : state.node->edges()) {
      if (edge.node && state_of(*edge.node).is_visited()) state.runs = true;
    }
  }
}

void BackwardTask::push(std::uint32_t state) {
  ready_.push_back({states_[state].node->sequence_nr(), arrivals_++, state});
  std::push_heap(ready_.begin(), ready_.end());
}

std::uint32_t BackwardTask::pop() {
  std::pop_heap(ready_.begin(), ready_.end());
  const std::uint32_t state = ready_.back().state;
  ready_.pop_back();
  return state;
}

BackwardTask* BackwardTask::current() noexcept { return running; }

bool BackwardTask::reaches(const Node& node) const noexcept {
  const std::uint32_t index = find(node);
  return index != kNone && states_[index].is_visited();
}

void BackwardTask::run(TensorList gradients, bool keep_saved) {
  struct Running {
    explicit Running(BackwardTask* task) noexcept : outer(std::exchange(running, task)) {}
    ~Running() { running = outer; }
    BackwardTask* const outer;
  };
  const Running mark(this);
  if (chosen_) choose_nodes();
  if (!states_[0].is_visited()) return;
  states_[0].gradients = std::move(gradients);
  push(0);
  while (!ready_.empty()) {
    if (anomaly_.enabled) [[unlikely]] {
      evaluate_watched(pop(), keep_saved);
    } else {
      evaluate(pop(), keep_saved);
    }
  }
}

/// As `evaluate`, and remembers which node an exception came from.
void BackwardTask::evaluate_watched(std::uint32_t index, bool keep_saved) {
  const Node& node = *states_[index].node;
  try {
    evaluate(index, keep_saved);
  } catch (...) {
    last_failed = {node.name(), node.site()};
    throw;
  }
}

std::optional<FailedNode> take_failed_node() noexcept { return std::exchange(last_failed, std::nullopt); }

bool BackwardTask::wants(const Edge& edge) const noexcept { return states_[find(*edge.node)].is_visited(); }

void BackwardTask::evaluate(std::uint32_t index, bool keep_saved) {
  State& state = states_[index];
  Node& node = *state.node;
  TensorList gradients = std::move(state.gradients);
  const NodeHooks* const hooks = node.hooks();
  if (hooks != nullptr || node.is_accumulation()) {
    if (const auto list = node.tensor_hooks()) run_tensor_hooks(*list, gradients);
    if (hooks != nullptr) run_tensor_hooks(*hooks->retain, gradients);
  }
  keep_captured(state, gradients);
  if (!state.runs) return;
  if (hooks != nullptr) run_node_hooks(*hooks->pre, gradients, {});
  TensorList results(node.edges().size());
  const NeededEdges needed(
      node,
      chosen_ ? [](const void* self,
                   const Edge& edge) { return static_cast<const BackwardTask*>(self)->wants(edge); }
              : static_cast<bool (*)(const void*, const Edge&)>(nullptr),
      this);
  if (gradients.size() == 0 || any_defined(gradients)) node.run(gradients, results, needed, keep_saved);
  if (const NodeHooks* const after = node.hooks()) {
    run_node_hooks(*after->post, results, {gradients.begin(), gradients.size()});
  }
  if (anomaly_.enabled && anomaly_.check_nan) [[unlikely]]
    check_nan(node, results);
  deliver(node, results);
}

void BackwardTask::keep_captured(const State& state, const TensorList& gradients) {
  for (std::uint32_t at = state.first_capture; at != kNone; at = captures_[at].next) {
    const std::uint32_t output = captures_[at].output;
    if (output < gradients.size()) captured_[at] = gradients[output];
  }
}

/// Hands the gradients of a node's inputs on. The first for an output is moved in, later ones are added in
/// the order of arrival.
void BackwardTask::deliver(Node& from, TensorList& results) {
  const std::span<const Edge> edges = from.edges();
  for (std::size_t i = 0; i < edges.size(); ++i) {
    if (!edges[i].node) continue;
    Node& to = *edges[i].node;
    const std::uint32_t index = find(to);
    State& state = states_[index];
    if (!state.is_visited()) continue;
    if (state.gradients.size() == 0) state.gradients.resize(to.output_count());
    if (results[i]) {
      Tensor gradient = conform(std::move(results[i]), to.output_meta(edges[i].output), from, i);
      Tensor& sum = state.gradients[edges[i].output];
      if (!sum) {
        sum = std::move(gradient);
      } else {
        Engine& engine = sum.engine();
        sum = engine.apply(add_op.in(engine), {&sum, &gradient}, {}, from.site());
      }
    }
    if (--state.missing == 0) push(index);
  }
}

std::vector<NodePtr> BackwardTask::order() {
  if (chosen_) choose_nodes();
  std::vector<NodePtr> order;
  push(0);
  while (!ready_.empty()) {
    const State& state = states_[pop()];
    if (!state.runs) continue;
    order.push_back(NodePtr::share(state.node));
    for (const Edge& edge : state.node->edges()) {
      if (!edge.node) continue;
      const std::uint32_t index = find(*edge.node);
      if (--states_[index].missing == 0 && states_[index].is_visited()) push(index);
    }
  }
  return order;
}

}  // namespace thalweg
