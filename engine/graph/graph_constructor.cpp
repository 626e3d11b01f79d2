// graph_constructor.cpp: the checks and inference of one call, and the Operator that comes of it.
#include "graph/graph_constructor.h"

#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <thalweg/errors.h>

namespace thalweg {

namespace {

constexpr std::size_t kFew = 8;

/// Stack storage for the usual operator, heap for one of many operands.
template <class T>
class Scratch {
 public:
  explicit Scratch(std::size_t count) : count_(count) {
    if (count > kFew) many_ = std::make_unique<T[]>(count);
  }
  T* data() noexcept { return many_ ? many_.get() : few_.data(); }
  std::span<T> span() noexcept { return {data(), count_}; }
  T& operator[](std::size_t i) noexcept { return data()[i]; }

 private:
  std::size_t count_;
  std::array<T, kFew> few_{};
  std::unique_ptr<T[]> many_;
};

bool matches(const AttrSpec& spec, const AttrValue& value) {
  if (std::holds_alternative<std::monostate>(value)) return !spec.required;
  switch (spec.kind) {
    case AttrKind::boolean: return std::holds_alternative<bool>(value);
    case AttrKind::integer: return std::holds_alternative<std::int64_t>(value);
    case AttrKind::floating: return std::holds_alternative<double>(value);
    case AttrKind::dtype: return std::holds_alternative<DType>(value);
    case AttrKind::device: return std::holds_alternative<Device>(value);
    case AttrKind::scalar: return std::holds_alternative<Scalar>(value);
    case AttrKind::dims:
    case AttrKind::axes: return std::holds_alternative<Dims>(value);
    case AttrKind::string: return std::holds_alternative<std::string>(value);
  }
  return false;
}

void complete_attributes(const Op& op, Attributes& attributes) {
  auto& values = attributes.values();
  if (values.size() > op.attributes.size()) {
    throw AttributeError(op.name + ": takes " + std::to_string(op.attributes.size()) + " attributes, got " +
                         std::to_string(values.size()));
  }
  values.resize(op.attributes.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const AttrSpec& spec = op.attributes[i];
    if (!attributes.has(i)) values[i] = spec.fallback;
    if (spec.required && !attributes.has(i)) {
      throw AttributeError(op.name + ": attribute '" + spec.name + "' has no default: give a value");
    }
    if (!matches(spec, values[i])) {
      throw AttributeError(op.name + ": attribute '" + spec.name + "' does not take " + to_string(values[i]));
    }
  }
}

void check_input_count(const Op& op, std::size_t count) {
  const std::size_t named = op.inputs.size();
  const bool right = op.variadic ? count + 1 >= named : count == named;
  if (right) return;
  throw ValueError(op.name + ": takes " +
                   (op.variadic ? "at least " + std::to_string(named - 1) : std::to_string(named)) +
                   " input(s), got " + std::to_string(count));
}

std::int64_t now_ns() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

}  // namespace

/// One call on its way to becoming an Operator. Owns a handle on every input that it inserted or holds and on
/// the outputs until `submit` took them.
struct GraphConstructor::Call {
  Call(const Op& op_, std::span<Operand* const> inputs_, Attributes attributes_, SiteId site_)
      : op(op_),
        attributes(std::move(attributes_)),
        site(site_),
        inputs(inputs_.size()),
        owned(inputs_.size()),
        outputs(op_.outputs),
        requests(inputs_.size()) {
    for (std::size_t i = 0; i < inputs_.size(); ++i) inputs[i] = inputs_[i];
  }
  ~Call() {
    for (std::size_t i = 0; i < inputs.span().size(); ++i) {
      if (owned[i]) inputs[i]->drop_handle();
    }
    if (submitted) return;
    for (Operand* output : outputs.span()) {
      if (output == nullptr) continue;
      // Nothing but this call knows the operand.
      output->drop_handle();
      output->unref();  // the producer's reference
    }
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  std::size_t input_count() noexcept { return inputs.span().size(); }

  /// An operator that is inserted may wait for room, and other threads may then drop the caller's handles.
  void hold_inputs() noexcept {
    for (std::size_t i = 0; i < inputs.span().size(); ++i) {
      if (!owned[i]) inputs[i]->add_handle();
      owned[i] = true;
    }
  }

  const Op& op;
  Attributes attributes;
  SiteId site;
  Scratch<Operand*> inputs;
  Scratch<bool> owned;  // inputs with a handle of the call's, given up once the operator has its reference
  Scratch<Operand*> outputs;
  Scratch<InputRequest> requests;
  Device device;
  bool in_place = false;
  bool submitted = false;
};

void GraphConstructor::bind() {
  astype_ = ops_.try_find("astype");
  contiguous_ = ops_.try_find("contiguous");
  to_device_ = ops_.try_find("to_device");
}

void GraphConstructor::record_with(void (*keep)(void*, OperatorRecord*), void* owner) noexcept {
  // Written once: a thread that saw an earlier recording may still be reading them.
  if (keep_record_ == nullptr) {
    keep_record_ = keep;
    record_owner_ = owner;
  }
  recording_.store(true, std::memory_order_release);
}

/// The device an operator runs on: the inputs', the `device` attribute's for copies and creations.
static Device device_of(const Op& op, std::span<Operand* const> inputs, const Attributes& attributes) {
  if (inputs.empty() || op.kind == OpKind::copy) {
    for (std::size_t i = 0; i < op.attributes.size(); ++i) {
      if (op.attributes[i].kind == AttrKind::device) return attributes.get_or<Device>(i, Device{});
    }
  }
  if (inputs.empty()) return Device{};
  // 0-d cpu tensors follow the others, so the first that is not one decides.
  for (const Operand* input : inputs) {
    if (!(input->meta.shape.empty() && input->meta.device.type == DeviceType::cpu)) return input->meta.device;
  }
  return inputs[0]->meta.device;
}

void GraphConstructor::infer_into(Call& call) {
  Scratch<const TensorMeta*> metas(call.input_count());
  for (std::size_t i = 0; i < call.input_count(); ++i) {
    metas[i] = &call.inputs[i]->meta;
    call.requests[i] = InputRequest{};
  }
  Scratch<TensorMeta*> results(call.op.outputs);
  for (std::size_t i = 0; i < call.op.outputs; ++i) {
    TensorMeta& meta = call.outputs[i]->meta;
    meta.device = call.device;
    meta.offset = 0;
    results[i] = &meta;
  }
  InferContext context(call.op, metas.span(), call.attributes, results.span(), call.requests.span());
  call.op.infer(context);
}

void GraphConstructor::infer(Call& call) {
  const Op& op = call.op;
  check_input_count(op, call.input_count());
  if (!op.attributes.empty() || !call.attributes.empty()) complete_attributes(op, call.attributes);
  for (std::size_t i = 0; i < call.input_count(); ++i) {
    if (call.inputs[i]->executor != &executor_) {
      throw EngineError(
          op.name + ": input " + std::to_string(i) +
          " belongs to another engine; carry its value over, in Python with from_numpy(x.numpy())");
    }
  }
  call.device = device_of(op, call.inputs.span(), call.attributes);
  executor_.engine().check_device(call.device);
  for (std::size_t i = 0; i < op.outputs; ++i) call.outputs[i] = Operand::make(&executor_, true);
  infer_into(call);
}

Operand* GraphConstructor::insert(const Op& op, Operand* input, Attributes attributes, SiteId site) {
  Operand* result = nullptr;
  apply(op, {&input, 1}, std::move(attributes), site, {&result, 1});
  return result;
}

/// Puts casts, contiguous copies and copies of 0-d cpu tensors in front, as `infer` asked.
void GraphConstructor::prepare_inputs(Call& call) {
  bool again = false;
  const auto replace = [&](std::size_t i, const Op* op, Attributes attributes) {
    if (op == nullptr)
      throw EngineError(call.op.name + ": needs astype, contiguous and to_device to be registered");
    call.hold_inputs();
    Operand* inserted = insert(*op, call.inputs[i], std::move(attributes), call.site);
    call.inputs[i]->drop_handle();
    call.inputs[i] = inserted;
  };
  for (std::size_t i = 0; i < call.input_count(); ++i) {
    const TensorMeta& meta = call.inputs[i]->meta;
    if (meta.device != call.device && call.op.kind != OpKind::copy) {
      if (!meta.shape.empty() || meta.device.type != DeviceType::cpu) {
        throw DeviceError(call.op.name + ": inputs are on " + to_string(call.device) + " and " +
                          to_string(meta.device) + "; bring them together with .to(device)");
      }
      replace(i, to_device_, {AttrValue(call.device)});
    }
    if (call.requests[i].cast) {
      replace(i, astype_, {AttrValue(call.requests[i].dtype)});
    } else if (call.requests[i].contiguous &&
               !is_contiguous(call.inputs[i]->meta.shape, call.inputs[i]->meta.strides)) {
      replace(i, contiguous_, {});
      again = true;
    }
  }
  if (again) infer_into(call);
}

Operator* GraphConstructor::assemble(Call& call) {
  Operator* op = Operator::make(call.op, call.input_count(), call.op.outputs);
  op->site = call.site;
  op->device = call.device;
  op->in_place = call.in_place;
  op->attributes = std::move(call.attributes);
  auto inputs = op->inputs();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    inputs[i] = call.inputs[i];
    inputs[i]->add_consumer();
    if (call.owned[i]) inputs[i]->drop_handle();
    call.owned[i] = false;
  }
  op->id = next_id_.fetch_add(call.op.outputs, std::memory_order_relaxed);
  op->bytes = 0;
  auto outputs = op->outputs();
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    Operand* output = call.outputs[i];
    outputs[i] = output;
    output->id = op->id + i;
    output->producer.store(op, std::memory_order_relaxed);
    output->producer_id.store(op->id, std::memory_order_relaxed);
    if (call.op.kind != OpKind::view) op->bytes += output->meta.bytes();
  }
  return op;
}

