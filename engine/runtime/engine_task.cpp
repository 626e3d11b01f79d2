// engine_task.cpp: the thread-local that EngineTask keeps.
#include "runtime/engine_task.h"

#include "graph/operand.h"

namespace thalweg {

EngineTask*& EngineTask::current() noexcept {
  static constinit thread_local EngineTask* task = nullptr;
  return task;
}

EngineTask::EngineTask(Kind kind, DeviceArena* arena) noexcept
    : outer_(current()), kind_(kind), arena_(arena) {
  current() = this;
}

EngineTask::~EngineTask() { current() = outer_; }

bool EngineTask::postpone(Waiter* waiter) noexcept {
  EngineTask* task = current();
  if (task == nullptr || task->kind_ != Kind::inline_run) return false;
  waiter->next = task->postponed_;
  task->postponed_ = waiter;
  return true;
}

EngineTask* EngineTask::exchange(EngineTask* task) noexcept {
  EngineTask* previous = current();
  current() = task;
  return previous;
}

}  // namespace thalweg
