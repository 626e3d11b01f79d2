// graph_dump.h: writes operators and their operands as JSON; tools/graph.schema.json describes the format.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include <thalweg/engine.h>

#include "graph/operator_record.h"

namespace thalweg {

using OperandNamesById = std::unordered_map<std::uint64_t, std::string>;

/// Everything that one dump shows. Nothing else may change the records while it is written.
struct GraphDump {
  enum class Kind : std::uint8_t { live, recording };

  Kind kind = Kind::live;
  std::string graph_name;
  /// In rising order of ids, which is a topological order: an operator is numbered after its inputs.
  std::vector<const OperatorRecord*> operators;
  OperandNamesById operand_names;
};

/// Ids of all inputs and outputs, rising, each once.
std::vector<std::uint64_t> operand_ids(std::span<const OperatorRecord* const> operators);

/// Adds the names that the engine knows of `dump`'s operands, and the graph's unless it has one. Takes the
/// baton for short times.
void add_names(Engine::Impl& engine, GraphDump& dump);

/// Writes `dump`, one operator or operand per line. Any thread, without the baton.
void write_graph(std::ostream& out, const GraphDump& dump, const Engine::Impl& engine);

}  // namespace thalweg
