// graph_dump.cpp: JSON of operators and operands, written one at a time so that large graphs need no large
// document.
#include "inspect/graph_dump.h"

#include <algorithm>
#include <cmath>
#include <ostream>
#include <string_view>
#include <tuple>

#include <nlohmann/json.hpp>

#include "runtime/engine_impl.h"

namespace thalweg {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kVersion = 1;

// --- values
// -----------------------------------------------------------------------------------------------------

/// JSON has no NaN and no infinities: they are the strings that Python's float() reads.
Json number(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  return value;
}

Json scalar(const Scalar& value) {
  switch (value.kind()) {
    case DTypeKind::boolean: return value.to<bool>();
    case DTypeKind::unsigned_integer: return value.to<std::uint64_t>();
    case DTypeKind::signed_integer: return value.to<std::int64_t>();
    case DTypeKind::floating: break;
  }
  return number(value.to<double>());
}

Json dims(const Dims& values) {
  Json array = Json::array();
  for (const std::int64_t value : values) array.push_back(value);
  return array;
}

struct AttributeWriter {
  Json operator()(std::monostate) const { return nullptr; }
  Json operator()(bool value) const { return value; }
  Json operator()(std::int64_t value) const { return value; }
  Json operator()(double value) const { return number(value); }
  Json operator()(DType value) const { return name(value); }
  Json operator()(Device value) const { return to_string(value); }
  Json operator()(const Scalar& value) const { return scalar(value); }
  Json operator()(const Dims& value) const { return dims(value); }
  Json operator()(const std::string& value) const { return value; }
};

Json text_or_null(std::string text) { return text.empty() ? Json() : Json(std::move(text)); }
Json time_or_null(std::int64_t ns) { return ns == 0 ? Json() : Json(ns); }

std::string_view mode_name(EngineMode mode) {
  switch (mode) {
    case EngineMode::threaded: return "threaded";
    case EngineMode::caller_driven: return "caller";
    case EngineMode::synchronous: break;
  }
  return "sync";
}

std::string_view state_name(OperatorState state) {
  switch (state) {
    case OperatorState::pending: return "pending";
    case OperatorState::running: return "running";
    case OperatorState::ready: return "ready";
    case OperatorState::failed: break;
  }
  return "failed";
}

/// The stream of its device that an operator is enqueued on; a view runs nothing.
Json stream_of(const Op& op) {
  switch (op.kind) {
    case OpKind::view: return nullptr;
    case OpKind::copy: return "copy";
    case OpKind::kernel: break;
  }
  return "compute";
}

// --- operators
// --------------------------------------------------------------------------------------------------

/// Numbers threads from 0 in the order in which the file names them: a thread's own number means nothing to a
/// reader.
class ThreadNumbers {
 public:
  Json operator()(const OperatorRecord& record) {
    if (record.start_ns.load(std::memory_order_relaxed) == 0) return nullptr;
    return numbers_.emplace(record.thread, numbers_.size()).first->second;
  }

 private:
  std::unordered_map<std::uint32_t, std::size_t> numbers_;
};

Json attributes_of(const OperatorRecord& record) {
  Json object = Json::object();
  const auto& specs = record.op->attributes;
  for (std::size_t i = 0; i < specs.size() && i < record.attributes.size(); ++i) {
    object[specs[i].name] = std::visit(AttributeWriter{}, record.attributes[i]);
  }
  return object;
}

Json ids_of(const std::vector<OperandRecord>& operands) {
  Json ids = Json::array();
  for (const OperandRecord& operand : operands) ids.push_back(operand.id);
  return ids;
}

Json operator_json(const OperatorRecord& record, std::string site, ThreadNumbers& threads) {
  return Json{
      {"id", record.id},
      {"name", record.op->name + "_" + std::to_string(record.id)},
      {"op", record.op->name},
      {"attributes", attributes_of(record)},
      {"inputs", ids_of(record.inputs)},
      {"outputs", ids_of(record.outputs)},
      {"sequence_number", nullptr},
      {"site", text_or_null(std::move(site))},
      {"devices", Json::array({to_string(record.device)})},
      {"stream", stream_of(*record.op)},
      {"state", state_name(record.state.load(std::memory_order_acquire))},
      {"fused-into", nullptr},
      {"enqueue_ns", time_or_null(record.enqueue_ns)},
      {"start_ns", time_or_null(record.start_ns.load(std::memory_order_relaxed))},
      {"end_ns", time_or_null(record.end_ns.load(std::memory_order_relaxed))},
      {"bytes", record.bytes},
      {"thread", threads(record)},
  };
}

// --- operands
// ---------------------------------------------------------------------------------------------------

/// One place where an operator names an operand. Sorted, the uses of an operand stand together, its producer
/// first and its consumers in topological order.
struct Use {
  std::uint64_t operand;
  bool consumes;
  std::uint64_t op;
  const OperandRecord* record;

