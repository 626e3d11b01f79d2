// callback_lane.h: the one thread that calls Python when values become ready.
#pragma once

#include <thalweg/tensor.h>

#include "python.h"

namespace thalweg::python {

/// Has `callback()` called on the lane once `tensor` is there or has failed. The engine's threads only hand
/// over; the lane's thread, started by the first call, takes the GIL.
void call_when_ready(const Tensor& tensor, py::object callback);

/// Runs what was handed over and stops the lane; gives up on a callback that does not return within a second.
/// For exit.
void stop_callback_lane();

/// In a forked child the lane's thread does not exist: forgets it.
void reset_callback_lane_after_fork();

}  // namespace thalweg::python
