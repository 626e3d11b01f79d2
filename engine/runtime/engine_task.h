// engine_task.h: marks the threads that are carrying out an operator or a callback.
#pragma once

#include <cstdint>

#include "runtime/arena_ref.h"

namespace thalweg {

class Operator;
struct Waiter;

/// While one lives on a thread, what the thread issues is always admitted and its waits do not block the
/// thread. The same holds for every task inside a device's arena, marked or not: a kernel may spread over
/// oneTBB tasks of its own, and oneTBB may go on with a waiting kernel on another thread.
class EngineTask {
 public:
  enum class Kind : std::uint8_t {
    none,
    kernel,      ///< an operator's body
    inline_run,  ///< an operator that runs on the baton holder: no user code may run before the baton is
                 ///< given back
    callback,    ///< a completion callback
  };

  /// What a thread is marked with: copied, never pointed to, since the stack that set it may move on without
  /// having taken it back.
  struct Mark {
    Kind kind = Kind::none;
    ArenaRef arena;  ///< a kernel's: whose permit it holds
    EngineTask* inline_run = nullptr;
    const void* subject = nullptr;  ///< a kernel's operator; a callback's executor, whose operator is done
  };

  explicit EngineTask(Kind kind, ArenaRef arena = {}, const void* subject = nullptr) noexcept;
  ~EngineTask();
  EngineTask(const EngineTask&) = delete;
  EngineTask& operator=(const EngineTask&) = delete;

  static bool active() noexcept;
  static bool in_callback() noexcept { return mark().kind == Kind::callback; }
  static const void* executor_of_callback() noexcept { return subject_of(Kind::callback); }
  /// The operator whose body, or a part of it, this thread is carrying out, or nullptr.
  static const Operator* running_operator() noexcept {
    return static_cast<const Operator*>(subject_of(Kind::kernel));
  }
  /// The arena whose permit the running operator holds, or nullptr.
  static DeviceArena* arena() noexcept;

  /// During an inline run: keeps `waiter` for later and returns true.
  static bool postpone(Waiter* waiter) noexcept;
  /// What was kept, newest first.
  Waiter* postponed() const noexcept { return postponed_; }

  /// A suspended task may go on while another runs on this thread: what the mark was is restored after it.
  static Mark exchange(Mark mark) noexcept;

 private:
  // Out of line and never inlined: a task may be resumed by another thread, and an address of a thread-local
  // kept across the suspension would be the old thread's.
  [[gnu::noinline]] static Mark& mark() noexcept;
  static const void* subject_of(Kind kind) noexcept {
    const Mark& here = mark();
    return here.kind == kind ? here.subject : nullptr;
  }

  const Mark outer_;
  Waiter* postponed_ = nullptr;
};

}  // namespace thalweg
