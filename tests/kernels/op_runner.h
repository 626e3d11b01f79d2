// op_runner.h: runs one Op on host arrays without an engine: inference, the casts and copies it asks for, the
// kernel.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <thalweg/errors.h>
#include <thalweg/kernel.h>

namespace thalweg::testing {

template <class T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, bool>) return DType::bool_;
  if constexpr (std::is_same_v<T, float>) return DType::float32;
  if constexpr (std::is_same_v<T, double>) return DType::float64;
  if constexpr (std::is_same_v<T, std::complex<float>>) return DType::complex64;
  if constexpr (std::is_same_v<T, std::complex<double>>) return DType::complex128;
  constexpr int width = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
  return static_cast<DType>(static_cast<int>(std::is_signed_v<T> ? DType::int8 : DType::uint8) + width);
}

/// The real dtypes; complex ones have tests of their own.
inline constexpr DType kAllDTypes[] = {DType::bool_,  DType::int8,    DType::int16,  DType::int32,
                                       DType::int64,  DType::uint8,   DType::uint16, DType::uint32,
                                       DType::uint64, DType::float32, DType::float64};

/// A strided array over shared bytes.
struct Array {
  TensorMeta meta;
  std::shared_ptr<std::vector<std::uint64_t>> bytes;

  void* data() const { return reinterpret_cast<char*>(bytes->data()) + meta.offset * item_size(meta.dtype); }
  TensorView view() const { return {data(), &meta}; }
};

