// gradient.h: what the derivative of an Op (Op::gradient) reads, and how it issues operators.
#pragma once

#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <span>

#include <thalweg/engine.h>
#include <thalweg/node.h>

namespace thalweg {

/// A built-in Op, looked up once: it has the same id in every engine.
class BuiltinOp {
 public:
  constexpr explicit BuiltinOp(const char* name) noexcept : name_(name) {}
  const Op& in(const Engine& engine) const {
    const std::uint32_t id = id_.load(std::memory_order_relaxed);
    if (id != kUnknown) [[likely]]
      return *engine.ops().all()[id];
    return find(engine);
  }

 private:
  static constexpr std::uint32_t kUnknown = ~std::uint32_t{0};
  const Op& find(const Engine& engine) const;

  const char* name_;
  mutable std::atomic<std::uint32_t> id_{kUnknown};
};

/// The values in a list, without the temporaries of an initializer list.
template <class... Values>
Attributes attributes_of(Values&&... values) {
  Attributes attributes;
  attributes.values().reserve(sizeof...(values));
  (attributes.values().emplace_back(std::forward<Values>(values)), ...);
  return attributes;
}

class OpNode;

/// One evaluation of a derivative, on the thread that runs backward. Gradients may come back in any dtype and
/// broadcast shape: backward sums and casts them to what the input looks like, and takes the real part where
/// that is real.
class GradientContext {
 public:
  GradientContext(const OpNode& node, Engine& engine, const TensorList& saved, TensorList& gradients,
                  TensorList& results, const NeededEdges& needed) noexcept
      : node_(node),
        engine_(engine),
        saved_(saved),
        gradients_(gradients),
        results_(results),
        needed_(needed) {}

  const Op& op() const noexcept;
  const Attributes& attributes() const noexcept;
  Engine& engine() const noexcept { return engine_; }
  SiteId site() const noexcept;

  /// The gradient of output `j`; empty if undefined, which only Ops of several outputs meet.
  const Tensor& grad(std::size_t j = 0) const noexcept { return gradients_[j]; }
  std::size_t input_count() const noexcept;
  /// True if the gradient of input `i` is wanted.
  bool needs(std::size_t i) const noexcept { return needed_(i); }
  /// A saved input or output, which the Op declares in `saves`.
  Tensor input(std::size_t i) const;
  Tensor output(std::size_t j = 0) const;
  /// What input `i` looks like: for inputs that need a gradient, and for all if the Op declares
  /// `saves_shapes`.
  const ValueMeta& input_meta(std::size_t i) const;
  const ValueMeta& output_meta(std::size_t j = 0) const noexcept;
  const Shape& input_shape(std::size_t i) const { return input_meta(i).shape; }
  void set(std::size_t i, Tensor gradient) { results_[i] = std::move(gradient); }

  // --- operators, issued where the forward operator was ---
  Tensor call(const BuiltinOp& op, std::initializer_list<const Tensor*> inputs,
              Attributes attributes = {}) const;
  Tensor call(const BuiltinOp& op, std::span<const Tensor> inputs, Attributes attributes = {}) const;
  Tensor call(const BuiltinOp& op, const Tensor& x, Attributes attributes = {}) const {
    return call(op, {&x}, std::move(attributes));
  }
  Tensor call(const BuiltinOp& op, const Tensor& x, const Tensor& y, Attributes attributes = {}) const {
    return call(op, {&x, &y}, std::move(attributes));
  }
  Tensor add(const Tensor& x, const Tensor& y) const;
  Tensor subtract(const Tensor& x, const Tensor& y) const;
  Tensor multiply(const Tensor& x, const Tensor& y) const;
  Tensor divide(const Tensor& x, const Tensor& y) const;
  Tensor negative(const Tensor& x) const;
  Tensor where(const Tensor& condition, const Tensor& x, const Tensor& y) const;
  /// x itself if it is real.
  Tensor conj(const Tensor& x) const;
  /// `value` as a 0-d tensor of the dtype and device of `like`.
  Tensor number(double value, const Tensor& like) const;
  Tensor scale(const Tensor& x, double factor) const { return multiply(x, number(factor, x)); }
  Tensor reshape(const Tensor& x, const Shape& shape) const;
  Tensor broadcast_to(const Tensor& x, const Shape& shape) const;
  /// Sum over `axes`, which stay with size 1.
  Tensor sum_keeping(const Tensor& x, const Dims& axes) const;
  Tensor zeros(const ValueMeta& like) const;

 private:
  const OpNode& node_;
  Engine& engine_;
  const TensorList& saved_;
  TensorList& gradients_;
  TensorList& results_;
  const NeededEdges& needed_;
};

}  // namespace thalweg
