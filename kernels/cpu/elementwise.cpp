// elementwise.cpp: kernels of arithmetic, comparison, logic, bit operations, mathematical functions, where
// and clip.
#include "kernels/cpu/elementwise.h"

#include <bit>
#include <cmath>
#include <string>
#include <type_traits>
#include <utility>

#include <thalweg/errors.h>
#include <thalweg/half.h>

#include "kernels/cpu/register.h"
#include "kernels/cpu/strided_loop.h"

namespace thalweg::cpu {

THALWEG_DECLARE_PER_ISA(fill_arithmetic, ElementwiseTable)
THALWEG_DECLARE_PER_ISA(fill_division, ElementwiseTable)
THALWEG_DECLARE_PER_ISA(fill_compare_and_logic, ElementwiseTable)
THALWEG_DECLARE_PER_ISA(fill_math, ElementwiseTable)
THALWEG_DECLARE_PER_ISA(fill_gradients, ElementwiseTable)
THALWEG_DECLARE_PER_ISA(fill_casts, ElementwiseTable)
THALWEG_DECLARE_PER_ISA(fill_complex, ElementwiseTable)

namespace {

// Rows end before the half-precision dtypes, which compute in float32.
static_assert(kLoopDTypes == static_cast<int>(DType::float16));
static_assert(kLoopIndex<bool> == static_cast<int>(DType::bool_) &&
              kLoopIndex<std::int8_t> == static_cast<int>(DType::int8) &&
              kLoopIndex<std::int64_t> == static_cast<int>(DType::int64) &&
              kLoopIndex<std::uint8_t> == static_cast<int>(DType::uint8) &&
              kLoopIndex<std::uint64_t> == static_cast<int>(DType::uint64) &&
              kLoopIndex<float> == static_cast<int>(DType::float32) &&
              kLoopIndex<double> == static_cast<int>(DType::float64) &&
              kLoopIndex<functors::Complex<float>> == static_cast<int>(DType::complex64) &&
              kLoopIndex<functors::Complex<double>> == static_cast<int>(DType::complex128));

// One static per set: the filling functions themselves need the instruction set they fill for.
template <Isa isa>
const ElementwiseTable& table_of() {
  static const ElementwiseTable table = [] {
    ElementwiseTable fresh{};
    fill_arithmetic(isa, fresh);
    fill_division(isa, fresh);
    fill_compare_and_logic(isa, fresh);
    fill_math(isa, fresh);
    fill_gradients(isa, fresh);
    fill_casts(isa, fresh);
    fill_complex(isa, fresh);
    fill_complex_math(fresh);
    return fresh;
  }();
  return table;
}

void run_row(const KernelContext& context, const Loop* row) {
  const DType dtype = context.input(0).dtype();
  const DType computed = is_half(dtype) ? DType::float32 : dtype;
  Loop loop = row[static_cast<int>(computed)];
  if (loop == nullptr) {
    throw KernelError(context.op().name + ": there is no cpu kernel for " + std::string(name(dtype)));
  }
  if (is_half(dtype)) return run_half_loop(context, loop, context.inputs());
  run_loop(context, loop, context.inputs());
}

void run_compare(const KernelContext& context, const ElementwiseTable& table, CompareFn fn) {
  DType a = context.input(0).dtype();
  int index = static_cast<int>(fn);
  if (a == context.input(1).dtype()) return run_row(context, table.compare[index]);
  const Loop* mixed = a == DType::uint64 ? table.compare_uint64_int64 : table.compare_int64_uint64;
  run_loop(context, mixed[index], context.inputs());
}

template <class T>
bool any_negative(const T* data, const Shape& shape, const Strides& strides, int axis) {
  if (axis == static_cast<int>(shape.size())) return *data < 0;
  std::int64_t size = shape[axis];
  std::int64_t stride = strides[axis];
  bool found = false;
  if (axis + 1 == static_cast<int>(shape.size())) {
    for (std::int64_t i = 0; i < size; ++i) found |= data[i * stride] < 0;
    return found;
  }
  for (std::int64_t i = 0; i < size && !found; ++i)
    found = any_negative(data + i * stride, shape, strides, axis + 1);
  return found;
}

/// NumPy raises for integers to negative integer powers, whatever the base.
void check_exponents(const KernelContext& context) {
  const TensorView& exponent = context.input(1);
  if (kind(exponent.dtype()) != DTypeKind::signed_integer || context.output().numel() == 0) return;
  visit_real_dtype(exponent.dtype(), [&]<class T>() {
    if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) {
      if (!any_negative(exponent.as<T>(), exponent.shape(), exponent.strides(), 0)) return;
      throw ValueError(context.op().name +
                       ": Integers to negative integer powers are not allowed; use a float base");
    }
  });
}

Loop where_loop(const KernelContext& context, const ElementwiseTable& table) {
  auto size = static_cast<std::uint64_t>(item_size(context.output().dtype()));
  return table.where[std::countr_zero(size)];
}

/// The neighbour of `x` towards `y` among numbers of 16 bits with the sign in front, whose bits without it
/// are in the order of their sizes.
template <float (*widen)(std::uint16_t)>
void next_after(char* const* data, const std::int64_t* steps, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint16_t x = *reinterpret_cast<const std::uint16_t*>(data[1] + i * steps[1]);
    const std::uint16_t y = *reinterpret_cast<const std::uint16_t*>(data[2] + i * steps[2]);
    const float from = widen(x);
    const float to = widen(y);
    int bits = x;
    if (std::isnan(from) || std::isnan(to)) {
      bits = std::isnan(from) ? x : y;
    } else if (from == to) {
      bits = y;
    } else if (from == 0) {
      bits = (y & 0x8000) | 1;
    } else {
      bits += (from < to) == (from > 0) ? 1 : -1;
    }
    *reinterpret_cast<std::uint16_t*>(data[0] + i * steps[0]) = static_cast<std::uint16_t>(bits);
  }
}

