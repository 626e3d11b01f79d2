// fft.cpp: Ops of discrete Fourier transforms: fft, rfft, irfft, hfft and their inverse and n-dimensional
// forms.
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include <thalweg/errors.h>
#include <thalweg/op.h>

#include "ops/builtin.h"
#include "ops/fft_gradient.h"

namespace thalweg {
namespace {

// Attribute positions; the kernels rely on them. The 1-d Ops have an int in the first two, the others tuples.
constexpr std::size_t kLengths = 0;
constexpr std::size_t kAxes = 1;
constexpr std::size_t kNorm = 2;

/// What goes in and comes out. A real side has n elements along the last axis, its spectrum n / 2 + 1.
enum class Type { complex, real_to_complex, complex_to_real };

std::string prefix(const InferContext& ctx) { return std::string(ctx.name()) + ": "; }

/// The axes in the caller's order.
SmallVector<int, 4> axes_of(const InferContext& ctx) {
  const int rank = ctx.input(0).rank();
  const AttrValue& given = ctx.attributes()[kAxes];
  if (const auto* axis = std::get_if<std::int64_t>(&given)) return {normalize_axis(ctx.name(), *axis, rank)};
  if (const auto* axes = std::get_if<Dims>(&given)) return normalize_axes(ctx.name(), *axes, rank);
  SmallVector<int, 4> all;
  for (int axis = 0; axis < rank; ++axis) all.push_back(axis);
  return all;
}

/// The length that the caller gives for axis number `i`, if any.
std::optional<std::int64_t> given_length(const InferContext& ctx, std::size_t i, std::size_t count) {
  const AttrValue& given = ctx.attributes()[kLengths];
  if (const auto* n = std::get_if<std::int64_t>(&given)) return *n;
  const auto* s = std::get_if<Dims>(&given);
  if (s == nullptr) return std::nullopt;
  if (!ctx.attributes().has(kAxes)) {
    throw ValueError(prefix(ctx) + "s is " + to_string(*s) + " without axes; name the axis of each length");
  }
  if (s->size() != count) {
    throw ValueError(prefix(ctx) + "s " + to_string(*s) + " and axes " +
                     to_string(ctx.attributes().get<Dims>(kAxes)) + " differ in length");
  }
  if ((*s)[i] == -1) return std::nullopt;
  return (*s)[i];
}

/// The transform's length along axis number `i`; throws ValueError below 1.
std::int64_t length_of(const InferContext& ctx, Type type, int axis, std::size_t i, std::size_t count) {
  const char* what = std::holds_alternative<std::int64_t>(ctx.attributes()[kAxes]) ? "n" : "s";
  if (const auto given = given_length(ctx, i, count)) {
    if (*given >= 1) return *given;
    throw ValueError(prefix(ctx) + "a length of " + std::to_string(*given) + " in " + what +
                     "; it must be at least 1");
  }
  const Shape& shape = ctx.input(0).shape;
  const bool half = type == Type::complex_to_real && i + 1 == count;
  const std::int64_t length = half ? 2 * (shape[axis] - 1) : shape[axis];
  if (length >= 1) return length;
  throw ShapeError(prefix(ctx) + "axis " + std::to_string(axis) + " of shape " + to_string(shape) +
                   " has too few elements for a transform; give " + what);
}

/// The dtype of x that the transform takes; throws DTypeError if there is none.
DType input_dtype(const InferContext& ctx, Type type) {
  const DType dtype = ctx.input(0).dtype;
  if (is_half(dtype)) {
    throw DTypeError(prefix(ctx) + "does not compute in " + std::string(name(dtype)) +
                     "; cast x with thalweg.astype(x, thalweg.float32)");
  }
  if (!is_inexact(dtype)) {
    throw DTypeError(prefix(ctx) + "x has dtype " + std::string(name(dtype)) +
                     "; cast it to a floating dtype first, as with thalweg.astype(x, thalweg.float64)");
  }
  if (type != Type::real_to_complex) return complex_dtype(dtype);
  if (!is_complex(dtype)) return dtype;
  throw DTypeError(prefix(ctx) + "x has dtype " + std::string(name(dtype)) +
                   " and must be real; transform complex numbers with " +
                   (ctx.name() == "ihfft"  ? "ifft"
                    : ctx.name() == "rfft" ? "fft"
                                           : "fftn"));
}

void check_norm(const InferContext& ctx) {
  const auto& norm = ctx.attributes().get<std::string>(kNorm);
  if (norm == "backward" || norm == "ortho" || norm == "forward") return;
  throw ValueError(prefix(ctx) + "norm must be 'backward', 'ortho' or 'forward', not '" + norm + "'");
}

void infer_fft(InferContext& ctx, Type type) {
  const DType dtype = input_dtype(ctx, type);
  check_norm(ctx);
  const auto axes = axes_of(ctx);
  if (axes.empty() && type != Type::complex) {
    throw ShapeError(prefix(ctx) + "needs at least one axis; shape " + to_string(ctx.input(0).shape) +
                     (ctx.input(0).rank() == 0 ? " has none" : " with axes () has none to transform"));
  }
  Shape shape = ctx.input(0).shape;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::int64_t length = length_of(ctx, type, axes[i], i, axes.size());
    shape[axes[i]] = type == Type::real_to_complex && i + 1 == axes.size() ? length / 2 + 1 : length;
  }
  ctx.cast_input(0, dtype);
  ctx.set_contiguous(0, shape, type == Type::complex_to_real ? real_dtype(dtype) : complex_dtype(dtype));
}

/// About 1 ns for a complex element and each doubling of the lines; a plan that is not cached takes longer.
double fft_cost_ns(std::span<const TensorMeta* const> inputs, std::span<const TensorMeta* const> outputs) {
  const auto elements = static_cast<double>(std::max(inputs[0]->numel(), outputs[0]->numel()));
  return 1000.0 + elements * (2.0 + std::log2(elements + 1.0));
}

struct Description {
  const char* name;
  Type type;
  bool many;
  const char* summary;
  const char* shapes;
};

Op make_fft(const Description& each) {
  Op op;
  op.name = each.name;
  op.inputs = {"x"};
  if (each.many) {
    op.attributes = {{"s", AttrKind::axes}, {"axes", AttrKind::axes}};
  } else {
    op.attributes = {{"n", AttrKind::integer}, {"axis", AttrKind::integer, std::int64_t{-1}}};
  }
  op.attributes.push_back({"norm", AttrKind::string, std::string("backward")});
  op.infer = [type = each.type](InferContext& ctx) { infer_fft(ctx, type); };
  op.cost_ns = fft_cost_ns;
  const std::string lengths = each.many ? "\n\naxes: the axes to transform, all by default. s: the length "
                                          "along each of the axes, -1 for that of x; it "
                                          "needs axes."
                                        : "\n\nn: the length along the axis.";
  op.doc =
      std::string(each.summary) + "\n\n" + each.shapes + lengths +
      " x is cropped to it or padded with zeros at the end. norm: 'backward' divides the inverse transforms "
      "by "
      "the length, 'forward' the others, 'ortho' all of them by its square root. Raises DTypeError for other "
      "dtypes (integers: cast them first), IndexError for an axis out of range, ShapeError for one without "
      "elements and ValueError for a length below 1 and another norm.\n\nArray API standard, FFT extension; "
      "computed with pocketfft (Bluestein's algorithm where the length has a large prime factor).";
  set_fft_derivative(op);
  return op;
}

}  // namespace