  friend bool operator<(const Use& a, const Use& b) noexcept {
    return std::tie(a.operand, a.consumes, a.op) < std::tie(b.operand, b.consumes, b.op);
  }
};

std::vector<Use> uses_of(std::span<const OperatorRecord* const> operators) {
  std::vector<Use> uses;
  uses.reserve(operators.size() * 3);
  for (const OperatorRecord* record : operators) {
    for (const OperandRecord& output : record->outputs)
      uses.push_back({output.id, false, record->id, &output});
    for (const OperandRecord& input : record->inputs) uses.push_back({input.id, true, record->id, &input});
  }
  std::sort(uses.begin(), uses.end());
  return uses;
}

/// `uses` are all those of one operand.
Json operand_json(std::span<const Use> uses, const OperandNamesById& names) {
  const TensorMeta& meta = uses.front().record->meta;
  const auto name_entry = names.find(uses.front().operand);
  Json consumers = Json::array();
  std::uint64_t last = 0;
  for (const Use& use : uses) {
    if (use.consumes && use.op != last) consumers.push_back(use.op);
    if (use.consumes) last = use.op;
  }
  return Json{
      {"id", uses.front().operand},
      {"name", name_entry == names.end() ? Json() : text_or_null(name_entry->second)},
      {"shape", dims(meta.shape)},
      {"dtype", name(meta.dtype)},
      {"device", to_string(meta.device)},
      {"bytes", meta.bytes()},
      {"producer", uses.front().consumes ? Json() : Json(uses.front().op)},
      {"consumers", std::move(consumers)},
  };
}

// --- the file
// ---------------------------------------------------------------------------------------------------

Json engine_json(const Engine::Impl& engine) {
  Json devices = Json::array();
  for (const Device device : engine.devices.all()) devices.push_back(to_string(device));
  return Json{
      {"mode", mode_name(engine.options.mode)},
      {"num_threads", static_cast<int>(engine.threads)},
      {"devices", std::move(devices)},
      {"run_inline", engine.options.run_inline},
      {"version", THALWEG_VERSION},
  };
}

/// A user's text may hold bytes that are not UTF-8: they become U+FFFD instead of an error.
std::string line(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); }

class ArrayWriter {
 public:
  explicit ArrayWriter(std::ostream& out) : out_(out) { out_ << '['; }
  void add(const Json& value) {
    out_ << (first_ ? "\n" : ",\n") << line(value);
    first_ = false;
  }
  void end() { out_ << "\n]"; }

 private:
  std::ostream& out_;
  bool first_ = true;
};

void write_operators(std::ostream& out, const GraphDump& dump, const Engine::Impl& engine) {
  ThreadNumbers threads;
  ArrayWriter array(out);
  for (const OperatorRecord* record : dump.operators) {
    array.add(operator_json(*record, engine.site_text(record->site), threads));
  }
  array.end();
}

void write_operands(std::ostream& out, const GraphDump& dump) {
  const std::vector<Use> uses = uses_of(dump.operators);
  ArrayWriter array(out);
  for (auto begin = uses.begin(); begin != uses.end();) {
    const auto end =
        std::find_if(begin, uses.end(), [&](const Use& use) { return use.operand != begin->operand; });
    array.add(operand_json({begin, end}, dump.operand_names));
    begin = end;
  }
  array.end();
}

}  // namespace

std::vector<std::uint64_t> operand_ids(std::span<const OperatorRecord* const> operators) {
  std::vector<std::uint64_t> ids;
  for (const OperatorRecord* record : operators) {
    for (const OperandRecord& output : record->outputs) ids.push_back(output.id);
    for (const OperandRecord& input : record->inputs) ids.push_back(input.id);
  }
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

void write_graph(std::ostream& out, const GraphDump& dump, const Engine::Impl& engine) {
  out << "{\n\"format\": \"thalweg.graph\",\n\"version\": " << kVersion                          //
      << ",\n\"graph\": " << line(dump.graph_name)                                               //
      << ",\n\"kind\": " << (dump.kind == GraphDump::Kind::live ? "\"live\"" : "\"recording\"")  //
      << ",\n\"clock\": \"steady\",\n\"engine\": " << line(engine_json(engine)) << ",\n\"operators\": ";
  write_operators(out, dump, engine);
  out << ",\n\"operands\": ";
  write_operands(out, dump);
  out << "\n}\n";
}

}  // namespace thalweg
