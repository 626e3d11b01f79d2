// fork.h: what a fork does to the engines of this process.
#pragma once

#include <cstdint>

namespace thalweg {

class EagerGraphExecutor;

/// Has the locks of pools and allocators be free in forked children. Once per process.
void handle_forks();
/// True in a child of a process that had used oneTBB through an engine: its threads are gone and do not come
/// back, so engines made here are synchronous.
bool in_forked_child() noexcept;
/// How many forks lie between the first process that used an engine and this one.
std::uint32_t fork_generation() noexcept;
/// Has `executor` settle before every fork and become synchronous in the child.
void watch_forks(EagerGraphExecutor& executor);
void forget_forks(EagerGraphExecutor& executor);

}  // namespace thalweg
