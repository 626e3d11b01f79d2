// reduction.cpp: Ops that combine the elements along axes: sum, prod, max, min, mean, var, std, any, all,
// count_nonzero, argmax, argmin.
#include "ops/reduction.h"

#include <algorithm>
#include <string>
#include <utility>

#include <thalweg/errors.h>
#include <thalweg/op.h>

#include "ops/builtin.h"
#include "ops/derivative.h"

namespace thalweg {
namespace {

// Attribute positions, the same for all Ops of this file. The kernels rely on them.
constexpr std::size_t kAxis = 0;
constexpr std::size_t kKeepdims = 1;
constexpr std::size_t kDType = 2;  // sum, prod

/// What a reduction over some axes leaves.
struct ReducedShape {
  Shape shape;
  std::int64_t length = 1;  ///< elements that each output combines
};

ReducedShape reduce_shape(const InferContext& ctx) {
  const Shape& shape = ctx.input(0).shape;
  const bool all = !ctx.attributes().has(kAxis);
  bool reduced[kMaxRank] = {};
  if (!all) {
    for (int axis : normalize_axes(ctx.name(), ctx.attributes().get<Dims>(kAxis), ctx.input(0).rank())) {
      reduced[axis] = true;
    }
  }
  const bool keepdims = ctx.attributes().get_or<bool>(kKeepdims, false);
  ReducedShape result;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (!all && !reduced[axis]) {
      result.shape.push_back(shape[axis]);
      continue;
    }
    result.length *= shape[axis];
    if (keepdims) result.shape.push_back(1);
  }
  return result;
}

std::string axis_text(const InferContext& ctx) {
  return ctx.attributes().has(kAxis) ? "axis " + to_string(ctx.attributes()[kAxis]) : "all axes";
}

[[noreturn]] void throw_empty(const InferContext& ctx) {
  throw ShapeError(std::string(ctx.name()) + ": shape " + to_string(ctx.input(0).shape) +
                   " has no element to reduce along " + axis_text(ctx) + ", and an empty " +
                   std::string(ctx.name()) + " has no value");
}

DType floating_dtype(DType dtype) { return is_inexact(dtype) ? dtype : DType::float64; }

void refuse_complex(const InferContext& ctx) {
  const DType dtype = ctx.input(0).dtype;
  if (!is_complex(dtype)) return;
  throw DTypeError(std::string(ctx.name()) + ": not defined for " + std::string(name(dtype)) +
                   "; reduce abs(), real() or imag()");
}

void infer_sum(InferContext& ctx) {
  const DType natural = accumulator_dtype(ctx.input(0).dtype);
  const DType dtype = ctx.attributes().get_or<DType>(kDType, natural);
  if (is_complex(natural) && !is_complex(dtype)) {
    throw DTypeError(std::string(ctx.name()) + ": elements of " + std::string(name(natural)) +
                     " do not become " + std::string(name(dtype)) + "; take real(), imag() or abs() first");
  }
  if (dtype != natural) ctx.cast_input(0, dtype);
  ctx.set_contiguous(0, reduce_shape(ctx).shape, dtype);
}

void infer_extremum(InferContext& ctx) {
  refuse_complex(ctx);
  ReducedShape result = reduce_shape(ctx);
  if (result.length == 0 && numel(result.shape) != 0) throw_empty(ctx);
  ctx.set_contiguous(0, result.shape, ctx.input(0).dtype);
}

void infer_mean(InferContext& ctx) {
  ctx.set_contiguous(0, reduce_shape(ctx).shape, floating_dtype(ctx.input(0).dtype));
}

void infer_variance(InferContext& ctx) {
  refuse_complex(ctx);
  infer_mean(ctx);
}

void infer_logical(InferContext& ctx) { ctx.set_contiguous(0, reduce_shape(ctx).shape, DType::bool_); }

void infer_count(InferContext& ctx) { ctx.set_contiguous(0, reduce_shape(ctx).shape, DType::int64); }

void infer_arg(InferContext& ctx) {
  refuse_complex(ctx);
  if (ctx.attributes().has(kAxis) && ctx.attributes().get<Dims>(kAxis).size() != 1) {
    throw ValueError(std::string(ctx.name()) + ": axis must be None or one integer, got " +
                     to_string(ctx.attributes()[kAxis]));
  }
  ReducedShape result = reduce_shape(ctx);
  if (result.length == 0) throw_empty(ctx);
  ctx.set_contiguous(0, result.shape, DType::int64);
}

const char kAxisDoc[] =
    "\n\naxis: None (all axes), an int or a tuple of ints, negative ones counted from the end; keepdims: "
    "leave reduced axes in place with size 1. Raises IndexError for an axis out of range and ShapeError for "
    "a repeated one.";
const char kOneAxisDoc[] =
    "\n\naxis: None (all axes) or an int, negative ones counted from the end; keepdims: leave reduced axes "
    "in place with size 1. Raises IndexError for an axis out of range.";

/// The section of the standard that has the functions of one inference.
std::string section_of(void (*infer)(InferContext&)) {
  if (infer == infer_logical) return "utility";
  return infer == infer_arg || infer == infer_count ? "searching" : "statistical";
}

Op reduction(std::string name, void (*infer)(InferContext&), const std::string& doc,
             float ns_per_element = 0.3f) {
  Op op;
  op.name = std::move(name);
  op.inputs = {"x"};
  op.attributes = {{"axis", AttrKind::axes}, {"keepdims", AttrKind::boolean, false}};
  op.infer = infer;
  op.doc = doc + (infer == infer_arg ? kOneAxisDoc : kAxisDoc) + "\n\nArray API standard, " +
           section_of(infer) + " functions.";
  op.ns_per_element = ns_per_element;
  set_reduction_derivative(op);
  return op;
}

void add_sums(OpRegistry& registry) {
  const std::string dtypes =
      "\n\nbool and signed integers give int64, unsigned integers uint64, floating and complex dtypes their "
      "own; dtype overrides (the input is cast first). Integers wrap. Floating elements are combined "
      "pairwise, "
      "in an order that depends on the shape only.";
  Op sum = reduction("sum", infer_sum, "The sum of the elements along the axes; 0 for none." + dtypes);
  sum.attributes.push_back({"dtype", AttrKind::dtype});
  registry.add(std::move(sum));
  Op prod = reduction("prod", infer_sum, "The product of the elements along the axes; 1 for none." + dtypes);
  prod.attributes.push_back({"dtype", AttrKind::dtype});
  registry.add(std::move(prod));
}

void add_moments(OpRegistry& registry) {
  registry.add(
      reduction("mean", infer_mean,
                "The arithmetic mean of the elements along the axes; nan for none.\n\nbool and integers "
                "give float64, floating and complex dtypes their own."));
  for (const char* name : {"var", "std"}) {
    const bool root = name[0] == 's';
    Op op = reduction(
        name, infer_variance,
        std::string(root ? "The standard deviation (square root of the variance)" : "The variance") +
            " of the elements along the axes, in two passes.\n\ncorrection: the divisor is the number "
            "of elements minus this (0: population, 1: Bessel), at least 0. bool and integers give "
            "float64, floating dtypes their own. Raises DTypeError for complex dtypes.",
        0.8f);
    op.attributes.push_back({"correction", AttrKind::floating, 0.0});
    registry.add(std::move(op));
  }
}

}  // namespace

