// sort_items.h: stable sorts of items by unsigned keys: on one thread, and in pieces that threads sort
// side by side and merge. Numbers of 16, 32, 64 and 128 bits are sorted by Highway's vectorised quicksort.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <type_traits>
#include <utility>

#include <hwy/contrib/sort/vqsort.h>

#include <thalweg/kernel.h>

#include "kernels/cpu/loop_nest.h"
#include "kernels/cpu/scratch.h"

namespace thalweg::cpu {

/// Fewer items than this are sorted by comparison: numbers, and other items.
inline constexpr std::int64_t kSortByComparison = 16;
inline constexpr std::int64_t kDistributeMinimum = 64;

/// From this many items on two bytes of their keys are looked at instead of one.
inline constexpr std::int64_t kTwoBytesMinimum = 4096;

/// Items of a long row that one thread moves at a time.
inline constexpr std::int64_t kSplitChunk = 16384;

/// A key and where it came from. Ordered by both, so that any sort is a stable one. The index comes first: on
/// a little-endian machine both are one number.
template <class Key, class Index>
struct KeyedIndex {
  Index index;
  Key key;

  friend bool operator<(const KeyedIndex& a, const KeyedIndex& b) noexcept {
    return a.key != b.key ? a.key < b.key : a.index < b.index;
  }
};

template <class Key>
Key key_of(Key key) noexcept {
  return key;
}
template <class Key, class Index>
Key key_of(const KeyedIndex<Key, Index>& item) noexcept {
  return item.key;
}

/// How often each value occurs; then where the next item with it goes.
using Counts = std::array<std::int64_t, 256>;

template <class Item>
auto key_range(const Item* items, std::int64_t count) noexcept {
  auto lowest = key_of(items[0]);
  auto highest = lowest;
  for (std::int64_t i = 1; i < count; ++i) {
    lowest = std::min(lowest, key_of(items[i]));
    highest = std::max(highest, key_of(items[i]));
  }
  return std::pair(lowest, highest);
}

/// Moves items to the places of their digit in `target`, in order.
template <class Item, class Digit>
void distribute(const Item* items, Item* target, std::int64_t count, Counts& counts,
                const Digit& digit) noexcept {
  std::int64_t place = 0;
  for (std::int64_t& each : counts) place += std::exchange(each, place);
  for (std::int64_t i = 0; i < count; ++i) target[counts[digit(items[i])]++] = items[i];
}

/// The number that an item is to Highway, or void.
template <class Item>
struct NumberOf {
  using type = void;
};
template <>
struct NumberOf<std::uint16_t> {
  using type = std::uint16_t;
};
template <>
struct NumberOf<std::uint32_t> {
  using type = std::uint32_t;
};
template <>
struct NumberOf<std::uint64_t> {
  using type = std::uint64_t;
};
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
template <>
struct NumberOf<KeyedIndex<std::uint32_t, std::uint32_t>> {
  using type = std::uint64_t;
};
template <>
struct NumberOf<KeyedIndex<std::uint64_t, std::uint64_t>> {
  using type = hwy::uint128_t;
};
#endif

template <class Item, class Part>
void sort_parts(Item* items, Item* spare, std::int64_t count, const Part& part) noexcept;

/// Sorts on the calling thread. Distributes the items by the highest one or two bytes of what their keys
/// differ in, which leaves few items together unless keys crowd; those are sorted in the same way.
template <class Item>
void sort_items(Item* items, Item* spare, std::int64_t count) noexcept {
  using Key = decltype(key_of(*items));
  using Number = typename NumberOf<Item>::type;
  if (count < kSortByComparison) return std::sort(items, items + count);
  if constexpr (!std::is_void_v<Number>) {
    static_assert(sizeof(Item) == sizeof(Number));
    hwy::Sorter sorter;
    return sorter(reinterpret_cast<Number*>(items), static_cast<std::size_t>(count), hwy::SortAscending());
  }
  if (count < kDistributeMinimum) return std::sort(items, items + count);
  const auto [lowest, highest] = key_range(items, count);
  const int width = std::bit_width(static_cast<Key>(highest - lowest));
  const bool two = width > 8 && count > kTwoBytesMinimum;
  const int shift = std::max(0, width - (two ? 16 : 8));
  const auto part = [lowest = lowest, shift](const Item& item) noexcept {
    return static_cast<std::uint32_t>(static_cast<Key>(key_of(item) - lowest) >> shift);
  };
  const auto low_byte = [part](const Item& item) noexcept { return part(item) & 0xff; };
  const auto high_byte = [part](const Item& item) noexcept { return part(item) >> 8; };
  Counts low{};
  Counts high{};
  for (std::int64_t i = 0; i < count; ++i) {
    ++low[low_byte(items[i])];
    ++high[high_byte(items[i])];
  }
  distribute(items, spare, count, low, low_byte);
  if (two) {
    distribute(spare, items, count, high, high_byte);
  } else {
    std::copy_n(spare, count, items);
  }
  if (shift > 0) sort_parts(items, spare, count, part);
}

/// Sorts each run of items of which `part` is the same.
template <class Item, class Part>
void sort_parts(Item* items, Item* spare, std::int64_t count, const Part& part) noexcept {
  for (std::int64_t begin = 0, end = 0; begin < count; begin = end) {
    const std::uint32_t same = part(items[begin]);
    for (end = begin + 1; end < count && part(items[end]) == same;) ++end;
    if (end - begin > 1) sort_items(items + begin, spare + begin, end - begin);
  }
}

/// Sorts pieces of a long row side by side and merges them, each merge cut into parts that are side by side
/// too. A stable sort has one result only, so that the pieces show in the time alone.
template <class Item>
class LongSort {
 public:
  explicit LongSort(std::int64_t count) noexcept
      : count_(count), length_(ceil_div(count, std::clamp<std::int64_t>(count / kPiece, 2, kMaxPieces))) {}

