// flow_peer.cpp: continue_node per addition: guard predecessor, done flag under a lock, reference counts.
#include "flow_peer.h"

#include <array>
#include <atomic>
#include <latch>
#include <optional>
#include <thread>
#include <vector>

#include <oneapi/tbb/flow_graph.h>
#include <oneapi/tbb/spin_mutex.h>
#include <oneapi/tbb/task_arena.h>

#include "harness.h"

namespace bench {

class FlowAdd;

// An edge as its producer remembers it; lives in the consumer.
struct Consumer {
  FlowAdd* node = nullptr;
  Consumer* next = nullptr;
};

struct FlowPeer::Graph {
  Graph(NodeSupply supply, int threads);
  ~Graph();

  FlowAdd* take();
  void give_back(FlowAdd* node);
  // The calling body is over when its thread's arena slot runs the next one: only then may the node of the
  // slot's previous body be let go, because oneTBB has no hook after a node's broadcast to its successors.
  FlowAdd* exchange_last_of_slot(FlowAdd* node) {
    const auto slot = static_cast<std::size_t>(tbb::this_task_arena::current_thread_index());
    return last_of_slot[slot].exchange(node, std::memory_order_acq_rel);
  }

  const NodeSupply supply;
  tbb::task_arena arena;
  std::optional<tbb::flow::graph> graph;
  std::thread device_thread;
  std::vector<std::atomic<FlowAdd*>> last_of_slot;
  alignas(128) std::atomic<std::int64_t> finished{0};
  // Slots given back, by any thread (`supply` slab); the issuing thread takes the whole list.
  alignas(128) std::atomic<FlowAdd*> returned{nullptr};
  alignas(128) FlowAdd* free = nullptr;
};

class FlowAdd final : public tbb::flow::continue_node<tbb::flow::continue_msg> {
 public:
  explicit FlowAdd(FlowPeer::Graph& owner, tbb::flow::graph& graph)
      : continue_node(graph, 1,
                      [this](const tbb::flow::continue_msg&) noexcept {
                        run();
                        return tbb::flow::continue_msg();
                      }),
        owner_(owner) {}

  // Makes a slab's node ready for its next addition.
  void reset() {
    reset_node(tbb::flow::rf_clear_edges);
    done_ = false;
    inputs_ = {};
    references_.store(2, std::memory_order_relaxed);
  }

  // Wires the node to its producers and lets it go. The caller holds a reference on each of them.
  void start(FlowAdd* first, FlowAdd* second) {
    inputs_ = {first, second};
    for (std::size_t i = 0; i < 2; ++i) {
      if (inputs_[i] != nullptr) wire(*inputs_[i], edges_[i]);
    }
    try_put(tbb::flow::continue_msg());  // releases the guard predecessor
  }

  void add_reference() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
  void drop_reference() {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) owner_.give_back(this);
  }
  // The broadcast is over: the consumers will not be touched by it any more, nor will this node.
  void leave_broadcast() {
    for (Consumer* edge = consumers_; edge != nullptr;) {
      Consumer* next = edge->next;
      edge->node->drop_reference();
      edge = next;
    }
    consumers_ = nullptr;
    drop_reference();
  }
  float value() const noexcept { return value_; }

  FlowAdd* next_free = nullptr;

 private:
  void wire(FlowAdd& producer, Consumer& edge) {
    producer.add_reference();  // its value is read by this node's body
    tbb::spin_mutex::scoped_lock lock(producer.mutex_);
    if (producer.done_) return;  // an edge to a node that fired would be lost
    if (owner_.supply == NodeSupply::heap) {
      add_reference();
      edge = {this, producer.consumers_};
      producer.consumers_ = &edge;
    }
    tbb::flow::make_edge(producer, *this);
  }

  void run() {
    const auto value_of = [](const FlowAdd* input) { return input == nullptr ? 1.0f : input->value_; };
    value_ = value_of(inputs_[0]) + value_of(inputs_[1]);
    for (FlowAdd* input : inputs_) {
      if (input != nullptr) input->drop_reference();
    }
    {
      tbb::spin_mutex::scoped_lock lock(mutex_);
      done_ = true;
    }
    FlowPeer::Graph& owner = owner_;
    if (FlowAdd* previous = owner.exchange_last_of_slot(this)) previous->leave_broadcast();
    // Release pairs with the acquire of the issuing thread, which reads values afterwards.
    owner.finished.fetch_add(1, std::memory_order_release);
  }

