// sort_key.h: unsigned integers that are ordered as the elements they stand for.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace thalweg::cpu {

/// How elements of `T` become keys and back. NaNs share the largest key, in descending order too, and -0.0
/// has that of 0.0; `decode` gives 0.0 and one NaN for them.
template <class T>
struct SortKey {
  using Key = std::make_unsigned_t<T>;
  static constexpr Key kFlip = std::is_signed_v<T> ? static_cast<Key>(Key{1} << (8 * sizeof(T) - 1)) : Key{0};

  static Key ascending(T x) noexcept { return static_cast<Key>(static_cast<Key>(x) ^ kFlip); }
  static T decode_ascending(Key key) noexcept { return static_cast<T>(static_cast<Key>(key ^ kFlip)); }
};

template <>
struct SortKey<bool> {
  using Key = std::uint8_t;
  static Key ascending(bool x) noexcept { return x; }
  static bool decode_ascending(Key key) noexcept { return key != 0; }
};

template <class T>
struct FloatingSortKey {
  using Key = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  static constexpr Key kSign = Key{1} << (8 * sizeof(T) - 1);

  /// Larger numbers have larger bits already; those of negative numbers count the other way.
  static Key ascending(T x) noexcept {
    const Key bits = std::bit_cast<Key>(x == T(0) ? T(0) : x);
    return (bits & kSign) != 0 ? ~bits : bits | kSign;
  }
  static T decode_ascending(Key key) noexcept {
    return std::bit_cast<T>((key & kSign) != 0 ? key ^ kSign : ~key);
  }
};
template <>
struct SortKey<float> : FloatingSortKey<float> {};
template <>
struct SortKey<double> : FloatingSortKey<double> {};

template <class T, bool descending>
typename SortKey<T>::Key encode_key(T x) noexcept {
  using Key = typename SortKey<T>::Key;
  if constexpr (std::is_floating_point_v<T>) {
    // No number has this key in either direction: it would be a NaN's.
    if (x != x) return static_cast<Key>(~Key{0});
  }
  const Key key = SortKey<T>::ascending(x);
  return descending ? static_cast<Key>(~key) : key;
}

template <class T, bool descending>
T decode_key(typename SortKey<T>::Key key) noexcept {
  using Key = typename SortKey<T>::Key;
  if constexpr (std::is_floating_point_v<T>) {
    if (key == static_cast<Key>(~Key{0})) return std::numeric_limits<T>::quiet_NaN();
  }
  return SortKey<T>::decode_ascending(descending ? static_cast<Key>(~key) : key);
}

}  // namespace thalweg::cpu