void GraphConstructor::attach_record(Operator& op) {
  auto record = std::make_unique<OperatorRecord>();
  record->id = op.id;
  record->op = op.op;
  record->attributes = op.attributes;
  for (const Operand* input : op.inputs()) record->inputs.push_back({input->id, input->meta, {}});
  for (const Operand* output : op.outputs()) record->outputs.push_back({output->id, output->meta, {}});
  record->site = op.site;
  record->device = op.device;
  record->bytes = op.bytes;
  record->enqueue_ns = now_ns();
  op.record = record.get();
  keep_record_(record_owner_, record.release());
}

/// `replaced` loses its handle once the operator has its references, and before it can run.
void GraphConstructor::submit(Call& call, Operand* replaced) {
  Operator* op = assemble(call);
  call.submitted = true;
  if (replaced != nullptr) replaced->drop_handle();
  if (recording_.load(std::memory_order_acquire)) [[unlikely]]
    attach_record(*op);
  try {
    executor_.submit(op);
  } catch (...) {
    // The executor has failed the operator and taken its references; the handles never reach the caller.
    for (Operand* output : call.outputs.span()) output->drop_handle();
    throw;
  }
}

void GraphConstructor::apply(const Op& op, std::span<Operand* const> inputs, Attributes attributes,
                             SiteId site, std::span<Operand*> outputs, Attributes* completed) {
  Call call(op, inputs, std::move(attributes), site);
  infer(call);
  if (completed != nullptr) *completed = call.attributes;
  prepare_inputs(call);
  // Once submitted the outputs may complete at any time; the handles are the caller's.
  for (std::size_t i = 0; i < outputs.size(); ++i) outputs[i] = call.outputs[i];
  submit(call);
}

