// operator_record.h: what a dump shows of one operator: a snapshot of a live one, or what recording kept.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include <thalweg/attributes.h>
#include <thalweg/engine.h>
#include <thalweg/op.h>

namespace thalweg {

/// One input or output of a recorded operator.
struct OperandRecord {
  std::uint64_t id = 0;
  TensorMeta meta;
  std::string name;
};

enum class OperatorState : std::uint8_t { pending, running, ready, failed };

/// Times are nanoseconds of the steady clock, 0 while unknown. The running thread writes the times and the
/// state; they are read after the operator is done or through the atomics.
struct OperatorRecord {
  std::uint64_t id = 0;
  const Op* op = nullptr;
  Attributes attributes;
  std::vector<OperandRecord> inputs;
  std::vector<OperandRecord> outputs;
  SiteId site = 0;
  Device device;
  std::int64_t bytes = 0;
  std::uint32_t thread = 0;
  std::int64_t enqueue_ns = 0;
  std::atomic<std::int64_t> start_ns{0};
  std::atomic<std::int64_t> end_ns{0};
  std::atomic<OperatorState> state{OperatorState::pending};
};

}  // namespace thalweg
