// engines.h: the process-wide default engine, the current engine of a thread, and what they ask of Python.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include <thalweg/engine.h>

#include "python.h"

namespace thalweg::python {

/// Operators that slots and indexing call by number; `builtin` finds their records.
enum class Builtin : std::uint8_t {
  add,
  subtract,
  multiply,
  divide,
  floor_divide,
  remainder,
  pow,
  matmul,
  bitwise_and,
  bitwise_or,
  bitwise_xor,
  bitwise_left_shift,
  bitwise_right_shift,
  equal,
  not_equal,
  less,
  less_equal,
  greater,
  greater_equal,
  negative,
  positive,
  abs,
  bitwise_invert,
  slice,
  index,
  slice_assign,
  index_assign,
  mask_assign,
  mask_scatter,
  mask_select,
  count_nonzero,
  nonzero,
  reshape,
  count_,
};

/// The record of a built-in Op, which all engines share.
const Op& builtin(Builtin which) noexcept;

/// A Python `Engine`. The C++ engine is stopped by `close` or at exit and never freed: tensors may refer to
/// it as long as the process lives.
class EngineHandle {
 public:
  EngineHandle(EngineOptions options, bool test_operators);
  explicit EngineHandle(Engine& engine) noexcept : engine_(&engine) {}
  EngineHandle(const EngineHandle&) = delete;
  EngineHandle& operator=(const EngineHandle&) = delete;

  Engine& operator*() const noexcept { return *engine_; }
  Engine* operator->() const noexcept { return engine_; }

 private:
  Engine* engine_;
};

/// The engine that creation functions use here: that of the innermost `with engine:` of this thread or
/// asyncio task, else the default one, which is made on first use from the environment.
Engine& current_engine();
std::shared_ptr<EngineHandle> current_engine_handle();

/// Empty until the first `with engine:`, for a look that costs Python nothing: until then all tensors are of
/// the default engine.
py::list entered_engines();
/// The engine of a tensor if it is open and not the current one, else nullptr.
std::shared_ptr<EngineHandle> engine_elsewhere(py::handle object);

/// Enter and leave `with engine:`.
void enter_engine(std::shared_ptr<EngineHandle> engine);
void leave_engine(const EngineHandle& engine);

/// Stops all engines and prints failures that nobody has read. Idempotent; for atexit.
void shut_down_all_engines();

/// Before os.fork: waits for what is in flight while other Python threads go on.
void settle_before_fork();
/// Signal handlers run on the main thread only: has it known. At import.
void remember_main_thread();

/// What engines call back into Python for.
HostHooks host_hooks() noexcept;

/// A few microseconds of sleep, for the rare wait on another thread's in-place form.
void sleep_briefly() noexcept;

/// What a blocking read of a value that is not there yet does.
enum class SyncPolicy : std::uint8_t { allow, warn, error };
SyncPolicy sync_policy() noexcept;
void set_sync_policy(SyncPolicy policy) noexcept;
std::uint64_t sync_count() noexcept;

/// Lives around one blocking read of `tensor`; counts it, warns or raises if the value is not there yet.
class BlockingRead {
 public:
  explicit BlockingRead(const Tensor& tensor);
  ~BlockingRead();
  BlockingRead(const BlockingRead&) = delete;
  BlockingRead& operator=(const BlockingRead&) = delete;
};

/// Adds Engine and the functions of this file to `module`.
void add_engine_class(py::module_& module);

}  // namespace thalweg::python
