// graph_dump.cpp: JSON of operators and operands, written one at a time so that large graphs need no large
// document.
#include "inspect/graph_dump.h"

#include <algorithm>
#include <ostream>
#include <string_view>
#include <tuple>

#include "inspect/json_writer.h"
#include "runtime/engine_impl.h"

namespace thalweg {
namespace {

constexpr int kVersion = 1;

// --- values
// -------------------------------------------------------------------------------------------------

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

/// The stream of its device that an operator is enqueued on; empty for a view, which runs nothing.
std::string_view stream_of(const Op& op) {
  switch (op.kind) {
    case OpKind::view: return {};
    case OpKind::copy: return "copy";
    case OpKind::kernel: break;
  }
  return "compute";
}

struct AttributeWriter {
  JsonValue out;

  void operator()(std::monostate) { out.null(); }
  void operator()(bool value) { out.boolean(value); }
  void operator()(std::int64_t value) { out.integer(value); }
  void operator()(double value) { out.number(value); }
  void operator()(DType value) { out.text(name(value)); }
  void operator()(Device value) { out.text(to_string(value)); }
  void operator()(const Dims& value) { out.integers(value); }
  void operator()(const std::string& value) { out.text(value); }
  void operator()(const Scalar& value) {
    switch (value.kind()) {
      case DTypeKind::boolean: return out.boolean(value.to<bool>());
      case DTypeKind::unsigned_integer: return out.integer(value.to<std::uint64_t>());
      case DTypeKind::signed_integer: return out.integer(value.to<std::int64_t>());
      case DTypeKind::floating: return out.number(value.to<double>());
      case DTypeKind::complex_floating: break;
    }
    out.text(to_string(AttrValue(value)));
  }
};

void write_time(JsonValue out, std::int64_t ns) { ns == 0 ? out.null() : out.integer(ns); }

void write_devices(JsonValue out, const std::vector<Device>& devices) {
  out.array(devices, [](JsonValue& item, Device device) { item.text(to_string(device)); });
}

// --- operators
// ----------------------------------------------------------------------------------------------

/// Numbers threads from 0 in the order in which the file names them: a thread's own number means nothing to a
/// reader.
class ThreadNumbers {
 public:
  void write(JsonValue out, const OperatorRecord& record) {
    if (record.start_ns.load(std::memory_order_relaxed) == 0) return out.null();
    out.integer(numbers_.emplace(record.thread, numbers_.size()).first->second);
  }

