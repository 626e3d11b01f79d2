// complex.cpp: Ops that show the parts of complex numbers: real and imag, both views.
#include <string>
#include <utility>

#include <thalweg/errors.h>
#include <thalweg/op.h>

#include "ops/builtin.h"
#include "ops/derivative.h"

namespace thalweg {
namespace {

/// Output 0 reads every second real number of input 0's bytes, from number `first` on.
void set_parts(InferContext& ctx, std::int64_t first) {
  const TensorMeta& input = ctx.input(0);
  TensorMeta& output = ctx.output();
  output.dtype = real_dtype(input.dtype);
  output.offset = 2 * input.offset + first;
  output.shape = input.shape;
  output.strides = input.strides;
  for (std::int64_t& stride : output.strides) stride *= 2;
}

void infer_real(InferContext& ctx) {
  const TensorMeta& input = ctx.input(0);
  if (is_complex(input.dtype)) return set_parts(ctx, 0);
  const Device device = ctx.output().device;
  ctx.output() = input;
  ctx.output().device = device;
}

void infer_imag(InferContext& ctx) {
  if (is_complex(ctx.input(0).dtype)) return set_parts(ctx, 1);
  throw DTypeError("imag: " + std::string(name(ctx.input(0).dtype)) +
                   " has no imaginary part to share; it is zero everywhere");
}

Op view_of_part(const char* name, void (*infer)(InferContext&), const char* doc) {
  Op op;
  op.name = name;
  op.inputs = {"x"};
  op.infer = infer;
  op.doc = doc;
  op.kind = OpKind::view;
  op.ns_per_element = 0;
  set_manipulation_derivative(op);
  return op;
}

}  // namespace

void register_complex(OpRegistry& registry) {
  registry.add(view_of_part("real", infer_real,
                            "The real part of x; of a real x, x itself.\n\nShares x's bytes. The result has "
                            "the precision of x.\n\nArray API standard, elementwise functions."));
  registry.add(view_of_part("imag", infer_imag,
                            "The imaginary part of a complex x.\n\nShares x's bytes. The result has the "
                            "precision of x.\n\nArray API standard, elementwise functions."));
}

}  // namespace thalweg
