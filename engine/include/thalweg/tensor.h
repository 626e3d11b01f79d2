// tensor.h: the user's handle on one operand. Copying makes a second handle; the value itself is immutable.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <string>
#include <utility>

#include <thalweg/kernel.h>
#include <thalweg/op.h>
#include <thalweg/scalar.h>

namespace thalweg {

class AutogradMeta;
class Engine;
class Operand;

/// Why an operand has no value.
struct FailureInfo {
  std::string op;                ///< the operator whose kernel failed
  Device device;                 ///< where
  std::string site;              ///< the user's "file:line", empty if unknown
  std::exception_ptr exception;  ///< what the kernel threw
  std::string message;           ///< the kernel's text led by operator, device and site
};

/// A handle on an operand: metadata at once, value when its operator has run. Any thread may use it; one
/// handle object must not be assigned on one thread while another uses it. What a tensor has to do with
/// gradients (thalweg/autograd.h) hangs on the handle; copies share it.
class Tensor {
 public:
  Tensor() noexcept = default;
  /// Takes over one handle reference (engine internals only).
  explicit Tensor(Operand* adopted) noexcept : operand_(adopted) {}
  Tensor(const Tensor& other) noexcept;
  Tensor(Tensor&& other) noexcept
      : operand_(std::exchange(other.operand_, nullptr)),
        autograd_(std::exchange(other.autograd_, nullptr)) {}
  Tensor& operator=(const Tensor& other) noexcept;
  Tensor& operator=(Tensor&& other) noexcept {
    std::swap(operand_, other.operand_);
    std::swap(autograd_, other.autograd_);
    return *this;
  }
  ~Tensor() {
    if (operand_ != nullptr) drop();
  }

  explicit operator bool() const noexcept { return operand_ != nullptr; }
  Operand* operand() const noexcept { return operand_; }
  /// Gives the handle reference away; the tensor becomes empty.
  Operand* release() noexcept {
    if (autograd_ != nullptr) set_autograd(nullptr);
    return std::exchange(operand_, nullptr);
  }

  /// What it has to do with gradients; null for most tensors.
  AutogradMeta* autograd() const noexcept { return autograd_; }
  /// Replaces that; takes a reference over (engine internals only).
  void set_autograd(AutogradMeta* adopted) noexcept;
  /// Gives the old handle reference away without dropping it and takes `adopted` over; what it has to do with
  /// gradients stays (engine internals only).
  void rebind(Operand* adopted) noexcept { operand_ = adopted; }
  /// True if gradients are to reach it.
  bool requires_grad() const noexcept;
  /// A handle on the same value that has nothing to do with gradients.
  Tensor detach() const noexcept;

  const TensorMeta& meta() const noexcept;
  DType dtype() const noexcept { return meta().dtype; }
  Device device() const noexcept { return meta().device; }
  const Shape& shape() const noexcept { return meta().shape; }
  /// Strides in elements.
  const Strides& strides() const noexcept { return meta().strides; }
  int rank() const noexcept { return meta().rank(); }
  std::int64_t numel() const noexcept { return meta().numel(); }
  Engine& engine() const noexcept;
  /// Engine-wide number of the operand: unique, rising with issue order.
  std::uint64_t id() const noexcept;

  /// True once the value is there or has failed. Flushes the queue; never blocks, never throws.
  bool is_ready() const;
  /// Waits for the value (helping); throws the failure's original error type if it has failed, `Interrupted`
  /// if the host's interrupt check says so.
  void wait() const;
  /// Waits, then the value where it lies (device memory is host memory on cpu devices). Valid while this
  /// handle lives.
  TensorView view() const;
  /// Waits, then the only element; throws ValueError unless there is exactly one.
  Scalar item() const;
  /// True if the value is there and is a failure. Never blocks.
  bool has_failed() const noexcept;
  /// Details of a failure; `op` is empty if there is none (yet).
  FailureInfo failure() const;
  /// For a failed result of an in-place form: the last good value it was to replace; throws ValueError if
  /// there is none. A leaf stays that leaf.
  Tensor recover() const;
  /// Calls `callback` once the value is there or has failed: on the completing thread, or at once on this
  /// one. It must not wait, block or let an exception out. It may issue operators, which throw EngineError
  /// once their engine was shut down: catch that where somebody may shut it down meanwhile.
  void on_ready(std::function<void()> callback) const;
  /// Sends a name for dumps.
  void set_name(std::string name) const;
  /// True if the bytes are shared with nobody who could see a write (no view, no export, foreign memory
  /// excluded).
  bool owns_bytes_alone() const noexcept;

 private:
  void drop() noexcept;

  Operand* operand_ = nullptr;
  AutogradMeta* autograd_ = nullptr;  // a reference
};

}  // namespace thalweg
