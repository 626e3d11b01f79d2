// engine_task.h: marks the threads that are carrying out an operator or a callback.
#pragma once

#include <cstdint>

namespace thalweg {

class DeviceArena;

/// While one lives on a thread, what the thread issues is always admitted and its waits do not block the thread.
class EngineTask {
 public:
  enum class Kind : std::uint8_t { kernel, callback };

  EngineTask(Kind kind, DeviceArena* arena) noexcept : outer_(current_), kind_(kind), arena_(arena) {
    current_ = this;
  }
  ~EngineTask() { current_ = outer_; }
  EngineTask(const EngineTask&) = delete;
  EngineTask& operator=(const EngineTask&) = delete;

  static bool active() noexcept { return current_ != nullptr; }
  static bool in_callback() noexcept { return current_ != nullptr && current_->kind_ == Kind::callback; }
  /// The arena whose permit the running operator holds, or nullptr.
  static DeviceArena* arena() noexcept { return current_ != nullptr ? current_->arena_ : nullptr; }

  /// A suspended task may go on while another runs on this thread: what `current` was is restored after it.
  static EngineTask* exchange(EngineTask* task) noexcept {
    EngineTask* previous = current_;
    current_ = task;
    return previous;
  }

 private:
  static inline constinit thread_local EngineTask* current_ = nullptr;

  EngineTask* outer_;
  Kind kind_;
  DeviceArena* arena_;
};

}  // namespace thalweg
