// meta.h: what a tensor has to do with gradients.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include <thalweg/autograd.h>

namespace thalweg {

class AutogradMeta;

/// What a leaf, or a tensor that retains its gradient, has beside its meta. The meta owns it, and nodes that
/// deliver a gradient share it, but reach the meta, which owns the gradient, only while some handle does: a
/// gradient with a graph of its own (create_graph) makes no cycle.
struct GradState {
  mutable std::mutex lock;
  AutogradMeta* meta = nullptr;  // under `lock`; null once it dies
  Node* accumulation = nullptr;  // under `lock`; not a reference: the node clears it
  bool retains = false;          // under `lock`; a non-leaf whose gradient is kept
  std::shared_ptr<void> host;    // under `lock`; see set_host_leaf
  const std::shared_ptr<HookList> hooks = std::make_shared<HookList>();
  const std::shared_ptr<HookList> post_hooks = std::make_shared<HookList>();
};

/// Shared by the copies of a handle.
class AutogradMeta {
 public:
  /// A reference on the meta if a handle still has it.
  static AutogradMeta* reach(const GradState& state) noexcept;

  void ref() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
  void unref() noexcept;
  std::uint32_t references() const noexcept { return references_.load(std::memory_order_acquire); }

  bool is_leaf() const noexcept { return !grad_fn; }
  bool requires_grad() const noexcept { return required.load(std::memory_order_relaxed); }
  /// Its state, made if there is none.
  const std::shared_ptr<GradState>& state();
  const std::shared_ptr<GradState>* state_if_any() const noexcept;
  std::shared_ptr<GradSlot> slot();
  std::shared_ptr<GradSlot> slot_if_any() const noexcept;
  std::shared_ptr<GradSlot> replace_slot(const std::shared_ptr<GradSlot>& slot);

  std::atomic<bool> required{false};
  std::uint32_t output = 0;
  /// Of a tensor that a recorded operator made.
  NodePtr grad_fn;

 private:
  friend AutogradMeta* make_interior(NodePtr node, std::size_t output);
  friend AutogradMeta* make_leaf(bool required);
  void free() noexcept;

  std::atomic<std::uint32_t> references_{1};
  struct Owned {
    std::shared_ptr<GradState> state = std::make_shared<GradState>();
    mutable std::mutex lock;
    std::shared_ptr<GradSlot> slot;  // under `lock`
  };
  Owned& owned();
  std::atomic<Owned*> owned_{nullptr};
};

/// A meta with one reference.
AutogradMeta* make_interior(NodePtr node, std::size_t output);
AutogradMeta* make_leaf(bool required);

/// Adds `gradient` to what the slot of `state`'s tensor holds, if a handle still has it.
void accumulate(const GradState& state, const Tensor& gradient, SiteId site);

}  // namespace thalweg
