// reduction.h: what Ops that add up elements share.
#pragma once

#include <thalweg/dtype.h>

namespace thalweg {

/// The dtype in which NumPy and the array API add up elements of `dtype`.
DType accumulator_dtype(DType dtype);

}  // namespace thalweg
