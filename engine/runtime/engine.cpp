// engine.cpp: the public engine: issue, read, wait, options.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <thread>

#include <thalweg/autograd.h>
#include <thalweg/engine.h>
#if defined(__linux__)
#include <sched.h>
#endif

#include "graph/recorder.h"
#include "runtime/device_arena.h"
#include "runtime/engine_impl.h"
#include "runtime/engine_task.h"
#include "runtime/fork.h"

namespace thalweg {
namespace {

/// Processors this process may use.
int available_processors() {
#if defined(__linux__)
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
#endif
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

int resolve_threads(int count) {
  if (count < 0 || count > EngineOptions::kMaxThreads) {
    throw ValueError("num_threads: " + std::to_string(count) + " is not a number of threads; give 1 to " +
                     std::to_string(EngineOptions::kMaxThreads) + ", or 0 for all");
  }
  return count == 0 ? available_processors() : count;
}

/// What waits for every operator would wait for the one that calls it.
void refuse_inside_task(const char* what) {
  if (EngineTask::active()) {
    throw EngineError(std::string(what) +
                      ": cannot be called from a kernel or a completion callback, which it would wait for");
  }
}

EngineOptions with_usable_mode(EngineOptions options) {
  if (in_forked_child()) options.mode = EngineMode::synchronous;
  return options;
}

const EngineOptions& checked(const EngineOptions& options) {
  if (options.perDevicePerProcess) {
    throw EngineError(
        "perDevicePerProcess: the process runner is not built; use False (one thread per device)");
  }
  if (options.cpu_devices < 1 || options.cpu_devices > 64) {
    throw ValueError("cpu_devices: " + std::to_string(options.cpu_devices) + " is outside 1 to 64");
  }
  if (options.max_operators_in_flight < 1 || options.max_operators_in_flight > 1'000'000 ||
      options.max_bytes_in_flight < 1) {
    throw ValueError("run-ahead: limits must be at least 1 (and at most 1000000 operators)");
  }
  if (options.memory_limit < 0 || options.cache_limit < 0) {
    throw ValueError("memory_limit, cache_limit: " + std::to_string(options.memory_limit) + " and " +
                     std::to_string(options.cache_limit) + " bytes; neither may be negative");
  }
  return options;
}

}  // namespace

Engine::Impl::Impl(Engine& engine, EngineOptions engine_options, RegisterKernels register_kernels)
    : options(with_usable_mode(checked(engine_options))),
      devices(options.cpu_devices),
      threads(resolve_threads(options.num_threads)),
      naive(kernels, devices, options, failures),
      synchronous(options.mode == EngineMode::synchronous
                      ? std::make_unique<SynchronousExecutor>(engine, naive)
                      : nullptr),
      eager(synchronous ? nullptr
                        : std::make_unique<EagerGraphExecutor>(engine, options, naive, devices, threads)),
      executor(synchronous ? static_cast<GraphExecutor&>(*synchronous) : *eager),
      constructor(ops, executor) {
  ops.begin_with(builtin_ops());
  if (register_kernels != nullptr) register_kernels(kernels);
  SlabPool<Buffer>::prepare();
  SlabPool<Operand>::prepare();
  SlabPool<Operator>::prepare();
  PoolLocks::add(&freeze_lock);
  PoolLocks::add(&record_lock);
  handle_forks();
  if (eager != nullptr) {
    eager->set_id_source([](void* self) { return static_cast<GraphConstructor*>(self)->next_id(); },
                         &constructor);
    watch_forks(*eager);
  }
}

Engine::Impl::~Impl() {
  PoolLocks::remove(&freeze_lock);
  PoolLocks::remove(&record_lock);
  if (eager != nullptr) forget_forks(*eager);
}

void Engine::Impl::freeze() {
  std::lock_guard guard(freeze_lock);
  if (frozen.load(std::memory_order_relaxed)) return;
  kernels.bind(ops);
  constructor.bind();
  frozen.store(true, std::memory_order_release);
}

void Engine::Impl::check_accepting(const Op& op) const {
  if (closed.load(std::memory_order_acquire)) [[unlikely]] {
    throw EngineError(op.name + ": engine '" + options.name +
                      "' was shut down; issue operators before that or make a new Engine");
  }
}

std::string Engine::Impl::site_text(SiteId site) const {
  return thalweg::site_text(options.hooks.resolve_site, site);
}

Engine::Engine(EngineOptions options, RegisterKernels register_kernels)
    : impl_(std::make_unique<Impl>(*this, std::move(options), register_kernels)) {}

Engine::~Engine() {
  if (!is_shut_down()) end();
}

const Op& Engine::register_operator(Op op, KernelFn cpu_kernel) {
  std::lock_guard guard(impl_->freeze_lock);
  if (impl_->frozen.load(std::memory_order_relaxed)) {
    throw EngineError(op.name +
                      ": operators must be registered before the engine's first operator is issued");
  }
  op.is_custom = true;
  const Op& added = impl_->ops.add(std::move(op));
  impl_->kernels.add(added.name, DeviceType::cpu, isolated(std::move(cpu_kernel)));
  return added;
}

const OpRegistry& Engine::ops() const noexcept { return impl_->ops; }
const EngineOptions& Engine::options() const noexcept { return impl_->options; }
EngineMode Engine::mode() const noexcept {
  return impl_->raises_in_call() ? EngineMode::synchronous : impl_->options.mode;
}

// --- issue
// ----------------------------------------------------------------------------------------------------------

namespace {

/// The operands of `inputs`, on the stack for the usual operator.
class Operands {
 public:
  Operands(const Op& op, std::span<const Tensor* const> inputs) {
    if (inputs.size() > few_.size()) many_.resize(inputs.size());
    Operand** data = many_.empty() ? few_.data() : many_.data();
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      data[i] = inputs[i]->operand();
      if (data[i] == nullptr)
        throw ValueError(op.name + ": input " + std::to_string(i) + " is an empty Tensor");
      autograd_ = autograd_ || inputs[i]->autograd() != nullptr;
    }
    span_ = {data, inputs.size()};
  }
  operator std::span<Operand* const>() const noexcept { return span_; }
  /// True if one of them has something to do with gradients.
  bool any_autograd() const noexcept { return autograd_; }