void run_nextafter(const KernelContext& context, const Loop* row) {
  switch (context.output().dtype()) {
    case DType::float16: return run_loop(context, next_after<widen_float16>, context.inputs());
    case DType::bfloat16: return run_loop(context, next_after<widen_bfloat16>, context.inputs());
    default: return run_row(context, row);
  }
}

/// One exponent for all elements, or NaN.
double single_exponent(const TensorView& exponent) {
  if (exponent.numel() != 1) return NAN;
  if (exponent.dtype() == DType::float32) return *exponent.as<float>();
  if (is_half(exponent.dtype())) return from_half(*exponent.as<std::uint16_t>(), exponent.dtype());
  return exponent.dtype() == DType::float64 ? *exponent.as<double>() : NAN;
}

/// The loop over one operand that gives its `exponent`-th power at a tenth of the cost, with the same special
/// cases and at most one rounding more; or null.
const Loop* power_row(const ElementwiseTable& table, double exponent) {
  if (exponent == 2) return table.unary[static_cast<int>(UnaryFn::square)];
  if (exponent == -1) return table.unary[static_cast<int>(UnaryFn::reciprocal)];
  if (exponent == 3) return table.cube;
  return exponent == 0.5 ? table.half_power : nullptr;
}

void run_pow(const KernelContext& context, const ElementwiseTable& table) {
  check_exponents(context);
  const Loop* row = power_row(table, single_exponent(context.input(1)));
  if (row == nullptr) return run_row(context, table.binary[static_cast<int>(BinaryFn::pow)]);
  const TensorView base[] = {context.input(0)};
  if (is_half(base[0].dtype())) return run_half_loop(context, row[static_cast<int>(DType::float32)], base);
  run_loop(context, row[static_cast<int>(base[0].dtype())], base);
}

void run_where(const KernelContext& context, const ElementwiseTable& table) {
  run_loop(context, where_loop(context, table), context.inputs());
}

/// Inputs x, value, mask.
void run_mask_assign(const KernelContext& context, const ElementwiseTable& table) {
  const TensorView inputs[] = {context.input(2), context.input(1), context.input(0)};
  run_loop(context, where_loop(context, table), inputs);
}

}  // namespace

const ElementwiseTable& elementwise_table(Isa isa) {
  switch (isa) {
    case Isa::avx512: return table_of<Isa::avx512>();
    case Isa::avx2: return table_of<Isa::avx2>();
    case Isa::baseline: break;
  }
  return table_of<Isa::baseline>();
}

void register_elementwise_kernels(KernelRegistry& registry) {
  const ElementwiseTable& table = elementwise_table(active_isa());
  auto add = [&](std::string_view op, auto kernel) { registry.add(op, DeviceType::cpu, std::move(kernel)); };
  auto add_row = [&](std::string_view op, const Loop* row) {
    add(op, [row](const KernelContext& context) { run_row(context, row); });
  };
#define THALWEG_ADD_UNARY(fn) add_row(#fn, table.unary[static_cast<int>(UnaryFn::fn)]);
#define THALWEG_ADD_BINARY(fn)                                              \
  if (BinaryFn::fn != BinaryFn::pow && BinaryFn::fn != BinaryFn::nextafter) \
    add_row(#fn, table.binary[static_cast<int>(BinaryFn::fn)]);
#define THALWEG_ADD_COMPARE(fn) \
  add(#fn, [&table](const KernelContext& context) { run_compare(context, table, CompareFn::fn); });
  THALWEG_UNARY_FNS(THALWEG_ADD_UNARY)
  THALWEG_BINARY_FNS(THALWEG_ADD_BINARY)
  THALWEG_COMPARE_FNS(THALWEG_ADD_COMPARE)
#undef THALWEG_ADD_UNARY
#undef THALWEG_ADD_BINARY
#undef THALWEG_ADD_COMPARE
  add("nextafter", [row = table.binary[static_cast<int>(BinaryFn::nextafter)]](const KernelContext& context) {
    run_nextafter(context, row);
  });
  add("pow", [&table](const KernelContext& context) { run_pow(context, table); });
  add("where", [&table](const KernelContext& context) { run_where(context, table); });
  add("mask_assign", [&table](const KernelContext& context) { run_mask_assign(context, table); });
  add_row("clip", table.clip);
}

}  // namespace thalweg::cpu
