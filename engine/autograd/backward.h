// backward.h: one walk over the graph, from roots to leaves, in the order that ARCHITECTURE §4 fixes.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include <thalweg/autograd.h>

namespace thalweg {

/// One backward, on the calling thread. It owns everything that an exception would have to undo.
class BackwardTask {
 public:
  /// Finds the nodes behind `root`, which the caller keeps alive.
  explicit BackwardTask(Node& root);
  ~BackwardTask();
  BackwardTask(const BackwardTask&) = delete;
  BackwardTask& operator=(const BackwardTask&) = delete;

  /// From now on only nodes on the way to a target run. An edge to capture keeps its gradient, whether its
  /// node runs or not, in what `captured` gives, in the order of these calls.
  void capture(const Edge& edge);
  /// A node that is to run itself (an accumulation).
  void target(const Node& node);

  /// The innermost task that runs on this thread, or null.
  static BackwardTask* current() noexcept;
  /// True if `node` gets a gradient.
  bool reaches(const Node& node) const noexcept;
  /// What the host keeps as long as the task lives.
  std::shared_ptr<void> host_state;

  /// Runs all, starting with `gradients` of the root's outputs.
  void run(TensorList gradients, bool keep_saved);
  std::vector<Tensor>& captured() noexcept { return captured_; }
  /// The nodes in the order in which `run` would run them.
  std::vector<NodePtr> order();

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  struct State {
    Node* node = nullptr;
    std::uint32_t missing = 0;  // gradients still to come
    std::uint32_t first_capture = kNone;
    bool is_target = false;
    bool runs = true;
    TensorList gradients;

    bool is_visited() const noexcept { return runs || first_capture != kNone; }
  };
  struct Capture {
    std::uint32_t output;
    std::uint32_t next;
  };
  struct Ready {
    std::uint64_t sequence_nr;
    std::uint64_t arrival;
    std::uint32_t state;
    /// For a heap whose top runs first: larger number, then earlier arrival.
    friend bool operator<(const Ready& a, const Ready& b) noexcept {
      return a.sequence_nr != b.sequence_nr ? a.sequence_nr < b.sequence_nr : a.arrival > b.arrival;
    }
  };

  std::uint32_t claim(Node& node, bool* fresh);
  std::uint32_t find(const Node& node) const noexcept;
  State& state_of(const Node& node) noexcept { return states_[find(node)]; }
  void discover();
  void choose_nodes();
  void push(std::uint32_t state);
  std::uint32_t pop();
  void evaluate(std::uint32_t index, bool keep_saved);
  void keep_captured(const State& state, const TensorList& gradients);
  void deliver(Node& from, TensorList& results);
  void evaluate_watched(std::uint32_t index, bool keep_saved);
  bool wants(const Edge& edge) const noexcept;

  std::vector<State> states_;
  std::unordered_map<const Node*, std::uint32_t> shared_;  // nodes that another task walks over first
  bool chosen_ = false;                                    // only some nodes run
  const AnomalyMode anomaly_ = anomaly_mode();
  std::vector<Ready> ready_;
  std::uint64_t arrivals_ = 0;
  std::vector<Capture> captures_;
  std::vector<Tensor> captured_;
};

/// `gradient` as what edge `i` of `from` leads to must look like: summed over axes along which the input was
/// broadcast, cast, made real and moved. Throws ShapeError naming the node if it does not fit.
Tensor conform(Tensor gradient, const ValueMeta& meta, const Node& from, std::size_t i);

}  // namespace thalweg
