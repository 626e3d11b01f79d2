// dtype_test.cpp: names, promotion and scalars, against the tables of the array API standard and NumPy.
#include <complex>
#include <string>

#include <gtest/gtest.h>

#include <thalweg/dtype.h>
#include <thalweg/errors.h>
#include <thalweg/scalar.h>

namespace thalweg {
namespace {

// numpy.promote_types of row and column, in the order of the enumerators; the array API's tables are part of
// it. Half-precision dtypes differ from NumPy's: any integer keeps them, as in PyTorch.
constexpr const char* kPromotion[kDTypeCount] = {
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64 complex128 float16 "
    "bfloat16",
    "int8 int8 int16 int32 int64 int16 int32 int64 float64 float32 float64 complex64 complex128 float16 "
    "bfloat16",
    "int16 int16 int16 int32 int64 int16 int32 int64 float64 float32 float64 complex64 complex128 "
    "float16 bfloat16",
    "int32 int32 int32 int32 int64 int32 int32 int64 float64 float64 float64 complex128 complex128 "
    "float16 bfloat16",
    "int64 int64 int64 int64 int64 int64 int64 int64 float64 float64 float64 complex128 complex128 "
    "float16 bfloat16",
    "uint8 int16 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64 complex128 "
    "float16 bfloat16",
    "uint16 int32 int32 int32 int64 uint16 uint16 uint32 uint64 float32 float64 complex64 complex128 "
    "float16 bfloat16",
    "uint32 int64 int64 int64 int64 uint32 uint32 uint32 uint64 float64 float64 complex128 complex128 "
    "float16 bfloat16",
    "uint64 float64 float64 float64 float64 uint64 uint64 uint64 uint64 float64 float64 complex128 "
    "complex128 float16 bfloat16",
    "float32 float32 float32 float64 float64 float32 float32 float64 float64 float32 float64 complex64 "
    "complex128 float32 float32",
    "float64 float64 float64 float64 float64 float64 float64 float64 float64 float64 float64 complex128 "
    "complex128 float64 float64",
    "complex64 complex64 complex64 complex128 complex128 complex64 complex64 complex128 complex128 "
    "complex64 complex128 complex64 complex128 complex64 complex64",
    "complex128 complex128 complex128 complex128 complex128 complex128 complex128 complex128 complex128 "
    "complex128 complex128 complex128 complex128 complex128 complex128",
    "float16 float16 float16 float16 float16 float16 float16 float16 float16 float32 float64 complex64 "
    "complex128 float16 float32",
    "bfloat16 bfloat16 bfloat16 bfloat16 bfloat16 bfloat16 bfloat16 bfloat16 bfloat16 float32 float64 "
    "complex64 complex128 float32 bfloat16",
};

DType dtype_at(int index) { return static_cast<DType>(index); }

std::string word(std::string_view text, int index) {
  for (; index > 0; --index) text.remove_prefix(text.find(' ') + 1);
  return std::string(text.substr(0, text.find(' ')));
}

TEST(DType, PromotionTable) {
  for (int a = 0; a < kDTypeCount; ++a) {
    for (int b = 0; b < kDTypeCount; ++b) {
      EXPECT_EQ(name(promote(dtype_at(a), dtype_at(b))), word(kPromotion[a], b))
          << name(dtype_at(a)) << " with " << name(dtype_at(b));
    }
  }
}

TEST(DType, CanPromoteIsFalseWhereTheStandardIsSilent) {
  EXPECT_FALSE(can_promote(DType::bool_, DType::int8));
  EXPECT_FALSE(can_promote(DType::float32, DType::bool_));
  EXPECT_FALSE(can_promote(DType::uint64, DType::int8));
  EXPECT_FALSE(can_promote(DType::int64, DType::uint64));
  EXPECT_TRUE(can_promote(DType::bool_, DType::bool_));
  EXPECT_TRUE(can_promote(DType::uint64, DType::uint8));
  EXPECT_TRUE(can_promote(DType::uint32, DType::int64));
  EXPECT_TRUE(can_promote(DType::int32, DType::float32));
}

TEST(DType, NamesRoundTrip) {
  for (int i = 0; i < kDTypeCount; ++i) EXPECT_EQ(parse_dtype(name(dtype_at(i))), dtype_at(i));
}

TEST(DType, ParseNamesTheKnownOnes) {
  try {
    parse_dtype("flaot32");
    FAIL() << "no error";
  } catch (const DTypeError& error) {
    std::string text = error.what();
    EXPECT_NE(text.find("did you mean 'float32'"), std::string::npos) << text;
    EXPECT_NE(text.find("bool, int8, "), std::string::npos) << text;
  }
}

TEST(DType, ComplexDTypesAndTheirParts) {
  EXPECT_EQ(real_dtype(DType::complex64), DType::float32);
  EXPECT_EQ(real_dtype(DType::complex128), DType::float64);
  EXPECT_EQ(real_dtype(DType::int8), DType::int8);
  EXPECT_EQ(complex_dtype(DType::float32), DType::complex64);
  EXPECT_EQ(complex_dtype(DType::int8), DType::complex128);
  EXPECT_TRUE(is_complex(DType::complex64) && !is_floating(DType::complex64) && is_inexact(DType::complex64));
  EXPECT_TRUE(is_inexact(DType::float32) && !is_complex(DType::float64) && !is_inexact(DType::int64));
}

TEST(DType, HalvesAreRealAndFloating) {
  for (DType dtype : {DType::float16, DType::bfloat16}) {
    EXPECT_TRUE(is_half(dtype) && is_floating(dtype) && is_inexact(dtype) && is_numeric(dtype));
    EXPECT_FALSE(is_complex(dtype) || is_integer(dtype));
    EXPECT_EQ(item_size(dtype), 2);
    EXPECT_EQ(real_dtype(dtype), dtype);
    EXPECT_EQ(complex_dtype(dtype), DType::complex64);
    EXPECT_TRUE(can_promote(dtype, DType::int64));
    EXPECT_EQ(promote_scalar(dtype, Scalar(1.5)), dtype);
    EXPECT_EQ(promote_scalar(dtype, Scalar(3)), dtype);
  }
  EXPECT_FALSE(is_half(DType::complex128));
}

TEST(DType, ItemSizesAreThoseOfTheCppTypes) {
  for (int i = 0; i < kDTypeCount; ++i) {
    if (is_half(dtype_at(i))) continue;
    visit_dtype(dtype_at(i), [&]<class T>() { EXPECT_EQ(item_size(dtype_at(i)), sizeof(T)); });
  }
}

TEST(Scalar, TakesTheTensorsDTypeWithinItsKind) {
  EXPECT_EQ(promote_scalar(DType::float32, Scalar(1.5)), DType::float32);
  EXPECT_EQ(promote_scalar(DType::float32, Scalar(2)), DType::float32);
  EXPECT_EQ(promote_scalar(DType::int8, Scalar(2)), DType::int8);
  EXPECT_EQ(promote_scalar(DType::uint8, Scalar(true)), DType::uint8);
  EXPECT_EQ(promote_scalar(DType::bool_, Scalar(true)), DType::bool_);
}

TEST(Scalar, OfHigherKindDecides) {
  EXPECT_EQ(promote_scalar(DType::int8, Scalar(1.5)), DType::float64);
  EXPECT_EQ(promote_scalar(DType::bool_, Scalar(1.5)), DType::float64);
  EXPECT_EQ(promote_scalar(DType::bool_, Scalar(3)), DType::int64);
  const Scalar imaginary(std::complex<double>(0, 1));
  EXPECT_EQ(promote_scalar(DType::float32, imaginary), DType::complex64);
  EXPECT_EQ(promote_scalar(DType::float64, imaginary), DType::complex128);
  EXPECT_EQ(promote_scalar(DType::int8, imaginary), DType::complex128);
  EXPECT_EQ(promote_scalar(DType::complex64, imaginary), DType::complex64);
  EXPECT_EQ(promote_scalar(DType::complex64, Scalar(1.5)), DType::complex64);
  EXPECT_EQ(promote_scalar(DType::complex64, Scalar(2)), DType::complex64);
}

TEST(Scalar, DefaultDType) {
  EXPECT_EQ(default_dtype(Scalar(true)), DType::bool_);
  EXPECT_EQ(default_dtype(Scalar(-1)), DType::int64);
  EXPECT_EQ(default_dtype(Scalar(std::uint64_t{5})), DType::int64);
  EXPECT_EQ(default_dtype(Scalar(UINT64_MAX)), DType::uint64);
  EXPECT_EQ(default_dtype(Scalar(0.5)), DType::float64);
  EXPECT_EQ(default_dtype(Scalar(std::complex<double>(1, 2))), DType::complex128);
}

TEST(Scalar, ConvertsComplexNumbers) {
  const Scalar value(std::complex<double>(1.5, -2));
  EXPECT_EQ(value.to<std::complex<float>>(), std::complex<float>(1.5f, -2));
  EXPECT_EQ(value.to<double>(), 1.5);
  EXPECT_TRUE(Scalar(std::complex<double>(0, 2)).to<bool>());
  EXPECT_FALSE(Scalar(std::complex<double>(0, -0.0)).to<bool>());
  EXPECT_EQ(Scalar(3).to<std::complex<double>>(), std::complex<double>(3, 0));
  EXPECT_EQ(value, Scalar(std::complex<double>(1.5, -2)));
  EXPECT_FALSE(value == Scalar(std::complex<double>(1.5, 2)));
  EXPECT_FALSE(value == Scalar(1.5));
}

}  // namespace
}  // namespace thalweg
