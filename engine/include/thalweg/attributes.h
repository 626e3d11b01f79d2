// attributes.h: the attribute values of one operator, in the order in which its Op declares them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <thalweg/device.h>
#include <thalweg/dtype.h>
#include <thalweg/scalar.h>
#include <thalweg/shape.h>

namespace thalweg {

/// One attribute's value; `monostate` is Python's None.
using AttrValue =
    std::variant<std::monostate, bool, std::int64_t, double, DType, Device, Scalar, Dims, std::string>;

/// Which alternatives an attribute takes. `axes` is None, an int or a tuple of ints and is kept as monostate
/// or Dims. `seed` is an unsigned 64-bit number kept as int64 bits.
enum class AttrKind : std::uint8_t { boolean, integer, floating, dtype, device, scalar, dims, axes, string };

/// Positional attribute values: index i belongs to `Op::attributes[i]`.
class Attributes {
 public:
  Attributes() = default;
  Attributes(std::initializer_list<AttrValue> values) : values_(values) {}
  explicit Attributes(std::vector<AttrValue> values) : values_(std::move(values)) {}

  std::size_t size() const noexcept { return values_.size(); }
  bool empty() const noexcept { return values_.empty(); }
  bool has(std::size_t i) const noexcept {
    return i < values_.size() && !std::holds_alternative<std::monostate>(values_[i]);
  }
  const AttrValue& operator[](std::size_t i) const noexcept { return values_[i]; }
  AttrValue& operator[](std::size_t i) noexcept { return values_[i]; }

  /// The value at `i` as `T`; the GraphConstructor has checked its type against the Op.
  template <class T>
  const T& get(std::size_t i) const {
    return std::get<T>(values_[i]);
  }
  template <class T>
  T get_or(std::size_t i, T fallback) const {
    return has(i) ? std::get<T>(values_[i]) : fallback;
  }
  std::vector<AttrValue>& values() noexcept { return values_; }

 private:
  std::vector<AttrValue> values_;
};

/// The value as Python would write it: `(0, 1)`, `True`, `float32`.
std::string to_string(const AttrValue& value);

}  // namespace thalweg
