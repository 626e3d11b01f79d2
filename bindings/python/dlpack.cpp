// dlpack.cpp: tensors out to and in from DLPack capsules.
#include "dlpack.h"

#include <cstdlib>
#include <memory>
#include <new>
#include <string>

#include "buffers.h"
#include "deferred.h"
#include "errors.h"
#include "strided_copy.h"

namespace thalweg::python {

namespace {

using dlpack::Array;
using dlpack::Code;
using dlpack::Managed;
using dlpack::VersionedManaged;

constexpr const char* kLegacyName = "dltensor";
constexpr const char* kVersionedName = "dltensor_versioned";

dlpack::DataType data_type(DType dtype) noexcept {
  const auto bits = static_cast<std::uint8_t>(8 * item_size(dtype));
  switch (kind(dtype)) {
    case DTypeKind::boolean: return {std::uint8_t(Code::boolean), bits, 1};
    case DTypeKind::unsigned_integer: return {std::uint8_t(Code::unsigned_integer), bits, 1};
    case DTypeKind::signed_integer: return {std::uint8_t(Code::signed_integer), bits, 1};
    case DTypeKind::complex_floating: return {std::uint8_t(Code::complex_floating), bits, 1};
    case DTypeKind::floating: break;
  }
  if (dtype == DType::bfloat16) return {std::uint8_t(Code::bfloat), bits, 1};
  return {std::uint8_t(Code::floating), bits, 1};
}

DType dtype_of(const dlpack::DataType& type) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    const dlpack::DataType known = data_type(dtype);
    if (known.code == type.code && known.bits == type.bits && type.lanes == 1) return dtype;
  }
  throw DTypeError("from_dlpack: elements of type code " + std::to_string(type.code) + ", " +
                   std::to_string(type.bits) + " bits, " + std::to_string(type.lanes) +
                   " lanes have no dtype here");
}

/// What one capsule owns. Deleters run on any thread and need neither Python nor the GIL.
template <class M>
struct Owner {
  M managed{};
  Tensor tensor;          // of a shared value
  void* bytes = nullptr;  // of a copy
  Dims shape;
  Dims strides;

  ~Owner() { std::free(bytes); }
  static void destroy(M* managed) { delete static_cast<Owner*>(managed->manager_ctx); }
};

template <class M>
std::unique_ptr<Owner<M>> make_owner(const Tensor& tensor, bool copy) {
  constexpr std::size_t kAlignment = 64;
  const TensorView view = read_view(tensor);
  const std::int64_t item = item_size(view.dtype());
  auto owner = std::make_unique<Owner<M>>();
  owner->shape = view.shape();
  owner->strides = copy ? contiguous_strides(view.shape()) : view.strides();
  void* data = view.data;
  if (copy) {
    const std::size_t bytes = (std::size_t(view.meta->bytes()) + kAlignment) / kAlignment * kAlignment;
    owner->bytes = std::aligned_alloc(kAlignment, bytes);
    if (owner->bytes == nullptr) throw std::bad_alloc();
    copy_to_c_order(owner->bytes, view.data, view.shape(), byte_strides(view.strides(), item),
                    std::size_t(item));
    data = owner->bytes;
  } else {
    owner->tensor = tensor;
  }
  Array& array = owner->managed.array;
  array.data = view.numel() == 0 ? nullptr : data;
  array.device = {dlpack::kCpu, 0};
  array.ndim = view.rank();
  array.dtype = data_type(view.dtype());
  array.shape = owner->shape.data();
  array.strides = owner->strides.data();
  array.byte_offset = 0;
  owner->managed.manager_ctx = owner.get();
  owner->managed.deleter = Owner<M>::destroy;
  return owner;
}

/// Frees what nobody took out of the capsule.
template <class M>
void destroy_capsule(PyObject* capsule) {
  const char* name = std::is_same_v<M, Managed> ? kLegacyName : kVersionedName;
  if (!PyCapsule_IsValid(capsule, name)) return;  // used up: renamed by the consumer
  auto* managed = static_cast<M*>(PyCapsule_GetPointer(capsule, name));
  managed->deleter(managed);
}

