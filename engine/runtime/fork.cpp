// fork.cpp: pthread_atfork handlers: the parent goes on, the child's engines are synchronous.
#include "runtime/fork.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <vector>

#include <pthread.h>

#include "core/slab_pool.h"
#include "runtime/device_arena.h"
#include "runtime/eager_graph_executor.h"

namespace thalweg {
namespace {

struct Watched {
  std::mutex lock;
  std::vector<EagerGraphExecutor*> executors;
};

// Leaked: the handlers outlive static destructors.
Watched& watched() {
  static Watched* instance = new Watched;
  return *instance;
}

std::atomic<bool> used_threads{false};
std::atomic<bool> forked_child{false};
std::atomic<std::uint32_t> generation{0};

void prepare() {
  // oneTBB sets itself up, and each thread, at the first question; a child would wait for ever for another
  // thread that was at it.
  static_cast<void>(inside_tbb_task());
  watched().lock.lock();
  auto& executors = watched().executors;
  for (bool all = false; !all;) {
    for (EagerGraphExecutor* executor : executors) executor->settle_for_fork();
    std::size_t held = 0;
    all = true;
    while (all && held < executors.size()) all = executors[held++]->hold_for_fork();
    if (all) break;
    // A kernel that ran meanwhile has issued operators to another engine.
    while (held > 0) executors[--held]->release_after_try();
  }
  PoolLocks::lock_all();
}

void parent() {
  PoolLocks::unlock_all();
  for (EagerGraphExecutor* executor : watched().executors) executor->after_fork_in_parent();
  watched().lock.unlock();
}

void child() {
  if (used_threads.load()) forked_child.store(true);
  generation.fetch_add(1);
  PoolLocks::unlock_all();
  for (EagerGraphExecutor* executor : watched().executors) executor->after_fork_in_child();
  watched().lock.unlock();
}

}  // namespace

void handle_forks() {
  static std::once_flag once;
  std::call_once(once, [] { pthread_atfork(prepare, parent, child); });
}

bool in_forked_child() noexcept { return forked_child.load(std::memory_order_relaxed); }

std::uint32_t fork_generation() noexcept { return generation.load(std::memory_order_relaxed); }

void watch_forks(EagerGraphExecutor& executor) {
  used_threads.store(true);
  std::lock_guard guard(watched().lock);
  watched().executors.push_back(&executor);
}

void forget_forks(EagerGraphExecutor& executor) {
  std::lock_guard guard(watched().lock);
  std::erase(watched().executors, &executor);
}

}  // namespace thalweg
