// test_ops.h: operators and plain kernels for the engine's tests, which must not depend on kernels/.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <thalweg/engine.h>

namespace thalweg::testing {

/// Calls `visit(offset)` with the element offset of every element of `view` in C order.
template <class Visit>
void for_each_offset(const TensorView& view, Visit&& visit) {
  const int rank = view.rank();
  std::vector<std::int64_t> index(static_cast<std::size_t>(rank), 0);
  const std::int64_t count = view.numel();
  std::int64_t offset = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    visit(offset);
    for (int axis = rank - 1; axis >= 0; --axis) {
      const auto at = static_cast<std::size_t>(axis);
      offset += view.strides()[at];
      if (++index[at] < view.shape()[at]) break;
      offset -= index[at] * view.strides()[at];
      index[at] = 0;
    }
  }
}

/// Elements of `view` in C order.
template <class T>
std::vector<T> elements(const TensorView& view) {
  std::vector<T> values;
  values.reserve(static_cast<std::size_t>(view.numel()));
  for_each_offset(view, [&](std::int64_t offset) { values.push_back(view.as<T>()[offset]); });
  return values;
}
/// Waits, then the elements in C order.
template <class T>
std::vector<T> values(const Tensor& tensor) {
  return elements<T>(tensor.view());
}

template <class To, class From>
void copy_elements(const KernelContext& context) {
  To* out = context.output().as<To>();
  for_each_offset(context.input(0), [&](std::int64_t offset) {
    *out++ = static_cast<To>(context.input(0).as<From>()[offset]);
  });
}

inline void copy_kernel(const KernelContext& context) {
  visit_real_dtype(context.output().dtype(), [&]<class To>() {
    visit_real_dtype(context.input(0).dtype(), [&]<class From>() { copy_elements<To, From>(context); });
  });
}

/// A binary kernel over strided, broadcast inputs. Reads each element before it writes it, so it may alias.
template <class Function>
KernelFn binary_kernel(Function function) {
  return [function](const KernelContext& context) {
    visit_real_dtype(context.output().dtype(), [&]<class T>() {
      if constexpr (std::is_same_v<T, bool>) {
        throw KernelError("test kernels take no bool");
      } else {
        TensorMeta metas[2];
        TensorView views[2];
        for (std::size_t i = 0; i < 2; ++i) {
          metas[i] = *context.input(i).meta;
          metas[i].strides = broadcast_strides(metas[i].shape, metas[i].strides, context.output().shape());
          metas[i].shape = context.output().shape();
          views[i] = {context.input(i).data, &metas[i]};
        }
        std::vector<std::int64_t> left;
        for_each_offset(views[0], [&](std::int64_t offset) { left.push_back(offset); });
        T* out = context.output().as<T>();
        std::size_t at = 0;
        for_each_offset(views[1], [&](std::int64_t offset) {
          out[at] = static_cast<T>(function(views[0].as<T>()[left[at]], views[1].as<T>()[offset]));
          ++at;
        });
      }
    });
  };
}

/// Kernels for the built-in Ops that the engine's tests use.
inline void register_test_kernels(KernelRegistry& registry) {
  registry.add("add", DeviceType::cpu, binary_kernel([](auto a, auto b) { return a + b; }));
  registry.add("multiply", DeviceType::cpu, binary_kernel([](auto a, auto b) { return a * b; }));
  for (const char* name : {"astype", "contiguous", "to_device"})
    registry.add(name, DeviceType::cpu, copy_kernel);
}

/// A custom Op of any number of inputs whose output has input 0's shape and dtype (float64[1] without
/// inputs). Its cost is unknown, so it is a task of its own.
inline Op custom_op(std::string name) {
  Op op;
  op.name = std::move(name);
  op.inputs = {"xs"};
  op.variadic = true;
  op.ns_per_element = -1;
  op.doc = "For tests.";
  op.infer = [](InferContext& context) {
    if (context.input_count() == 0) return context.set_contiguous(0, {1}, DType::float64);
    for (std::size_t i = 0; i < context.input_count(); ++i) context.require_contiguous(i);
    context.set_contiguous(0, context.input(0).shape, context.input(0).dtype);
  };
  return op;
}

/// Output = 1 + the sum of all inputs, element by element, as float64.
inline void sum_kernel(const KernelContext& context) {
  double* out = context.output().as<double>();
  for (std::int64_t i = 0; i < context.output().numel(); ++i) {
    double sum = 1;
    for (const TensorView& input : context.inputs()) sum += input.as<double>()[i];
    out[i] = sum;
  }
}

/// A custom Op that calls `before(context)` and then is `sum_kernel`.
inline const Op& add_custom(Engine& engine, std::string name,
                            std::function<void(const KernelContext&)> before = {}) {
  return engine.register_operator(custom_op(std::move(name)), [before](const KernelContext& context) {
    if (before) before(context);
    sum_kernel(context);
  });
}

/// A custom Op that throws `error`.
template <class Error>
const Op& add_throwing(Engine& engine, std::string name, Error error) {
  return engine.register_operator(custom_op(std::move(name)),
                                  [error](const KernelContext&) -> void { throw error; });
}

/// A ready float64 tensor of `count` elements that hold `first`, `first + step`, ….
inline Tensor ramp(Engine& engine, std::int64_t count, double first = 0, double step = 1,
                   Device device = {}) {
  Tensor tensor = engine.allocate(DType::float64, {count}, device);
  auto* data = static_cast<double*>(Engine::mutable_data(tensor));
  for (std::int64_t i = 0; i < count; ++i) data[i] = first + step * static_cast<double>(i);
  return tensor;
}
inline Tensor filled(Engine& engine, std::int64_t count, double value, Device device = {}) {
  return ramp(engine, count, value, 0, device);
}

/// `op` over `inputs`.
inline Tensor call(Engine& engine, const Op& op, const std::vector<Tensor>& inputs, SiteId site = 0) {
  std::vector<const Tensor*> pointers;
  for (const Tensor& input : inputs) pointers.push_back(&input);
  return engine.apply(op, pointers, {}, site);
}
inline Tensor add(const Tensor& a, const Tensor& b) {
  return a.engine().apply(a.engine().op("add"), {&a, &b});
}
inline Tensor multiply(const Tensor& a, const Tensor& b) {
  return a.engine().apply(a.engine().op("multiply"), {&a, &b});
}
inline void add_to(Tensor& target, const Tensor& other) {
  const Tensor* others[] = {&other};
  target.engine().apply_in_place(target.engine().op("add"), target, others);
}
inline Tensor to_device(const Tensor& a, Device device) {
  return a.engine().apply(a.engine().op("to_device"), {&a}, {AttrValue(device)});
}
inline Device cpu(int index) { return {DeviceType::cpu, static_cast<std::int16_t>(index)}; }
inline double item(const Tensor& tensor) { return tensor.item().to<double>(); }

}  // namespace thalweg::testing
