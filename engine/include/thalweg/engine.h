// engine.h: one independent task-graph engine: registries, devices, queue, controller.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <thalweg/errors.h>
#include <thalweg/kernel.h>
#include <thalweg/op.h>
#include <thalweg/tensor.h>

namespace thalweg {

/// Number of a place in the user's program; 0 is unknown. The host that interns places resolves them to
/// "file:line".
using SiteId = std::uint32_t;

/// How an engine is driven; all three give the same bits.
enum class EngineMode : std::uint8_t {
  threaded,       ///< a controller thread drains the queue while callers go on (default)
  caller_driven,  ///< no controller thread: waits, flushes and full queues drain on the caller
  synchronous,    ///< every operator completes in the issuing call, without oneTBB; its errors raise there
};

/// What the host language lets the engine do while it waits. All may be null.
struct HostHooks {
  /// Called before the calling thread blocks or drains; returns a token for `reacquire` (Python: releases the
  /// GIL if this thread holds it).
  void* (*release)() = nullptr;
  void (*reacquire)(void* token) = nullptr;
  /// Asked about every 50 ms while a thread waits, between `release` and `reacquire`; true gives the wait up.
  bool (*interrupted)() = nullptr;
  /// "file:line" of a site.
  std::string (*resolve_site)(SiteId site) = nullptr;
};

struct EngineOptions {
  EngineMode mode = EngineMode::threaded;
  static constexpr int kMaxThreads = 1024;
  /// Threads that may run one device's operators at the same time, at most kMaxThreads; 0: as many as the
  /// process may use.
  int num_threads = 0;
  /// The CPU poses as this many devices.
  int cpu_devices = 1;
  /// Run-ahead: operators issued but not finished, and the bytes their outputs will need.
  std::int64_t max_operators_in_flight = 8192;
  std::int64_t max_bytes_in_flight = std::int64_t{128} << 20;
  /// Bytes of tensors per device; 0: no limit.
  std::int64_t memory_limit = 0;
  /// Bytes of freed blocks kept per device.
  std::int64_t cache_limit = std::int64_t{256} << 20;
  /// Small ready operators run on the thread that drains the queue instead of as tasks of their flow nodes.
  bool run_inline = true;
  /// One process per device: not built yet, true raises EngineError.
  bool perDevicePerProcess = false;
  std::string name = "graph";
  HostHooks hooks;

  /// Defaults overlaid with THALWEG_ENGINE (threaded|caller|sync), THALWEG_NUM_THREADS, THALWEG_CPU_DEVICES,
  /// THALWEG_INLINE (on|off), THALWEG_MEMORY_LIMIT (bytes); throws ValueError naming the variable.
  static EngineOptions from_environment();
};

struct MemoryStats {
  std::int64_t live_bytes = 0;
  std::int64_t peak_bytes = 0;
  std::int64_t cached_bytes = 0;
  std::int64_t limit_bytes = 0;
};

/// Operator counters since the engine began.
struct EngineStats {
  std::uint64_t issued = 0;      ///< operators issued
  std::uint64_t executed = 0;    ///< operators finished, failed ones included
  std::uint64_t failed = 0;      ///< operators whose kernel failed (dependants not counted)
  std::uint64_t run_inline = 0;  ///< of `executed`, those run by the thread that drained the queue
  std::uint64_t donated = 0;     ///< outputs written over a dead input
  std::uint64_t in_flight = 0;   ///< issued and not finished
};

/// One engine. Engines are independent; a tensor belongs to one. Any thread may issue operators.
class Engine {
 public:
  using RegisterKernels = void (*)(KernelRegistry&);

  /// Starts nothing: threads begin with the first operator. `register_kernels` fills the kernel registry,
  /// typically `register_cpu_kernels`.
  explicit Engine(EngineOptions options, RegisterKernels register_kernels);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Adds a custom operator with a CPU kernel; throws EngineError after the first operator was issued. The
  /// kernel may issue operators and wait for values, from chunks of KernelContext::parallel_for too, but not
  /// from tasks that it starts with oneTBB itself (a wait there raises EngineError).
  const Op& register_operator(Op op, KernelFn cpu_kernel);
  const OpRegistry& ops() const noexcept;
  const Op& op(std::string_view name) const { return ops().find(name); }
  const EngineOptions& options() const noexcept;
  /// The mode of the options, but synchronous in a forked child.
  EngineMode mode() const noexcept;

