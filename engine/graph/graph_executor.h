// graph_executor.h: what the front of the engine asks of whoever carries operators out.
#pragma once

#include <atomic>
#include <cstdint>

#include "graph/message_queue.h"
#include "graph/operator.h"

namespace thalweg {

/// Carries out operators. Implementations: EagerGraphExecutor (task graph) and SynchronousExecutor.
class GraphExecutor {
 public:
  virtual ~GraphExecutor() = default;

  /// Takes the operator over and starts it at some time after. Any thread. May block an application thread
  /// (helping) while the run-ahead is over its limits. Throws Interrupted while it blocks, but not for an
  /// in-place form; the operator has failed then.
  virtual void submit(Operator* op) = 0;
  /// Takes the message over. Any thread.
  virtual void send(ControlMessage* message) = 0;
  /// The last handle of an unfinished operand went: calls `handles_gone`. Any thread, also finalizers.
  virtual void release(Operand* operand) noexcept = 0;
  /// Starts everything sent before. Does not wait.
  virtual void flush() = 0;
  /// Returns when `operand` is done; helps meanwhile. Throws Interrupted.
  virtual void wait(Operand& operand) = 0;
  /// Returns when everything sent before by any thread is done. Throws Interrupted.
  virtual void synchronise() = 0;

  /// The engine this executor belongs to.
  virtual Engine& engine() noexcept = 0;

  /// Completion callbacks that have begun and not ended.
  std::atomic<int> callbacks_running{0};
};

}  // namespace thalweg