void register_fft(OpRegistry& registry) {
  const char* const complex_shapes =
      "x: complex, or real floating and taken for complex. The result is complex of x's precision; its shape "
      "is x's with "
      "the transform's length.";
  const char* const half_shapes =
      "x: float32 or float64. The result is complex of x's precision; along the (last) axis it has n // 2 + "
      "1 elements for "
      "a length of n, the others being their conjugates.";
  const char* const real_shapes =
      "x: complex, n // 2 + 1 elements along the (last) axis for a length of n, by default 2 * (m - 1) for m "
      "elements. "
      "The imaginary parts of the first one, and of the last one where n is even, do not count. The result "
      "is real of "
      "x's precision, with n elements along the axis.";
  const Description descriptions[] = {
      {"fft", Type::complex, false, "The discrete Fourier transform along an axis.", complex_shapes},
      {"ifft", Type::complex, false, "The inverse discrete Fourier transform along an axis.", complex_shapes},
      {"fftn", Type::complex, true, "The discrete Fourier transform over several axes.", complex_shapes},
      {"ifftn", Type::complex, true, "The inverse discrete Fourier transform over several axes.",
       complex_shapes},
      {"rfft", Type::real_to_complex, false, "The discrete Fourier transform of real numbers along an axis.",
       half_shapes},
      {"irfft", Type::complex_to_real, false, "The inverse of rfft.", real_shapes},
      {"rfftn", Type::real_to_complex, true,
       "The discrete Fourier transform of real numbers over several axes.", half_shapes},
      {"irfftn", Type::complex_to_real, true, "The inverse of rfftn.", real_shapes},
      {"hfft", Type::complex_to_real, false,
       "The discrete Fourier transform, which is real, of numbers that are Hermitian along an axis.",
       real_shapes},
      {"ihfft", Type::real_to_complex, false, "The inverse of hfft.", half_shapes},
  };
  for (const Description& each : descriptions) registry.add(make_fft(each));
}

}  // namespace thalweg
