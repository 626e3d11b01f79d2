// dtype.cpp: names of dtypes and the promotion table of the array API standard and NumPy.
#include <string>

#include <thalweg/dtype.h>
#include <thalweg/errors.h>

#include "core/close_matches.h"

namespace thalweg {
namespace {

constexpr std::string_view kNames[kDTypeCount] = {
    "bool",   "int8",    "int16",   "int32",     "int64",      "uint8",   "uint16",  "uint32",
    "uint64", "float32", "float64", "complex64", "complex128", "float16", "bfloat16"};

// Promotion of distinct kinds below; within one kind the larger wins, which the order of the enumerators
// gives but for the half-precision dtypes.
DType promote_floating(DType a, DType b) noexcept {
  if (is_half(a)) return is_half(b) ? DType::float32 : b;
  return is_half(b) || a > b ? a : b;
}

DType promote_integers(DType signed_one, DType unsigned_one) noexcept {
  constexpr DType wider[] = {DType::int16, DType::int32, DType::int64, DType::float64};
  DType needed = wider[static_cast<int>(unsigned_one) - static_cast<int>(DType::uint8)];
  return needed > signed_one ? needed : signed_one;
}

DType promote_with_floating(DType integer, DType floating) noexcept {
  return item_size(integer) <= 2 || is_half(floating) ? floating : DType::float64;
}

DType promote_with_complex(DType real, DType complex) noexcept {
  const DType parts = is_floating(real) ? real : promote_with_floating(real, DType::float32);
  return complex_dtype(parts) > complex ? complex_dtype(parts) : complex;
}

}  // namespace

std::string_view name(DType dtype) noexcept { return kNames[static_cast<int>(dtype)]; }

DType parse_dtype(std::string_view text) {
  for (int i = 0; i < kDTypeCount; ++i) {
    if (kNames[i] == text) return static_cast<DType>(i);
  }
  std::string known;
  for (std::string_view each : kNames) known.append(known.empty() ? "" : ", ").append(each);
  throw DTypeError("dtype '" + std::string(text) + "' is not known" + did_you_mean(text, kNames) +
                   "; the dtypes are " + known);
}

bool can_promote(DType a, DType b) noexcept {
  if (a == b) return true;
  if (a == DType::bool_ || b == DType::bool_) return false;
  bool a_is_uint64 = a == DType::uint64 && kind(b) == DTypeKind::signed_integer;
  bool b_is_uint64 = b == DType::uint64 && kind(a) == DTypeKind::signed_integer;
  return !a_is_uint64 && !b_is_uint64;
}

DType promote(DType a, DType b) noexcept {
  if (a == b || b == DType::bool_) return a;
  if (a == DType::bool_) return b;
  if (is_floating(a) && is_floating(b)) return promote_floating(a, b);
  if (kind(a) == kind(b)) return a > b ? a : b;
  if (is_complex(a)) return promote_with_complex(b, a);
  if (is_complex(b)) return promote_with_complex(a, b);
  if (is_floating(a)) return promote_with_floating(b, a);
  if (is_floating(b)) return promote_with_floating(a, b);
  return kind(a) == DTypeKind::signed_integer ? promote_integers(a, b) : promote_integers(b, a);
}

}  // namespace thalweg
