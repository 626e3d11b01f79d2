// callback_lane.cpp: a queue of callables and the thread that calls them.
#include "callback_lane.h"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

#include "deferred.h"

namespace thalweg::python {

namespace {

/// Leaked, because completions may hand over until the process ends.
struct Lane {
  std::mutex lock;
  std::condition_variable changed;
  std::deque<PyObject*> queue;
  bool running = false;  // the thread exists
  bool stopping = false;
};

Lane* lane = new Lane;

void call(PyObject* callback) {
  const PyGILState_STATE held = PyGILState_Ensure();
  PyObject* result = PyObject_CallNoArgs(callback);
  if (result == nullptr) PyErr_WriteUnraisable(callback);
  Py_XDECREF(result);
  Py_DECREF(callback);
  PyGILState_Release(held);
}

void run_lane(Lane* mine) {
  std::unique_lock guard(mine->lock);
  while (true) {
    mine->changed.wait(guard, [&] { return mine->stopping || !mine->queue.empty(); });
    if (mine->queue.empty()) break;
    PyObject* callback = mine->queue.front();
    mine->queue.pop_front();
    guard.unlock();
    call(callback);
    guard.lock();
  }
  mine->running = false;
  mine->changed.notify_all();
}

/// Any thread, no GIL. A lane that has stopped drops the callback.
void hand_over(PyObject* callback) {
  Lane* mine = lane;
  std::lock_guard guard(mine->lock);
  if (mine->stopping) return defer_decref(callback);
  mine->queue.push_back(callback);
  mine->changed.notify_all();
}

void start_lane() {
  std::lock_guard guard(lane->lock);
  if (lane->running || lane->stopping) return;
  std::thread(run_lane, lane).detach();
  lane->running = true;
}

/// A reference that the completion hands over, or that goes with the completion if that never comes.
struct Pending {
  explicit Pending(PyObject* callback) : callback(callback) {}
  ~Pending() {
    if (callback != nullptr) defer_decref(callback);
  }
  PyObject* callback;
};

}  // namespace

void call_when_ready(const Tensor& tensor, py::object callback) {
  start_lane();
  auto pending = std::make_shared<Pending>(callback.release().ptr());
  tensor.on_ready([pending] { hand_over(std::exchange(pending->callback, nullptr)); });
}

void stop_callback_lane() {
  Lane* mine = lane;
  Py_BEGIN_ALLOW_THREADS;
  std::unique_lock guard(mine->lock);
  mine->stopping = true;
  mine->changed.notify_all();
  mine->changed.wait_for(guard, std::chrono::seconds(1), [&] { return !mine->running; });
  Py_END_ALLOW_THREADS;
}

void reset_callback_lane_after_fork() { lane = new Lane; }

}  // namespace thalweg::python
