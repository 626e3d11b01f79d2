// radix_sort.h: stable sort of items by unsigned keys, least significant digit first.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include <thalweg/kernel.h>

#include "kernels/cpu/loop_nest.h"

namespace thalweg::cpu {

/// Items of one row that one thread counts and moves at a time.
inline constexpr std::int64_t kRadixChunk = 65536;

/// Rows shorter than this are sorted by comparison: counting digits would cost more.
inline constexpr std::int64_t kRadixMinimum = 256;

/// A key and where it came from. Ordered by both, so that any sort is a stable one.
template <class Key, class Index>
struct KeyedIndex {
  Key key;
  Index index;

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

/// How often each value of a digit occurs in a chunk; then where the chunk's next item with it goes.
using DigitCounts = std::array<std::int64_t, 256>;

/// Runs `body(chunk)` one after the other: what sorting inside one of many parallel rows uses.
struct RunInTurn {
  template <class Body>
  void operator()(std::int64_t chunks, Body&& body) const {
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) body(chunk);
  }
};

/// Turns counts into places. False if one value has all items: there is nothing to move.
inline bool place_digits(DigitCounts* counts, std::int64_t chunks, std::int64_t total) noexcept {
  std::int64_t place = 0;
  for (std::size_t digit = 0; digit < 256; ++digit) {
    const std::int64_t before = place;
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
      place += std::exchange(counts[chunk][digit], place);
    }
    if (place - before == total) return false;
  }
  return true;
}

/// Sorts `count` items; both arrays have room for them, `counts` for every chunk. Returns the one of the two
/// in which the result is. `run(chunks, body)` calls `body` for each chunk, on any threads.
template <class Item, class Run>
Item* radix_sort(Item* items, Item* spare, std::int64_t count, DigitCounts* counts, const Run& run) {
  const std::int64_t chunks = ceil_div(count, kRadixChunk);
  constexpr int bits = 8 * sizeof(decltype(key_of(*items)));
  for (int shift = 0; shift < bits; shift += 8) {
    const auto digit = [shift](const Item& item) noexcept { return (key_of(item) >> shift) & 0xff; };
    const auto bounds = [count](std::int64_t chunk) {
      return std::pair(chunk * kRadixChunk, std::min(count, (chunk + 1) * kRadixChunk));
    };
    run(chunks, [&](std::int64_t chunk) {
      DigitCounts& mine = counts[chunk];
      mine.fill(0);
      const auto [begin, end] = bounds(chunk);
      for (std::int64_t i = begin; i < end; ++i) ++mine[digit(items[i])];
    });
    if (!place_digits(counts, chunks, count)) continue;
    run(chunks, [&](std::int64_t chunk) {
      DigitCounts& mine = counts[chunk];
      const auto [begin, end] = bounds(chunk);
      for (std::int64_t i = begin; i < end; ++i) spare[mine[digit(items[i])]++] = items[i];
    });
    std::swap(items, spare);
  }
  return items;
}

/// As radix_sort, by comparison where that is faster.
template <class Item, class Run>
Item* sort_items(Item* items, Item* spare, std::int64_t count, DigitCounts* counts, const Run& run) {
  if (count >= kRadixMinimum) return radix_sort(items, spare, count, counts, run);
  std::sort(items, items + count);
  return items;
}

}  // namespace thalweg::cpu
