// meta.cpp: life and death of metas, and where a tensor's gradient is kept.
#include "autograd/meta.h"

#include <new>
#include <utility>

#include <thalweg/gradient.h>

#include "core/slab_pool.h"
#include "graph/recorder.h"

namespace thalweg {

namespace {

struct alignas(32) Slot {
  std::byte bytes[32];
};
static_assert(sizeof(AutogradMeta) <= sizeof(Slot));

/// The slot of a tensor whose gradient the host has not asked for.
class PlainSlot final : public GradSlot {
 public:
  Tensor load() override {
    std::lock_guard guard(lock_);
    return value_;
  }
  bool exchange(const Operand* expected, Tensor value) override {
    std::lock_guard guard(lock_);
    if (closed_ || value_.operand() != expected) return false;
    std::swap(value_, value);  // the old value dies with the argument, after the lock was let go
    return true;
  }
  /// No value goes in any more; what there was.
  Tensor close() {
    std::lock_guard guard(lock_);
    closed_ = true;
    return std::move(value_);
  }

 private:
  std::mutex lock_;
  Tensor value_;
  bool closed_ = false;
};

const BuiltinOp add_op("add");

}  // namespace

AutogradMeta* make_interior(NodePtr node, std::size_t output) {
  auto* const meta = new (SlabPool<Slot>::take()) AutogradMeta;
  meta->required.store(true, std::memory_order_relaxed);
  meta->output = static_cast<std::uint32_t>(output);
  meta->grad_fn = std::move(node);
  return meta;
}

AutogradMeta* make_leaf(bool required) {
  auto* const meta = new (SlabPool<Slot>::take()) AutogradMeta;
  meta->required.store(required, std::memory_order_relaxed);
  return meta;
}

AutogradMeta* AutogradMeta::reach(const GradState& state) noexcept {
  std::lock_guard guard(state.lock);
  AutogradMeta* const meta = state.meta;
  if (meta == nullptr) return nullptr;
  std::uint32_t count = meta->references_.load(std::memory_order_relaxed);
  while (count != 0) {
    if (meta->references_.compare_exchange_weak(count, count + 1, std::memory_order_relaxed)) return meta;
  }
  return nullptr;
}

void AutogradMeta::unref() noexcept {
  if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) free();
}

void AutogradMeta::free() noexcept {
  if (Owned* const mine = owned_.load(std::memory_order_acquire)) {
    {
      std::lock_guard guard(mine->state->lock);
      mine->state->meta = nullptr;
    }
    delete mine;
  }
  this->~AutogradMeta();
  SlabPool<Slot>::give(reinterpret_cast<Slot*>(this));
}

AutogradMeta::Owned& AutogradMeta::owned() {
  Owned* found = owned_.load(std::memory_order_acquire);
  if (found != nullptr) return *found;
  auto fresh = std::make_unique<Owned>();
  fresh->state->meta = this;
  if (owned_.compare_exchange_strong(found, fresh.get(), std::memory_order_acq_rel)) return *fresh.release();
  return *found;
}

const std::shared_ptr<GradState>& AutogradMeta::state() { return owned().state; }

const std::shared_ptr<GradState>* AutogradMeta::state_if_any() const noexcept {
  const Owned* const found = owned_.load(std::memory_order_acquire);
  return found == nullptr ? nullptr : &found->state;
}

std::shared_ptr<GradSlot> AutogradMeta::slot() {
  Owned& mine = owned();
  std::lock_guard guard(mine.lock);
  if (mine.slot == nullptr) mine.slot = std::make_shared<PlainSlot>();
  return mine.slot;
}

std::shared_ptr<GradSlot> AutogradMeta::slot_if_any() const noexcept {
  const Owned* const found = owned_.load(std::memory_order_acquire);
  if (found == nullptr) return nullptr;
  std::lock_guard guard(found->lock);
  return found->slot;
}

std::shared_ptr<GradSlot> AutogradMeta::replace_slot(const std::shared_ptr<GradSlot>& fresh) {
  Owned& mine = owned();
  std::shared_ptr<PlainSlot> before;
  {
    std::lock_guard guard(mine.lock);
    before = std::dynamic_pointer_cast<PlainSlot>(mine.slot);
    if (mine.slot != nullptr && before == nullptr) return mine.slot;
    mine.slot = fresh;
  }
  // Whoever still has the plain slot finds it closed and looks again.
  if (before != nullptr) {
    Tensor value = before->close();
    if (value) fresh->exchange(nullptr, std::move(value));
  }
  return fresh;
}

void accumulate(const GradState& state, const Tensor& gradient, SiteId site) {
  AutogradMeta* const meta = AutogradMeta::reach(state);
  if (meta == nullptr) return;
  const std::unique_ptr<AutogradMeta, void (*)(AutogradMeta*)> owner(
      meta, [](AutogradMeta* each) { each->unref(); });
  const bool recorded = is_grad_enabled();
  Engine& engine = gradient.engine();
  // No lock is held while the sum is issued, which may wait; what was read must still be there after.
  for (;;) {
    const std::shared_ptr<GradSlot> slot = meta->slot();
    const Tensor before = slot->load();
    if (!before) {
      if (slot->exchange(nullptr, recorded ? gradient : gradient.detach())) return;
      continue;
    }
    Tensor sum;
    if (recorded) {
      sum = engine.apply(add_op.in(engine), {&before, &gradient}, {}, site);
    } else {
      // In place, so that a failed sum recovers to what was there.
      sum = before.detach();
      const Tensor* const other = &gradient;
      engine.apply_in_place(add_op.in(engine), sum, {&other, 1}, {}, site);
    }
    if (slot->exchange(before.operand(), std::move(sum))) return;
  }
}

// --- what recording and handles ask
// ------------------------------------------------------------------------

void ref_autograd(AutogradMeta* autograd) noexcept { autograd->ref(); }
void unref_autograd(AutogradMeta* autograd) noexcept { autograd->unref(); }
bool requires_grad(const AutogradMeta* autograd) noexcept { return autograd->requires_grad(); }
AutogradMeta* leaf_autograd(AutogradMeta* autograd) noexcept {
  return autograd != nullptr && autograd->is_leaf() ? autograd : nullptr;
}

}  // namespace thalweg
