// errors_test.cpp: error types, and the Op and kernel registries' complaints.
#include <string>

#include <gtest/gtest.h>

#include <thalweg/errors.h>
#include <thalweg/kernel.h>
#include <thalweg/op.h>

namespace thalweg {
namespace {

template <class Fn>
std::string value_error(Fn fn) {
  try {
    fn();
  } catch (const ValueError& error) {
    return error.what();
  }
  return "no ValueError";
}

Op op_named(std::string name) {
  Op op;
  op.name = std::move(name);
  op.infer = [](InferContext&) {};
  return op;
}

TEST(Errors, RethrowWithKeepsTheType) {
  EXPECT_THROW(
      {
        try {
          throw IndexError("take: index 9");
        } catch (const Error& error) {
          error.rethrow_with("a.py:3: ");
        }
      },
      IndexError);
  try {
    ShapeError("add: no").rethrow_with("a.py:3: ");
  } catch (const ShapeError& error) {
    EXPECT_STREQ(error.what(), "a.py:3: add: no");
  }
}

TEST(OpRegistry, FindNamesCloseMatches) {
  OpRegistry ops;
  for (const char* name : {"logical_and", "logical_or", "exp", "expm1"}) ops.add(op_named(name));
  EXPECT_EQ(value_error([&] { ops.find("logical_an"); }),
            "operator 'logical_an' is not known; did you mean 'logical_and' or 'logical_or'?");
  EXPECT_EQ(value_error([&] { ops.find("convolve"); }), "operator 'convolve' is not known");
}

TEST(OpRegistry, NumbersOpsAndRejectsDuplicates) {
  OpRegistry ops;
  const Op& first = ops.add(op_named("first"));
  const Op& second = ops.add(op_named("second"));
  EXPECT_EQ(first.id, 0u);
  EXPECT_EQ(second.id, 1u);
  EXPECT_EQ(&ops.find("first"), &first);
  EXPECT_EQ(value_error([&] { ops.add(op_named("first")); }),
            "register operator 'first': the name is taken; choose another");
  EXPECT_NE(value_error([&] { ops.add(Op{}); }), "no ValueError");
}

TEST(KernelRegistry, BindsByName) {
  OpRegistry ops;
  ops.add(op_named("without"));
  const Op& with = ops.add(op_named("with"));
  KernelRegistry kernels;
  kernels.add("with", DeviceType::cpu, [](const KernelContext&) {});
  kernels.bind(ops);
  EXPECT_NE(kernels.find(with, DeviceType::cpu), nullptr);
  EXPECT_EQ(kernels.find(with, DeviceType::cuda), nullptr);
  EXPECT_EQ(kernels.find(ops.find("without"), DeviceType::cpu), nullptr);
}

TEST(KernelRegistry, RejectsDuplicatesAndUnknownOps) {
  OpRegistry ops;
  KernelRegistry kernels;
  kernels.add("ghost", DeviceType::cpu, [](const KernelContext&) {});
  EXPECT_EQ(value_error([&] { kernels.add("ghost", DeviceType::cpu, [](const KernelContext&) {}); }),
            "register kernel of 'ghost' on cpu: there is one already");
  EXPECT_EQ(value_error([&] { kernels.bind(ops); }),
            "register kernel of 'ghost' on cpu: there is no such operator");
}

}  // namespace
}  // namespace thalweg
