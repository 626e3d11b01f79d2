// elements.h: the C++ types of elements that kernels compute with.
#pragma once

#include <thalweg/dtype.h>

#include "kernels/complex_number.h"

namespace thalweg::cpu {

/// As visit_dtype, with complex elements as functors::Complex: std::complex multiplies by other formulas.
template <class Fn>
decltype(auto) visit_element(DType dtype, Fn&& fn) {
  if (dtype == DType::complex64) return fn.template operator()<functors::Complex<float>>();
  if (dtype == DType::complex128) return fn.template operator()<functors::Complex<double>>();
  return visit_real_dtype(dtype, fn);
}

}  // namespace thalweg::cpu
