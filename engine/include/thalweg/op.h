// op.h: the record that defines an operation. One record per operator; everything else derives from it.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <thalweg/attributes.h>
#include <thalweg/device.h>
#include <thalweg/dtype.h>
#include <thalweg/shape.h>

namespace thalweg {

struct Op;
class GradientContext;

/// What is known of a tensor before its values are: strides and offset count elements.
struct TensorMeta {
  DType dtype = DType::float32;
  Device device;
  std::int64_t offset = 0;
  Shape shape;
  Strides strides;

  std::int64_t numel() const noexcept { return thalweg::numel(shape); }
  std::int64_t bytes() const noexcept { return numel() * item_size(dtype); }
  int rank() const noexcept { return static_cast<int>(shape.size()); }
};

/// What an Op's `infer` wants done to one input before the operator.
struct InputRequest {
  DType dtype = DType::float32;
  bool cast = false;
  bool contiguous = false;
};

/// What an Op's `infer` reads and fills. Lives for one call on the caller's thread.
class InferContext {
 public:
  InferContext(const Op& op, std::span<const TensorMeta* const> inputs, const Attributes& attributes,
               std::span<TensorMeta* const> outputs, std::span<InputRequest> requests)
      : op_(op), inputs_(inputs), attributes_(attributes), outputs_(outputs), requests_(requests) {}

  const Op& op() const noexcept { return op_; }
  std::string_view name() const noexcept;
  std::size_t input_count() const noexcept { return inputs_.size(); }
  const TensorMeta& input(std::size_t i) const noexcept { return *inputs_[i]; }
  const Attributes& attributes() const noexcept { return attributes_; }

  /// Output `i`, with its device preset to the common device of the inputs (or the device attribute). `infer`
  /// sets dtype and shape; for ordinary operators it also leaves strides to `set_contiguous`.
  TensorMeta& output(std::size_t i = 0) noexcept { return *outputs_[i]; }

  /// Sets output `i` to a C-contiguous tensor of `shape` and `dtype`; checks rank and size.
  void set_contiguous(std::size_t i, const Shape& shape, DType dtype);

  /// Asks for input `i` as `dtype`: an `astype` operator is issued in front when it has another dtype.
  void cast_input(std::size_t i, DType dtype) noexcept {
    requests_[i].dtype = dtype;
    requests_[i].cast = dtype != inputs_[i]->dtype;
  }

  /// Asks for input `i` in C order: a `contiguous` operator is issued in front, then `infer` runs again.
  void require_contiguous(std::size_t i) noexcept { requests_[i].contiguous = true; }

