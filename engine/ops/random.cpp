// random.cpp: Ops that draw random numbers from a counter-based stream.
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include <thalweg/errors.h>
#include <thalweg/generator.h>
#include <thalweg/op.h>

#include "ops/builtin.h"
#include "ops/integer_range.h"

namespace thalweg {
namespace {

constexpr const char* kStream =
    "Element i depends on seed, counter + i // 2 and i % 2 only: one block of Philox4x32-10 (Salmon et al., "
    "Parallel random numbers: as easy as 1, 2, 3, SC 2011) gives two 64-bit numbers, so the operator takes "
    "(elements + 1) // 2 counters.";

std::string text(const AttrValue& value) { return to_string(value); }

void require_floating(const InferContext& context, DType dtype) {
  if (is_floating(dtype)) return;
  throw DTypeError(std::string(context.name()) + ": dtype " + std::string(name(dtype)) +
                   " is not floating; use float32 or another floating dtype, or randint for integers");
}

/// Throws ValueError for a bound that is infinite in a half-precision dtype.
void check_bound(const InferContext& context, double bound, DType dtype) {
  if (!is_half(dtype) || !std::isfinite(bound)) return;
  if (std::isfinite(from_half(to_half(bound, dtype), dtype))) return;
  throw ValueError(std::string(context.name()) + ": " + text(bound) + " is too large for " +
                   std::string(name(dtype)) + "; use float32");
}

void infer_uniform(InferContext& context) {
  const Attributes& attributes = context.attributes();
  double low = attributes.get<double>(1);
  double high = attributes.get<double>(2);
  DType dtype = attributes.get<DType>(3);
  require_floating(context, dtype);
  if (!(low <= high) || !std::isfinite(high - low)) {
    throw ValueError("uniform: low " + text(low) + " and high " + text(high) +
                     " bound no finite range; low must not be above high");
  }
  for (double bound : {low, high}) check_bound(context, bound, dtype);
  context.set_contiguous(0, attributes.get<Dims>(0), dtype);
}

void infer_normal(InferContext& context) {
  const Attributes& attributes = context.attributes();
  double deviation = attributes.get<double>(2);
  DType dtype = attributes.get<DType>(3);
  require_floating(context, dtype);
  if (!(deviation >= 0)) throw ValueError("normal: std is " + text(deviation) + "; it must not be negative");
  context.set_contiguous(0, attributes.get<Dims>(0), dtype);
}

void infer_randint(InferContext& context) {
  const Attributes& attributes = context.attributes();
  const auto& low = attributes.get<Scalar>(1);
  const auto& high = attributes.get<Scalar>(2);
  DType dtype = attributes.get<DType>(3);
  if (!is_integer(dtype)) {
    throw DTypeError("randint: dtype " + std::string(name(dtype)) +
                     " is not an integer; use uniform for floating ones");
  }
  if (low.kind() >= DTypeKind::floating || high.kind() >= DTypeKind::floating) {
    throw DTypeError("randint: low " + text(low) + " and high " + text(high) + " must be integers");
  }
  const bool endpoint = attributes.get<bool>(7);
  const Int128 last = to_int128(high) - (endpoint ? 0 : 1);
  if (to_int128(low) > last) {
    throw ValueError("randint: low " + text(low) + " is not below high " + text(high) +
                     (endpoint ? " + 1" : ", which is left out"));
  }
  IntegerRange range = range_of(dtype);
  if (to_int128(low) < range.lowest || last > range.highest) {
    throw ValueError("randint: numbers from " + text(low) + " to " + text(high) + " do not fit " +
                     std::string(name(dtype)));
  }
  context.set_contiguous(0, attributes.get<Dims>(0), dtype);
}

/// The Python function gives the input the output's shape, so that the stream can be taken before.
void infer_gamma(InferContext& context) {
  const Attributes& attributes = context.attributes();
  const double scale = attributes.get<double>(0);
  const DType dtype = attributes.get<DType>(1);
  require_floating(context, dtype);
  if (!(scale >= 0)) throw ValueError("gamma: scale is " + text(scale) + "; it must not be negative");
  if (is_complex(context.input(0).dtype)) {
    throw DTypeError("gamma: concentration has dtype " + std::string(name(context.input(0).dtype)) +
                     "; it must be real");
  }
  context.cast_input(0, DType::float64);
  context.set_contiguous(0, context.input(0).shape, dtype);
}

AttrSpec required(const char* name, AttrKind kind) { return {name, kind, {}, true}; }

Op make_op(const char* name, AttrSpec first, AttrSpec second, DType dtype, void (*infer)(InferContext&),
           const std::string& doc) {
  Op op;
  op.name = name;
  op.attributes = {required("shape", AttrKind::dims),
                   std::move(first),
                   std::move(second),
                   {"dtype", AttrKind::dtype, dtype, false},
                   required("seed", AttrKind::integer),
                   {"counter", AttrKind::integer, std::int64_t{0}, false},
                   {"device", AttrKind::device, Device{}, false}};
  op.infer = infer;
  op.doc = doc + kStream;
  op.not_differentiable = kAllOutputs;
  return op;
}

}  // namespace

std::uint64_t random_draws(std::int64_t numel) noexcept {
  return (static_cast<std::uint64_t>(numel) + 1) / 2;
}

void register_random(OpRegistry& registry) {
  Op uniform = make_op(
      "uniform", {"low", AttrKind::floating, 0.0, false}, {"high", AttrKind::floating, 1.0, false},
      DType::float64, infer_uniform,
      "Random numbers evenly spread over [low, high).\n\nfloat64 has 53 random bits, float32 24; float16 and "
      "bfloat16 are rounded from float32. Raises ValueError for bounds that are not finite or in the wrong "
      "order and DTypeError for a dtype that is "
      "not floating. ");
  uniform.ns_per_element = 2.0f;
  registry.add(std::move(uniform));
  Op normal = make_op("normal", {"mean", AttrKind::floating, 0.0, false},
                      {"std", AttrKind::floating, 1.0, false}, DType::float64, infer_normal,
                      "Random numbers of the normal distribution.\n\nRaises ValueError for a negative std "
                      "and DTypeError for a "
                      "dtype that is not floating. Computed in float64 by Box and Muller's method (A note on "
                      "the generation of "
                      "random normal deviates, 1958). float32 is the same stream to a unit in the last "
                      "place; float16 and bfloat16 are rounded from float32. ");
  normal.ns_per_element = 4.0f;
  registry.add(std::move(normal));
  Op randint = make_op(
      "randint", required("low", AttrKind::scalar), required("high", AttrKind::scalar), DType::int64,
      infer_randint,
      "Random integers from low up to but without high, each equally likely.\n\nRaises ValueError for bounds "
      "without an integer in between or that the dtype cannot hold and DTypeError for a dtype that is not an "
      "integer one. Unbiased: Lemire's "
      "multiplication with rejection (ACM TOMACS 29, 2019); a rejected number is drawn again from the "
      "same counter's next block. The attribute endpoint includes high. ");
  randint.attributes.push_back({"endpoint", AttrKind::boolean, false, false});
  randint.ns_per_element = 4.0f;
  registry.add(std::move(randint));
  Op gamma;
  gamma.name = "gamma";
  gamma.inputs = {"concentration"};
  gamma.attributes = {{"scale", AttrKind::floating, 1.0, false},
                      {"dtype", AttrKind::dtype, DType::float64, false},
                      required("seed", AttrKind::integer),
                      {"counter", AttrKind::integer, std::int64_t{0}, false}};
  gamma.infer = infer_gamma;
  gamma.not_differentiable = kAllOutputs;
  gamma.ns_per_element = 150.0f;
  gamma.doc =
      "Random numbers of the gamma distributions of the given concentrations, times scale.\n\nThe mean is "
      "concentration * scale. Computed in float64 by the method of Marsaglia and Tsang (A simple method for "
      "generating gamma variables, ACM TOMS 26, 2000). A concentration of 0 gives 0, a negative one or nan "
      "gives nan. Element i depends on seed and counter + i only: the operator takes as many counters as "
      "elements of Philox4x32-10 (Salmon et al., Parallel random numbers: as easy as 1, 2, 3, SC'11).";
  registry.add(std::move(gamma));
}

}  // namespace thalweg
