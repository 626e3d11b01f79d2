// attributes_test.cpp: attribute values as Python writes them, and devices.
#include <complex>
#include <limits>

#include <gtest/gtest.h>

#include <thalweg/attributes.h>
#include <thalweg/errors.h>

namespace thalweg {
namespace {

TEST(Attributes, PrintAsPython) {
  EXPECT_EQ(to_string(AttrValue{}), "None");
  EXPECT_EQ(to_string(AttrValue{true}), "True");
  EXPECT_EQ(to_string(AttrValue{std::int64_t{-3}}), "-3");
  EXPECT_EQ(to_string(AttrValue{DType::bool_}), "bool");
  EXPECT_EQ(to_string(AttrValue{Device{DeviceType::cuda, 1}}), "'cuda:1'");
  EXPECT_EQ(to_string(AttrValue{Dims{0, 1}}), "(0, 1)");
  EXPECT_EQ(to_string(AttrValue{std::string("it's")}), "'it\\'s'");
}

TEST(Attributes, PrintFloatsAsPythonsRepr) {
  EXPECT_EQ(to_string(AttrValue{1.0}), "1.0");
  EXPECT_EQ(to_string(AttrValue{0.1}), "0.1");
  EXPECT_EQ(to_string(AttrValue{-0.0}), "-0.0");
  EXPECT_EQ(to_string(AttrValue{1e15}), "1000000000000000.0");
  EXPECT_EQ(to_string(AttrValue{1e16}), "1e+16");
  EXPECT_EQ(to_string(AttrValue{0.0001}), "0.0001");
  EXPECT_EQ(to_string(AttrValue{0.00001}), "1e-05");
  EXPECT_EQ(to_string(AttrValue{std::numeric_limits<double>::infinity()}), "inf");
  EXPECT_EQ(to_string(AttrValue{-std::numeric_limits<double>::infinity()}), "-inf");
  EXPECT_EQ(to_string(AttrValue{std::numeric_limits<double>::quiet_NaN()}), "nan");
}

TEST(Attributes, PrintScalarsByKind) {
  EXPECT_EQ(to_string(AttrValue{Scalar(false)}), "False");
  EXPECT_EQ(to_string(AttrValue{Scalar(7)}), "7");
  EXPECT_EQ(to_string(AttrValue{Scalar(UINT64_MAX)}), "18446744073709551615");
  EXPECT_EQ(to_string(AttrValue{Scalar(2.0)}), "2.0");
}

TEST(Attributes, PrintComplexNumbersAsPythonsRepr) {
  const auto text = [](double real, double imag) {
    return to_string(AttrValue{Scalar(std::complex<double>(real, imag))});
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(text(0, 1), "1j");
  EXPECT_EQ(text(1, -2.5), "(1-2.5j)");
  EXPECT_EQ(text(-0.0, 2), "(-0+2j)");
  EXPECT_EQ(text(1e16, 0), "(1e+16+0j)");
  EXPECT_EQ(text(nan, -inf), "(nan-infj)");
}

TEST(Attributes, HasIsFalseForNoneAndBeyondTheEnd) {
  Attributes attributes{AttrValue{}, AttrValue{std::int64_t{4}}};
  EXPECT_FALSE(attributes.has(0));
  EXPECT_TRUE(attributes.has(1));
  EXPECT_FALSE(attributes.has(2));
  EXPECT_EQ(attributes.get_or<std::int64_t>(0, 9), 9);
  EXPECT_EQ(attributes.get_or<std::int64_t>(1, 9), 4);
}

TEST(Device, RoundTrips) {
  for (const char* text : {"cpu:0", "cpu:3", "cuda:0", "cuda:12"})
    EXPECT_EQ(to_string(parse_device(text)), text);
  EXPECT_EQ(parse_device("cpu"), (Device{DeviceType::cpu, 0}));
  EXPECT_EQ(parse_device("cuda"), (Device{DeviceType::cuda, 0}));
}

TEST(Device, ParseRejectsWhatItDoesNotKnow) {
  for (const char* text : {"", "gpu", "cpu:", "cpu:x", "cpu:-1", "cpu:1x", "cuda:99999", ":0", "CPU"}) {
    EXPECT_THROW(parse_device(text), DeviceError) << text;
  }
}

}  // namespace
}  // namespace thalweg
