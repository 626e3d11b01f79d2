// dtype.h: element types, their kinds, sizes and the array API's promotion rules.
#pragma once

#include <complex>
#include <cstdint>
#include <string_view>

namespace thalweg {

/// Element type of a tensor. The enumerators are spelt as in the Python array API standard (`bool_` is
/// `bool`). The two half-precision dtypes at the end, IEEE 754 binary16 and bfloat16, are not in the
/// standard: tensors keep them, kernels compute in float32 (<thalweg/half.h>).
enum class DType : std::uint8_t {
  bool_,
  int8,
  int16,
  int32,
  int64,
  uint8,
  uint16,
  uint32,
  uint64,
  float32,
  float64,
  complex64,
  complex128,
  float16,
  bfloat16,
};

inline constexpr int kDTypeCount = 15;

/// What a dtype's values are; the order is the order of promotion of Python scalars.
enum class DTypeKind : std::uint8_t { boolean, unsigned_integer, signed_integer, floating, complex_floating };

/// Bytes of one element.
constexpr std::int64_t item_size(DType dtype) noexcept {
  constexpr std::int8_t sizes[kDTypeCount] = {1, 1, 2, 4, 8, 1, 2, 4, 8, 4, 8, 8, 16, 2, 2};
  return sizes[static_cast<int>(dtype)];
}

/// True for float16 and bfloat16.
constexpr bool is_half(DType dtype) noexcept { return dtype >= DType::float16; }

constexpr DTypeKind kind(DType dtype) noexcept {
  if (dtype == DType::bool_) return DTypeKind::boolean;
  if (dtype <= DType::int64) return DTypeKind::signed_integer;
  if (dtype <= DType::uint64) return DTypeKind::unsigned_integer;
  return dtype <= DType::float64 || is_half(dtype) ? DTypeKind::floating : DTypeKind::complex_floating;
}

/// True for the real floating dtypes only.
constexpr bool is_floating(DType dtype) noexcept { return kind(dtype) == DTypeKind::floating; }
constexpr bool is_complex(DType dtype) noexcept { return kind(dtype) == DTypeKind::complex_floating; }
/// True for real and complex floating dtypes: what roots, logarithms and means compute in.
constexpr bool is_inexact(DType dtype) noexcept { return kind(dtype) >= DTypeKind::floating; }
constexpr bool is_integer(DType dtype) noexcept {
  return kind(dtype) == DTypeKind::signed_integer || kind(dtype) == DTypeKind::unsigned_integer;
}
constexpr bool is_numeric(DType dtype) noexcept { return dtype != DType::bool_; }

/// The dtype of the parts of a complex dtype; other dtypes are their own.
constexpr DType real_dtype(DType dtype) noexcept {
  if (!is_complex(dtype)) return dtype;
  return dtype == DType::complex64 ? DType::float32 : DType::float64;
}

/// The complex dtype of the precision of `dtype`: complex64 for float32, complex64 and the half-precision
/// dtypes, else complex128.
constexpr DType complex_dtype(DType dtype) noexcept {
  const bool single = dtype == DType::float32 || dtype == DType::complex64 || is_half(dtype);
  return single ? DType::complex64 : DType::complex128;
}

/// The name used in Python, JSON and messages: "bool", "int8", …, "complex128", "float16", "bfloat16".
std::string_view name(DType dtype) noexcept;

/// The dtype called `text`; throws DTypeError naming the known ones.
DType parse_dtype(std::string_view text);

/// True where the array API standard (section "Type promotion rules") or NumPy's mixed-kind table defines a
/// result. bool with numbers and uint64 with signed integers have none in the standard: those return false.
bool can_promote(DType a, DType b) noexcept;

/// The result dtype of a binary operation on `a` and `b`. Integers with floating promote as in NumPy
/// (int8/int16/uint8/uint16 with float32 give float32, wider integers give float64); bool promotes to the
/// other operand's dtype; uint64 with a signed integer gives float64. A real dtype with a complex one gives
/// the complex dtype of the precision that it has with float32. float16 and bfloat16 keep their dtype beside
/// any integer, give float32 together, and the other dtype beside wider floating and complex ones.
DType promote(DType a, DType b) noexcept;

/// Calls `fn.template operator()<T>()` with the C++ type that holds `dtype`'s elements. For what has no
/// complex meaning: the caller has refused complex dtypes. Half-precision dtypes have no C++ type: callers
/// handle them before.
template <class Fn>
decltype(auto) visit_real_dtype(DType dtype, Fn&& fn) {
  switch (dtype) {
    case DType::bool_: return fn.template operator()<bool>();
    case DType::int8: return fn.template operator()<std::int8_t>();
    case DType::int16: return fn.template operator()<std::int16_t>();
    case DType::int32: return fn.template operator()<std::int32_t>();
    case DType::int64: return fn.template operator()<std::int64_t>();
    case DType::uint8: return fn.template operator()<std::uint8_t>();
    case DType::uint16: return fn.template operator()<std::uint16_t>();
    case DType::uint32: return fn.template operator()<std::uint32_t>();
    case DType::uint64: return fn.template operator()<std::uint64_t>();
    case DType::float32: return fn.template operator()<float>();
    default: break;
  }
  return fn.template operator()<double>();
}

/// As visit_real_dtype, of complex dtypes too: elements are std::complex<float> and std::complex<double>.
template <class Fn>
decltype(auto) visit_dtype(DType dtype, Fn&& fn) {
  if (dtype == DType::complex64) return fn.template operator()<std::complex<float>>();
  if (dtype == DType::complex128) return fn.template operator()<std::complex<double>>();
  return visit_real_dtype(dtype, fn);
}

/// Whether T is a std::complex.
template <class T>
inline constexpr bool kIsStdComplex = false;
template <class T>
inline constexpr bool kIsStdComplex<std::complex<T>> = true;

}  // namespace thalweg
