// node.h: what backward needs of one recorded operator, and the hooks around it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <thalweg/engine.h>
#include <thalweg/tensor.h>

namespace thalweg {

class Node;

/// A reference on a Node. Nodes free each other without recursion, however deep the graph.
class NodePtr {
 public:
  NodePtr() noexcept = default;
  /// Takes over one reference.
  explicit NodePtr(Node* adopted) noexcept : node_(adopted) {}
  /// One more reference on `node`, which may be null.
  static NodePtr share(Node* node) noexcept;
  NodePtr(const NodePtr& other) noexcept : NodePtr(share(other.node_)) {}
  NodePtr(NodePtr&& other) noexcept : node_(std::exchange(other.node_, nullptr)) {}
  NodePtr& operator=(NodePtr other) noexcept {
    std::swap(node_, other.node_);
    return *this;
  }
  ~NodePtr();

  Node* get() const noexcept { return node_; }
  Node& operator*() const noexcept { return *node_; }
  Node* operator->() const noexcept { return node_; }
  explicit operator bool() const noexcept { return node_ != nullptr; }

 private:
  Node* node_ = nullptr;
};

/// Where a gradient goes: output `output` of the operator that `node` records. An empty node: nowhere.
struct Edge {
  NodePtr node;
  std::uint32_t output = 0;
};

/// What a gradient must look like.
struct ValueMeta {
  DType dtype = DType::float32;
  Device device;
  Shape shape;
};

/// Tensors of one node: two in place, more on the heap. Among gradients an empty Tensor is an undefined one.
class TensorList {
 public:
  TensorList() noexcept = default;
  explicit TensorList(std::size_t count) { resize(count); }
  /// Keeps nothing of what was there.
  void resize(std::size_t count) {
    many_ = count > kFew ? std::make_unique<Tensor[]>(count) : nullptr;
    for (Tensor& tensor : few_) tensor = Tensor();
    count_ = static_cast<std::uint32_t>(count);
  }
  TensorList(TensorList&& other) noexcept
      : few_{std::move(other.few_[0]), std::move(other.few_[1])},
        many_(std::move(other.many_)),
        count_(std::exchange(other.count_, 0)) {}
  TensorList& operator=(TensorList&& other) noexcept {
    for (std::size_t i = 0; i < kFew; ++i) few_[i] = std::move(other.few_[i]);
    many_ = std::move(other.many_);
    count_ = std::exchange(other.count_, 0);
    return *this;
  }
  std::size_t size() const noexcept { return count_; }
  Tensor& operator[](std::size_t i) noexcept { return data()[i]; }
  const Tensor& operator[](std::size_t i) const noexcept { return const_cast<TensorList*>(this)->data()[i]; }
  Tensor* begin() noexcept { return data(); }
  Tensor* end() noexcept { return data() + count_; }
  const Tensor* begin() const noexcept { return const_cast<TensorList*>(this)->data(); }
  const Tensor* end() const noexcept { return begin() + count_; }

 private:
  static constexpr std::size_t kFew = 2;
  Tensor* data() noexcept { return many_ ? many_.get() : few_; }

  Tensor few_[kFew];
  std::unique_ptr<Tensor[]> many_;
  std::uint32_t count_ = 0;
};

/// Shows a host object (a PyObject) to the host's garbage collector; other than 0 ends the visit.
using VisitHost = int (*)(void* object, void* argument);

/// Called by backward on the calling thread. It may issue operators, read values and throw.
class Hook {
 public:
  Hook() = default;
  Hook(const Hook&) = delete;
  Hook& operator=(const Hook&) = delete;
  virtual ~Hook() = default;
  /// `gradients` may be changed: of a tensor's hook the one gradient, of a node's pre-hook those of its
  /// outputs, of its post-hook those of its inputs; `seen` are those of the outputs then.
  virtual void run(std::span<Tensor> gradients, std::span<const Tensor> seen) = 0;
  virtual int visit_host(VisitHost, void*) { return 0; }

  /// For a tensor's hook: which output of the node.
  std::uint32_t output = 0;
};

/// Hooks in the order in which they were added. Any thread; they may be removed while backward runs.
class HookList {
 public:
  void add(std::shared_ptr<Hook> hook);
  void remove(const Hook* hook) noexcept;
  std::vector<std::shared_ptr<Hook>> snapshot() const;
  bool contains(const Hook* hook) const noexcept;
  bool empty() const noexcept;
  int visit_host(VisitHost visit, void* argument) const;

