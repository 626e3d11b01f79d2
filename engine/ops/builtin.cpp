// builtin.cpp: the list of Op families. Explicit, because self-registering objects vanish from static
// libraries.
#include "ops/builtin.h"

namespace thalweg {

const OpRegistry& builtin_ops() {
  // Leaked: tensors may live longer than static objects.
  static const OpRegistry* const ops = [] {
    auto* registry = new OpRegistry;
    register_creation(*registry);
    register_elementwise(*registry);
    register_cast(*registry);
    register_random(*registry);
    register_reduction(*registry);
    register_linear_algebra(*registry);
    register_convolution(*registry);
    register_normalization(*registry);
    register_decomposition(*registry);
    register_manipulation(*registry);
    register_indexing(*registry);
    register_selection(*registry);
    register_sorting(*registry);
    register_scan(*registry);
    register_complex(*registry);
    register_fft(*registry);
    return registry;
  }();
  return *ops;
}

}  // namespace thalweg
