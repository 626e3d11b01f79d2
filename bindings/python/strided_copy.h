// strided_copy.h: copies between foreign layouts and C order on the calling thread.
#pragma once

#include <cstddef>

#include <thalweg/shape.h>

namespace thalweg::python {

/// Copies elements of `item` bytes at `source`, laid out with `byte_strides`, to `target` in C order.
void copy_to_c_order(void* target, const void* source, const Dims& shape, const Dims& byte_strides,
                     std::size_t item);

/// `strides` (elements) in bytes.
Dims byte_strides(const Strides& strides, std::int64_t item);

/// Copies of at least this many bytes are worth releasing the GIL.
inline constexpr std::int64_t kLargeCopy = std::int64_t{1} << 18;

}  // namespace thalweg::python
