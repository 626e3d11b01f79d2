// dump_reader.h: parses dumps for the tests of engine/inspect.
#pragma once

#include <cstdint>
#include <set>
#include <sstream>
#include <string>
#include <utility>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <thalweg/engine.h>

namespace thalweg::testing {

using Json = nlohmann::ordered_json;

inline Json live_dump(const Engine& engine) {
  std::ostringstream out;
  engine.dump_graph(out);
  return Json::parse(out.str());
}

inline Json finish_recording(Engine& engine) {
  std::ostringstream out;
  engine.stop_recording(out);
  return Json::parse(out.str());
}

/// The operator or operand with `id`; null if the dump has none.
inline Json with_id(const Json& list, std::uint64_t id) {
  for (const Json& entry : list) {
    if (entry["id"] == id) return entry;
  }
  return nullptr;
}
/// The operator that made `tensor`, which has one output and so the same id.
inline Json operator_of(const Json& dump, const Tensor& tensor) {
  return with_id(dump["operators"], tensor.id());
}
inline Json operand_of(const Json& dump, const Tensor& tensor) {
  return with_id(dump["operands"], tensor.id());
}

/// Ids rise, producers and consumers are in the file, and operators and operands tell the same edges.
inline void expect_consistent(const Json& dump) {
  using Edge = std::pair<std::uint64_t, std::uint64_t>;  // operand, operator
  std::set<Edge> read;
  std::set<Edge> consumed;
  std::set<Edge> written;
  std::set<Edge> produced;
  std::uint64_t last = 0;
  for (const Json& op : dump["operators"]) {
    const auto id = op["id"].get<std::uint64_t>();
    ASSERT_GT(id, last);
    last = id;
    for (const Json& input : op["inputs"]) {
      EXPECT_LT(input.get<std::uint64_t>(), id);
      read.emplace(input, id);
    }
    for (const Json& output : op["outputs"]) written.emplace(output, id);
  }
  last = 0;
  for (const Json& operand : dump["operands"]) {
    const auto id = operand["id"].get<std::uint64_t>();
    ASSERT_GT(id, last);
    last = id;
    for (const Json& consumer : operand["consumers"]) consumed.emplace(id, consumer);
    if (!operand["producer"].is_null()) produced.emplace(id, operand["producer"]);
  }
  EXPECT_EQ(read, consumed);
  EXPECT_EQ(written, produced);
}

}  // namespace thalweg::testing
