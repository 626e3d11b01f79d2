// creation.cpp: Ops that make tensors from attributes: empty, full, arange, linspace, eye.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include <thalweg/errors.h>
#include <thalweg/op.h>

#include "ops/builtin.h"
#include "ops/integer_range.h"

namespace thalweg {
namespace {

AttrSpec required(const char* name, AttrKind kind) { return {name, kind, {}, true}; }
AttrSpec optional(const char* name, AttrKind kind, AttrValue fallback = {}) {
  return {name, kind, std::move(fallback), false};
}

std::string text(const Scalar& value) { return to_string(AttrValue(value)); }

bool is_integral(const Scalar& value) { return value.kind() < DTypeKind::floating; }
bool is_complex(const Scalar& value) { return value.kind() == DTypeKind::complex_floating; }

/// Throws DTypeError for a complex number where the result is real.
void check_real(const InferContext& context, const Scalar& value, DType dtype) {
  if (!is_complex(value) || is_complex(dtype)) return;
  throw DTypeError(std::string(context.name()) + ": " + text(value) + " is complex and does not fit " +
                   std::string(name(dtype)) + "; give a complex dtype");
}

void infer_empty(InferContext& context) {
  const Attributes& attributes = context.attributes();
  context.set_contiguous(0, attributes.get<Dims>(0), attributes.get<DType>(1));
}

/// Whether the whole part of a number lies in a range; NaN does not.
bool holds(const IntegerRange& range, const Scalar& value) {
  if (is_integral(value)) return to_int128(value) >= range.lowest && to_int128(value) <= range.highest;
  const double whole = std::trunc(value.to<double>());
  // highest + 1 is a power of two, which a double holds exactly.
  return whole >= static_cast<double>(range.lowest) && whole < static_cast<double>(range.highest + 1);
}

/// Throws ValueError for a number that `dtype`, if it is an integer dtype, does not hold.
void check_fits(std::string_view op, const Scalar& value, DType dtype) {
  if (!is_integer(dtype)) return;
  const IntegerRange range = range_of(dtype);
  if (holds(range, value)) return;
  throw ValueError(std::string(op) + ": " + text(value) + " does not fit " + std::string(name(dtype)) +
                   ", which holds " + std::to_string(static_cast<std::int64_t>(range.lowest)) + " to " +
                   std::to_string(static_cast<std::uint64_t>(range.highest)));
}

void infer_full(InferContext& context) {
  const Attributes& attributes = context.attributes();
  const auto& value = attributes.get<Scalar>(1);
  DType dtype = attributes.get_or<DType>(2, default_dtype(value));
  check_real(context, value, dtype);
  check_fits(context.name(), value, dtype);
  context.set_contiguous(0, attributes.get<Dims>(0), dtype);
}

/// ceil((stop - start) / step) for integers, in 128 bits, where nothing overflows.
double integer_count(const Scalar& start, const Scalar& stop, const Scalar& step) {
  Int128 span = to_int128(stop) - to_int128(start);
  Int128 stride = to_int128(step);
  Int128 count = span / stride + (span % stride != 0 && (span < 0) == (stride < 0));
  return static_cast<double>(count);
}

void infer_arange(InferContext& context) {
  const Attributes& attributes = context.attributes();
  const auto& start = attributes.get<Scalar>(0);
  const auto& stop = attributes.get<Scalar>(1);
  const auto& step = attributes.get<Scalar>(2);
  if (is_complex(start) || is_complex(stop) || is_complex(step) ||
      (attributes.has(3) && is_complex(attributes.get<DType>(3)))) {
    throw DTypeError("arange: complex numbers have no order to count in; use linspace");
  }
  if (step.to<double>() == 0) throw ValueError("arange: step is 0; it must go up or down");
  bool integral = is_integral(start) && is_integral(stop) && is_integral(step);
  double count = integral ? integer_count(start, stop, step)
                          : std::ceil((stop.to<double>() - start.to<double>()) / step.to<double>());
  if (std::isnan(count) || count >= 0x1p63) {
    throw ValueError("arange: from " + text(start) + " to " + text(stop) + " by " + text(step) +
                     " has no finite number of steps");
  }
  const bool empty = !(count > 0);
  DType dtype = attributes.get_or<DType>(3, integral ? DType::int64 : DType::float64);
  if (dtype == DType::bool_)
    throw DTypeError("arange: dtype bool cannot count; use an integer or floating dtype");
  if (integral && is_integer(dtype) && !empty) {
    const Int128 first = to_int128(start);
    const Int128 last = first + (static_cast<Int128>(count) - 1) * to_int128(step);
    if (!attributes.has(3) && std::max(first, last) > range_of(DType::int64).highest) dtype = DType::uint64;
    const IntegerRange range = range_of(dtype);
    if (std::min(first, last) < range.lowest || std::max(first, last) > range.highest) {
      throw ValueError("arange: the numbers from " + text(start) + " to " + text(stop) + " by " + text(step) +
                       " do not all fit " + std::string(name(dtype)) + "; give another dtype");
    }
  }
  context.set_contiguous(0, {empty ? 0 : static_cast<std::int64_t>(count)}, dtype);
}

void infer_linspace(InferContext& context) {
  const Attributes& attributes = context.attributes();
  std::int64_t count = attributes.get<std::int64_t>(2);
  if (count < 0) throw ValueError("linspace: num is " + std::to_string(count) + "; it must not be negative");
  DType dtype = attributes.get<DType>(4);
  if (dtype == DType::bool_)
    throw DTypeError("linspace: dtype bool has no steps; use a floating or integer dtype");
  for (std::size_t i : {0, 1}) check_real(context, attributes.get<Scalar>(i), dtype);
  context.set_contiguous(0, {count}, dtype);
}

void infer_eye(InferContext& context) {
  const Attributes& attributes = context.attributes();
  std::int64_t rows = attributes.get<std::int64_t>(0);
  std::int64_t columns = attributes.get_or<std::int64_t>(1, rows);
  context.set_contiguous(0, {rows, columns}, attributes.get<DType>(3));
}

Op make_op(const char* name, std::vector<AttrSpec> attributes, void (*infer)(InferContext&), float ns,
           const char* doc) {
  Op op;
  op.name = name;
  op.attributes = std::move(attributes);
  op.infer = infer;
  op.ns_per_element = ns;
  op.doc = doc;
  op.not_differentiable = kAllOutputs;
  return op;
}

}  // namespace

void register_creation(OpRegistry& registry) {
  AttrSpec shape = required("shape", AttrKind::dims);
  AttrSpec start = required("start", AttrKind::scalar);
  AttrSpec stop = required("stop", AttrKind::scalar);
  AttrSpec any_dtype = optional("dtype", AttrKind::dtype);
  AttrSpec float_dtype = optional("dtype", AttrKind::dtype, DType::float64);
  AttrSpec device = optional("device", AttrKind::device, Device{});
  registry.add(
      make_op("empty", {shape, float_dtype, device}, infer_empty, 0.0f,
              "A tensor whose values are whatever its memory held.\n\nRaises ShapeError for a negative "
              "size.\n\nArray API standard, creation functions."));
  registry.add(make_op(
      "full", {shape, required("value", AttrKind::scalar), any_dtype, device}, infer_full, 0.2f,
      "A tensor of one value everywhere.\n\nWithout dtype bool, int64 or a floating or "
      "complex dtype (of double precision in C++, of single in Python). "
      "Raises ValueError for a number that an integer dtype does not hold, DTypeError for a complex "
      "one in a real dtype and ShapeError for a negative size.\n\nArray API standard, creation functions."));
  registry.add(make_op(
      "arange", {start, stop, required("step", AttrKind::scalar), any_dtype, device}, infer_arange, 0.5f,
      "start, start + step, and so on, up to but without stop.\n\nWithout dtype int64 if all three "
      "are integers (uint64 where a number is above int64), else float64 in C++ and float32 in Python. "
      "Raises ValueError if step is 0 "
      "or integers do not fit, and DTypeError for complex numbers and dtypes.\n\nArray API standard, "
      "creation "
      "functions."));
  registry.add(make_op(
      "linspace",
      {start, stop, required("num", AttrKind::integer), optional("endpoint", AttrKind::boolean, true),
       float_dtype, device},
      infer_linspace, 0.8f,
      "num evenly spaced values from start to stop.\n\nstop is the last of them if endpoint is True, "
      "else the one after the last. Computed in float64, the parts of complex numbers apart; integer "
      "dtypes round down. Raises DTypeError for complex bounds and a real dtype, and ValueError for a "
      "negative num.\n\nArray API standard, creation functions."));
  registry.add(make_op(
      "eye",
      {required("n_rows", AttrKind::integer), optional("n_cols", AttrKind::integer),
       optional("k", AttrKind::integer, std::int64_t{0}), float_dtype, device},
      infer_eye, 0.2f,
      "A matrix with ones on diagonal k and zeros elsewhere.\n\nn_cols is n_rows if not given; k "
      "above 0 is above the main diagonal. Raises ShapeError for a negative size.\n\nArray API standard, "
      "creation functions."));
}

}  // namespace thalweg
