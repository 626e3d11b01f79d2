// operand_names.cpp: asks the executor for the names of a dump's operands.
#include <algorithm>

#include "inspect/graph_dump.h"
#include "runtime/engine_impl.h"

namespace thalweg {
namespace {

/// Names looked up in one go: about 50 us of the baton.
constexpr std::size_t kBatch = 1024;

void add_known(const OperandNames& known, std::span<const std::uint64_t> ids, OperandNamesById& names) {
  for (const std::uint64_t id : ids) {
    if (const std::string* name = known.find(id)) names.emplace(id, *name);
  }
}

}  // namespace

void add_names(Engine::Impl& engine, GraphDump& dump) {
  const std::vector<std::uint64_t> ids = operand_ids(dump.operators);
  bool any = true;
  for (std::size_t begin = 0; any && (begin < ids.size() || begin == 0); begin += kBatch) {
    const std::span<const std::uint64_t> all(ids);
    const auto batch = all.subspan(begin, std::min(kBatch, ids.size() - begin));
    const auto read = [&](const std::string& graph_name, const OperandNames& known) {
      if (dump.graph_name.empty()) dump.graph_name = graph_name;
      any = !known.empty();
      add_known(known, batch, dump.operand_names);
    };
    if (engine.synchronous) {
      engine.synchronous->inspect(read);
    } else {
      engine.eager->inspect(
          [&](LogicalGraph& graph, const Message*) { read(graph.name(), graph.operand_names()); });
    }
  }
  if (dump.graph_name.empty()) dump.graph_name = engine.options.name;
}

}  // namespace thalweg
