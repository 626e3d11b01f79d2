// autograd.h: automatic differentiation: tensors that require gradients, modes, backward. The semantics are
// PyTorch's; where value semantics make them simpler, the function says so.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <thalweg/node.h>
#include <thalweg/tensor.h>

namespace thalweg {

// --- modes of the calling thread ---

/// True (the default) if operators on tensors that require gradients are recorded here.
bool is_grad_enabled() noexcept;
/// Returns what it was.
bool set_grad_enabled(bool enabled) noexcept;
/// In inference mode nothing is recorded, whatever the grad mode. Values are immutable, so that tensors made
/// in it are ordinary ones and may be saved for backward afterwards.
bool is_inference_mode() noexcept;
bool set_inference_mode(bool enabled) noexcept;

/// Sets the grad mode of this thread as long as it lives.
class GradMode {
 public:
  explicit GradMode(bool enabled) noexcept : before_(set_grad_enabled(enabled)) {}
  ~GradMode() { set_grad_enabled(before_); }
  GradMode(const GradMode&) = delete;
  GradMode& operator=(const GradMode&) = delete;

 private:
  bool before_;
};

/// What backward does to find where things went wrong.
struct AnomalyMode {
  bool enabled = false;
  /// Gradients with NaN fail, naming the node and its place.
  bool check_nan = true;
};
AnomalyMode anomaly_mode() noexcept;
/// Returns what it was.
AnomalyMode set_anomaly_mode(AnomalyMode mode) noexcept;

/// The node at which the last backward of this thread in anomaly mode ended with an exception.
struct FailedNode {
  std::string name;
  SiteId site = 0;
};
/// Empty if there was none since the last call.
std::optional<FailedNode> take_failed_node() noexcept;

// --- saved values ---

/// What stands for a value that an operator saved for its derivative.
class PackedValue {
 public:
  PackedValue() = default;
  PackedValue(const PackedValue&) = delete;
  PackedValue& operator=(const PackedValue&) = delete;
  virtual ~PackedValue() = default;
  /// The value. Called by each backward that reads it; may issue operators, read values and throw.
  virtual Tensor unpack() = 0;
  virtual int visit_host(VisitHost, void*) { return 0; }
};

/// Packs what the operators of a thread save, as soon as they were issued.
class SavedTensorsHooks {
 public:
  SavedTensorsHooks() = default;
  SavedTensorsHooks(const SavedTensorsHooks&) = delete;
  SavedTensorsHooks& operator=(const SavedTensorsHooks&) = delete;
  virtual ~SavedTensorsHooks() = default;
  /// May throw: the error is raised where the operator was called. Nothing is recorded meanwhile.
  virtual std::unique_ptr<PackedValue> pack(const Tensor& value) = 0;
};
/// Those of this thread, null if there are none.
SavedTensorsHooks* saved_tensors_hooks() noexcept;
/// Returns those before; the caller keeps `hooks` alive.
SavedTensorsHooks* set_saved_tensors_hooks(SavedTensorsHooks* hooks) noexcept;

// --- tensors ---

/// Makes `tensor` a leaf that requires a gradient, or one that does not. Throws DTypeError unless it is
/// floating or complex, EngineError for false on a tensor that an operator made (use detach).
void set_requires_grad(Tensor& tensor, bool required);
/// True unless a recorded operator made it.
bool is_leaf(const Tensor& tensor) noexcept;
/// The node of the operator that made it; empty for leaves.
NodePtr grad_fn(const Tensor& tensor) noexcept;
/// Where the gradient of `tensor` goes: its grad_fn, or the accumulation of a leaf; empty if it requires
/// none.
Edge gradient_edge(const Tensor& tensor);

/// `value` as output `output` of `node`: for nodes that are not made by operators.
Tensor output_of(NodePtr node, std::size_t output, const Tensor& value);

/// Where the gradient of a tensor is kept; the host may put one of its own in place.
class GradSlot {
 public:
  virtual ~GradSlot() = default;
  /// A handle on what is there; empty if nothing is.
  virtual Tensor load() = 0;
  /// Puts `value` there if the operand is still `expected` (null: nothing); false otherwise.
  virtual bool exchange(const Operand* expected, Tensor value) = 0;
  virtual int visit_host(VisitHost, void*) { return 0; }
};

/// The gradient; empty if there is none.
Tensor gradient_of(const Tensor& tensor);
/// Replaces the gradient; an empty tensor removes it. Throws ShapeError, DTypeError, DeviceError or
/// EngineError unless it looks like `tensor` and is of its engine.
void set_gradient(const Tensor& tensor, Tensor gradient);
/// The slot of `tensor`, made if there is none; `tensor` must have something to do with gradients.
std::shared_ptr<GradSlot> grad_slot(const Tensor& tensor);
/// Puts `slot`, which `receive` then fills with the value of the slot before, in the place of that. Returns
/// the slot in force, another thread's if that came first.
std::shared_ptr<GradSlot> replace_grad_slot(const Tensor& tensor, const std::shared_ptr<GradSlot>& slot);

/// Has backward keep the gradient of a non-leaf too. Throws EngineError if it requires none.
void retain_grad(const Tensor& tensor);
bool retains_grad(const Tensor& tensor) noexcept;

/// Adds a hook that sees, and may replace, the gradient of `tensor` when it is complete. Hooks stay with the
/// operator that made the value when an in-place form rebinds the tensor. Throws EngineError if it requires
/// no gradient. Returns the list that it is in.
std::shared_ptr<HookList> add_tensor_hook(const Tensor& tensor, std::shared_ptr<Hook> hook);
/// Adds a hook that runs, without gradients, after the gradient of the leaf was added up. Throws EngineError
/// for other tensors.
std::shared_ptr<HookList> add_post_accumulate_hook(const Tensor& tensor, std::shared_ptr<Hook> hook);

/// Remembers the host's own reference on the object of a leaf, which `host_leaf` gives for its accumulation.
void set_host_leaf(const Tensor& leaf, std::shared_ptr<void> object);
/// Null for other nodes, once the leaf is gone, and for leaves that the host made no object of.
std::shared_ptr<void> host_leaf(const Node& node);
/// True if `tensor` is the leaf whose gradient `node` adds up.
bool accumulates_into(const Node& node, const Tensor& tensor) noexcept;

/// For the host's garbage collector: shows the host objects that this handle alone keeps alive, through nodes
/// that nothing else refers to.
int visit_host(const Tensor& tensor, VisitHost visit, void* argument);

// --- backward ---

struct BackwardOptions {
  /// Keep what was saved, for another backward.
  bool retain_graph = false;
  /// Record the derivatives' own operators, for higher derivatives.
  bool create_graph = false;
};

/// Adds the gradients of `roots` into the leaves that they depend on, or into `inputs` if given. `gradients`
/// has one for each root; an empty one stands for 1, of a root of one real element only. Returns when the
/// operators are issued; the gradients are ordinary pending tensors. Throws EngineError for a root that
/// requires no gradient and for values that an earlier backward let go, ShapeError for a gradient of another
/// shape.
void backward(std::span<const Tensor> roots, std::span<const Tensor> gradients, BackwardOptions options = {},
              std::span<const Tensor> inputs = {});
/// As above, from and to edges. Gradients are added into `inputs` and into the leaves at `input_edges`; an
/// operator's node there runs, and adds up nothing. Neither: into all leaves.
void backward(std::span<const Edge> roots, std::span<const Tensor> gradients, Engine& engine,
              BackwardOptions options, std::span<const Tensor> inputs, std::span<const Edge> input_edges);
/// The gradients of `roots` with respect to `inputs`; empty ones where they do not depend on them.
std::vector<Tensor> gradients_of(std::span<const Edge> roots, std::span<const Tensor> gradients,
                                 std::span<const Edge> inputs, Engine& engine, BackwardOptions options = {});
/// The nodes that backward from these roots to these inputs would run, in order.
std::vector<NodePtr> execution_order(std::span<const Edge> roots, std::span<const Tensor> inputs = {},
                                     std::span<const Edge> input_edges = {});
std::vector<NodePtr> execution_order(std::span<const Tensor> roots);

/// What the host keeps with the innermost backward of this thread, and loses with it; null outside of one.
std::shared_ptr<void>* backward_state() noexcept;
/// True if the innermost backward of this thread has a gradient for `node`, now or later.
bool backward_reaches(const Node& node) noexcept;

}  // namespace thalweg
