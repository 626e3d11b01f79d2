// synchronous_executor.h: every operator completes in the issuing call, without oneTBB: the reference and the
// debugger.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "graph/graph_executor.h"
#include "graph/operand_names.h"
#include "graph/rewrite/donation.h"
#include "runtime/naive_runner.h"

namespace thalweg {

/// Runs operators on the thread that issues them; several threads run theirs side by side.
class SynchronousExecutor final : public GraphExecutor {
 public:
  SynchronousExecutor(Engine& engine, NaiveRunner& naive) : engine_(engine), naive_(naive) {}

  void submit(Operator* op) override {
    op->donate_mask = donation_candidates(*op);
    naive_.prepare(*op);
    naive_.run(*op, {}, true);
    executed_.fetch_add(1, std::memory_order_relaxed);
    op->free();
  }
  void send(ControlMessage* message) override {
    const std::unique_ptr<ControlMessage> owner(message);
    keep_names(message->body);
    if (auto* name = std::get_if<NameOperand>(&message->body)) name->operand->unref();
    if (auto* fetch = std::get_if<FetchValue>(&message->body)) fetch->operand->unref();
    if (auto* sync = std::get_if<Synchronise>(&message->body)) sync->point->reached.store(true);
    if (auto* set = std::get_if<SetOption>(&message->body)) {
      naive_.set_memory_limit(set->value);
      if (set->applied != nullptr) set->applied->store(true, std::memory_order_release);
    }
  }
  void release(Operand* operand) noexcept override { operand->handles_gone(); }
  void flush() override {}
  void wait(Operand&) override {}
  void synchronise() override {}
  Engine& engine() noexcept override { return engine_; }

  std::uint64_t executed() const noexcept { return executed_.load(std::memory_order_relaxed); }

  /// Calls `read(graph_name, operand_names)`; names set meanwhile wait.
  template <class Read>
  void inspect(Read&& read) {
    std::lock_guard guard(names_lock_);
    read(graph_name_, operand_names_);
  }

 private:
  void keep_names(ControlMessage::Body& body) {
    std::lock_guard guard(names_lock_);
    if (auto* operand = std::get_if<NameOperand>(&body))
      operand_names_.set(operand->operand->id, std::move(operand->name));
    if (auto* graph = std::get_if<NameGraph>(&body)) graph_name_ = std::move(graph->name);
  }

  Engine& engine_;
  NaiveRunner& naive_;
  std::atomic<std::uint64_t> executed_{0};
  std::mutex names_lock_;
  OperandNames operand_names_;
  std::string graph_name_;  // empty until somebody names the graph
};

}  // namespace thalweg
