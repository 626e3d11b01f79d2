// engines.cpp: which engine a thread uses, what engines ask of Python, and how they end.
#include "engines.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <unistd.h>

#include "errors.h"
#include "parallelism.h"
#include "sites.h"
#include "tensor_object.h"
#include "test_operators.h"

namespace thalweg::python {

namespace {

constexpr const char* kBuiltinNames[] = {
    "add",
    "subtract",
    "multiply",
    "divide",
    "floor_divide",
    "remainder",
    "pow",
    "matmul",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "bitwise_left_shift",
    "bitwise_right_shift",
    "equal",
    "not_equal",
    "less",
    "less_equal",
    "greater",
    "greater_equal",
    "negative",
    "positive",
    "abs",
    "bitwise_invert",
    "slice",
    "index",
    "slice_assign",
    "index_assign",
    "mask_assign",
    "mask_scatter",
    "mask_select",
    "count_nonzero",
    "nonzero",
    "reshape",
};
static_assert(std::size(kBuiltinNames) == static_cast<std::size_t>(Builtin::count_));

/// Everything process-wide, leaked: tensors may outlive the interpreter.
struct State {
  std::shared_ptr<EngineHandle> default_engine;
  std::vector<Engine*> engines;  // in order of creation
  bool shut_down = false;
};
State& state() {
  static State* instance = new State;
  return *instance;
}

/// One `with engine:`, and those around it.
struct Scope {
  std::shared_ptr<EngineHandle> engine;
  std::shared_ptr<const Scope> outer;
};
using ScopePointer = std::shared_ptr<const Scope>;
constexpr const char* kScopeCapsule = "thalweg.scope";

/// The context variable that holds the innermost scope, in a capsule, or None: each thread and each
/// asyncio task has its own. Null until the first `with engine:`. GIL.
PyObject* scope_variable = nullptr;

ScopePointer current_scope() {
  if (scope_variable == nullptr) [[likely]]
    return nullptr;
  PyObject* value = nullptr;
  if (PyContextVar_Get(scope_variable, Py_None, &value) != 0) throw_python_error();
  const py::object owned = py::reinterpret_steal<py::object>(value);
  if (owned.is_none()) return nullptr;
  return *static_cast<const ScopePointer*>(PyCapsule_GetPointer(value, kScopeCapsule));
}

void set_current_scope(ScopePointer scope) {
  if (scope_variable == nullptr) {
    scope_variable = checked(PyContextVar_New(kScopeCapsule, nullptr)).release().ptr();
  }
  py::object value = py::none();
  if (scope != nullptr) {
    auto owner = std::make_unique<ScopePointer>(std::move(scope));
    value = checked(PyCapsule_New(owner.get(), kScopeCapsule, [](PyObject* capsule) {
      delete static_cast<ScopePointer*>(PyCapsule_GetPointer(capsule, kScopeCapsule));
    }));
    static_cast<void>(owner.release());
  }
  checked(PyContextVar_Set(scope_variable, value.ptr()));
}

/// `scope` without its innermost entry of `engine`: tasks and generators may leave theirs in any order.
ScopePointer without(const ScopePointer& scope, const EngineHandle& engine) {
  if (scope == nullptr) return nullptr;
  if (scope->engine.get() == &engine) return scope->outer;
  return std::make_shared<const Scope>(Scope{scope->engine, without(scope->outer, engine)});
}

/// Set when the module is imported: asking Python later could let go of the GIL in the midst of it.
unsigned long main_thread = 0;
std::atomic<std::uint64_t> syncs{0};
std::atomic<SyncPolicy> policy{SyncPolicy::allow};
thread_local bool read_is_uncounted = false;

void* release_gil() {
  if (!PyGILState_Check()) return nullptr;
  if (read_is_uncounted) {
    // An engine lets go of the GIL only when a read has to wait.
    read_is_uncounted = false;
    syncs.fetch_add(1, std::memory_order_relaxed);
  }
  return PyEval_SaveThread();
}

void reacquire_gil(void* token) {
  if (token == nullptr) return;
  try {
    PyEval_RestoreThread(static_cast<PyThreadState*>(token));
  } catch (...) {
    // The interpreter is going away and ends this thread by unwinding it, which C++ destructors on the stack
    // do not allow: the thread stays here instead, as Python 3.13 and later do themselves.
    for (;;) pause();
  }
}

/// While one lives, waits of this thread leave signals to Python's own checks.
class SignalsLater {
 public:
  SignalsLater() noexcept : outer_(std::exchange(active_, true)) {}
  ~SignalsLater() { active_ = outer_; }
  SignalsLater(const SignalsLater&) = delete;
  SignalsLater& operator=(const SignalsLater&) = delete;
  static bool active() noexcept { return active_; }

