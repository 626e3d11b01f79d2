// node.cpp: life and death of nodes, and lists of hooks.
#include <algorithm>

#include <thalweg/node.h>

namespace thalweg {

namespace {

thread_local std::uint64_t next_number = 0;
std::atomic<std::int64_t> hooked_nodes{0};

/// Nodes of this thread that wait to be freed, linked through their owner words.
thread_local Node* dying = nullptr;
thread_local bool frees_nodes = false;

}  // namespace

// --- nodes
// ----------------------------------------------------------------------------------------------------------

Node::Node(std::size_t edges, std::size_t outputs, SiteId site)
    : site_(site),
      edge_count_(static_cast<std::uint32_t>(edges)),
      output_count_(static_cast<std::uint32_t>(outputs)) {
  if (edges > kFew) many_edges_ = std::make_unique<Edge[]>(edges);
  if (outputs > 1) more_metas_ = std::make_unique<ValueMeta[]>(outputs - 1);
}

Node::~Node() {
  if (NodeHooks* const mine = hooks_.load(std::memory_order_relaxed)) {
    hooked_nodes.fetch_sub(1, std::memory_order_relaxed);
    delete mine;
  }
}

std::int64_t Node::hooked() noexcept { return hooked_nodes.load(std::memory_order_relaxed); }

void Node::set_output_meta(std::size_t j, const TensorMeta& meta) {
  (j == 0 ? first_meta_ : more_metas_[j - 1]) = {meta.dtype, meta.device, meta.shape};
}

std::uint64_t Node::next_sequence_nr() noexcept { return next_number++; }

void Node::unref() noexcept {
  if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) die();
}

bool Node::try_ref() noexcept {
  std::uint32_t count = references_.load(std::memory_order_relaxed);
  while (count != 0) {
    if (references_.compare_exchange_weak(count, count + 1, std::memory_order_relaxed)) return true;
  }
  return false;
}

/// Freeing a node lets go of those before it: one after the other, as the graph may be deeper than the stack.
void Node::die() noexcept {
  owner_.store(dying, std::memory_order_relaxed);
  dying = this;
  if (frees_nodes) return;
  frees_nodes = true;
  while (dying != nullptr) {
    Node* const node = dying;
    dying = static_cast<Node*>(node->owner_.load(std::memory_order_relaxed));
    node->free();
  }
  frees_nodes = false;
}

NodeHooks& Node::make_hooks() {
  NodeHooks* found = hooks_.load(std::memory_order_acquire);
  if (found != nullptr) return *found;
  auto fresh = std::make_unique<NodeHooks>();
  if (!hooks_.compare_exchange_strong(found, fresh.get(), std::memory_order_acq_rel)) return *found;
  hooked_nodes.fetch_add(1, std::memory_order_relaxed);
  return *fresh.release();
}

int Node::visit_host(VisitHost visit, void* argument) {
  const NodeHooks* const found = hooks();
  if (found == nullptr) return 0;
  for (const HookList* list : {found->tensor.get(), found->pre.get(), found->post.get()}) {
    if (const int stop = list->visit_host(visit, argument)) return stop;
  }
  return 0;
}

// --- hooks
// ----------------------------------------------------------------------------------------------------------

void HookList::add(std::shared_ptr<Hook> hook) {
  std::lock_guard guard(lock_);
  hooks_.push_back(std::move(hook));
}

void HookList::remove(const Hook* hook) noexcept {
  std::shared_ptr<Hook> removed;  // dies after the lock was let go
  std::lock_guard guard(lock_);
  const auto found = std::find_if(hooks_.begin(), hooks_.end(),
                                  [&](const std::shared_ptr<Hook>& each) { return each.get() == hook; });
  if (found == hooks_.end()) return;
  removed = std::move(*found);
  hooks_.erase(found);
}

std::vector<std::shared_ptr<Hook>> HookList::snapshot() const {
  std::lock_guard guard(lock_);
  return hooks_;
}

bool HookList::contains(const Hook* hook) const noexcept {
  std::lock_guard guard(lock_);
  return std::any_of(hooks_.begin(), hooks_.end(),
                     [&](const std::shared_ptr<Hook>& each) { return each.get() == hook; });
}

bool HookList::empty() const noexcept {
  std::lock_guard guard(lock_);
  return hooks_.empty();
}

int HookList::visit_host(VisitHost visit, void* argument) const {
  std::lock_guard guard(lock_);
  for (const std::shared_ptr<Hook>& hook : hooks_) {
    if (const int stop = hook->visit_host(visit, argument)) return stop;
  }
  return 0;
}

}  // namespace thalweg
