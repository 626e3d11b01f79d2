// elementwise.cpp: Ops that compute each element from the elements at its place: arithmetic, comparison,
// logic, bits, mathematical functions, where, clip.
#include <string>
#include <string_view>

#include <thalweg/errors.h>
#include <thalweg/op.h>

#include "ops/builtin.h"
#include "ops/derivative.h"

namespace thalweg {
namespace {

/// Which dtypes a function computes in, after promotion.
enum class Domain {
  any,           ///< all, bool with its own meaning
  numeric,       ///< all but bool, which is an error
  bool_as_int8,  ///< all, bool as int8
  integral,      ///< integers and bool
  shift,         ///< integers, bool as int8
  floating,      ///< floating; integers and bool as float64
};

/// Whether a function computes in complex dtypes too, or raises.
enum class Complex { no, yes };

enum class Result { same, real, boolean };

/// One function: what its record is made of.
struct Row {
  const char* name;
  Domain domain;
  Complex complex;
  Result result;
  float ns_per_element;
  const char* summary;
  const char* details;
};

constexpr Row kUnary[] = {
    {"negative", Domain::numeric, Complex::yes, Result::same, 0.3f, "-x.",
     "Integers wrap; unsigned ones too. bool raises DTypeError."},
    {"positive", Domain::numeric, Complex::yes, Result::same, 0.3f, "+x: the same values.",
     "bool raises DTypeError."},
    {"abs", Domain::any, Complex::yes, Result::real, 0.3f, "The absolute value.",
     "The smallest signed integer stays as it is. Complex numbers give their real size."},
    {"sign", Domain::numeric, Complex::yes, Result::same, 0.3f, "-1, 0 or 1 by the sign of x.",
     "NaN gives NaN. Complex: x / abs(x), and 0 for 0. bool raises DTypeError."},
    {"conj", Domain::numeric, Complex::yes, Result::same, 0.3f, "The complex conjugate.",
     "Real numbers stay as they are. bool raises DTypeError."},
    {"square", Domain::bool_as_int8, Complex::yes, Result::same, 0.3f, "x * x.", "Integers wrap."},
    {"reciprocal", Domain::bool_as_int8, Complex::yes, Result::same, 0.5f, "1 / x.",
     "Integers round towards zero, as in NumPy; use divide for a floating result."},
    {"logical_not", Domain::any, Complex::yes, Result::boolean, 0.2f, "True where x is zero or False.", ""},
    {"bitwise_invert", Domain::integral, Complex::no, Result::same, 0.3f,
     "The complement of the bits; for bool logical not.", ""},
    {"isnan", Domain::any, Complex::yes, Result::boolean, 0.2f, "True where x is NaN.",
     "Complex: where either part is."},
    {"isinf", Domain::any, Complex::yes, Result::boolean, 0.2f, "True where x is infinite.",
     "Complex: where either part is."},
    {"isfinite", Domain::any, Complex::yes, Result::boolean, 0.2f,
     "True where x is neither infinite nor NaN.", "Complex: where both parts are finite."},
    {"signbit", Domain::any, Complex::no, Result::boolean, 0.2f,
     "True where the sign of x is minus, -0.0 included.", ""},
    {"floor", Domain::any, Complex::no, Result::same, 0.3f, "The largest integer not above x.",
     "Integers and bool stay as they are."},
    {"ceil", Domain::any, Complex::no, Result::same, 0.3f, "The smallest integer not below x.",
     "Integers and bool stay as they are."},
    {"trunc", Domain::any, Complex::no, Result::same, 0.3f, "x without its fraction.",
     "Integers and bool stay as they are."},
    {"round", Domain::any, Complex::yes, Result::same, 0.3f,
     "The nearest integer, the even one of two equally near.",
     "Integers and bool stay as they are. Complex: each part."},
    {"sqrt", Domain::floating, Complex::yes, Result::same, 0.6f, "The square root.",
     "Negative numbers give NaN, -0.0 gives -0.0."},
    {"exp", Domain::floating, Complex::yes, Result::same, 1.5f, "e to the power x.", ""},
    {"expm1", Domain::floating, Complex::yes, Result::same, 3.0f, "exp(x) - 1, accurate near 0.", ""},
    {"log", Domain::floating, Complex::yes, Result::same, 2.0f, "The natural logarithm.",
     "0 gives -inf, negative numbers give NaN."},
    {"log1p", Domain::floating, Complex::yes, Result::same, 2.5f, "log(1 + x), accurate near 0.",
     "-1 gives -inf, smaller numbers NaN."},
    {"log2", Domain::floating, Complex::yes, Result::same, 2.0f, "The logarithm to base 2.",
     "0 gives -inf, negative numbers give NaN."},
    {"log10", Domain::floating, Complex::yes, Result::same, 2.0f, "The logarithm to base 10.",
     "0 gives -inf, negative numbers give NaN."},
    {"sin", Domain::floating, Complex::yes, Result::same, 2.0f, "The sine of x radians.",
     "Infinities give NaN."},
    {"cos", Domain::floating, Complex::yes, Result::same, 2.0f, "The cosine of x radians.",
     "Infinities give NaN."},
    {"tan", Domain::floating, Complex::yes, Result::same, 3.0f, "The tangent of x radians.",
     "Infinities give NaN."},
    {"asin", Domain::floating, Complex::yes, Result::same, 2.0f, "The inverse sine, in [-pi/2, pi/2].",
     "NaN outside [-1, 1]."},
    {"acos", Domain::floating, Complex::yes, Result::same, 2.5f, "The inverse cosine, in [0, pi].",
     "NaN outside [-1, 1]."},
    {"atan", Domain::floating, Complex::yes, Result::same, 2.5f, "The inverse tangent, in [-pi/2, pi/2].",
     ""},
    {"sinh", Domain::floating, Complex::yes, Result::same, 3.5f, "The hyperbolic sine.", ""},
    {"cosh", Domain::floating, Complex::yes, Result::same, 3.0f, "The hyperbolic cosine.", ""},
    {"tanh", Domain::floating, Complex::yes, Result::same, 4.0f, "The hyperbolic tangent.", ""},
    {"asinh", Domain::floating, Complex::yes, Result::same, 6.0f, "The inverse hyperbolic sine.", ""},
    {"acosh", Domain::floating, Complex::yes, Result::same, 6.0f, "The inverse hyperbolic cosine.",
     "NaN below 1."},
    {"atanh", Domain::floating, Complex::yes, Result::same, 3.5f, "The inverse hyperbolic tangent.",
     "-1 and 1 give infinities, NaN beyond them."},
    {"erf", Domain::floating, Complex::no, Result::same, 6.0f,
     "The error function, 2 / sqrt(pi) times the integral of exp(-t * t) from 0 to x.", ""},
    {"erfc", Domain::floating, Complex::no, Result::same, 8.0f,
     "1 - erf(x), with its digits where erf(x) is near 1.", ""},
    {"sigmoid", Domain::floating, Complex::no, Result::same, 2.0f, "1 / (1 + exp(-x)).", "Without overflow."},
    {"silu", Domain::floating, Complex::no, Result::same, 2.0f, "x * sigmoid(x).",
     "Its limit, -0.0, at minus infinity."},
    {"gelu", Domain::floating, Complex::no, Result::same, 3.0f,
     "x times the probability that a standard normal variable is below x.",
     "Its limit, -0.0, at minus infinity."},
    {"relu", Domain::numeric, Complex::no, Result::same, 0.3f, "x where it is above 0, else 0.",
     "NaN stays."},
};

constexpr Row kBinary[] = {
    {"add", Domain::any, Complex::yes, Result::same, 0.3f, "x1 + x2.",
     "Integers wrap; two bools give logical or."},
    {"subtract", Domain::numeric, Complex::yes, Result::same, 0.3f, "x1 - x2.",
     "Integers wrap; two bools raise DTypeError."},
    {"multiply", Domain::any, Complex::yes, Result::same, 0.3f, "x1 * x2.",
     "Integers wrap; two bools give logical and."},
    {"divide", Domain::floating, Complex::yes, Result::same, 0.5f, "x1 / x2.",
     "Division by zero gives infinity or NaN."},
    {"floor_divide", Domain::bool_as_int8, Complex::no, Result::same, 1.0f,
     "x1 // x2: the quotient rounded towards minus infinity.",
     "An integer divided by 0 gives 0, the smallest integer by -1 wraps. With an infinity the quotient "
     "itself (array API standard; Python gives nan or -1)."},
    {"remainder", Domain::bool_as_int8, Complex::no, Result::same, 1.0f,
     "x1 % x2: the rest of floor_divide, with the sign of x2.", "An integer modulo 0 gives 0."},
    {"pow", Domain::bool_as_int8, Complex::yes, Result::same, 6.0f, "x1 to the power x2.",
     "Integers wrap. A negative integer exponent of an integer raises ValueError when the result is read."},
    {"minimum", Domain::any, Complex::no, Result::same, 0.3f, "The smaller of x1 and x2.",
     "NaN if either is NaN."},
    {"maximum", Domain::any, Complex::no, Result::same, 0.3f, "The larger of x1 and x2.",
     "NaN if either is NaN."},
    {"nextafter", Domain::floating, Complex::no, Result::same, 1.5f,
     "The next value after x1 on the way to x2.", "x2 where the two are equal, NaN if either is NaN."},
    {"copysign", Domain::floating, Complex::no, Result::same, 0.4f, "The size of x1 with the sign of x2.",
     ""},
    {"atan2", Domain::floating, Complex::no, Result::same, 4.0f,
     "The angle of the point (x2, x1), in [-pi, pi].", ""},
    {"hypot", Domain::floating, Complex::no, Result::same, 3.0f,
     "sqrt(x1 * x1 + x2 * x2) without overflow on the way.", ""},
    {"logaddexp", Domain::floating, Complex::no, Result::same, 5.0f,
     "log(exp(x1) + exp(x2)) without overflow on the way.", ""},
    {"logical_and", Domain::any, Complex::yes, Result::boolean, 0.2f, "True where neither is zero.", ""},
    {"logical_or", Domain::any, Complex::yes, Result::boolean, 0.2f, "True where one of them is not zero.",
     ""},
    {"logical_xor", Domain::any, Complex::yes, Result::boolean, 0.2f,
     "True where exactly one of them is not zero.", ""},
    {"bitwise_and", Domain::integral, Complex::no, Result::same, 0.3f,
     "The bits that both have; for bool logical and.", ""},
    {"bitwise_or", Domain::integral, Complex::no, Result::same, 0.3f,
     "The bits that either has; for bool logical or.", ""},
    {"bitwise_xor", Domain::integral, Complex::no, Result::same, 0.3f,
     "The bits that exactly one has; for bool logical xor.", ""},
    {"bitwise_left_shift", Domain::shift, Complex::no, Result::same, 0.4f, "x1 * 2**x2 by moving bits.",
     "Counts below 0 or not below the width give 0."},
    {"bitwise_right_shift", Domain::shift, Complex::no, Result::same, 0.4f, "x1 // 2**x2 by moving bits.",
     "Counts below 0 or not below the width give 0, or -1 for a negative x1."},
    // The gradient x1 of a function's result to that of its input, in one pass.
    {"relu_gradient", Domain::floating, Complex::no, Result::same, 0.3f, "0 where x2 is at most 0, else x1.",
     "x2 is relu's input or result."},
    {"tanh_gradient", Domain::floating, Complex::no, Result::same, 0.4f, "x1 * (1 - x2 * x2).",
     "x2 is tanh's result."},
    {"sigmoid_gradient", Domain::floating, Complex::no, Result::same, 0.4f, "x1 * x2 * (1 - x2).",
     "x2 is sigmoid's result."},
    {"silu_gradient", Domain::floating, Complex::no, Result::same, 2.5f,
     "x1 times the derivative of silu at x2.", ""},
    {"gelu_gradient", Domain::floating, Complex::no, Result::same, 3.5f,
     "x1 times the derivative of gelu at x2.", ""},
};

constexpr Row kCompare[] = {
    {"equal", Domain::any, Complex::yes, Result::boolean, 0.2f, "x1 == x2.", "NaN equals nothing."},
    {"not_equal", Domain::any, Complex::yes, Result::boolean, 0.2f, "x1 != x2.",
     "NaN differs from everything."},
    {"less", Domain::any, Complex::no, Result::boolean, 0.2f, "x1 < x2.", "False where either is NaN."},
    {"less_equal", Domain::any, Complex::no, Result::boolean, 0.2f, "x1 <= x2.",
     "False where either is NaN."},
    {"greater", Domain::any, Complex::no, Result::boolean, 0.2f, "x1 > x2.", "False where either is NaN."},
    {"greater_equal", Domain::any, Complex::no, Result::boolean, 0.2f, "x1 >= x2.",
     "False where either is NaN."},
};

[[noreturn]] void throw_bool(std::string_view op) {
  bool one_input = op != "subtract";
  throw DTypeError(std::string(op) + ": not defined for bool" + (one_input ? "" : " and bool") + "; use " +
                   (op == "negative" ? "logical_not"
                    : one_input      ? "astype"
                                     : "logical_xor") +
                   (op == "positive" || op == "sign" ? " to make it an integer" : ""));
}

[[noreturn]] void throw_complex(std::string_view op, DType dtype) {
  throw DTypeError(std::string(op) + ": not defined for " + std::string(name(dtype)) +
                   "; use abs(), real() or imag()");
}

DType compute_dtype(const Row& row, DType dtype) {
  if (row.complex == Complex::no && is_complex(dtype)) throw_complex(row.name, dtype);
  bool is_bool = dtype == DType::bool_;
  switch (row.domain) {
    case Domain::any: return dtype;
    case Domain::numeric:
      if (is_bool) throw_bool(row.name);
      return dtype;
    case Domain::bool_as_int8: return is_bool ? DType::int8 : dtype;
    case Domain::floating: return is_inexact(dtype) ? dtype : DType::float64;
    case Domain::integral:
    case Domain::shift: break;
  }
  if (is_floating(dtype)) {
    throw DTypeError(std::string(row.name) + ": takes integers and bool, but would compute in " +
                     std::string(name(dtype)) + "; cast with astype first");
  }
  return is_bool && row.domain == Domain::shift ? DType::int8 : dtype;
}

DType result_dtype(const Row& row, DType computed) {
  if (row.result == Result::same) return computed;
  return row.result == Result::boolean ? DType::bool_ : real_dtype(computed);
}

void infer_unary(InferContext& context, const Row& row) {
  const TensorMeta& x = context.input(0);
  DType dtype = compute_dtype(row, x.dtype);
  context.cast_input(0, dtype);
  context.set_contiguous(0, x.shape, result_dtype(row, dtype));
}

void set_broadcast(InferContext& context, DType dtype) {
  const Shape& a = context.input(0).shape;
  const Shape& b = context.input(1).shape;
  if (a == b) return context.set_contiguous(0, a, dtype);
  context.set_contiguous(0, broadcast_shapes(context.name(), a, b), dtype);
}

void infer_binary(InferContext& context, const Row& row) {
  DType dtype = compute_dtype(row, promote(context.input(0).dtype, context.input(1).dtype));
  context.cast_input(0, dtype);
  context.cast_input(1, dtype);
  set_broadcast(context, result_dtype(row, dtype));
}

void infer_compare(InferContext& context, const Row& row) {
  DType a = context.input(0).dtype;
  DType b = context.input(1).dtype;
  DType dtype = compute_dtype(row, promote(a, b));
  // float64 does not hold all 64-bit integers: their comparison has kernels of its own.
  bool mixed = dtype == DType::float64 && !is_floating(a) && !is_floating(b);
  context.cast_input(0, !mixed ? dtype : a == DType::uint64 ? a : DType::int64);
  context.cast_input(1, !mixed ? dtype : b == DType::uint64 ? b : DType::int64);
  set_broadcast(context, DType::bool_);
}

void set_broadcast_of_three(InferContext& context, DType dtype) {
  Shape shape = broadcast_shapes(context.name(), context.input(0).shape, context.input(1).shape);
  context.set_contiguous(0, broadcast_shapes(context.name(), shape, context.input(2).shape), dtype);
}

void infer_where(InferContext& context) {
  DType dtype = promote(context.input(1).dtype, context.input(2).dtype);
  context.cast_input(0, DType::bool_);
  context.cast_input(1, dtype);
  context.cast_input(2, dtype);
  set_broadcast_of_three(context, dtype);
}

void infer_clip(InferContext& context) {
  DType dtype = promote(promote(context.input(0).dtype, context.input(1).dtype), context.input(2).dtype);
  if (is_complex(dtype)) throw_complex(context.name(), dtype);
  for (std::size_t i = 0; i < 3; ++i) context.cast_input(i, dtype);
  set_broadcast_of_three(context, dtype);
}

std::string domain_doc(Domain domain) {
  switch (domain) {
    case Domain::bool_as_int8: return " bool is computed as int8.";
    case Domain::integral: return " Takes integers and bool, else raises DTypeError.";
    case Domain::shift: return " Takes integers, and bool as int8, else raises DTypeError.";
    case Domain::floating: return " Integers and bool are computed as float64.";
    default: return "";
  }
}

/// Where a function is defined: the error functions are C's, the others the standard's.
std::string source_of(const Row& row) {
  if (!std::string_view(row.name).starts_with("erf")) return "\n\nArray API standard, elementwise functions.";
  return "\n\nThe C standard (ISO/IEC 9899, 7.12.8); computed by SLEEF (Shibata and Petrogalli, SLEEF: a "
         "portable "
         "vectorized library of C standard mathematical functions, IEEE TPDS 31, 2020).";
}

std::string doc_of(const Row& row, bool unary) {
  std::string doc = std::string(row.summary) + "\n\n" + row.details;
  if (*row.details != '\0') doc += "\n";
  doc += unary ? "The result has the shape of x."
               : "The inputs broadcast, or the call raises ShapeError, and are promoted to a common dtype.";
  if (row.complex == Complex::no && row.domain != Domain::integral && row.domain != Domain::shift)
    doc += " Raises DTypeError for complex numbers.";
  doc += domain_doc(row.domain);
  if (row.result == Result::boolean) doc += " The result is bool.";
  return doc + source_of(row);
}

Op make_op(const Row& row, bool unary) {
  Op op;
  op.name = row.name;
  op.inputs = unary ? std::vector<std::string>{"x"} : std::vector<std::string>{"x1", "x2"};
  op.doc = doc_of(row, unary);
  op.alias_mask = kAliasAny;
  op.ns_per_element = row.ns_per_element;
  // Functions of complex numbers are the C library's, one at a time.
  if ((row.domain == Domain::floating && op.name != "divide") || op.name == "pow") op.complex_factor = 25.0f;
  set_elementwise_derivative(op);
  return op;
}

Op make_ternary(const char* name, std::vector<std::string> inputs, void (*infer)(InferContext&),
                const char* doc) {
  Op op;
  op.name = name;
  op.inputs = std::move(inputs);
  op.infer = infer;
  op.doc = doc;
  op.alias_mask = kAliasAny;
  op.ns_per_element = 0.5f;
  set_elementwise_derivative(op);
  return op;
}

}  // namespace

void register_elementwise(OpRegistry& registry) {
  for (const Row& row : kUnary) {
    Op op = make_op(row, true);
    op.infer = [&row](InferContext& context) { infer_unary(context, row); };
    registry.add(std::move(op));
  }
  for (const Row& row : kBinary) {
    Op op = make_op(row, false);
    op.infer = [&row](InferContext& context) { infer_binary(context, row); };
    registry.add(std::move(op));
  }
  for (const Row& row : kCompare) {
    Op op = make_op(row, false);
    op.infer = [&row](InferContext& context) { infer_compare(context, row); };
    registry.add(std::move(op));
  }
  registry.add(make_ternary(
      "where", {"condition", "x1", "x2"}, infer_where,
      "x1 where condition is true, x2 elsewhere.\n\nThe three broadcast; x1 and x2 are promoted to a "
      "common dtype; a condition that is not bool is true where it is not zero. Raises ShapeError where they "
      "do "
      "not broadcast.\n\nArray API standard, searching functions."));
  registry.add(make_ternary(
      "clip", {"x", "min", "max"}, infer_clip,
      "minimum(maximum(x, min), max): x kept between two bounds.\n\nThe three broadcast and are promoted "
      "to a common dtype. A NaN in any of them gives NaN; max wins where min is above it. For one bound "
      "alone "
      "use maximum or minimum. Raises ShapeError where they do not broadcast and DTypeError for complex "
      "numbers.\n\nArray API standard, elementwise functions."));
}

}  // namespace thalweg
