// engine_task.h: marks the threads that are carrying out an operator or a callback.
#pragma once

#include <cstdint>

namespace thalweg {

class DeviceArena;
struct Waiter;

/// While one lives on a thread, what the thread issues is always admitted and its waits do not block the
/// thread.
class EngineTask {
 public:
  enum class Kind : std::uint8_t {
    kernel,      ///< an operator's body, with a permit of its arena
    inline_run,  ///< an operator that runs on the baton holder: no user code may run before the baton is
                 ///< given back
    callback,    ///< a completion callback
  };

  EngineTask(Kind kind, DeviceArena* arena) noexcept;
  ~EngineTask();
  EngineTask(const EngineTask&) = delete;
  EngineTask& operator=(const EngineTask&) = delete;

  static bool active() noexcept { return current() != nullptr; }
  static bool in_callback() noexcept { return active() && current()->kind_ == Kind::callback; }
  /// The arena whose permit the running operator holds, or nullptr.
  static DeviceArena* arena() noexcept { return active() ? current()->arena_ : nullptr; }

  /// During an inline run: keeps `waiter` for later and returns true.
  static bool postpone(Waiter* waiter) noexcept;
  /// What was kept, newest first.
  Waiter* postponed() const noexcept { return postponed_; }

  /// A suspended task may go on while another runs on this thread: what `current` was is restored after it.
  static EngineTask* exchange(EngineTask* task) noexcept;

 private:
  // Out of line and never inlined: a task may be resumed by another thread, and an address of a thread-local
  // kept across the suspension would be the old thread's.
  [[gnu::noinline]] static EngineTask*& current() noexcept;

  EngineTask* outer_;
  Kind kind_;
  DeviceArena* arena_;
  Waiter* postponed_ = nullptr;
};

}  // namespace thalweg