 private:
  static inline thread_local bool active_ = false;
  const bool outer_;
};

bool is_main_thread() { return PyThread_get_thread_ident() == main_thread; }

bool signal_arrived() {
  if (SignalsLater::active()) return false;
  if (!Py_IsInitialized()) return true;
  const PyGILState_STATE held = PyGILState_Ensure();
  bool arrived = false;
  try {
    // Python runs signal handlers on the main thread only.
    arrived = is_main_thread() && PyErr_CheckSignals() != 0;
  } catch (...) {
    PyErr_Clear();
  }
  PyGILState_Release(held);
  return arrived;
}

const std::vector<const Op*>& builtin_records() {
  static const auto* records = [] {
    auto* found = new std::vector<const Op*>;
    for (const char* name : kBuiltinNames) found->push_back(&builtin_ops().find(name));
    return found;
  }();
  return *records;
}

Engine* make_engine(EngineOptions options, bool test_operators) {
  options.hooks = host_hooks();
  auto engine = std::make_unique<Engine>(options, register_cpu_kernels);
  // Not in a forked child: a thread that it does not have may hold oneTBB's locks there.
  if (engine->mode() != EngineMode::synchronous) allow_parallelism(options.num_threads);
  if (test_operators) register_test_operators(*engine);
  return engine.release();
}

/// Equal texts once: a loop that failed at one line tells nothing new a thousand times.
void print_unread(const std::vector<std::string>& failures) {
  if (failures.empty()) return;
  const std::string report = "thalweg: unread failures:" + distinct_lines(failures);
  std::fprintf(stderr, "%s\n", report.c_str());
}

}  // namespace

const Op& builtin(Builtin which) noexcept {
  static const Op* const* const records = builtin_records().data();
  return *records[static_cast<std::size_t>(which)];
}

EngineHandle::EngineHandle(EngineOptions options, bool test_operators)
    : engine_(make_engine(std::move(options), test_operators)) {
  state().engines.push_back(engine_);
}

Engine& current_engine() { return **current_engine_handle(); }

std::shared_ptr<EngineHandle> current_engine_handle() {
  if (const ScopePointer scope = current_scope()) return scope->engine;
  auto& handle = state().default_engine;
  if (!handle) {
    const char* test_operators = std::getenv("THALWEG_TEST_OPERATORS");
    handle =
        std::make_shared<EngineHandle>(EngineOptions::from_environment(),
                                       test_operators != nullptr && std::string_view(test_operators) == "1");
    if (state().shut_down) (*handle)->shutdown();
  }
  return handle;
}

py::list entered_engines() {
  static PyObject* const list = PyList_New(0);  // leaked, as all that is process-wide
  return py::reinterpret_borrow<py::list>(list);
}

std::shared_ptr<EngineHandle> engine_elsewhere(py::handle object) {
  if (!is_tensor(object.ptr())) return nullptr;
  Engine& engine = tensor_of(object.ptr()).engine();
  if (&engine == &current_engine() || engine.is_shut_down()) return nullptr;
  return std::make_shared<EngineHandle>(engine);
}

void enter_engine(std::shared_ptr<EngineHandle> engine) {
  py::list entered = entered_engines();
  if (entered.empty()) entered.append(true);
  set_current_scope(std::make_shared<const Scope>(Scope{std::move(engine), current_scope()}));
}

void leave_engine(const EngineHandle& engine) { set_current_scope(without(current_scope(), engine)); }

void shut_down_all_engines() {
  state().shut_down = true;
  // By index: while one ends, the GIL is free and a daemon thread may make another.
  for (std::size_t i = 0; i < state().engines.size(); ++i) {
    try {
      try {
        print_unread(state().engines[i]->shutdown());
      } catch (const Interrupted&) {
        PyErr_Clear();
        std::fputs("thalweg: interrupted while stopping: what has not begun is not run\n", stderr);
        for (std::size_t k = i; k < state().engines.size(); ++k) state().engines[k]->abandon();
        const SignalsLater later;
        print_unread(state().engines[i]->shutdown());
      }
    } catch (const std::exception& error) {
      std::fprintf(stderr, "thalweg: stopping failed: %s\n", error.what());
    }
  }
}

void settle_before_fork() {
  // pthread's own fork handler waits too, but with the GIL.
  const SignalsLater later;
  for (std::size_t i = 0; i < state().engines.size(); ++i) {
    try {
      state().engines[i]->drain();
    } catch (const EngineError&) {
      return;  // from inside a kernel or a callback, which it would wait for
    }
  }
}

void remember_main_thread() {
  const py::object main = py::module_::import("threading").attr("main_thread")();
  main_thread = main.attr("ident").cast<unsigned long>();
}

HostHooks host_hooks() noexcept { return {release_gil, reacquire_gil, signal_arrived, describe_site}; }

void sleep_briefly() noexcept { std::this_thread::sleep_for(std::chrono::microseconds(20)); }

SyncPolicy sync_policy() noexcept { return policy.load(std::memory_order_relaxed); }
void set_sync_policy(SyncPolicy value) noexcept { policy.store(value, std::memory_order_relaxed); }
std::uint64_t sync_count() noexcept { return syncs.load(std::memory_order_relaxed); }

BlockingRead::BlockingRead(const Tensor& tensor) {
  const SyncPolicy wanted = sync_policy();
  if (wanted == SyncPolicy::allow) {
    read_is_uncounted = true;
    return;
  }
  if (tensor.is_ready()) return;
  syncs.fetch_add(1, std::memory_order_relaxed);
  const std::string text =
      "blocking read of a value that is not there yet, at " + describe_site(current_site());
  if (wanted == SyncPolicy::error) raise_python(sync_error_type(), text);
  if (PyErr_WarnEx(PyExc_RuntimeWarning, text.c_str(), 1) != 0) throw_python_error();
}

BlockingRead::~BlockingRead() { read_is_uncounted = false; }

}  // namespace thalweg::python