 private:
  mutable std::mutex lock_;
  std::vector<std::shared_ptr<Hook>> hooks_;
};

/// The hooks of one node, made when the first is added.
struct NodeHooks {
  const std::shared_ptr<HookList> tensor = std::make_shared<HookList>();
  /// After `tensor`: what keeps the gradient of a non-leaf.
  const std::shared_ptr<HookList> retain = std::make_shared<HookList>();
  const std::shared_ptr<HookList> pre = std::make_shared<HookList>();
  const std::shared_ptr<HookList> post = std::make_shared<HookList>();
};

/// One recorded operator. Its edges never change; any number of threads may run backward through it.
class Node {
 public:
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  /// "MultiplyBackward", "AccumulateGrad", …
  virtual std::string name() const = 0;
  /// Issues the derivative: from the gradients of the outputs (some undefined, not all) to those of the
  /// inputs, `results`, one for each edge. `needed(i)` says whether edge i's is wanted. Unless `keep`, what
  /// was saved is let go; throws EngineError if it is gone.
  virtual void run(TensorList& gradients, TensorList& results, const class NeededEdges& needed,
                   bool keep) = 0;
  /// The hooks on the tensor itself; null if there are none.
  virtual std::shared_ptr<HookList> tensor_hooks() const { return hooks() ? hooks()->tensor : nullptr; }
  /// Shows the host objects that this node keeps alive.
  virtual int visit_host(VisitHost visit, void* argument);
  /// True for the nodes that add to a leaf's gradient.
  virtual bool is_accumulation() const noexcept { return false; }

  static constexpr std::uint64_t kLast = ~std::uint64_t{0};
  /// Counts the nodes that a thread made, from 0; larger runs first.
  std::uint64_t sequence_nr() const noexcept { return sequence_nr_; }
  void set_sequence_nr(std::uint64_t number) noexcept { sequence_nr_ = number; }
  /// Takes the calling thread's next number.
  static std::uint64_t next_sequence_nr() noexcept;

  std::span<const Edge> edges() const noexcept {
    return {many_edges_ ? many_edges_.get() : few_edges_, edge_count_};
  }
  std::size_t output_count() const noexcept { return output_count_; }
  const ValueMeta& output_meta(std::size_t j) const noexcept {
    return j == 0 ? first_meta_ : more_metas_[j - 1];
  }
  SiteId site() const noexcept { return site_; }
  /// True if a node with host objects is in its past.
  bool host_below() const noexcept { return host_below_; }

  const NodeHooks* hooks() const noexcept { return hooks_.load(std::memory_order_acquire); }
  /// The hooks to add to.
  NodeHooks& make_hooks();
  /// How many nodes of the process have hooks.
  static std::int64_t hooked() noexcept;

  /// One more reference.
  void ref() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
  void unref() noexcept;
  /// One more reference unless it is dying already.
  bool try_ref() noexcept;
  std::uint32_t references() const noexcept { return references_.load(std::memory_order_acquire); }

  /// The host's object for this node, not a reference; guarded by the host's lock.
  void* host_object = nullptr;

 protected:
  /// Room for `edges` edges and `outputs` metas, to be filled by `edge` and `set_output_meta` before anybody
  /// else sees the node.
  Node(std::size_t edges, std::size_t outputs, SiteId site);
  virtual ~Node();
  Edge& edge(std::size_t i) noexcept { return (many_edges_ ? many_edges_.get() : few_edges_)[i]; }
  void set_output_meta(std::size_t j, const TensorMeta& meta);
  void set_host_below() noexcept { host_below_ = true; }

  /// Guards what was saved against other threads' backward.
  class Lock {
   public:
    explicit Lock(Node& node) noexcept : node_(node) {
      while (node_.busy_.test_and_set(std::memory_order_acquire)) {
      }
    }
    ~Lock() { node_.busy_.clear(std::memory_order_release); }
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

   private:
    Node& node_;
  };
  /// Under the lock: what was saved is gone.
  bool released_ = false;
  /// Destroys the node and gives its memory back.
  virtual void free() noexcept { delete this; }

 private:
  friend class BackwardTask;
  static constexpr std::size_t kFew = 2;
  void die() noexcept;

  std::atomic<std::uint32_t> references_{1};
  SiteId site_;
  std::uint64_t sequence_nr_ = 0;
  // The backward task that walks over the node first, and where it keeps its state; the link of dying nodes.
  std::atomic<void*> owner_{nullptr};
  std::uint32_t owner_index_ = 0;
  std::atomic_flag busy_;
  bool host_below_ = false;
  std::uint32_t edge_count_;
  std::uint32_t output_count_;
  Edge few_edges_[kFew];
  std::unique_ptr<Edge[]> many_edges_;
  ValueMeta first_meta_;
  std::unique_ptr<ValueMeta[]> more_metas_;
  std::atomic<NodeHooks*> hooks_{nullptr};
};

/// Which gradients a node is to compute.
class NeededEdges {
 public:
  /// All that have an edge, or those of them for which `function(owner, edge)` is true.
  explicit NeededEdges(const Node& node, bool (*function)(const void*, const Edge&) = nullptr,
                       const void* owner = nullptr) noexcept
      : node_(node), function_(function), owner_(owner) {}
  bool operator()(std::size_t i) const noexcept {
    const Edge& edge = node_.edges()[i];
    return edge.node && (function_ == nullptr || function_(owner_, edge));
  }

 private:
  const Node& node_;
  bool (*function_)(const void*, const Edge&);
  const void* owner_;
};

inline NodePtr NodePtr::share(Node* node) noexcept {
  if (node != nullptr) node->ref();
  return NodePtr(node);
}
inline NodePtr::~NodePtr() {
  if (node_ != nullptr) node_->unref();
}

}  // namespace thalweg
