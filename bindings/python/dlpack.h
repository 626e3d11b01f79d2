// dlpack.h: the C structures of DLPack 1.x (https://dmlc.github.io/dlpack), written from its specification,
// and how tensors pass through them.
#pragma once

#include <cstdint>

#include <thalweg/engine.h>

#include "python.h"

namespace thalweg::python {

namespace dlpack {

/// Values of DLDeviceType used here.
inline constexpr std::int32_t kCpu = 1;

/// Values of DLDataTypeCode used here.
enum class Code : std::uint8_t {
  signed_integer = 0,
  unsigned_integer = 1,
  floating = 2,
  bfloat = 4,
  complex_floating = 5,
  boolean = 6,
};

/// Bits of VersionedManaged::flags.
inline constexpr std::uint64_t kReadOnly = 1;
inline constexpr std::uint64_t kIsCopied = 2;

struct Version {
  std::uint32_t major;
  std::uint32_t minor;
};
struct DeviceId {
  std::int32_t type;
  std::int32_t id;
};
struct DataType {
  std::uint8_t code;
  std::uint8_t bits;
  std::uint16_t lanes;
};
/// DLTensor.
struct Array {
  void* data;
  DeviceId device;
  std::int32_t ndim;
  DataType dtype;
  std::int64_t* shape;
  std::int64_t* strides;  // elements; null: C order
  std::uint64_t byte_offset;
};
/// DLManagedTensor, in capsules named "dltensor".
struct Managed {
  Array array;
  void* manager_ctx;
  void (*deleter)(Managed*);
};
/// DLManagedTensorVersioned, in capsules named "dltensor_versioned".
struct VersionedManaged {
  Version version;
  void* manager_ctx;
  void (*deleter)(VersionedManaged*);
  std::uint64_t flags;
  Array array;
};
static_assert(sizeof(Array) == 48 && sizeof(Managed) == 64 && sizeof(VersionedManaged) == 80);

}  // namespace dlpack

/// What `__dlpack__` was asked for.
struct DlpackRequest {
  bool versioned = false;  ///< the consumer knows capsules of DLPack 1.x, which can be read-only
  bool copy = false;
  bool no_copy = false;
};

/// A capsule with the value of `tensor`; waits. The bytes are shared read-only, or copied.
py::object to_dlpack(const Tensor& tensor, const DlpackRequest& request);

/// A tensor over the bytes in `capsule`, which is used up; with `copy`, over bytes of its own.
Tensor from_dlpack(Engine& engine, PyObject* capsule, bool copy);

}  // namespace thalweg::python
