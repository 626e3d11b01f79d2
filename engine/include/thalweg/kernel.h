// kernel.h: what a kernel is given and how it is registered.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include <thalweg/attributes.h>
#include <thalweg/op.h>

namespace thalweg {

/// A tensor as a kernel sees it. `data` already includes the offset. Strides count elements.
struct TensorView {
  void* data = nullptr;
  const TensorMeta* meta = nullptr;

  template <class T>
  T* as() const noexcept {
    return static_cast<T*>(data);
  }
  DType dtype() const noexcept { return meta->dtype; }
  const Shape& shape() const noexcept { return meta->shape; }
  const Strides& strides() const noexcept { return meta->strides; }
  int rank() const noexcept { return meta->rank(); }
  std::int64_t numel() const noexcept { return meta->numel(); }
  bool is_contiguous() const noexcept { return thalweg::is_contiguous(meta->shape, meta->strides); }
};

/// Runs `body(context, chunk)` for every chunk in [0, chunks), on as many threads as the device may use now.
using ParallelForFn = void (*)(void* runner, std::int64_t chunks, void (*body)(void*, std::int64_t),
                               void* context);

/// The arguments of one kernel call. Valid during the call only.
class KernelContext {
 public:
  KernelContext(const Op& op, const Attributes& attributes, std::span<const TensorView> inputs,
                std::span<const TensorView> outputs, ParallelForFn parallel_for = nullptr,
                void* runner = nullptr)
      : op_(op),
        attributes_(attributes),
        inputs_(inputs),
        outputs_(outputs),
        parallel_for_(parallel_for),
        runner_(runner) {}

  /// The same call on other operands, which must outlive it.
  KernelContext with_views(std::span<const TensorView> inputs, std::span<const TensorView> outputs) const {
    return {op_, attributes_, inputs, outputs, parallel_for_, runner_};
  }

  const Op& op() const noexcept { return op_; }
  const Attributes& attributes() const noexcept { return attributes_; }
  std::size_t input_count() const noexcept { return inputs_.size(); }
  const TensorView& input(std::size_t i) const noexcept { return inputs_[i]; }
  std::span<const TensorView> inputs() const noexcept { return inputs_; }
  /// Output `i`: uninitialised bytes, C-contiguous, possibly the very bytes of an input in its alias mask.
  const TensorView& output(std::size_t i = 0) const noexcept { return outputs_[i]; }
  std::span<const TensorView> outputs() const noexcept { return outputs_; }

  /// Runs `body(chunk)` for every chunk in [0, chunks). The caller chooses `chunks` from the data's size only
  /// (never from a thread count), so results do not depend on how many threads take part. The body may issue
  /// operators and wait for their values, which tasks that a kernel starts with oneTBB itself may not. If it
  /// throws, the other chunks run all the same, and then the exception of the lowest chunk is thrown.
  template <class Body>
  void parallel_for(std::int64_t chunks, Body&& body) const {
    if (parallel_for_ == nullptr || chunks < 2) {
      std::exception_ptr error;
      for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
        try {
          body(chunk);
        } catch (...) {
          if (error == nullptr) error = std::current_exception();
        }
      }
      if (error != nullptr) std::rethrow_exception(error);
      return;
    }
    using Callable = std::remove_reference_t<Body>;
    parallel_for_(
        runner_, chunks, [](void* context, std::int64_t chunk) { (*static_cast<Callable*>(context))(chunk); },
        const_cast<void*>(static_cast<const void*>(std::addressof(body))));
  }

 private:
  const Op& op_;
  const Attributes& attributes_;
  std::span<const TensorView> inputs_;
  std::span<const TensorView> outputs_;
  ParallelForFn parallel_for_;
  void* runner_;
};

/// A kernel function: computes the outputs of one operator on one device. May throw; the exception becomes
/// the outputs' state. One of an alias-safe Op of the library throws before it writes, or not at all, so that
/// the value that an in-place form was to replace is still there.
using KernelFn = std::function<void(const KernelContext&)>;

/// Kernels by (Op, device type). Filled before the engine's first operator, read-only after.
class KernelRegistry {
 public:
  /// Registers `kernel` for the Op called `op_name`; throws ValueError if one is there already.
  void add(std::string_view op_name, DeviceType device, KernelFn kernel);
  /// The kernel, or nullptr. `op.id` indexes a table after `bind`.
  const KernelFn* find(const Op& op, DeviceType device) const noexcept {
    const auto& table = bound_[static_cast<int>(device)];
    return op.id < table.size() ? table[op.id] : nullptr;
  }
  /// Resolves names against `ops`; throws ValueError for a kernel of an unknown Op.
  void bind(const OpRegistry& ops);

 private:
  std::unordered_map<std::string, std::unique_ptr<KernelFn>> by_name_[kDeviceTypeCount];
  std::vector<const KernelFn*> bound_[kDeviceTypeCount];
};

/// Adds every CPU kernel (kernels/cpu/); in the library thalweg::kernels_cpu.
void register_cpu_kernels(KernelRegistry& registry);

}  // namespace thalweg
