// add_plan.h: which results each of many small additions reads; the engine and its peers run the same plan.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace bench {

/// Results of this many last additions are kept by the issuing thread.
inline constexpr int kHandles = 64;
/// Additions issued but not finished, at most.
inline constexpr std::int64_t kWindow = 8192;
/// In AddPlan::reads: the constant 1 instead of a kept result.
inline constexpr std::int8_t kConstant = -1;

/// `count` additions. Addition i reads two of the kept results and is kept in slot i % kHandles.
struct AddPlan {
  std::string name;
  std::vector<std::array<std::int8_t, 2>> reads;
  /// Sum of the probed results, computed in order on one thread.
  double checksum = 0;

  std::size_t count() const { return reads.size(); }
  /// True for the results that enter the checksum: the last of each stretch, and the last of all.
  bool is_probe(std::size_t i) const { return i % kStretch == kStretch - 1 || i + 1 == count(); }

  /// Sums of sums grow without bound: a random plan starts anew from constants after a stretch, so that every
  /// value stays a finite float and a result read too early shows in the checksum.
  static constexpr std::size_t kStretch = 2048;
};

/// Each addition reads the one before.
AddPlan chain_plan(std::size_t count);
/// No addition reads another.
AddPlan independent_plan(std::size_t count);
/// Each addition reads two of the last kHandles results, chosen by a fixed random sequence.
AddPlan random_dag_plan(std::size_t count);

}  // namespace bench