DType accumulator_dtype(DType dtype) {
  switch (kind(dtype)) {
    case DTypeKind::floating:
    case DTypeKind::complex_floating: return dtype;
    case DTypeKind::unsigned_integer: return DType::uint64;
    default: return DType::int64;
  }
}

void register_reduction(OpRegistry& registry) {
  add_sums(registry);
  registry.add(
      reduction("max", infer_extremum,
                "The largest element along the axes; nan if one of them is nan.\n\nRaises ShapeError where "
                "there is no element and DTypeError for complex dtypes."));
  registry.add(
      reduction("min", infer_extremum,
                "The smallest element along the axes; nan if one of them is nan.\n\nRaises ShapeError where "
                "there is no element and DTypeError for complex dtypes."));
  add_moments(registry);
  registry.add(
      reduction("any", infer_logical,
                "True where an element along the axes is not zero (nan is not zero); False for none."));
  registry.add(reduction("all", infer_logical,
                         "True where no element along the axes is zero (nan is not zero); True for none."));
  registry.add(reduction("count_nonzero", infer_count,
                         "How many elements along the axes are not zero (nan is not zero).\n\nGives int64."));
  registry.add(
      reduction("argmax", infer_arg,
                "The position of the first largest element along one axis, or in C order over all; the "
                "first nan counts as largest.\n\nGives int64. Raises ShapeError where there is no element "
                "and DTypeError for "
                "complex dtypes.",
                0.6f));
  registry.add(
      reduction("argmin", infer_arg,
                "The position of the first smallest element along one axis, or in C order over all; the "
                "first nan counts as smallest.\n\nGives int64. Raises ShapeError where there is no element "
                "and DTypeError for "
                "complex dtypes.",
                0.6f));
}

}  // namespace thalweg
