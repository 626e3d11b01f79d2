// buffers.cpp: Python's buffer protocol in both directions.
#include "buffers.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string_view>

#include "engines.h"
#include "errors.h"
#include "strided_copy.h"
#include "tensor_object.h"

namespace thalweg::python {

namespace {

/// An acquired Py_buffer; gives it back when it goes.
class Buffer {
 public:
  Buffer(PyObject* object, int flags) {
    if (PyObject_GetBuffer(object, &view, flags) != 0) throw_python_error();
  }
  ~Buffer() { PyBuffer_Release(&view); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  Py_buffer view{};
};

/// Runs `copy` without the GIL if that pays.
template <class Copy>
void copy_bytes(std::int64_t bytes, Copy&& copy) {
  if (bytes < kLargeCopy) return copy();
  Py_BEGIN_ALLOW_THREADS;
  copy();
  Py_END_ALLOW_THREADS;
}

DType integer_dtype(std::int64_t bytes, bool is_signed) {
  switch (bytes) {
    case 1: return is_signed ? DType::int8 : DType::uint8;
    case 2: return is_signed ? DType::int16 : DType::uint16;
    case 4: return is_signed ? DType::int32 : DType::uint32;
    default: return is_signed ? DType::int64 : DType::uint64;
  }
}

/// True for the formats of the other byte order.
bool is_swapped(const char* format) noexcept {
  constexpr bool little = std::endian::native == std::endian::little;
  return format != nullptr && (*format == (little ? '>' : '<') || (little && *format == '!'));
}

/// Reverses the bytes of each number; a complex element has two.
void swap_bytes(void* data, std::int64_t bytes, std::int64_t item) {
  auto* element = static_cast<std::byte*>(data);
  for (std::int64_t at = 0; at < bytes; at += item) std::reverse(element + at, element + at + item);
}

/// The dtype of a struct-module format of either byte order; nothing for the ones without (records). NumPy
/// writes Z in front of the format of a complex number's parts.
std::optional<DType> dtype_of_format(const char* format, std::int64_t item) {
  std::string_view text = format == nullptr ? "B" : format;
  if (!text.empty() && std::string_view("@=<>!").find(text.front()) != text.npos) text.remove_prefix(1);
  if (text == "Zf" && item == 8) return DType::complex64;
  if (text == "Zd" && item == 16) return DType::complex128;
  if (text.size() != 1) return std::nullopt;
  switch (text.front()) {
    case '?': return DType::bool_;
    case 'e': return DType::float16;
    case 'f': return DType::float32;
    case 'd': return item == 8 ? std::optional(DType::float64) : std::nullopt;
    case 'b':
    case 'h':
    case 'i':
    case 'l':
    case 'q':
    case 'n': return integer_dtype(item, true);
    case 'B':
    case 'H':
    case 'I':
    case 'L':
    case 'Q':
    case 'N': return integer_dtype(item, false);
    default: return std::nullopt;
  }
}

/// The native format of a dtype, "" for bfloat16, which has none. 'l' rather than 'q': NumPy's int64 is long
/// where a long has 64 bits.
const char* format_of(DType dtype) noexcept {
  static_assert(sizeof(long) == 8, "formats below assume LP64");
  static char formats[kDTypeCount][3] = {"?", "b", "h", "i",  "l",  "B", "H", "I",
                                         "L", "f", "d", "Zf", "Zd", "e", ""};
  return formats[static_cast<int>(dtype)];
}

/// An array or scalar of NumPy whose dtype is that of ml_dtypes.
bool is_numpy_bfloat16(PyObject* object) {
  if (!PyObject_HasAttrString(object, "dtype")) return false;
  const py::object dtype = py::handle(object).attr("dtype");
  return std::string_view(Py_TYPE(dtype.ptr())->tp_name) == "numpy.dtype[bfloat16]";
}

Dims dims_of(const Py_ssize_t* values, int count) {
  Dims dims;
  for (int i = 0; i < count; ++i) dims.push_back(values[i]);
  return dims;
}

/// What an exported buffer keeps: a handle of its own, so that the bytes outlive an in-place rebinding.
struct Export {
  Tensor tensor;
  Dims shape;
  Dims strides;
};

void check_request(const TensorMeta& meta, int flags) {
  if (meta.dtype == DType::bfloat16 && (flags & PyBUF_FORMAT) != 0) {
    raise_python(PyExc_BufferError,
                 "the buffer protocol has no format for bfloat16; use numpy() or cast to float32");
  }
  if ((flags & PyBUF_WRITABLE) == PyBUF_WRITABLE) {
    raise_python(PyExc_BufferError, "tensor values are immutable: only read-only buffers are given out");
  }
  const bool takes_strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES;
  const bool wants_c_order = !takes_strides || (flags & PyBUF_C_CONTIGUOUS) == PyBUF_C_CONTIGUOUS;
  const bool wants_f_order = (flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS;
  const bool c_order = is_contiguous(meta.shape, meta.strides);
  if ((wants_c_order && !c_order) || (wants_f_order && !(c_order && meta.rank() < 2))) {
    raise_python(PyExc_BufferError, "the tensor is not contiguous in the order asked for");
  }
}

}  // namespace

Tensor reinterpret(const Tensor& tensor, DType dtype) {
  if (item_size(tensor.dtype()) != item_size(dtype)) {
    throw DTypeError("reinterpret: " + std::string(name(tensor.dtype())) + " and " +
                     std::string(name(dtype)) + " differ in size");
  }
  const TensorView view = read_view(tensor);
  TensorMeta meta = *view.meta;
  meta.dtype = dtype;
  meta.offset = 0;  // the view's data includes it
  return tensor.engine().from_external(meta, view.data, [keep = tensor] {});
}

TensorView read_view(const Tensor& tensor) {
  const BlockingRead read(tensor);
  try {
    return tensor.view();
  } catch (...) {
    set_read_error(tensor);
    throw_python_error();
  }
}

Tensor copy_from_buffer(Engine& engine, PyObject* object, std::optional<DType> dtype, Device device) {
  // NumPy gives no buffer of what it has no format for: ml_dtypes' bfloat16 goes as 16-bit integers.
  py::object bits;
  if (is_numpy_bfloat16(object)) {
    bits = py::module_::import("numpy").attr("asarray")(py::handle(object)).attr("view")("uint16");
    object = bits.ptr();
  }
  const Buffer buffer(object, PyBUF_FULL_RO);
  const Py_buffer& view = buffer.view;
  const std::optional<DType> own = bits ? DType::bfloat16 : dtype_of_format(view.format, view.itemsize);
  if (!own && !dtype) {
    const py::object named = py::getattr(py::handle(object), "dtype", py::none());
    throw DTypeError("asarray: elements of " +
                     (named.is_none() ? "buffer format '" + std::string(view.format ? view.format : "") + "'"
                                      : "dtype " + std::string(py::str(named))) +
                     " have no dtype here; cast them first");
  }
  const DType read_as = own.value_or(*dtype);
  if (view.suboffsets != nullptr || item_size(read_as) != view.itemsize) {
    throw DTypeError("asarray: a buffer of this layout cannot be read");
  }
  const Dims shape = dims_of(view.shape, view.ndim);
  const Dims strides = view.strides != nullptr ? dims_of(view.strides, view.ndim)
                                               : byte_strides(contiguous_strides(shape), view.itemsize);
  Tensor result = engine.allocate(read_as, shape, device);
  void* target = Engine::mutable_data(result);
  copy_bytes(view.len, [&] {
    copy_to_c_order(target, view.buf, shape, strides, std::size_t(view.itemsize));
    if (own && is_swapped(view.format)) swap_bytes(target, view.len, item_size(real_dtype(read_as)));
  });
  return result;
}

Tensor from_bytes(Engine& engine, PyObject* object, DType dtype, const Shape& shape, Device device) {
  const Buffer buffer(object, PyBUF_SIMPLE);
  const std::int64_t bytes = checked_numel("unpickle", shape, item_size(dtype)) * item_size(dtype);
  if (bytes != buffer.view.len)
    throw ValueError("unpickle: the bytes do not match shape " + to_string(shape));
  Tensor result = engine.allocate(dtype, shape, device);
  void* target = Engine::mutable_data(result);
  if (bytes > 0) copy_bytes(bytes, [&] { std::memcpy(target, buffer.view.buf, std::size_t(bytes)); });
  return result;
}

int tensor_get_buffer(PyObject* self, Py_buffer* view, int flags) {
  view->obj = nullptr;
  return guarded(-1, [&] {
    auto keep = std::make_unique<Export>();
    if (tensor_of(self).requires_grad()) {
      raise_python(PyExc_BufferError, "a tensor that requires a gradient exports no buffer; use x.detach()");
    }
    keep->tensor = tensor_of(self);
    const TensorMeta& meta = keep->tensor.meta();
    check_request(meta, flags);
    const TensorView value = read_view(keep->tensor);
    const std::int64_t item = item_size(meta.dtype);
    keep->shape = meta.shape;
    keep->strides = byte_strides(meta.strides, item);
    static_assert(sizeof(Py_ssize_t) == sizeof(std::int64_t));
    view->buf = value.data;
    view->len = meta.bytes();
    view->readonly = 1;
    view->itemsize = item;
    view->format = (flags & PyBUF_FORMAT) != 0 ? const_cast<char*>(format_of(meta.dtype)) : nullptr;
    view->ndim = meta.rank();
    view->shape = (flags & PyBUF_ND) != 0 ? reinterpret_cast<Py_ssize_t*>(keep->shape.data()) : nullptr;
    view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES
                        ? reinterpret_cast<Py_ssize_t*>(keep->strides.data())
                        : nullptr;
    view->suboffsets = nullptr;
    view->internal = keep.release();
    view->obj = Py_NewRef(self);
    return 0;
  });
}

void tensor_release_buffer(PyObject*, Py_buffer* view) { delete static_cast<Export*>(view->internal); }

}  // namespace thalweg::python
