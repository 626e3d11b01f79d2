// host_release.h: lets the host language go on while the engine blocks the calling thread.
#pragma once

#include <thalweg/engine.h>

namespace thalweg {

/// Releases what the host asked to be released (Python's GIL) and takes it back at the end.
class HostRelease {
 public:
  explicit HostRelease(const HostHooks& hooks) : hooks_(hooks) {
    if (hooks_.release != nullptr) token_ = hooks_.release();
  }
  ~HostRelease() {
    if (hooks_.reacquire != nullptr) hooks_.reacquire(token_);
  }
  HostRelease(const HostRelease&) = delete;
  HostRelease& operator=(const HostRelease&) = delete;

 private:
  const HostHooks& hooks_;
  void* token_ = nullptr;
};

}  // namespace thalweg