 private:
  std::unordered_map<std::uint32_t, std::size_t> numbers_;
};

void write_attributes(JsonObject object, const OperatorRecord& record) {
  const auto& specs = record.op->attributes;
  for (std::size_t i = 0; i < specs.size() && i < record.attributes.size(); ++i) {
    std::visit(AttributeWriter{object.key(specs[i].name)}, record.attributes[i]);
  }
  object.end();
}

void write_ids(JsonValue out, const std::vector<OperandRecord>& operands) {
  out.array(operands, [](JsonValue& item, const OperandRecord& operand) { item.integer(operand.id); });
}

void write_operator(std::string& out, const OperatorRecord& record, const std::string& site,
                    ThreadNumbers& threads) {
  JsonObject object(out);
  object.key("id").integer(record.id);
  object.key("name").text(record.op->name + "_" + std::to_string(record.id));
  object.key("op").text(record.op->name);
  write_attributes(object.object("attributes"), record);
  write_ids(object.key("inputs"), record.inputs);
  write_ids(object.key("outputs"), record.outputs);
  object.key("sequence_number").null();
  object.key("site").text_or_null(site);
  write_devices(object.key("devices"), {record.device});
  object.key("stream").text_or_null(stream_of(*record.op));
  object.key("state").text(state_name(record.state.load(std::memory_order_acquire)));
  object.key("fused-into").null();
  write_time(object.key("enqueue_ns"), record.enqueue_ns);
  write_time(object.key("start_ns"), record.start_ns.load(std::memory_order_relaxed));
  write_time(object.key("end_ns"), record.end_ns.load(std::memory_order_relaxed));
  object.key("bytes").integer(record.bytes);
  threads.write(object.key("thread"), record);
  object.end();
}

// --- operands
// -----------------------------------------------------------------------------------------------

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

/// Each use once, also of an operator that reads an operand twice.
std::vector<Use> uses_of(std::span<const OperatorRecord* const> operators) {
  std::vector<Use> uses;
  uses.reserve(operators.size() * 3);
  for (const OperatorRecord* record : operators) {
    for (const OperandRecord& output : record->outputs) {
      uses.push_back({output.id, false, record->id, &output});
    }
    for (const OperandRecord& input : record->inputs) uses.push_back({input.id, true, record->id, &input});
  }
  std::sort(uses.begin(), uses.end());
  const auto same = [](const Use& a, const Use& b) { return !(a < b) && !(b < a); };
  uses.erase(std::unique(uses.begin(), uses.end(), same), uses.end());
  return uses;
}

/// `uses` are all those of one operand.
void write_operand(std::string& out, std::span<const Use> uses, const OperandNamesById& names) {
  const Use& first = uses.front();
  const TensorMeta& meta = first.record->meta;
  const auto name_entry = names.find(first.operand);
  JsonObject object(out);
  object.key("id").integer(first.operand);
  object.key("name").text_or_null(name_entry == names.end() ? std::string_view() : name_entry->second);
  object.key("shape").integers(meta.shape);
  object.key("dtype").text(name(meta.dtype));
  object.key("device").text(to_string(meta.device));
  object.key("bytes").integer(meta.bytes());
  if (first.consumes) {
    object.key("producer").null();
  } else {
    object.key("producer").integer(first.op);
  }
  object.key("consumers").array(uses.subspan(first.consumes ? 0 : 1), [](JsonValue& item, const Use& use) {
    item.integer(use.op);
  });
  object.end();
}

// --- the file
// -----------------------------------------------------------------------------------------------

/// An array, one element a line.
class LineWriter {
 public:
  LineWriter(std::ostream& out, std::string_view key) : out_(out) { out_ << ",\n\"" << key << "\": ["; }
  /// Where the next element goes; `end_line` writes it out.
  std::string& line() {
    line_.assign(first_ ? "\n" : ",\n");
    first_ = false;
    return line_;
  }
  void end_line() { out_ << line_; }
  void end() { out_ << "\n]"; }

 private:
  std::ostream& out_;
  std::string line_;
  bool first_ = true;
};

void write_head(std::ostream& out, const GraphDump& dump, const Engine::Impl& engine) {
  std::string name;
  JsonValue(name).text(dump.graph_name);
  std::string about;
  JsonObject object(about);
  object.key("mode").text(mode_name(engine.options.mode));
  object.key("num_threads").integer(static_cast<int>(engine.threads));
  write_devices(object.key("devices"), engine.devices.all());
  object.key("run_inline").boolean(engine.options.run_inline);
  object.key("version").text(THALWEG_VERSION);
  object.end();
  out << "{\n\"format\": \"thalweg.graph\",\n\"version\": " << kVersion << ",\n\"graph\": " << name
      << ",\n\"kind\": " << (dump.kind == GraphDump::Kind::live ? "\"live\"" : "\"recording\"")
      << ",\n\"clock\": \"steady\",\n\"engine\": " << about;
}

void write_operators(std::ostream& out, const GraphDump& dump, const Engine::Impl& engine) {
  ThreadNumbers threads;
  LineWriter lines(out, "operators");
  for (const OperatorRecord* record : dump.operators) {
    write_operator(lines.line(), *record, engine.site_text(record->site), threads);
    lines.end_line();
  }
  lines.end();
}

void write_operands(std::ostream& out, const GraphDump& dump) {
  const std::vector<Use> uses = uses_of(dump.operators);
  LineWriter lines(out, "operands");
  for (auto begin = uses.begin(); begin != uses.end();) {
    const auto end =
        std::find_if(begin, uses.end(), [&](const Use& use) { return use.operand != begin->operand; });
    write_operand(lines.line(), {begin, end}, dump.operand_names);
    lines.end_line();
    begin = end;
  }
  lines.end();
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
  write_head(out, dump, engine);
  write_operators(out, dump, engine);
  write_operands(out, dump);
  out << "\n}\n";
}

}  // namespace thalweg
