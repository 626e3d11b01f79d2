// node_runner.h: carries out the operators of a traversal on the devices.
#pragma once

#include <cstdint>

#include "graph/logical_graph.h"

namespace thalweg {

/// What a node runner tells its executor. Any thread; must not block.
class NodeRunnerListener {
 public:
  virtual ~NodeRunnerListener() = default;
  /// `op` has run (its outputs are done); its slot is still in use.
  virtual void on_finished(Operator* op) noexcept = 0;
  /// Callbacks of an operator that ran under the baton: to be called after it was given back.
  virtual void on_postponed(Waiter* newest) noexcept = 0;
  /// Nobody uses `op`'s slot any more: it may be reaped.
  virtual void on_retirable(Operator* op) noexcept = 0;
  /// An operator waits for memory from now on: somebody must see to it.
  virtual void on_parked() noexcept = 0;
};

/// Runs operators in dependency order. All members but `run_claimed`, `retry_parked` and those of waits
/// belong to the baton holder.
class NodeRunner {
 public:
  virtual ~NodeRunner() = default;

  /// Wires `op` to its unfinished producers and lets it go. True if it ran right here, under the baton, and
  /// is over: its slot is then the caller's.
  virtual bool launch(Operator* op) = 0;
  /// After the launches of a batch: nothing is held back any more.
  virtual void end_batch() = 0;
  /// Takes back what `launch` gave the operator. Its run and its flow task are over.
  virtual void recycle(Operator* op) = 0;
  /// Claims a short operator that has not begun, is ready, and is `target`'s producer or one of its
  /// ancestors; nullptr if there is none. The caller runs it with `run_claimed` after it gave the baton back.
  virtual Operator* claim_ancestor(Operand& target) = 0;
  /// Claims `op`, a live operator, if it is short, ready and has not begun.
  virtual Operator* claim_ready(Operator* op) = 0;
  virtual void run_claimed(Operator* op) noexcept = 0;

  /// Operators that wait for memory.
  virtual int parked() const noexcept = 0;
  /// Hands parked operators that fit by now to their arenas: of each device in order, up to the first that
  /// does not fit, or, of `all`, each. True if there was one.
  virtual bool retry_parked(bool all) noexcept = 0;
  /// Gives the oldest parked operator its error.
  virtual void fail_parked() noexcept = 0;

  /// The kernel of `op`, an operator of this runner, begins or ends to wait for `operand`, one of the same
  /// engine.
  virtual void wait_begins(const Operator& op, const Operand& operand) = 0;
  virtual void wait_ends(const Operator& op, const Operand& operand) noexcept = 0;

  /// True if every unfinished operator waits for memory, or for one that does, as its input or in its kernel.
  virtual bool is_stuck(const LogicalGraph& graph) const noexcept = 0;

  /// How many threads carry out operators at this moment. Baton.
  virtual int running() const noexcept = 0;
  /// How many kernels of custom operators have begun and not ended.
  virtual int user_kernels() const noexcept = 0;

  /// Ends the arenas; the next launch starts them with `threads`. Nothing is in flight.
  virtual void rebuild(int threads) = 0;
  virtual std::uint64_t run_inline() const noexcept = 0;
};

}  // namespace thalweg