template <class M>
py::object new_capsule(std::unique_ptr<Owner<M>> owner, const char* name) {
  py::object capsule = checked(PyCapsule_New(&owner->managed, name, destroy_capsule<M>));
  owner.release();
  return capsule;
}

TensorMeta meta_of(const Array& array) {
  if (array.device.type != dlpack::kCpu) {
    raise_python(PyExc_BufferError, "from_dlpack: only cpu memory can be taken in, not device type " +
                                        std::to_string(array.device.type));
  }
  TensorMeta meta;
  meta.dtype = dtype_of(array.dtype);
  meta.shape = Shape(std::span<const std::int64_t>(array.shape, std::size_t(array.ndim)));
  checked_numel("from_dlpack", meta.shape, item_size(meta.dtype));
  meta.strides = array.strides == nullptr
                     ? contiguous_strides(meta.shape)
                     : Strides(std::span<const std::int64_t>(array.strides, std::size_t(array.ndim)));
  return meta;
}

/// Takes the capsule's tensor in. A foreign deleter may need the GIL, so it is left to a thread that has it.
template <class M>
Tensor take(Engine& engine, PyObject* capsule, M* managed, const char* used_name, bool copy) {
  const Array& array = managed->array;
  TensorMeta meta = meta_of(array);
  void* data = static_cast<std::byte*>(array.data) + array.byte_offset;
  const std::int64_t item = item_size(meta.dtype);
  const auto alignment = std::size_t(item_size(real_dtype(meta.dtype)));
  const bool aligned = reinterpret_cast<std::uintptr_t>(data) % alignment == 0;
  const auto finish = +[](void* pointer) {
    auto* foreign = static_cast<M*>(pointer);
    if (foreign->deleter != nullptr) foreign->deleter(foreign);
  };
  if (copy || !aligned || meta.numel() == 0) {
    Tensor result = engine.allocate(meta.dtype, meta.shape);
    copy_to_c_order(Engine::mutable_data(result), data, meta.shape, byte_strides(meta.strides, item),
                    std::size_t(item));
    PyCapsule_SetName(capsule, used_name);
    finish(managed);
    return result;
  }
  Tensor result = engine.from_external(meta, data, [finish, managed] { defer_call(finish, managed); });
  PyCapsule_SetName(capsule, used_name);
  return result;
}

}  // namespace

py::object to_dlpack(const Tensor& tensor, const DlpackRequest& request) {
  if (request.versioned) {
    auto owner = make_owner<VersionedManaged>(tensor, request.copy);
    owner->managed.version = {1, 0};
    owner->managed.flags = request.copy ? dlpack::kIsCopied : dlpack::kReadOnly;
    return new_capsule(std::move(owner), kVersionedName);
  }
  if (request.no_copy) {
    raise_python(
        PyExc_BufferError,
        "__dlpack__: tensor values are immutable and a capsule of DLPack 0.x cannot say so: it needs a copy");
  }
  return new_capsule(make_owner<Managed>(tensor, true), kLegacyName);
}

Tensor from_dlpack(Engine& engine, PyObject* capsule, bool copy) {
  if (PyCapsule_IsValid(capsule, kVersionedName)) {
    auto* managed = static_cast<VersionedManaged*>(PyCapsule_GetPointer(capsule, kVersionedName));
    if (managed->version.major != 1) {
      raise_python(PyExc_BufferError, "from_dlpack: DLPack version " +
                                          std::to_string(managed->version.major) + " is not supported");
    }
    return take(engine, capsule, managed, "used_dltensor_versioned", copy);
  }
  if (PyCapsule_IsValid(capsule, kLegacyName)) {
    auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, kLegacyName));
    return take(engine, capsule, managed, "used_dltensor", copy);
  }
  throw ValueError("from_dlpack: expected a DLPack capsule that was not used before");
}

}  // namespace thalweg::python
