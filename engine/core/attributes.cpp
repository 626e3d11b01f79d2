// attributes.cpp: attribute values as Python would write them.
#include <charconv>
#include <cmath>
#include <complex>

#include <thalweg/attributes.h>

namespace thalweg {
namespace {

// Python's digits of a float: the fewest that read back, fixed between 1e-4 and 1e16.
std::string digits_of(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  double size = std::fabs(value);
  bool fixed = size == 0 || (size >= 1e-4 && size < 1e16);
  char buffer[64];
  auto format = fixed ? std::chars_format::fixed : std::chars_format::scientific;
  return {buffer, std::to_chars(buffer, buffer + sizeof buffer, value, format).ptr};
}

// Python's repr: always with a point or exponent.
std::string float_repr(double value) {
  std::string text = digits_of(value);
  return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}

// Python's repr: without the real part if that is 0, else in parentheses.
std::string complex_repr(std::complex<double> value) {
  const std::string imaginary = digits_of(value.imag());
  std::string text;
  if (value.real() == 0 && !std::signbit(value.real())) return text.append(imaginary).append("j");
  text.append("(").append(digits_of(value.real()));
  if (imaginary.front() != '-') text.append("+");
  return text.append(imaginary).append("j)");
}

std::string scalar_repr(const Scalar& value) {
  switch (value.kind()) {
    case DTypeKind::boolean: return value.to<bool>() ? "True" : "False";
    case DTypeKind::unsigned_integer: return std::to_string(value.to<std::uint64_t>());
    case DTypeKind::signed_integer: return std::to_string(value.to<std::int64_t>());
    case DTypeKind::floating: return float_repr(value.to<double>());
    case DTypeKind::complex_floating: break;
  }
  return complex_repr(value.to<std::complex<double>>());
}

std::string quoted(std::string_view text) {
  std::string result = "'";
  for (char letter : text) {
    if (letter == '\'' || letter == '\\') result += '\\';
    result += letter;
  }
  return result + "'";
}

struct Printer {
  std::string operator()(std::monostate) const { return "None"; }
  std::string operator()(bool value) const { return value ? "True" : "False"; }
  std::string operator()(std::int64_t value) const { return std::to_string(value); }
  std::string operator()(double value) const { return float_repr(value); }
  std::string operator()(DType value) const { return std::string(name(value)); }
  std::string operator()(Device value) const { return quoted(to_string(value)); }
  std::string operator()(const Scalar& value) const { return scalar_repr(value); }
  std::string operator()(const Dims& value) const { return to_string(value); }
  std::string operator()(const std::string& value) const { return quoted(value); }
};

}  // namespace

std::string to_string(const AttrValue& value) { return std::visit(Printer{}, value); }

}  // namespace thalweg