inline Array allocate(DType dtype, const Shape& shape) {
  Array result;
  result.meta.dtype = dtype;
  result.meta.shape = shape;
  result.meta.strides = contiguous_strides(shape);
  const std::size_t words = static_cast<std::size_t>(numel(shape) * item_size(dtype)) / 8 + 1;
  // Rubbish, so that an element nobody wrote shows.
  result.bytes = std::make_shared<std::vector<std::uint64_t>>(words, 0x0101'0101'0101'0101u);
  return result;
}

/// Calls `fn(offset)` for every element of `meta` in C order; the offset counts from the first byte.
template <class Fn>
void for_each_offset(const TensorMeta& meta, Fn fn) {
  const std::int64_t count = meta.numel();
  for (std::int64_t index = 0; index < count; ++index) {
    std::int64_t rest = index;
    std::int64_t offset = 0;
    for (int axis = meta.rank() - 1; axis >= 0; --axis) {
      offset += rest % meta.shape[axis] * meta.strides[axis];
      rest /= meta.shape[axis];
    }
    fn(offset);
  }
}

template <class T>
std::vector<T> values(const Array& array) {
  if (array.meta.dtype != dtype_of<T>()) throw std::logic_error("values: wrong dtype");
  std::vector<T> result;
  const T* data = static_cast<const T*>(array.data());
  for_each_offset(array.meta, [&](std::int64_t offset) { result.push_back(data[offset]); });
  return result;
}

template <class T>
Array array_of(const Shape& shape, const std::vector<T>& elements) {
  Array result = allocate(dtype_of<T>(), shape);
  if (static_cast<std::int64_t>(elements.size()) != numel(shape))
    throw std::logic_error("array_of: wrong count");
  std::copy(elements.begin(), elements.end(), static_cast<T*>(result.data()));
  return result;
}

/// `array` with its values at other places: what a kernel may meet as strides.
enum class Layout { contiguous, reversed, transposed, gapped };
inline constexpr Layout kAllLayouts[] = {Layout::contiguous, Layout::reversed, Layout::transposed,
                                         Layout::gapped};

inline Array with_layout(const Array& array, Layout layout) {
  const Shape& shape = array.meta.shape;
  const int rank = array.meta.rank();
  Array result = allocate(array.meta.dtype, shape);
  if (layout == Layout::transposed) {
    std::int64_t stride = 1;
    for (int axis = 0; axis < rank; ++axis) {
      result.meta.strides[axis] = stride;
      stride *= std::max<std::int64_t>(1, shape[axis]);
    }
  } else if (layout == Layout::gapped) {
    Shape padded = shape;
    for (std::int64_t& dim : padded) dim = 2 * dim + 1;
    // Many dimensions would double into more than memory holds.
    if (rank > 8) padded = shape;
    result = allocate(array.meta.dtype, padded);
    result.meta.shape = shape;
    if (rank <= 8) {
      for (int axis = 0; axis < rank; ++axis) result.meta.offset += result.meta.strides[axis];
      for (std::int64_t& stride : result.meta.strides) stride *= 2;
    }
  } else if (layout == Layout::reversed) {
    for (int axis = 0; axis < rank && result.meta.numel() > 0; ++axis) {
      result.meta.offset += (shape[axis] - 1) * result.meta.strides[axis];
      result.meta.strides[axis] = -result.meta.strides[axis];
    }
  }
  const std::int64_t item = item_size(array.meta.dtype);
  std::vector<std::int64_t> from;
  for_each_offset(array.meta, [&](std::int64_t offset) { from.push_back(offset); });
  std::size_t next = 0;
  for_each_offset(result.meta, [&](std::int64_t offset) {
    std::memcpy(static_cast<char*>(result.data()) + offset * item,
                static_cast<const char*>(array.data()) + from[next++] * item, static_cast<std::size_t>(item));
  });
  return result;
}

inline Array cast(const Array& array, DType dtype) {
  Array result = allocate(dtype, array.meta.shape);
  visit_dtype(array.meta.dtype, [&]<class From>() {
    visit_dtype(dtype, [&]<class To>() {
      To* out = static_cast<To*>(result.data());
      if constexpr (kIsStdComplex<From> && !kIsStdComplex<To>) {
        throw std::logic_error("cast: a complex number has no real value");
      } else if constexpr (kIsStdComplex<To> && !kIsStdComplex<From>) {
        for (From value : values<From>(array)) *out++ = To(static_cast<typename To::value_type>(value));
      } else {
        for (From value : values<From>(array)) *out++ = static_cast<To>(value);
      }
    });
  });
  return result;
}

/// In which order a parallel_for runs its chunks.
enum class Schedule { serial, backwards, shuffled };

inline ParallelForFn parallel_for_of(Schedule schedule) {
  using Body = void (*)(void*, std::int64_t);
  switch (schedule) {
    case Schedule::serial: return nullptr;
    case Schedule::backwards:
      return [](void*, std::int64_t chunks, Body body, void* context) {
        for (std::int64_t chunk = chunks; chunk-- > 0;) body(context, chunk);
      };
    case Schedule::shuffled: break;
  }
  return [](void*, std::int64_t chunks, Body body, void* context) {
    std::vector<std::int64_t> order(static_cast<std::size_t>(chunks));
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), std::mt19937(7));
    for (std::int64_t chunk : order) body(context, chunk);
  };
}

/// The built-in Ops and their CPU kernels.
struct Registries {
  OpRegistry ops;
  KernelRegistry kernels;

  Registries() {
    ops.begin_with(builtin_ops());
    register_cpu_kernels(kernels);
    kernels.bind(ops);
  }
};

inline const Registries& registries() {
  static const Registries instance;
  return instance;
}

/// What a caller gives an attribute by name; the others take their fallbacks.
using NamedAttributes = std::vector<std::pair<std::string, AttrValue>>;

inline Attributes positional(const Op& op, const NamedAttributes& named) {
  std::vector<AttrValue> result;
  for (const AttrSpec& spec : op.attributes) result.push_back(spec.fallback);
  for (const auto& [key, value] : named) {
    std::size_t i = 0;
    while (i < op.attributes.size() && op.attributes[i].name != key) ++i;
    if (i == op.attributes.size()) throw std::logic_error("no attribute " + key);
    result[i] = value;
  }
  return Attributes(std::move(result));
}

struct RunOptions {
  Schedule schedule = Schedule::serial;
  bool donate = false;  ///< give input 0's bytes to the output
};

