// onednn.h: the float32 products of a oneDNN that is opened at the first use, one thread per call.
#pragma once

#include <cstdint>
#include <string_view>

#include "kernels/cpu/blas.h"

namespace thalweg::cpu {

/// Loads oneDNN unless that has happened: the file named by $THALWEG_ONEDNN, else libdnnl.so.3 or
/// libdnnl.so.2 on the loader's path; none if it says "off" or there is none. Throws EngineError, led by
/// `op`, if the file that the variable names cannot be used. Any thread.
void load_onednn(std::string_view op);

/// `gemm` by oneDNN. False, with the result untouched, where there is none, or the product is too small for
/// it to pay. Which it is depends on the size alone. `load_onednn` has succeeded.
bool onednn_gemm(GemmSize size, BlasMatrix<float> a, BlasMatrix<float> b, float* result,
                 std::int64_t result_leading) noexcept;

}  // namespace thalweg::cpu
