// gradient_context.cpp: what derivatives read and the operators they issue.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <thalweg/gradient.h>

#include "autograd/op_node.h"

namespace thalweg {

namespace {

const BuiltinOp add_op("add");
const BuiltinOp subtract_op("subtract");
const BuiltinOp multiply_op("multiply");
const BuiltinOp divide_op("divide");
const BuiltinOp negative_op("negative");
const BuiltinOp where_op("where");
const BuiltinOp conj_op("conj");
const BuiltinOp reshape_op("reshape");
const BuiltinOp broadcast_to_op("broadcast_to");
const BuiltinOp sum_op("sum");

}  // namespace

const Op& BuiltinOp::find(const Engine& engine) const {
  const Op& op = engine.op(name_);
  id_.store(op.id, std::memory_order_relaxed);
  return op;
}

const Op& GradientContext::op() const noexcept { return node_.op(); }
const Attributes& GradientContext::attributes() const noexcept { return node_.attributes(); }
SiteId GradientContext::site() const noexcept { return node_.site(); }
std::size_t GradientContext::input_count() const noexcept { return node_.edges().size(); }
const ValueMeta& GradientContext::input_meta(std::size_t i) const { return node_.input_meta(i); }
const ValueMeta& GradientContext::output_meta(std::size_t j) const noexcept { return node_.output_meta(j); }

Tensor GradientContext::input(std::size_t i) const { return node_.saved(saved_, SavedValue::Kind::input, i); }
Tensor GradientContext::output(std::size_t j) const {
  return node_.saved(saved_, SavedValue::Kind::output, j);
}

Tensor GradientContext::call(const BuiltinOp& op, std::initializer_list<const Tensor*> inputs,
                             Attributes attributes) const {
  return engine_.apply(op.in(engine_), inputs, std::move(attributes), site());
}

Tensor GradientContext::call(const BuiltinOp& op, std::span<const Tensor> inputs,
                             Attributes attributes) const {
  std::vector<const Tensor*> pointers;
  for (const Tensor& input : inputs) pointers.push_back(&input);
  return engine_.apply(op.in(engine_), pointers, std::move(attributes), site());
}

Tensor GradientContext::add(const Tensor& x, const Tensor& y) const { return call(add_op, x, y); }
Tensor GradientContext::subtract(const Tensor& x, const Tensor& y) const { return call(subtract_op, x, y); }
Tensor GradientContext::multiply(const Tensor& x, const Tensor& y) const { return call(multiply_op, x, y); }
Tensor GradientContext::divide(const Tensor& x, const Tensor& y) const { return call(divide_op, x, y); }
Tensor GradientContext::negative(const Tensor& x) const { return call(negative_op, x); }
Tensor GradientContext::where(const Tensor& condition, const Tensor& x, const Tensor& y) const {
  return call(where_op, {&condition, &x, &y});
}
Tensor GradientContext::conj(const Tensor& x) const { return is_complex(x.dtype()) ? call(conj_op, x) : x; }

Tensor GradientContext::number(double value, const Tensor& like) const {
  return engine_.constant(Scalar(value), like.dtype(), like.device());
}

Tensor GradientContext::reshape(const Tensor& x, const Shape& shape) const {
  return x.shape() == shape ? x : call(reshape_op, x, attributes_of(shape));
}

Tensor GradientContext::broadcast_to(const Tensor& x, const Shape& shape) const {
  return x.shape() == shape ? x : call(broadcast_to_op, x, attributes_of(shape));
}

Tensor GradientContext::sum_keeping(const Tensor& x, const Dims& axes) const {
  return axes.empty() ? x : call(sum_op, x, attributes_of(axes, true));
}

Tensor GradientContext::zeros(const ValueMeta& like) const {
  return broadcast_to(engine_.constant(Scalar(0.0), like.dtype, like.device), like.shape);
}

}  // namespace thalweg
