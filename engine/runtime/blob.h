// blob.h: the bytes of one operand on one device, as one kernel uses them.
#pragma once

#include <thalweg/kernel.h>

#include "graph/operand.h"

namespace thalweg {

/// Device bytes with the layout that an operand gives them. Borrowed from the operand (inputs) or from the
/// run that is making the value (outputs); valid during that run.
struct Blob {
  Buffer* buffer = nullptr;
  const TensorMeta* meta = nullptr;

  TensorView view() const noexcept {
    return {static_cast<std::byte*>(buffer->data()) + meta->offset * item_size(meta->dtype), meta};
  }
};

}  // namespace thalweg
