// live_graph.cpp: Engine::dump_graph: a snapshot under the baton, written after it was given back.
#include <algorithm>
#include <deque>
#include <memory>
#include <variant>

#include <thalweg/engine.h>
#include <thalweg/errors.h>

#include "inspect/graph_dump.h"
#include "runtime/engine_impl.h"
#include "runtime/engine_task.h"
#include "runtime/host_release.h"

namespace thalweg {
namespace {

/// What one look at the engine copies. Everything that takes long (sites, sorting, JSON) comes after.
struct Snapshot {
  std::deque<OperatorRecord> operators;  // stable addresses, one allocation for several
  OperandNamesById sent_names;           // in messages that nobody handled yet
  std::string sent_graph_name;
};

/// Room first: a pinned operator must not wait for the allocator.
void make_room(OperatorRecord& record, Operator& op) {
  record.inputs.reserve(op.inputs().size());
  record.outputs.reserve(op.outputs().size());
}

void copy_operands(OperatorRecord& record, Operator& op) {
  for (const Operand* input : op.inputs()) record.inputs.push_back({input->id, input->meta, {}});
  for (const Operand* output : op.outputs()) record.outputs.push_back({output->id, output->meta, {}});
}

void copy_operator(OperatorRecord& record, const Operator& op) {
  record.id = op.id;
  record.op = op.op;
  record.attributes = op.attributes;
  record.site = op.site;
  record.device = op.device;
  record.bytes = op.bytes;
}

/// Copies the operands of an operator that may run, end and drop them at any moment: they are read only while
/// it is pinned. False if it has let go of them, which is the last thing before its results are there.
bool copy_pinned_operands(OperatorRecord& record, Operator& op) {
  make_room(record, op);
  if (!op.pin()) return false;
  const std::unique_ptr<Operator, void (*)(Operator*)> pinned(&op, [](Operator* self) { self->unpin(); });
  copy_operands(record, op);
  return true;
}

void add_launched(Snapshot& snapshot, Operator& op) {
  OperatorRecord& record = snapshot.operators.emplace_back();
  if (!copy_pinned_operands(record, op)) return snapshot.operators.pop_back();
  copy_operator(record, op);
  const bool begun = op.claim.load(std::memory_order_relaxed) != op.id;
  record.state.store(begun ? OperatorState::running : OperatorState::pending, std::memory_order_relaxed);
}

/// Nobody but the baton holder touches what is still in the queue.
void add_sent(Snapshot& snapshot, const Message* message) {
  if (message->kind == Message::Kind::add_operator) {
    auto& op = const_cast<Operator&>(static_cast<const Operator&>(*message));
    OperatorRecord& record = snapshot.operators.emplace_back();
    copy_operands(record, op);
    copy_operator(record, op);
    return;
  }
  // Newest first: the first name met is the one that counts.
  const auto& body = static_cast<const ControlMessage*>(message)->body;
  if (const auto* named = std::get_if<NameOperand>(&body))
    snapshot.sent_names.emplace(named->operand->id, named->name);
  const auto* graph = std::get_if<NameGraph>(&body);
  if (graph != nullptr && snapshot.sent_graph_name.empty()) snapshot.sent_graph_name = graph->name;
}

Snapshot take_snapshot(EagerGraphExecutor& executor) {
  Snapshot snapshot;
  executor.inspect([&](LogicalGraph& graph, const Message* newest) {
    for (Operator* op = graph.first(); op != nullptr; op = op->live_next) add_launched(snapshot, *op);
    for (const Message* message = newest; message != nullptr; message = message->next_message) {
      add_sent(snapshot, message);
    }
  });
  return snapshot;
}

}  // namespace

void Engine::dump_graph(std::ostream& out) const {
  if (EngineTask::active()) {
    throw EngineError(
        "dump_graph: an operator's kernel or a completion callback cannot dump; do it on another thread");
  }
  // Whoever has the baton may be waiting for an operator that needs what the host would keep.
  const HostRelease release(impl_->options.hooks);
  GraphDump dump;
  Snapshot snapshot;
  if (impl_->eager) snapshot = take_snapshot(*impl_->eager);
  for (const OperatorRecord& record : snapshot.operators) dump.operators.push_back(&record);
  std::sort(dump.operators.begin(), dump.operators.end(),
            [](const OperatorRecord* a, const OperatorRecord* b) { return a->id < b->id; });
  dump.operand_names = std::move(snapshot.sent_names);
  dump.graph_name = std::move(snapshot.sent_graph_name);
  add_names(*impl_, dump);
  write_graph(out, dump, *impl_);
}

}  // namespace thalweg