 private:
  const Op& op_;
  std::span<const TensorMeta* const> inputs_;
  const Attributes& attributes_;
  std::span<TensorMeta* const> outputs_;
  std::span<InputRequest> requests_;
};

/// One attribute of an Op: its keyword argument in Python, its key in JSON.
struct AttrSpec {
  std::string name;
  AttrKind kind;
  /// The value taken when the caller gives none; `required` attributes have no default.
  AttrValue fallback{};
  bool required = false;
};

/// How an operator is carried out.
enum class OpKind : std::uint8_t {
  kernel,  ///< runs a kernel into fresh outputs
  view,    ///< its single output shares input 0's bytes with other strides or offset; no kernel
  copy,    ///< brings input 0 to another device; the only kind whose input may live elsewhere
};

/// Alias mask of elementwise operators: any input.
inline constexpr std::uint8_t kAliasAny = 0xff;

/// A value that the derivative of an Op reads, kept from issue until backward has passed.
struct SavedValue {
  enum class Kind : std::uint8_t { input, inputs_from, output };
  Kind kind = Kind::input;
  std::uint8_t index = 0;
  /// Bit i: it is kept if input i requires a gradient.
  std::uint32_t needed_for = ~std::uint32_t{0};
};
inline constexpr std::uint32_t kForAll = ~std::uint32_t{0};
/// The mask of one input, for SavedValue::needed_for.
constexpr std::uint32_t for_input(int i) noexcept { return std::uint32_t{1} << i; }
constexpr SavedValue save_input(std::uint8_t i, std::uint32_t needed_for = kForAll) noexcept {
  return {SavedValue::Kind::input, i, needed_for};
}
/// Input `i` and all after it, of a variadic Op; the last entry of its list.
constexpr SavedValue save_inputs_from(std::uint8_t i, std::uint32_t needed_for = kForAll) noexcept {
  return {SavedValue::Kind::inputs_from, i, needed_for};
}
constexpr SavedValue save_output(std::uint8_t j = 0, std::uint32_t needed_for = kForAll) noexcept {
  return {SavedValue::Kind::output, j, needed_for};
}

/// Outputs that no gradient passes: all of them.
inline constexpr std::uint32_t kAllOutputs = ~std::uint32_t{0};

/// An operation: name, inputs, attributes, inference, derivative, documentation.
struct Op {
  std::string name;
  /// Input names in order; with `variadic` the last may repeat any number of times, zero included.
  std::vector<std::string> inputs;
  std::vector<AttrSpec> attributes{};
  /// Checks the inputs' metadata and sets the outputs'; throws ShapeError, DTypeError, … on the caller's
  /// thread.
  std::function<void(InferContext&)> infer{};
  /// First paragraph: one sentence; then shapes, dtypes, errors and the source (standard section).
  std::string doc{};
  OpKind kind = OpKind::kernel;
  bool variadic = false;
  /// Bit i: output 0 may be written over the bytes of input i when that input is dead, contiguous and of the
  /// output's item size and element count. The kernel must then read each element before it writes it.
  std::uint8_t alias_mask = 0;
  std::uint8_t outputs = 1;
  /// Estimated time on one core per element of the largest tensor involved; decides what runs inline.
  /// Negative: unknown (a user's kernel): always a task of its own.
  float ns_per_element = 0.5f;
  /// The time of a complex element, as a multiple of `ns_per_element`.
  float complex_factor = 3.0f;
  /// Overrides `ns_per_element` where work is not proportional to elements (matmul): estimated ns.
  std::function<double(std::span<const TensorMeta* const> inputs, std::span<const TensorMeta* const> outputs)>
      cost_ns{};
  /// Computes the gradients of the inputs from those of the outputs by issuing operators
  /// (thalweg/gradient.h). An Op without it whose outputs are differentiable raises in backward.
  void (*gradient)(GradientContext&) = nullptr;
  /// What `gradient` reads, and no more.
  std::vector<SavedValue> saves{};
  /// `gradient` reads the metadata of inputs that need no gradient themselves.
  bool saves_shapes = false;
  /// Bit j: output j never requires a gradient. Integer and bool outputs never do.
  std::uint32_t not_differentiable = 0;
  /// A user's operator: its kernel never runs on the thread that drains the queue. Set by
  /// Engine::register_operator.
  bool is_custom = false;
  /// Index in the registry; set by OpRegistry::add.
  std::uint32_t id = 0;

  /// True if a gradient may pass one of the outputs.
  bool is_differentiable() const noexcept { return not_differentiable != kAllOutputs; }
  /// Estimated time of one element of `dtype`.
  float element_ns(DType dtype) const noexcept {
    return is_complex(dtype) ? complex_factor * ns_per_element : ns_per_element;
  }
};

inline std::string_view InferContext::name() const noexcept { return op_.name; }

/// All Ops of one engine. Filled before the engine's first operator, read-only after.
class OpRegistry {
 public:
  /// Adds `op`; throws ValueError if the name is taken. The returned reference stays valid.
  const Op& add(Op op);
  /// Begins an empty registry with the Ops of `base`, which must outlive it and change no more.
  void begin_with(const OpRegistry& base);
  /// The Op called `name`; throws ValueError naming close matches.
  const Op& find(std::string_view name) const;
  const Op* try_find(std::string_view name) const noexcept;
  /// By id.
  std::span<const Op* const> all() const noexcept { return ops_; }

 private:
  const OpRegistry* base_ = nullptr;
  std::vector<const Op*> ops_;
  std::vector<std::unique_ptr<const Op>> own_;
  std::unordered_map<std::string_view, const Op*> own_by_name_;
};

/// Every built-in Op (engine/ops/). All engines of a process share the records.
const OpRegistry& builtin_ops();

}  // namespace thalweg
