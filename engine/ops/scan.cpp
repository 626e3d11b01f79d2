// scan.cpp: Ops that combine each element with all before it: cumulative_sum and cumulative_prod.
#include <string>
#include <utility>

#include <thalweg/errors.h>
#include <thalweg/op.h>

#include "ops/builtin.h"
#include "ops/derivative.h"
#include "ops/reduction.h"

namespace thalweg {
namespace {

// Attribute positions; the kernels rely on them.
constexpr std::size_t kAxis = 0;
constexpr std::size_t kDType = 1;
constexpr std::size_t kIncludeInitial = 2;

void infer_scan(InferContext& ctx) {
  const TensorMeta& x = ctx.input(0);
  const int axis = normalize_axis(ctx.name(), ctx.attributes().get<std::int64_t>(kAxis), x.rank());
  const DType natural = accumulator_dtype(x.dtype);
  const DType dtype = ctx.attributes().get_or<DType>(kDType, natural);
  if (dtype == DType::bool_) throw DTypeError(std::string(ctx.name()) + ": dtype bool does not add up");
  if (dtype != natural) ctx.cast_input(0, dtype);
  Shape shape = x.shape;
  if (ctx.attributes().get<bool>(kIncludeInitial)) ++shape[axis];
  ctx.set_contiguous(0, shape, dtype);
}

Op scan(std::string name, const std::string& summary, const std::string& initial) {
  Op op;
  op.name = std::move(name);
  op.inputs = {"x"};
  op.attributes = {{"axis", AttrKind::integer, std::int64_t{-1}},
                   {"dtype", AttrKind::dtype},
                   {"include_initial", AttrKind::boolean, false}};
  op.infer = infer_scan;
  op.alias_mask = 1;
  op.ns_per_element = 1.5f;
  op.doc =
      summary +
      "\n\nbool and signed integers give int64, unsigned integers uint64, floating dtypes their own; dtype "
      "overrides (the input is cast first). include_initial: puts " +
      initial +
      " in front, so that the axis is one longer. Integers wrap. Elements are combined from the first to "
      "the last. Raises IndexError for an axis out of range.\n\nArray API standard, statistical functions.";
  set_reduction_derivative(op);
  return op;
}

}  // namespace

void register_scan(OpRegistry& registry) {
  registry.add(scan("cumulative_sum", "The sums of the elements up to each one, along an axis.", "0"));
  registry.add(scan("cumulative_prod", "The products of the elements up to each one, along an axis.", "1"));
}

}  // namespace thalweg
