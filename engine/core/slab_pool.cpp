// slab_pool.cpp: the list of pool locks that a fork must hold.
#include "core/slab_pool.h"

namespace thalweg {
namespace {

struct Locks {
  std::mutex guard;
  std::vector<std::mutex*> pools;
};

Locks& locks() {
  static Locks* instance = new Locks;
  return *instance;
}

}  // namespace

void PoolLocks::add(std::mutex* lock) {
  std::lock_guard guard(locks().guard);
  locks().pools.push_back(lock);
}

void PoolLocks::remove(std::mutex* lock) {
  std::lock_guard guard(locks().guard);
  std::erase(locks().pools, lock);
}

void PoolLocks::lock_all() {
  locks().guard.lock();
  for (std::mutex* pool : locks().pools) pool->lock();
}

void PoolLocks::unlock_all() {
  for (std::mutex* pool : locks().pools) pool->unlock();
  locks().guard.unlock();
}

}  // namespace thalweg