/// The result of `name` on `inputs`, as an engine would compute it.
inline Array run_op(const std::string& name, std::vector<Array> inputs, const NamedAttributes& named = {},
                    RunOptions options = {}) {
  const Op& op = registries().ops.find(name);
  const Attributes attributes = positional(op, named);
  Array output;
  for (bool changed = true; changed;) {
    changed = false;
    std::vector<const TensorMeta*> metas;
    for (const Array& input : inputs) metas.push_back(&input.meta);
    std::vector<InputRequest> requests(inputs.size());
    output.meta = TensorMeta{};
    TensorMeta* const outputs[] = {&output.meta};
    InferContext context(op, metas, attributes, outputs, requests);
    op.infer(context);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (requests[i].cast) inputs[i] = cast(inputs[i], requests[i].dtype);
      if (requests[i].cast || !requests[i].contiguous) continue;
      if (is_contiguous(inputs[i].meta.shape, inputs[i].meta.strides)) continue;
      inputs[i] = with_layout(inputs[i], Layout::contiguous);
      changed = true;
    }
  }
  if (op.kind == OpKind::view) {
    output.bytes = inputs[0].bytes;
    return output;
  }
  const TensorMeta meta = output.meta;
  output = options.donate ? inputs[0] : allocate(meta.dtype, meta.shape);
  const std::int64_t offset = output.meta.offset;
  output.meta = meta;
  if (options.donate) output.meta.offset = offset;
  std::vector<TensorView> views;
  for (const Array& input : inputs) views.push_back(input.view());
  const TensorView result = output.view();
  const KernelFn* kernel = registries().kernels.find(op, DeviceType::cpu);
  if (kernel == nullptr) throw std::logic_error("no kernel for " + name);
  (*kernel)(KernelContext(op, attributes, views, {&result, 1}, parallel_for_of(options.schedule)));
  return output;
}

/// True if both have the same dtype, shape and bits.
inline bool same_bits(const Array& a, const Array& b) {
  if (a.meta.dtype != b.meta.dtype || !(a.meta.shape == b.meta.shape)) return false;
  const Array left = with_layout(a, Layout::contiguous);
  const Array right = with_layout(b, Layout::contiguous);
  return std::memcmp(left.data(), right.data(), static_cast<std::size_t>(left.meta.bytes())) == 0;
}

/// True if running the chunks in any order gives the same bits.
inline bool order_does_not_matter(const std::string& name, const std::vector<Array>& inputs,
                                  const NamedAttributes& named = {}) {
  const Array serial = run_op(name, inputs, named);
  return same_bits(serial, run_op(name, inputs, named, {.schedule = Schedule::backwards})) &&
         same_bits(serial, run_op(name, inputs, named, {.schedule = Schedule::shuffled}));
}

/// Small whole numbers, whose sums are exact in every dtype, as elements of `dtype`.
inline Array small_integers(DType dtype, const Shape& shape, unsigned seed = 1) {
  Array result = allocate(dtype, shape);
  std::mt19937 random(seed);
  visit_real_dtype(dtype, [&]<class T>() {
    T* data = static_cast<T*>(result.data());
    const int low = std::is_signed_v<T> ? -3 : 0;
    for (std::int64_t i = 0; i < numel(shape); ++i) {
      data[i] = static_cast<T>(static_cast<int>(random() % 6) + low);
    }
  });
  return result;
}

template <class T>
Array random_floats(const Shape& shape, unsigned seed = 1) {
  Array result = allocate(dtype_of<T>(), shape);
  std::mt19937_64 random(seed);
  T* data = static_cast<T*>(result.data());
  for (std::int64_t i = 0; i < numel(shape); ++i) {
    data[i] = static_cast<T>(static_cast<double>(random() >> 11) * 0x1p-52 - 1.0);
  }
  return result;
}

/// The text of the `E` that `fn` throws, or "".
template <class E, class Fn>
std::string error_text(Fn fn) {
  try {
    fn();
  } catch (const E& error) {
    return error.what();
  }
  return "";
}

}  // namespace thalweg::testing