  /// Issues one operator with one output and returns at once. Metadata errors raise here. Throws EngineError
  /// after `shutdown`, DeviceError for inputs on different devices (0-d cpu tensors are copied).
  Tensor apply(const Op& op, std::span<const Tensor* const> inputs, Attributes attributes = {},
               SiteId site = 0);
  Tensor apply(const Op& op, std::initializer_list<const Tensor*> inputs, Attributes attributes = {},
               SiteId site = 0) {
    return apply(op, std::span<const Tensor* const>(inputs.begin(), inputs.size()), std::move(attributes),
                 site);
  }
  /// Issues one operator with several outputs.
  std::vector<Tensor> apply_many(const Op& op, std::span<const Tensor* const> inputs,
                                 Attributes attributes = {}, SiteId site = 0);
  /// In-place form: input 0 is `target`, whose handle is rebound to the result (cast to `target`'s dtype
  /// within its kind). Throws ShapeError if the result's shape is not `target`'s, DTypeError if its kind is
  /// higher.
  void apply_in_place(const Op& op, Tensor& target, std::span<const Tensor* const> others,
                      Attributes attributes = {}, SiteId site = 0);

  /// A ready 0-d tensor holding `value` as `dtype`; issues no operator.
  Tensor constant(const Scalar& value, DType dtype, Device device = {});
  /// A ready contiguous tensor whose bytes the caller fills through `mutable_data` before anyone else sees
  /// it.
  Tensor allocate(DType dtype, const Shape& shape, Device device = {});
  static void* mutable_data(const Tensor& fresh) noexcept;
  /// A ready tensor over foreign bytes, which stay untouched; `release` is called (any thread) when the last
  /// user went.
  Tensor from_external(TensorMeta meta, void* data, std::function<void()> release);

  /// Throws DeviceError, naming the devices there are, if `device` does not exist.
  void check_device(Device device) const;
  std::vector<Device> devices() const;

  /// Starts what was issued; does not wait.
  void flush();
  /// Waits for every operator sent before by any thread, then raises the oldest failure not yet raised to
  /// anyone, with the texts of the others.
  void synchronize();
  /// Waits for everything without raising failures. Like every wait it throws Interrupted when the host asks
  /// for it.
  void drain();
  /// Drains, stops accepting operators, stops the threads. Returns texts of failures nobody has read.
  /// Idempotent. Interrupted while it drains, it leaves the engine as it was.
  std::vector<std::string> shutdown();
  /// For a program that ends in haste: operators that have not begun fail instead of running.
  void abandon() noexcept;
  bool is_shut_down() const noexcept;

  /// Drains, then rebuilds the arenas for `count` threads (0: as many as the process may use).
  void set_num_threads(int count);
  int num_threads() const noexcept;
  void set_name(std::string name);
  void set_memory_limit(std::int64_t bytes);
  void set_run_ahead(std::int64_t operators, std::int64_t bytes);

  MemoryStats memory_stats(Device device = {}) const;
  void reset_peak_memory(Device device = {});
  void empty_cache();
  EngineStats stats() const;

  /// Writes the live graph as JSON (tools/graph.schema.json). Never starts or delays operators.
  void dump_graph(std::ostream& out) const;
  /// Keeps every operator from now on; nested calls throw EngineError.
  void start_recording();
  /// Synchronises without raising, writes what ran since `start_recording` as JSON, stops keeping.
  void stop_recording(std::ostream& out);

  struct Impl;
  Impl& impl() noexcept { return *impl_; }

 private:
  std::vector<std::string> end();
  std::unique_ptr<Impl> impl_;
};

/// For reports of failures: each distinct text once, on a line of its own that begins with a line break, with
/// how often it occurs; the first five.
std::string distinct_lines(const std::vector<std::string>& texts);

}  // namespace thalweg