  FlowPeer::Graph& owner_;
  std::atomic<int> references_{
      2};  // the issuing thread's handle, and the node itself until its broadcast is over
  tbb::spin_mutex mutex_;
  bool done_ = false;
  float value_ = 0;
  std::array<FlowAdd*, 2> inputs_{};
  std::array<Consumer, 2> edges_{};
  Consumer* consumers_ = nullptr;
};

FlowPeer::Graph::Graph(NodeSupply node_supply, int threads)
    : supply(node_supply), arena(threads, 1), last_of_slot(static_cast<std::size_t>(threads) + 2) {
  std::latch started(1);
  device_thread = std::thread([this, &started] {
    arena.execute([&] {
      graph.emplace();
      graph->reserve_wait();
      started.count_down();
      graph->wait_for_all();
    });
  });
  started.wait();
}

FlowPeer::Graph::~Graph() {
  graph->release_wait();
  device_thread.join();
  for (std::atomic<FlowAdd*>& last : last_of_slot) {
    if (FlowAdd* node = last.load()) node->leave_broadcast();
  }
  for (FlowAdd* list : {free, returned.load()}) {
    while (list != nullptr) delete std::exchange(list, list->next_free);
  }
}

FlowAdd* FlowPeer::Graph::take() {
  if (supply == NodeSupply::heap) return new FlowAdd(*this, *graph);
  if (free == nullptr) free = returned.exchange(nullptr, std::memory_order_acquire);
  if (free == nullptr) return new FlowAdd(*this, *graph);
  FlowAdd* node = std::exchange(free, free->next_free);
  node->reset();
  return node;
}

void FlowPeer::Graph::give_back(FlowAdd* node) {
  if (supply == NodeSupply::heap) {
    delete node;
    return;
  }
  FlowAdd* head = returned.load(std::memory_order_relaxed);
  do {
    node->next_free = head;
  } while (!returned.compare_exchange_weak(head, node, std::memory_order_release, std::memory_order_relaxed));
}

FlowPeer::FlowPeer(NodeSupply supply, int threads) : graph_(std::make_unique<Graph>(supply, threads)) {}
FlowPeer::~FlowPeer() = default;

FlowPeer::Result FlowPeer::run(const AddPlan& plan) {
  std::array<FlowAdd*, kHandles> kept{};
  std::vector<FlowAdd*> probes;
  probes.reserve(plan.count() / AddPlan::kStretch + 2);
  const std::int64_t start = graph_->finished.load();
  std::int64_t finished = start;
  const auto wait_for = [&](std::int64_t count) {
    while (finished < count) {
      finished = graph_->finished.load(std::memory_order_acquire);
      if (finished < count) std::this_thread::yield();
    }
  };
  const auto kept_in = [&](std::int8_t slot) {
    return slot == kConstant ? nullptr : kept[static_cast<std::size_t>(slot)];
  };

  const Stopwatch watch;
  for (std::size_t i = 0; i < plan.count(); ++i) {
    const std::int64_t issued = start + static_cast<std::int64_t>(i);
    // Full: waits for some room at once, because looking at the counter after every addition slows the
    // workers down.
    if (issued - finished >= kWindow) wait_for(issued - kWindow + kWindow / 8);
    FlowAdd* node = graph_->take();
    node->start(kept_in(plan.reads[i][0]), kept_in(plan.reads[i][1]));
    if (plan.is_probe(i)) {
      node->add_reference();
      probes.push_back(node);
    }
    if (FlowAdd* old = std::exchange(kept[i % kHandles], node)) old->drop_reference();
  }
  wait_for(start + static_cast<std::int64_t>(plan.count()));
  Result result{.seconds = watch.seconds()};

  result.executed = graph_->finished.load() - start;
  for (FlowAdd* probe : probes) {
    result.checksum += static_cast<double>(probe->value());
    probe->drop_reference();
  }
  for (FlowAdd* node : kept) {
    if (node != nullptr) node->drop_reference();
  }
  return result;
}

}  // namespace bench
