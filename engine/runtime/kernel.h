// kernel.h: one operator on one device, ready to be put on a stream.
#pragma once

#include <span>

#include <thalweg/kernel.h>

namespace thalweg {

/// How a running kernel may spread over threads; null functions mean: on this thread only.
struct RunScope {
  ParallelForFn parallel_for = nullptr;
  void* runner = nullptr;
};

/// Everything a stream needs to run an operator. Lives on the stack of the run.
struct Kernel {
  const KernelFn& function;
  const Op& op;
  const Attributes& attributes;
  std::span<const TensorView> inputs;
  std::span<const TensorView> outputs;
  RunScope scope;
};

}  // namespace thalweg