 private:
  bool autograd_ = false;
  std::array<Operand*, 8> few_;
  std::vector<Operand*> many_;
  std::span<Operand*> span_;
};

}  // namespace

Tensor Engine::apply(const Op& op, std::span<const Tensor* const> inputs, Attributes attributes,
                     SiteId site) {
  if (!impl_->frozen.load(std::memory_order_acquire)) [[unlikely]]
    impl_->freeze();
  impl_->check_accepting(op);
  if (op.outputs != 1)
    throw ValueError(op.name + ": has " + std::to_string(op.outputs) + " outputs; use apply_many");
  const Operands operands(op, inputs);
  Operand* output = nullptr;
  if (operands.any_autograd()) [[unlikely]] {
    Tensor result;
    impl_->apply_recorded(op, inputs, operands, std::move(attributes), site, {&output, 1}, {&result, 1});
    return result;
  }
  impl_->constructor.apply(op, operands, std::move(attributes), site, {&output, 1});
  Tensor result(output);
  if (impl_->raises_in_call() && output->state() == OperandState::failed) output->failure()->raise();
  return result;
}

std::vector<Tensor> Engine::apply_many(const Op& op, std::span<const Tensor* const> inputs,
                                       Attributes attributes, SiteId site) {
  if (!impl_->frozen.load(std::memory_order_acquire)) impl_->freeze();
  impl_->check_accepting(op);
  std::vector<Operand*> outputs(op.outputs);
  std::vector<Tensor> results(op.outputs);
  impl_->apply_recorded(op, inputs, Operands(op, inputs), std::move(attributes), site, outputs, results);
  return results;
}

/// Issues an operator, and records it for backward if it is to be.
void Engine::Impl::apply_recorded(const Op& op, std::span<const Tensor* const> inputs,
                                  std::span<Operand* const> operands, Attributes attributes, SiteId site,
                                  std::span<Operand*> outputs, std::span<Tensor> results) {
  Record record(op, inputs, site);
  Attributes completed;
  constructor.apply(op, operands, std::move(attributes), site, outputs, record ? &completed : nullptr);
  for (std::size_t j = 0; j < outputs.size(); ++j) results[j] = Tensor(outputs[j]);
  if (raises_in_call() && outputs[0]->state() == OperandState::failed) outputs[0]->failure()->raise();
  if (record) record.finish(std::move(completed), results);
}

void Engine::apply_in_place(const Op& op, Tensor& target, std::span<const Tensor* const> others,
                            Attributes attributes, SiteId site) {
  if (!impl_->frozen.load(std::memory_order_acquire)) impl_->freeze();
  impl_->check_accepting(op);
  if (op.outputs != 1) throw ValueError(op.name + ": an in-place form needs an operator of one output");
  if (!target) throw ValueError(op.name + ": the target of an in-place form is an empty Tensor");
  const Operands operands(op, others);
  if (target.autograd() != nullptr || operands.any_autograd()) [[unlikely]] {
    impl_->apply_in_place_recorded(op, target, others, operands, std::move(attributes), site);
  } else {
    impl_->rebind(target, impl_->constructor.apply_in_place(op, target.operand(), operands,
                                                            std::move(attributes), site));
  }
  if (impl_->eager && impl_->eager->take_late_interrupt()) throw Interrupted();
}

void Engine::Impl::apply_in_place_recorded(const Op& op, Tensor& target,
                                           std::span<const Tensor* const> others,
                                           std::span<Operand* const> operands, Attributes attributes,
                                           SiteId site) {
  check_in_place(op, target);
  std::vector<const Tensor*> inputs{&target};
  inputs.insert(inputs.end(), others.begin(), others.end());
  Record record(op, inputs, site);
  const bool retains = retains_grad(target);
  Attributes completed;
  rebind(target, constructor.apply_in_place(op, target.operand(), operands, std::move(attributes), site,
                                            record ? &completed : nullptr));
  if (!record) return rebind_unrecorded(target);
  record.finish(std::move(completed), {&target, 1});
  if (retains) retain_grad(target);
}

/// Makes `output`, whose operator has taken the old handle over, the value of `target`; raises its failure if
/// the operator is over, and leaves the last good value then.
void Engine::Impl::rebind(Tensor& target, Operand* output) {
  target.rebind(output);
  if (!raises_in_call() || output->state() != OperandState::failed) [[likely]]
    return;
  Failure* failure = output->failure();
  failure->ref();
  const std::unique_ptr<Failure, void (*)(Failure*)> owner(failure, [](Failure* self) { self->unref(); });
  if (output->recover != nullptr) {
    Tensor good = target.recover();
    const Tensor failed(target.operand());
    target.rebind(good.release());
  }
  failure->raise();
}

// --- ready values
// ---------------------------------------------------------------------------------------------------

namespace {

Operand* ready_operand(Engine::Impl& impl, DType dtype, Device device) {
  Operand* operand = Operand::make(&impl.executor, false);
  operand->id = impl.constructor.take_id();
  operand->meta.dtype = dtype;
  operand->meta.device = device;
  operand->meta.offset = 0;
  return operand;
}

}  // namespace

Tensor Engine::constant(const Scalar& value, DType dtype, Device device) {
  if (device != Device{}) check_device(device);
  Operand* operand = ready_operand(*impl_, dtype, device);
  operand->meta.shape.clear();
  operand->meta.strides.clear();
  Buffer* buffer = Buffer::make_inline();
  if (is_half(dtype)) {
    *static_cast<std::uint16_t*>(buffer->data()) = to_half(value, dtype);
  } else {
    visit_dtype(dtype, [&]<class T>() { *static_cast<T*>(buffer->data()) = value.to<T>(); });
  }
  operand->set_ready(buffer);
  return Tensor(operand);
}

Tensor Engine::allocate(DType dtype, const Shape& shape, Device device) {
  check_device(device);
  const std::int64_t bytes = checked_numel("allocate", shape, item_size(dtype)) * item_size(dtype);
  Buffer* const buffer = impl_->eager ? impl_->eager->allocate(device, bytes)
                                      : impl_->naive.allocator(device).try_allocate(bytes);
  if (buffer == nullptr) {
    const MemoryStats stats = memory_stats(device);
    throw OutOfMemoryError("allocate: " + std::to_string(bytes) + " bytes do not fit on " +
                           to_string(device) + ": " + std::to_string(stats.live_bytes) + " live, limit " +
                           std::to_string(stats.limit_bytes) + "; drop tensors or raise the limit");
  }
  Operand* operand = ready_operand(*impl_, dtype, device);
  operand->meta.shape = shape;
  operand->meta.strides = contiguous_strides(shape);
  operand->set_ready(buffer);
  if (impl_->eager) impl_->eager->add_imported(bytes);
  return Tensor(operand);
}

void* Engine::mutable_data(const Tensor& fresh) noexcept { return fresh.operand()->data(); }

/// Bytes from the first to the last element of a view.
static std::int64_t reach_of(const TensorMeta& meta) noexcept {
  std::int64_t last = 0;
  for (std::size_t axis = 0; axis < meta.shape.size(); ++axis) {
    if (meta.shape[axis] == 0) return 0;
    last += (meta.shape[axis] - 1) * std::abs(meta.strides[axis]);
  }
  return (last + 1) * item_size(meta.dtype);
}

Tensor Engine::from_external(TensorMeta meta, void* data, std::function<void()> release) {
  check_device(meta.device);
  checked_numel("from_external", meta.shape, item_size(meta.dtype));
  Operand* operand = ready_operand(*impl_, meta.dtype, meta.device);
  operand->meta = std::move(meta);
  const std::int64_t bytes = reach_of(operand->meta);
  operand->set_ready(Buffer::make_foreign(data, std::move(release)));
  // The same again keeps no more alive.
  if (impl_->eager && impl_->last_import.exchange(data) != data) impl_->eager->add_imported(bytes);
  return Tensor(operand);
}

// --- devices
// --------------------------------------------------------------------------------------------------------

void Engine::check_device(Device device) const {
  if (impl_->devices.contains(device)) return;
  throw DeviceError("device " + to_string(device) +
                    " does not exist here; there are: " + impl_->devices.list());
}

std::vector<Device> Engine::devices() const { return impl_->devices.all(); }

// --- waiting
// --------------------------------------------------------------------------------------------------------

void Engine::flush() { impl_->executor.flush(); }

void Engine::synchronize() {
  refuse_inside_task("synchronize");
  const std::uint64_t before = impl_->constructor.next_id();
  impl_->executor.synchronise();
  impl_->failures.raise_before(before);
}

void Engine::drain() {
  refuse_inside_task("drain");
  if (impl_->eager) impl_->eager->drain_all(true);
}

std::vector<std::string> Engine::shutdown() {
  // Another engine's kernel may close this one, as it may destroy it.
  if (impl_->eager && impl_->eager->runs_this_thread()) refuse_inside_task("shutdown");
  if (is_shut_down()) return {};
  // While it can still be called off.
  if (impl_->eager) impl_->eager->drain_all(true);
  return end();
}

void Engine::abandon() noexcept { impl_->naive.abandon(); }

std::vector<std::string> Engine::end() {
  if (impl_->closed.exchange(true)) return {};
  if (impl_->eager) impl_->eager->shutdown();
  for (Device device : devices()) impl_->naive.allocator(device).stop_keeping();
  std::vector<std::string> unread;
  std::uint64_t others = 0;
  for (Failure* failure : impl_->failures.take_all(others)) {
    unread.push_back(failure_line(*failure));
    failure->unref();
  }
  if (others > 0) unread.push_back("and " + std::to_string(others) + " more that were not kept");
  return unread;
}

bool Engine::is_shut_down() const noexcept { return impl_->closed.load(std::memory_order_acquire); }

// --- options and figures
// --------------------------------------------------------------------------------------------

void Engine::set_num_threads(int count) {
  const int threads = resolve_threads(count);
  refuse_inside_task("set_num_threads");
  if (impl_->eager) {
    impl_->eager->set_num_threads(threads, impl_->threads);
  } else {
    impl_->threads = threads;
  }
}

int Engine::num_threads() const noexcept { return impl_->threads; }

void Engine::set_name(std::string name) {
  impl_->executor.send(new ControlMessage(NameGraph{std::move(name)}));
}

void Engine::set_memory_limit(std::int64_t bytes) {
  if (bytes < 0)
    throw ValueError("set_memory_limit: " + std::to_string(bytes) +
                     " is negative; give bytes, or 0 for no limit");
  // In order for operators; for what reads the allocator directly it must hold when this returns. Inside a
  // task of the engine's, which must not wait for whoever drains, it holds soon after.
  const bool waits = !EngineTask::active();
  std::atomic<bool> applied{false};
  impl_->executor.send(
      new ControlMessage(SetOption{SetOption::Option::memory_limit, bytes, waits ? &applied : nullptr}));
  while (waits && !applied.load(std::memory_order_acquire)) {
    impl_->executor.flush();
    std::this_thread::yield();
  }
}

void Engine::set_run_ahead(std::int64_t operators, std::int64_t bytes) {
  EngineOptions options;
  options.max_operators_in_flight = operators;
  options.max_bytes_in_flight = bytes;
  checked(options);
  if (impl_->eager) impl_->eager->set_limits(operators, bytes);
}

MemoryStats Engine::memory_stats(Device device) const {
  check_device(device);
  impl_->executor.flush();
  return impl_->naive.allocator(device).stats();
}

void Engine::reset_peak_memory(Device device) {
  check_device(device);
  impl_->naive.allocator(device).reset_peak();
}

void Engine::empty_cache() {
  for (Device device : devices()) impl_->naive.allocator(device).trim();
}

EngineStats Engine::stats() const {
  EngineStats stats;
  if (impl_->eager) impl_->eager->settle_counts();
  stats.executed = impl_->eager ? impl_->eager->executed() : impl_->synchronous->executed();
  stats.in_flight = impl_->eager ? impl_->eager->in_flight() : 0;
  stats.issued = stats.executed + stats.in_flight;
  stats.failed = impl_->failures.total();
  stats.run_inline = impl_->eager ? impl_->eager->run_inline() : 0;
  stats.donated = impl_->naive.donated();
  return stats;
}

}  // namespace thalweg
