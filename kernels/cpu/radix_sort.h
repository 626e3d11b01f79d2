// radix_sort.h: stable sorts of items by unsigned keys: on one thread, and split into buckets that threads
// sort side by side.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <utility>

#include <thalweg/kernel.h>

#include "kernels/cpu/loop_nest.h"
#include "kernels/cpu/scratch.h"

namespace thalweg::cpu {

/// Fewer items than this are sorted by comparison.
inline constexpr std::int64_t kDistributeMinimum = 64;

/// From this many items on two bytes of their keys are looked at instead of one.
inline constexpr std::int64_t kTwoBytesMinimum = 4096;

/// Items of a long row that one thread looks at or moves at a time.
inline constexpr std::int64_t kSplitChunk = 65536;

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

template <class Item, class Part>
void sort_parts(Item* items, Item* spare, std::int64_t count, const Part& part) noexcept;

/// Sorts on the calling thread. Distributes the items by the highest one or two bytes of what their keys
/// differ in, which leaves few items together unless keys crowd; those are sorted in the same way.
template <class Item>
void sort_items(Item* items, Item* spare, std::int64_t count) noexcept {
  using Key = decltype(key_of(*items));
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

/// Splits a long row at keys taken from a sample into up to 256 buckets, which fit caches and are sorted side
/// by side. A stable sort has one result only, so that the split shows in the time alone.
template <class Item>
class LongSort {
 public:
  using Key = decltype(key_of(std::declval<Item>()));

  explicit LongSort(std::int64_t count)
      : count_(count), chunks_(ceil_div(count, kSplitChunk)), buckets_(count), counts_(chunks_) {}

  /// Sorts as many items as given before; the result is in `spare`, which is returned. `run(chunks, body)`
  /// calls `body` for each chunk on any threads.
  template <class Run>
  Item* operator()(Item* items, Item* spare, const Run& run) {
    choose_splitters(items);
    run(chunks_, [&](std::int64_t chunk) { count_buckets(items, chunk); });
    place_buckets();
    run(chunks_, [&](std::int64_t chunk) { move_to_buckets(items, spare, chunk); });
    run(256, [&](std::int64_t bucket) {
      const std::int64_t begin = starts_[bucket];
      const std::int64_t size = starts_[bucket + 1] - begin;
      sort_items(spare + begin, items + begin, size);
    });
    return spare;
  }

 private:
  static constexpr std::int64_t kPerSplitter = 16;

  /// Every 16th of a sorted sample, taken at even distances.
  void choose_splitters(const Item* items) noexcept {
    std::array<Key, 256 * kPerSplitter> sample;
    const auto size = static_cast<std::int64_t>(sample.size());
    for (std::int64_t i = 0; i < size; ++i) sample[i] = key_of(items[count_ / size * i]);
    std::sort(sample.begin(), sample.end());
    for (std::size_t i = 0; i < splitters_.size(); ++i) splitters_[i] = sample[(i + 1) * kPerSplitter];
  }

  /// How many splitters are below the key, without a branch on it.
  std::uint8_t bucket_of(Key key) const noexcept {
    std::size_t below = 0;
    // Multiplied, because compilers make a branch of a choice here, which would be mispredicted half the
    // time.
    for (std::size_t step = 128; step > 0; step /= 2) {
      below += step * static_cast<std::size_t>(splitters_[below + step - 1] < key);
    }
    return static_cast<std::uint8_t>(below);
  }

  std::int64_t end_of(std::int64_t chunk) const noexcept {
    return std::min(count_, (chunk + 1) * kSplitChunk);
  }

  void count_buckets(const Item* items, std::int64_t chunk) noexcept {
    Counts& counts = counts_[chunk];
    counts.fill(0);
    for (std::int64_t i = chunk * kSplitChunk; i < end_of(chunk); ++i) {
      buckets_[i] = bucket_of(key_of(items[i]));
      ++counts[buckets_[i]];
    }
  }

  void place_buckets() noexcept {
    std::int64_t place = 0;
    for (std::size_t bucket = 0; bucket < 256; ++bucket) {
      starts_[bucket] = place;
      for (std::int64_t chunk = 0; chunk < chunks_; ++chunk) {
        place += std::exchange(counts_[chunk][bucket], place);
      }
    }
    starts_[256] = place;
  }

  void move_to_buckets(const Item* items, Item* spare, std::int64_t chunk) noexcept {
    Counts& places = counts_[chunk];
    for (std::int64_t i = chunk * kSplitChunk; i < end_of(chunk); ++i) {
      spare[places[buckets_[i]]++] = items[i];
    }
  }

  std::int64_t count_;
  std::int64_t chunks_;
  Scratch<std::uint8_t> buckets_;  // of each item
  Scratch<Counts> counts_;         // of each chunk
  std::array<Key, 255> splitters_;
  std::array<std::int64_t, 257> starts_;
};

}  // namespace thalweg::cpu