Operand* GraphConstructor::apply_in_place(const Op& op, Operand* target, std::span<Operand* const> others,
                                          Attributes attributes, SiteId site, Attributes* completed) {
  Scratch<Operand*> inputs(others.size() + 1);
  inputs[0] = target;
  for (std::size_t i = 0; i < others.size(); ++i) inputs[i + 1] = others[i];
  Call call(op, inputs.span(), std::move(attributes), site);
  infer(call);
  if (completed != nullptr) *completed = call.attributes;
  const TensorMeta& result = call.outputs[0]->meta;
  if (!(result.shape == target->meta.shape)) {
    throw ShapeError(op.name + ": the in-place form would change the shape from " +
                     to_string(target->meta.shape) + " to " + to_string(result.shape) +
                     "; use the plain form, which makes a new tensor");
  }
  if (kind(result.dtype) > kind(target->meta.dtype)) {
    throw DTypeError(op.name + ": the in-place form cannot put " + std::string(name(result.dtype)) +
                     " into " + std::string(name(target->meta.dtype)) +
                     "; cast with astype first, or use the plain form, which makes a new tensor");
  }
  const bool cast_back = result.dtype != target->meta.dtype;
  prepare_inputs(call);
  const bool direct = call.inputs[0] == target && !cast_back;
  Operand* output = call.outputs[0];
  call.in_place = direct;
  if (direct) {
    submit(call, target);
    return output;
  }
  // The value that the operator replaces is not its own input 0: keep it with the result until that is ready.
  if (!cast_back) {
    target->add_consumer();
    output->recover = target;
    submit(call, target);
    return output;
  }
  Call back(*astype_, {&output, 1}, {AttrValue(target->meta.dtype)}, site);
  infer(back);  // before anything is issued, so that an error leaves nothing behind
  submit(call);
  Operand* final = back.outputs[0];
  target->add_consumer();
  final->recover = target;
  back.owned[0] = true;
  submit(back, target);
  return final;
}

}  // namespace thalweg
