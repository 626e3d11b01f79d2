// modes.cpp: what a thread has set for recording and backward.
#include <utility>

#include <thalweg/autograd.h>

namespace thalweg {

namespace {

struct Modes {
  bool grad = true;
  bool inference = false;
  AnomalyMode anomaly;
  SavedTensorsHooks* hooks = nullptr;
};
thread_local constinit Modes modes;

}  // namespace

bool is_grad_enabled() noexcept { return modes.grad && !modes.inference; }
bool set_grad_enabled(bool enabled) noexcept { return std::exchange(modes.grad, enabled); }
bool is_inference_mode() noexcept { return modes.inference; }
bool set_inference_mode(bool enabled) noexcept { return std::exchange(modes.inference, enabled); }

AnomalyMode anomaly_mode() noexcept { return modes.anomaly; }
AnomalyMode set_anomaly_mode(AnomalyMode mode) noexcept { return std::exchange(modes.anomaly, mode); }

SavedTensorsHooks* saved_tensors_hooks() noexcept { return modes.hooks; }
SavedTensorsHooks* set_saved_tensors_hooks(SavedTensorsHooks* hooks) noexcept {
  return std::exchange(modes.hooks, hooks);
}

}  // namespace thalweg
