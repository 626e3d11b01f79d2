// deferred.h: work that needs the GIL, left behind by threads that must not take it.
#pragma once

#include <atomic>

#include "python.h"

namespace thalweg::python {

namespace detail {
struct DeferredCall {
  void (*function)(void*);
  void* argument;
  DeferredCall* next;
};
extern std::atomic<DeferredCall*> deferred_calls;
void run_deferred_slow() noexcept;
}  // namespace detail

/// Has `function(argument)` called later with the GIL held. Any thread, no GIL needed; never blocks. After
/// the interpreter is gone the call never happens: what it would free is left to the operating system.
void defer_call(void (*function)(void*), void* argument) noexcept;

/// Drops one reference to `object` later, with the GIL.
void defer_decref(PyObject* object) noexcept;

/// Runs what was left behind. GIL held; costs one relaxed load when there is nothing.
inline void run_deferred() noexcept {
  if (detail::deferred_calls.load(std::memory_order_relaxed) != nullptr) [[unlikely]]
    detail::run_deferred_slow();
}

}  // namespace thalweg::python
