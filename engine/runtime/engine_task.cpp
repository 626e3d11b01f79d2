// engine_task.cpp: the thread-local that EngineTask keeps.
#include "runtime/engine_task.h"

#include <utility>

#include "graph/operand.h"
#include "runtime/device_arena.h"

namespace thalweg {

EngineTask::Mark& EngineTask::mark() noexcept {
  static constinit thread_local Mark mark;
  return mark;
}

EngineTask::EngineTask(Kind kind, ArenaRef arena, const void* subject) noexcept : outer_(mark()) {
  mark() = {kind, arena, kind == Kind::inline_run ? this : nullptr, subject};
}

EngineTask::~EngineTask() { mark() = outer_; }

bool EngineTask::active() noexcept {
  const Mark& here = mark();
  // The mark of a kernel of an arena that is gone has stayed behind.
  if (here.kind != Kind::none && (here.kind != Kind::kernel || here.arena.get() != nullptr)) return true;
  return DeviceArena::of_this_thread() != nullptr;
}

DeviceArena* EngineTask::arena() noexcept {
  const Mark& here = mark();
  if (here.kind == Kind::inline_run || here.kind == Kind::callback) return nullptr;
  DeviceArena* const arena = here.arena.get();
  return arena != nullptr ? arena : DeviceArena::of_this_thread();
}

bool EngineTask::postpone(Waiter* waiter) noexcept {
  EngineTask* task = mark().inline_run;
  if (task == nullptr) return false;
  waiter->next = task->postponed_;
  task->postponed_ = waiter;
  return true;
}

EngineTask::Mark EngineTask::exchange(Mark mark_now) noexcept { return std::exchange(mark(), mark_now); }

}  // namespace thalweg
