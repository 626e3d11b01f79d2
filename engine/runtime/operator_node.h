// operator_node.h: the oneTBB flow-graph node that one Operator becomes. Heavy header: .cpp files of runtime/
// only.
#pragma once

#include <atomic>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include <oneapi/tbb/flow_graph.h>

#include <thalweg/small_vector.h>

#include "core/assert.h"
#include "graph/operator.h"

namespace thalweg {

class DeviceArena;

/// Names the type that a stock node's `execute` returns, which differs between versions of oneTBB.
class StockJoin : public tbb::flow::continue_node<tbb::flow::continue_msg> {
 public:
  auto run() -> decltype(this->execute()) { return this->execute(); }
};

/// One composite flow-graph node: its input port joins the operand edges (a `continue_node` that counts
/// them), its output port signals the consumers (a sender). Two ports instead of a single continue_node
/// because that would broadcast as soon as its body returns: with an output port of its own an operator is
/// over when somebody says so, so a body can decline (somebody else runs the operator), wait for memory or a
/// thread, and a helper outside the arena can run it.
///
/// Slots are pooled by DeviceArena and never destroyed while its graph lives: a producer that is still
/// broadcasting may look at a consumer which has long run, and then reads only the graph pointer, which never
/// changes.
class OperatorNode final : public tbb::flow::composite_node<std::tuple<tbb::flow::continue_msg>,
                                                            std::tuple<tbb::flow::continue_msg>> {
  using Message = tbb::flow::continue_msg;
  using Base = tbb::flow::composite_node<std::tuple<Message>, std::tuple<Message>>;

 public:
  using Fired = void (*)(DeviceArena& arena, OperatorNode& node) noexcept;

  OperatorNode(tbb::flow::graph& graph, DeviceArena& arena, Fired fired)
      : Base(graph), join_(graph, arena, *this, fired) {
    Base::set_external_ports(typename Base::input_ports_type(join_),
                             typename Base::output_ports_type(result_));
  }

  /// Makes the node `op`'s. Baton; the slot is not in use.
  void bind(Operator* op) noexcept {
    op_ = op;
    done_ = false;
    op->node = this;
  }
  /// Forgets edges and counts. Baton, after the operator and its flow task are over.
  void reset() {
    if (std::exchange(has_predecessors_, false)) join_.reset();
    if (std::exchange(has_edges_, false)) result_.reset();
    op_ = nullptr;
  }
  Operator* op() const noexcept { return op_; }

  /// An operand edge to `consumer`, a node of the same graph; false if this operator is over already. The
  /// flag and the edge list change under one lock, since oneTBB loses an edge to a node that has fired.
  bool add_successor(OperatorNode& consumer) {
    SpinGuard guard(lock_);
    if (done_) return false;
    tbb::flow::make_edge(tbb::flow::output_port<0>(*this), tbb::flow::input_port<0>(consumer));
    has_edges_ = true;
    consumer.has_predecessors_ = true;
    return true;
  }
  /// The same for a consumer in another device's graph: an edge would run it in the wrong arena, so `finish`
  /// puts to its node explicitly.
  bool add_foreign_successor(Operator& consumer) {
    SpinGuard guard(lock_);
    if (done_) return false;
    foreign_.push_back(&consumer);
    return true;
  }

  /// Gives one of the puts the node waits for beside its edges; the last lets it fire once its edges have
  /// fired.
  void put_guard() {
    if (op_->guards.fetch_sub(1, std::memory_order_acq_rel) == 1) join_.try_put(Message());
  }

  /// The operator is over: signals the consumers. The thread that ran it.
  void finish() {
    std::vector<Operator*> foreign;
    bool has_edges = false;
    {
      SpinGuard guard(lock_);
      done_ = true;
      has_edges = has_edges_;
      foreign.swap(foreign_);
    }
    if (has_edges) result_.broadcast();
    for (Operator* consumer : foreign) consumer->node->put_guard();
  }

  /// At most one ready consumer, kept by the thread that is signalling the consumers of an operator.
  class Worklist {
   public:
    explicit Worklist(DeviceArena& arena) noexcept : outer_(current()), arena_(arena) { current() = this; }
    ~Worklist() { current() = outer_; }
    Worklist(const Worklist&) = delete;
    Worklist& operator=(const Worklist&) = delete;

    OperatorNode* take() noexcept { return std::exchange(next_, nullptr); }
    static bool keep(DeviceArena& arena, OperatorNode& node) noexcept {
      Worklist* list = current();
      if (list == nullptr || &list->arena_ != &arena || list->next_ != nullptr) return false;
      list->next_ = &node;
      return true;
    }

   private:
    static Worklist*& current() noexcept {
      static constinit thread_local Worklist* list = nullptr;
      return list;
    }

    Worklist* outer_;
    DeviceArena& arena_;
    OperatorNode* next_ = nullptr;
  };

 private:
  class SpinGuard {
   public:
    explicit SpinGuard(std::atomic<bool>& lock) noexcept : lock_(lock) {
      while (lock_.exchange(true, std::memory_order_acquire)) {
      }
    }
    ~SpinGuard() { lock_.store(false, std::memory_order_release); }
    SpinGuard(const SpinGuard&) = delete;
    SpinGuard& operator=(const SpinGuard&) = delete;

   private:
    std::atomic<bool>& lock_;
  };

  // Thin derived classes: resetting a node for reuse is a protected member of the stock ones.
  class Join final : public tbb::flow::continue_node<Message> {
   public:
    Join(tbb::flow::graph& graph, DeviceArena& arena, OperatorNode& node, Fired fired)
        // One predecessor that never is one: the guard. Without it a node fires while its edges are being
        // added.
        : continue_node(graph, 1, [&arena, &node, fired](const Message&) noexcept { fired(arena, node); }),
          node_(node),
          arena_(arena) {}
    /// Only the counts: the node has no stock successors, and the tail of its last flow task may still look
    /// at the empty list of them, which a full reset would clear.
    void reset() { reset_receiver(tbb::flow::rf_clear_edges); }
    void expect_one_more(tbb::flow::sender<Message>& producer) { register_predecessor(producer); }

   private:
    /// All edges have fired: by default a task is made. While a body of this arena signals its consumers, the
    /// first that gets ready is kept for the worklist of that thread instead, which saves a task and a trip
    /// through the scheduler.
    auto execute() -> decltype(std::declval<StockJoin&>().run()) override {
      if (Worklist::keep(arena_, node_)) return nullptr;
      return continue_node::execute();
    }

    OperatorNode& node_;
    DeviceArena& arena_;
  };
  /// The output port. A stock broadcast_node would do, but keeps its edges in a list of heap nodes and clears
  /// them under a reader-writer lock; here the lock of the operator guards them, and a few live in the slot.
  class Result final : public tbb::flow::sender<Message> {
   public:
    void broadcast() {
      // By index and bounded first: nobody adds edges any more.
      for (std::size_t i = 0, count = successors_.size(); i < count; ++i) successors_[i]->try_put(Message());
    }
    void reset() { successors_.clear(); }

   private:
    bool register_successor(successor_type& successor) override {
      auto& join = static_cast<Join&>(successor);  // edges are made between OperatorNodes only
      join.expect_one_more(*this);
      successors_.push_back(&join);
      return true;
    }
    bool remove_successor(successor_type&) override { return false; }

    SmallVector<Join*, 6> successors_;
  };

  Join join_;
  Result result_;
  Operator* op_ = nullptr;
  std::atomic<bool> lock_{false};
  bool done_ = false;
  bool has_edges_ = false;
  bool has_predecessors_ = false;  // baton
  std::vector<Operator*> foreign_;
};

}  // namespace thalweg