  /// Sorts as many items as given before; the result is in `items` or `spare` and is returned. `run(chunks,
  /// body)` calls `body` for each chunk on any threads.
  template <class Run>
  Item* operator()(Item* items, Item* spare, const Run& run) const {
    run(ceil_div(count_, length_), [&](std::int64_t piece) {
      const std::int64_t begin = piece * length_;
      sort_items(items + begin, spare + begin, std::min(length_, count_ - begin));
    });
    for (std::int64_t length = length_; length < count_; length *= 2) {
      run(ceil_div(count_, kSplitChunk), [&](std::int64_t chunk) {
        merge_part(items, spare, length, chunk * kSplitChunk, std::min(count_, (chunk + 1) * kSplitChunk));
      });
      std::swap(items, spare);
    }
    return items;
  }

 private:
  static constexpr std::int64_t kPiece = 1 << 18;
  static constexpr std::int64_t kMaxPieces = 16;
  static constexpr int kSideBySide = 4;

  /// A merge that makes `left` more items.
  struct Merge {
    const Item* first;
    const Item* first_end;
    const Item* second;
    const Item* second_end;
    Item* out;
    std::int64_t left;

    /// So many steps that neither run can end meanwhile.
    std::int64_t safe_steps() const noexcept {
      return std::min({left, first_end - first, second_end - second});
    }
    void finish() noexcept {
      for (std::int64_t steps = 0; (steps = safe_steps()) > 0; left -= steps) {
        for (std::int64_t i = 0; i < steps; ++i) step(first, second, out);
      }
      std::copy_n(first != first_end ? first : second, left, out);
    }
  };

  /// Without a branch on the items, which would be mispredicted half the time.
  static void step(const Item*& first, const Item*& second, Item*& out) noexcept {
    const Item a = *first;
    const Item b = *second;
    const bool from_second = b < a;
    *out++ = from_second ? b : a;
    second += from_second;
    first += !from_second;
  }

  /// Makes elements [begin, end) of what merging all pairs of sorted runs of `length` items gives.
  void merge_part(const Item* items, Item* merged, std::int64_t length, std::int64_t begin,
                  std::int64_t end) const noexcept {
    while (begin < end) {
      const std::int64_t pair = begin / (2 * length) * (2 * length);
      const std::int64_t middle = std::min(count_, pair + length);
      const std::int64_t last = std::min(count_, pair + 2 * length);
      const std::int64_t until = std::min(end, last);
      Merge merges[kSideBySide];
      for (std::int64_t k = 0; k < kSideBySide; ++k) {
        const std::int64_t from = begin + (until - begin) * k / kSideBySide;
        const std::int64_t to = begin + (until - begin) * (k + 1) / kSideBySide;
        const std::int64_t of_first =
            share_of_first(items + pair, middle - pair, items + middle, last - middle, from - pair);
        const Item* second = items + middle + (from - pair - of_first);
        merges[k] = {items + pair + of_first, items + middle, second, items + last, merged + from, to - from};
      }
      run_side_by_side(merges);
      begin = until;
    }
  }

  /// Each step of a merge waits for the one before, so several merges take little longer than one.
  static void run_side_by_side(Merge (&merges)[kSideBySide]) noexcept {
    for (;;) {
      std::int64_t steps = merges[0].safe_steps();
      for (const Merge& merge : merges) steps = std::min(steps, merge.safe_steps());
      if (steps == 0) break;
      const Item* first[kSideBySide];
      const Item* second[kSideBySide];
      Item* out[kSideBySide];
      for (int k = 0; k < kSideBySide; ++k) {
        first[k] = merges[k].first;
        second[k] = merges[k].second;
        out[k] = merges[k].out;
      }
      for (std::int64_t i = 0; i < steps; ++i) {
        for (int k = 0; k < kSideBySide; ++k) step(first[k], second[k], out[k]);
      }
      for (int k = 0; k < kSideBySide; ++k) {
        const Merge& merge = merges[k];
        merges[k] = {first[k], merge.first_end, second[k], merge.second_end, out[k], merge.left - steps};
      }
    }
    for (Merge& merge : merges) merge.finish();
  }

  /// How many of the first `taken` merged items come from the first run: Odeh, Green, Mwassi, Shmueli, Birk:
  /// Merge Path (2012).
  static std::int64_t share_of_first(const Item* first, std::int64_t first_count, const Item* second,
                                     std::int64_t second_count, std::int64_t taken) noexcept {
    std::int64_t low = std::max<std::int64_t>(0, taken - second_count);
    std::int64_t high = std::min(taken, first_count);
    while (low < high) {
      const std::int64_t middle = (low + high) / 2;
      if (second[taken - middle - 1] < first[middle]) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return low;
  }

  std::int64_t count_;
  std::int64_t length_;
};

}  // namespace thalweg::cpu
