// fft_plans.h: the factors of recent transform lengths, kept for the next transform of that length.
#pragma once

#include <cstdint>
#include <memory>

#include "kernels/cpu/fft_table.h"

namespace thalweg::cpu {

/// The plan that `functions.run` takes for lines of `length` elements, complex or real. Any thread may ask,
/// and several may use one plan at the same time. Throws std::bad_alloc.
std::shared_ptr<const void> fft_plan(const FftFunctions& functions, std::int64_t length, bool complex);

}  // namespace thalweg::cpu
