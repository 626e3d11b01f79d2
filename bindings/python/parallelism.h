// parallelism.h: how many threads oneTBB may use in this process.
#pragma once

namespace thalweg::python {

/// Allows an engine of `num_threads` threads its device thread and helping caller beside them. oneTBB warns
/// on stderr about arenas larger than what is allowed, so call this before such an engine starts. The limit
/// only rises. Synchronous engines have no arena, and in a forked child a thread that does not exist there
/// may hold oneTBB's locks: not for them.
void allow_parallelism(int num_threads);

}  // namespace thalweg::python
