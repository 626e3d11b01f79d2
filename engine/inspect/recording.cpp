// recording.cpp: Engine::start_recording and stop_recording: keeps a record of every operator in between.
#include <algorithm>
#include <iterator>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <thalweg/engine.h>
#include <thalweg/errors.h>

#include "inspect/graph_dump.h"
#include "runtime/engine_impl.h"
#include "runtime/engine_task.h"
#include "runtime/fork.h"
#include "runtime/host_release.h"

namespace thalweg {
namespace {

using Records = std::vector<std::unique_ptr<OperatorRecord>>;

/// With record_lock. A recording that was on when this process was forked goes on in the parent only.
bool is_recording(const Engine::Impl& impl) noexcept {
  return impl.recording && impl.recording_process == fork_generation();
}

void keep(void* owner, OperatorRecord* record) {
  auto& impl = *static_cast<Engine::Impl*>(owner);
  std::unique_ptr<OperatorRecord> owned(record);
  std::lock_guard guard(impl.record_lock);
  impl.records.push_back(std::move(owned));
  if (!is_recording(impl)) impl.constructor.stop_recording();
}

/// A recording shows every name given during it, so none may be forgotten meanwhile.
void keep_all_names(Engine::Impl& impl, bool on) {
  if (impl.synchronous) {
    impl.synchronous->inspect([on](const std::string&, OperandNames& names) { names.keep_all(on); });
  } else {
    impl.eager->inspect([on](LogicalGraph& graph, const Message*) { graph.operand_names().keep_all(on); });
  }
}

/// A kernel or a callback would wait for itself.
void refuse_inside_task(const char* what) {
  if (EngineTask::active()) {
    throw EngineError(std::string(what) +
                      ": cannot be called from a kernel or a completion callback; do it on another thread");
  }
}

bool is_over(const OperatorRecord& record) noexcept {
  // Acquire pairs with the release of the thread that ran the operator: its times are there, and it touches
  // the record no more.
  const OperatorState state = record.state.load(std::memory_order_acquire);
  return state == OperatorState::ready || state == OperatorState::failed;
}

/// Takes out what has run and was issued before the recording ended. A thread that was about to issue an
/// operator when the recording ended may still run it: its record stays, or it would be written to after it
/// was freed.
Records take_records(Engine::Impl& impl, std::uint64_t end) {
  Records taken;
  std::lock_guard guard(impl.record_lock);
  auto late = std::stable_partition(impl.records.begin(), impl.records.end(), [&](const auto& record) {
    return record->id >= end || !is_over(*record);
  });
  std::move(late, impl.records.end(), std::back_inserter(taken));
  impl.records.erase(late, impl.records.end());
  // Left over from a recording whose end was interrupted.
  std::erase_if(taken, [&](const auto& record) { return record->id < impl.recording_since; });
  return taken;
}

}  // namespace

void Engine::start_recording() {
  refuse_inside_task("start_recording");
  if (is_shut_down()) throw EngineError("start_recording: the engine was shut down");
  {
    std::lock_guard guard(impl_->record_lock);
    if (is_recording(*impl_)) {
      throw EngineError("start_recording: a recording is on already; stop it before starting another");
    }
    impl_->recording = true;
    impl_->recording_process = fork_generation();
    impl_->recording_since = impl_->constructor.next_id();
    std::erase_if(impl_->records, [](const auto& record) { return is_over(*record); });
  }
  const HostRelease release(impl_->options.hooks);
  keep_all_names(*impl_, true);
  std::lock_guard guard(impl_->record_lock);
  // Unless another thread has stopped it already.
  if (is_recording(*impl_)) impl_->constructor.record_with(&keep, impl_.get());
}

void Engine::stop_recording(std::ostream& out) {
  refuse_inside_task("stop_recording");
  std::uint64_t end = 0;
  {
    std::lock_guard guard(impl_->record_lock);
    if (!is_recording(*impl_))
      throw EngineError("stop_recording: no recording is on; call start_recording first");
    impl_->constructor.stop_recording();
    impl_->recording = false;
    end = impl_->constructor.next_id();
  }
  const HostRelease release(impl_->options.hooks);
  try {
    drain();
  } catch (const Interrupted&) {
    keep_all_names(*impl_, false);
    throw;
  }
  Records records = take_records(*impl_, end);
  std::sort(records.begin(), records.end(), [](const auto& a, const auto& b) { return a->id < b->id; });
  GraphDump dump;
  dump.kind = GraphDump::Kind::recording;
  for (const auto& record : records) dump.operators.push_back(record.get());
  add_names(*impl_, dump);
  keep_all_names(*impl_, false);
  write_graph(out, dump, *impl_);
}

}  // namespace thalweg
