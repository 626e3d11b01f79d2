// deferred.cpp: a lock-free list of calls, emptied by the next call into the module or by the interpreter.
#include "deferred.h"

#include <new>

namespace thalweg::python {

namespace detail {

std::atomic<DeferredCall*> deferred_calls{nullptr};

void run_deferred_slow() noexcept {
  // Acquire pairs with the release in defer_call: the calls' fields are visible.
  DeferredCall* list = deferred_calls.exchange(nullptr, std::memory_order_acquire);
  // Foreign deleters may set or clear the error indicator; the caller's error must survive them.
  const py::error_scope kept;
  while (list != nullptr) {
    DeferredCall* call = list;
    list = call->next;
    call->function(call->argument);
    delete call;
  }
}

}  // namespace detail

namespace {

int run_from_interpreter(void*) {
  run_deferred();
  return 0;
}

}  // namespace

void defer_call(void (*function)(void*), void* argument) noexcept {
  auto* call = new (std::nothrow) detail::DeferredCall{function, argument, nullptr};
  if (call == nullptr) return;
  auto& head = detail::deferred_calls;
  call->next = head.load(std::memory_order_relaxed);
  while (
      !head.compare_exchange_weak(call->next, call, std::memory_order_release, std::memory_order_relaxed)) {
  }
  // Only the first of a batch asks the interpreter, whose list of pending calls is short.
  if (call->next == nullptr && Py_IsInitialized()) Py_AddPendingCall(run_from_interpreter, nullptr);
}

void defer_decref(PyObject* object) noexcept {
  defer_call([](void* argument) { Py_DECREF(static_cast<PyObject*>(argument)); }, object);
}

}  // namespace thalweg::python
