// fft_plans.cpp: a cache of plans, the least recently used leaves first.
#include "kernels/cpu/fft_plans.h"

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace thalweg::cpu {
namespace {

/// What the cache holds at most: plans, and the sum of their lengths, which take 16 to 64 bytes per element.
/// The last plan stays, however long.
constexpr std::size_t kMostPlans = 32;
constexpr std::int64_t kMostElements = std::int64_t{1} << 21;

struct Entry {
  const FftFunctions* functions;
  std::int64_t length;
  bool complex;
  std::shared_ptr<const void> plan;

  bool is_same(const Entry& other) const noexcept {
    return functions == other.functions && length == other.length && complex == other.complex;
  }
};

/// Oldest first. Leaked: workers may outlive static destructors.
struct Cache {
  std::mutex lock;
  std::vector<Entry> entries;
};

Cache& cache() {
  static Cache* instance = new Cache;
  return *instance;
}

/// The lock, or none if whoever holds it does not go on: a thread that a fork left behind in the parent.
std::unique_lock<std::mutex> try_hard(std::mutex& lock) {
  std::unique_lock<std::mutex> guard(lock, std::try_to_lock);
  for (int tries = 0; !guard && tries < 1000; ++tries) {
    std::this_thread::yield();
    static_cast<void>(guard.try_lock());
  }
  return guard;
}

/// The cached plan like `wanted`, which becomes the youngest, or null.
std::shared_ptr<const void> find(const Entry& wanted) {
  const auto guard = try_hard(cache().lock);
  if (!guard) return nullptr;
  auto& entries = cache().entries;
  const auto found =
      std::find_if(entries.begin(), entries.end(), [&](const Entry& entry) { return entry.is_same(wanted); });
  if (found == entries.end()) return nullptr;
  std::rotate(found, found + 1, entries.end());
  return entries.back().plan;
}

void keep(const Entry& entry) {
  std::vector<Entry> dropped;  // freed after the lock
  const auto guard = try_hard(cache().lock);
  if (!guard) return;
  auto& entries = cache().entries;
  entries.push_back(entry);
  std::int64_t elements = 0;
  std::size_t kept = 0;
  while (kept < std::min(entries.size(), kMostPlans)) {
    elements += entries[entries.size() - 1 - kept].length;
    if (kept > 0 && elements > kMostElements) break;
    ++kept;
  }
  const auto first = entries.end() - static_cast<std::ptrdiff_t>(kept);
  dropped.assign(std::make_move_iterator(entries.begin()), std::make_move_iterator(first));
  entries.erase(entries.begin(), first);
}

}  // namespace

std::shared_ptr<const void> fft_plan(const FftFunctions& functions, std::int64_t length, bool complex) {
  Entry entry{&functions, length, complex, nullptr};
  entry.plan = find(entry);
  if (entry.plan) return entry.plan;
  // Made outside the lock: two threads may both make it, which costs only time.
  void* const plan = functions.make_plan(length, complex);
  entry.plan = {plan, [free_plan = functions.free_plan, complex](const void* old) {
                  free_plan(const_cast<void*>(old), complex);
                }};
  keep(entry);
  return entry.plan;
}

}  // namespace thalweg::cpu
