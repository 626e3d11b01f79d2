// fork.h: what a fork does to the engines of this process.
#pragma once

namespace thalweg {

class EagerGraphExecutor;

/// Has the locks of pools and allocators be free in forked children. Once per process.
void handle_forks();
/// Has `executor` settle before every fork and become synchronous in the child.
void watch_forks(EagerGraphExecutor& executor);
void forget_forks(EagerGraphExecutor& executor);

}  // namespace thalweg
