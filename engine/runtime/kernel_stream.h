// kernel_stream.h: an in-order queue of kernels of one device.
#pragma once

#include <string_view>

#include "runtime/kernel.h"

namespace thalweg {

/// A queue of kernels. `enqueue` may return before the kernel has run (accelerators) or after (host).
class KernelStream {
 public:
  virtual ~KernelStream() = default;
  /// Throws what the kernel throws, as far as it is known when enqueue returns.
  virtual void enqueue(const Kernel& kernel) = 0;
  virtual std::string_view name() const noexcept = 0;
};

/// Host kernels run at once on the enqueuing thread: the order between them comes from the flow graph alone,
/// so independent ones run side by side.
class HostStream final : public KernelStream {
 public:
  explicit HostStream(std::string_view name) : name_(name) {}
  void enqueue(const Kernel& kernel) override {
    kernel.function(KernelContext(kernel.op, kernel.attributes, kernel.inputs, kernel.outputs,
                                  kernel.scope.parallel_for, kernel.scope.runner));
  }
  std::string_view name() const noexcept override { return name_; }

 private:
  std::string_view name_;
};

}  // namespace thalweg
