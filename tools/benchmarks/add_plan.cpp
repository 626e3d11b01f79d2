// add_plan.cpp: the three shapes and their checksums.
#include "add_plan.h"

#include <random>

namespace bench {

namespace {

void set_checksum(AddPlan& plan) {
  std::array<float, kHandles> kept{};
  for (std::size_t i = 0; i < plan.count(); ++i) {
    const auto value = [&](std::int8_t slot) {
      return slot == kConstant ? 1.0f : kept[static_cast<std::size_t>(slot)];
    };
    const float sum = value(plan.reads[i][0]) + value(plan.reads[i][1]);
    kept[i % kHandles] = sum;
    if (plan.is_probe(i)) plan.checksum += static_cast<double>(sum);
  }
}

std::int8_t slot_before(std::size_t i, std::size_t lag) {
  return static_cast<std::int8_t>((i - lag) % kHandles);
}

}  // namespace

AddPlan chain_plan(std::size_t count) {
  AddPlan plan{.name = "chain", .reads = {}};
  for (std::size_t i = 0; i < count; ++i) {
    plan.reads.push_back({i == 0 ? kConstant : slot_before(i, 1), kConstant});
  }
  set_checksum(plan);
  return plan;
}

AddPlan independent_plan(std::size_t count) {
  AddPlan plan{.name = "independent", .reads = {}};
  plan.reads.assign(count, {kConstant, kConstant});
  set_checksum(plan);
  return plan;
}

AddPlan random_dag_plan(std::size_t count) {
  AddPlan plan{.name = "random DAG", .reads = {}};
  std::mt19937 random(20260401);
  const auto lag = [&] { return std::size_t{1} + random() % kHandles; };
  for (std::size_t i = 0; i < count; ++i) {
    if (i % AddPlan::kStretch < kHandles) {
      plan.reads.push_back({kConstant, kConstant});
    } else {
      plan.reads.push_back({slot_before(i, lag()), slot_before(i, lag())});
    }
  }
  set_checksum(plan);
  return plan;
}

}  // namespace bench
