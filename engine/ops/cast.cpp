// cast.cpp: Ops that keep the values: they change dtype, memory order or device, or look for NaN.
#include <string>
#include <utility>

#include <thalweg/errors.h>
#include <thalweg/op.h>

#include "ops/builtin.h"
#include "ops/derivative.h"

namespace thalweg {
namespace {

Op make_astype() {
  Op op;
  op.name = "astype";
  op.inputs = {"x"};
  op.attributes = {{.name = "dtype", .kind = AttrKind::dtype, .required = true}};
  op.infer = [](InferContext& context) {
    const DType from = context.input(0).dtype;
    const DType to = context.attributes().get<DType>(0);
    if (is_complex(from) && !is_complex(to) && to != DType::bool_) {
      throw DTypeError("astype: " + std::string(name(from)) + " does not become " + std::string(name(to)) +
                       "; take real(), imag() or abs() first");
    }
    context.set_contiguous(0, context.input(0).shape, to);
  };
  op.doc =
      "The values of x as another dtype, with NumPy's casts.\n\nAnything but zero becomes True. Floating "
      "values become "
      "integers towards zero; those out of range, infinite or NaN give the smallest int32 or int64, and "
      "narrower or "
      "unsigned integers its low bits. Integers wrap. Complex values become other complex dtypes and bool "
      "only."
      " Raises DTypeError for a real target.";
  op.alias_mask = kAliasAny;
  op.ns_per_element = 0.4f;
  set_manipulation_derivative(op);
  return op;
}

Op make_contiguous() {
  Op op;
  op.name = "contiguous";
  op.inputs = {"x"};
  op.infer = [](InferContext& context) {
    context.set_contiguous(0, context.input(0).shape, context.input(0).dtype);
  };
  op.doc = "A copy of x in C order.\n\nx may have any strides.";
  op.alias_mask = kAliasAny;
  op.ns_per_element = 0.4f;
  set_manipulation_derivative(op);
  return op;
}

Op make_to_device() {
  Op op;
  op.name = "to_device";
  op.inputs = {"x"};
  op.attributes = {{.name = "device", .kind = AttrKind::device, .required = true}};
  op.infer = [](InferContext& context) {
    context.set_contiguous(0, context.input(0).shape, context.input(0).dtype);
    context.output(0).device = context.attributes().get<Device>(0);
  };
  op.doc = "A copy of x on another device, in C order.\n\nx may have any strides.";
  op.kind = OpKind::copy;
  op.ns_per_element = 0.4f;
  set_manipulation_derivative(op);
  return op;
}

Op make_check_nan() {
  Op op;
  op.name = "check_nan";
  op.inputs = {"x"};
  op.attributes = {{.name = "function", .kind = AttrKind::string, .required = true},
                   {.name = "input", .kind = AttrKind::integer, .required = true}};
  op.infer = [](InferContext& context) {
    if (!is_inexact(context.input(0).dtype)) {
      throw DTypeError("check_nan: " + std::string(name(context.input(0).dtype)) +
                       " has no NaN, only floating and complex dtypes do");
    }
    context.require_contiguous(0);
    context.set_contiguous(0, context.input(0).shape, context.input(0).dtype);
  };
  op.doc =
      "x, unless an element is NaN: then it fails with ValueError, which names the backward function and the "
      "input whose gradient x is.\n\nWhat anomaly mode puts behind each node of backward. x: floating or "
      "complex.";
  op.alias_mask = kAliasAny;
  op.ns_per_element = 0.4f;
  set_manipulation_derivative(op);
  return op;
}

}  // namespace

void register_cast(OpRegistry& registry) {
  registry.add(make_astype());
  registry.add(make_contiguous());
  registry.add(make_to_device());
  registry.add(make_check_nan());
}

}  // namespace thalweg
