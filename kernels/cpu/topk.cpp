// topk.cpp: the kernel of topk. A row is scanned for elements that beat the worst of the best k found so far;
// after the first few there are hardly any, and a vectorised comparison passes over the rest.
#include <algorithm>
#include <limits>
#include <type_traits>

#include "kernels/cpu/filter_table.h"
#include "kernels/cpu/half.h"
#include "kernels/cpu/register.h"
#include "kernels/cpu/sort_items.h"
#include "kernels/cpu/sort_key.h"

namespace thalweg::cpu {
namespace {

/// Elements of short rows that one parallel chunk looks at.
constexpr std::int64_t kRowsChunk = 16384;

/// Above this length the threads share a row, up to it they share out the rows.
constexpr std::int64_t kLongRow = 2 * kSplitChunk;

/// Elements of a long row that one thread scans: each scan begins anew with finding what to beat.
constexpr std::int64_t kPiece = std::int64_t{1} << 18;

/// Elements that are sorted to have a first bound.
constexpr std::int64_t kFirst = 128;

/// True if so many elements are asked for that sorting all takes no longer.
constexpr bool sorts_all(std::int64_t k, std::int64_t length) noexcept { return 8 * k > length; }

/// The rows of a tensor along one axis. Operand 0 of `starts` is the input, operand 1 both outputs.
struct Rows {
  LoopNest<2> starts;
  std::int64_t length;
  std::int64_t k;
  std::int64_t in_stride;
  std::int64_t out_stride;
};

Rows rows_of(const KernelContext& ctx) {
  const TensorView& x = ctx.input(0);
  const TensorView& out = ctx.output();
  const int axis = normalize_axis(ctx.op().name, ctx.attributes().get<std::int64_t>(1), x.rank());
  Rows rows{{}, x.shape()[axis], out.shape()[axis], x.strides()[axis], out.strides()[axis]};
  for (int i = 0; i < x.rank(); ++i) {
    if (i != axis) rows.starts.add(x.shape()[i], {x.strides()[i], out.strides()[i]});
  }
  return rows;
}

/// Finds the best k of consecutive elements of a row. `length` is that of the longest scan.
template <class T, bool largest, class Index>
class Scan {
 public:
  using Item = KeyedIndex<typename SortKey<T>::Key, Index>;

  Scan(std::int64_t k, std::int64_t length)
      : k_(k),
        first_(sorts_all(k, length) ? length : std::min(length, std::max(2 * k, kFirst))),
        capacity_(std::min(length, std::max({first_, 4 * k, k + 2 * kFilterBlock}))),
        items_(2 * capacity_) {}

  /// The best of elements [begin, end), k or all if there are fewer, in order. Overwritten by the next call.
  const Item* operator()(const T* in, std::int64_t stride, std::int64_t begin, std::int64_t end) {
    count_ = sorted_ = 0;
    std::int64_t at = std::min(end, begin + first_);
    for (std::int64_t i = begin; i < at; ++i) add(in, stride, i);
    keep_best();
    // A bound that is raised each time the scan has doubled lets few elements pass.
    std::int64_t next_bound = begin + 2 * (at - begin);
    while (at < end) {
      const std::int64_t length = std::min(kFilterBlock, end - at);
      std::uint32_t positions[kFilterRoom];
      const std::int64_t found = select(in + at * stride, stride, length, bound(in, stride), positions);
      if (count_ + found > capacity_) keep_best();
      for (std::int64_t i = 0; i < found; ++i) add(in, stride, at + positions[i]);
      at += length;
      if (at >= next_bound) {
        keep_best();
        next_bound = begin + 2 * (at - begin);
      }
    }
    keep_best();
    return items_.get();
  }

 private:
  void add(const T* in, std::int64_t stride, std::int64_t i) noexcept {
    items_[count_++] = {static_cast<Index>(i), encode_key<T, largest>(in[i * stride])};
  }

  void keep_best() noexcept {
    if (count_ == sorted_) return;
    sort_items(items_.get(), items_.get() + capacity_, count_);
    count_ = sorted_ = std::min(count_, k_);
  }

  /// What an element must beat. One that equals it comes later, and so after it.
  T bound(const T* in, std::int64_t stride) const noexcept {
    return in[static_cast<std::int64_t>(items_[k_ - 1].index) * stride];
  }

  static std::int64_t select(const T* in, std::int64_t stride, std::int64_t length, T bound,
                             std::uint32_t* positions) noexcept {
    T block[kFilterBlock];
    if (stride != 1) {
      for (std::int64_t i = 0; i < length; ++i) block[i] = in[i * stride];
      in = block;
    }
    if (bound != bound) return select_numbers(in, length, positions);
    const FilterLoops<T>& loops = filter_table();
    return (largest ? loops.above : loops.below)(in, length, bound, positions);
  }

  /// What beats a nan.
  static std::int64_t select_numbers(const T* in, std::int64_t length, std::uint32_t* positions) noexcept {
    std::int64_t found = 0;
    for (std::int64_t i = 0; i < length; ++i) {
      positions[found] = static_cast<std::uint32_t>(i);
      found += in[i] == in[i];
    }
    return found;
  }

  std::int64_t k_;
  std::int64_t first_;
  std::int64_t capacity_;
  std::int64_t count_ = 0;
  std::int64_t sorted_ = 0;
  Scratch<Item> items_;
};

template <class T, bool largest, class Index>
class TopK {
 public:
  TopK(const KernelContext& ctx, const Rows& rows) : ctx_(ctx), rows_(rows) {}

  void run() const {
    if (rows_.length > kLongRow) return run_long_rows();
    run_short_rows();
  }

 private:
  using RowScan = Scan<T, largest, Index>;
  using Item = typename RowScan::Item;

  const T* row(std::int64_t start) const noexcept { return ctx_.input(0).template as<const T>() + start; }

  void run_short_rows() const {
    const std::int64_t count = rows_.starts.total();
    const std::int64_t group = std::max<std::int64_t>(1, kRowsChunk / rows_.length);
    ctx_.parallel_for(ceil_div(count, group), [&](std::int64_t chunk) {
      RowScan scan(rows_.k, rows_.length);
      for (std::int64_t i = chunk * group; i < std::min(count, (chunk + 1) * group); ++i) {
        const auto start = rows_.starts.offsets(i);
        write(scan(row(start[0]), rows_.in_stride, 0, rows_.length), start);
      }
    });
  }

  void run_long_rows() const {
    for (std::int64_t i = 0; i < rows_.starts.total(); ++i) {
      const auto start = rows_.starts.offsets(i);
      if (sorts_all(rows_.k, rows_.length)) {
        sort_all(start);
      } else {
        scan_pieces(start);
      }
    }
  }

  void sort_all(const LoopNest<2>::Offsets& start) const {
    const Scratch<Item> items(2 * rows_.length);
    const T* in = row(start[0]);
    ctx_.parallel_for(ceil_div(rows_.length, kSplitChunk), [&](std::int64_t chunk) {
      const std::int64_t end = std::min(rows_.length, (chunk + 1) * kSplitChunk);
      for (std::int64_t i = chunk * kSplitChunk; i < end; ++i) {
        items[i] = {static_cast<Index>(i), encode_key<T, largest>(in[i * rows_.in_stride])};
      }
    });
    write(sort(items.get(), items.get() + rows_.length, rows_.length), start);
  }

  void scan_pieces(const LoopNest<2>::Offsets& start) const {
    // So long that the best of all pieces are few beside the elements.
    const std::int64_t piece = std::max(kPiece, 16 * rows_.k);
    const std::int64_t pieces = ceil_div(rows_.length, piece);
    const std::int64_t last = rows_.length - (pieces - 1) * piece;
    const std::int64_t found = (pieces - 1) * rows_.k + std::min(rows_.k, last);
    const Scratch<Item> best(2 * found);
    ctx_.parallel_for(pieces, [&](std::int64_t i) {
      RowScan scan(rows_.k, std::min(rows_.length, piece));
      const std::int64_t end = std::min(rows_.length, (i + 1) * piece);
      const Item* items = scan(row(start[0]), rows_.in_stride, i * piece, end);
      std::copy_n(items, std::min(rows_.k, end - i * piece), best.get() + i * rows_.k);
    });
    write(pieces == 1 ? best.get() : sort(best.get(), best.get() + found, found), start);
  }

  Item* sort(Item* items, Item* spare, std::int64_t count) const {
    if (count > kLongRow) {
      return LongSort<Item>(count)(
          items, spare, [this](std::int64_t chunks, auto&& body) { ctx_.parallel_for(chunks, body); });
    }
    sort_items(items, spare, count);
    return items;
  }

  /// Writes the first k items. The elements are read again: a key has lost the sign of a zero.
  void write(const Item* items, const LoopNest<2>::Offsets& start) const noexcept {
    const T* in = row(start[0]);
    T* values = ctx_.output(0).template as<T>() + start[1];
    std::int64_t* indices = ctx_.output(1).template as<std::int64_t>() + start[1];
    for (std::int64_t i = 0; i < rows_.k; ++i) {
      const auto index = static_cast<std::int64_t>(items[i].index);
      values[i * rows_.out_stride] = in[index * rows_.in_stride];
      indices[i * rows_.out_stride] = index;
    }
  }

  const KernelContext& ctx_;
  const Rows& rows_;
};

template <class T, bool largest>
void topk_rows(const KernelContext& ctx, const Rows& rows) {
  // An index as wide as the key makes both one number.
  if (sizeof(T) < 8 && rows.length <= std::numeric_limits<std::uint32_t>::max()) {
    return TopK<T, largest, std::uint32_t>(ctx, rows).run();
  }
  TopK<T, largest, std::uint64_t>(ctx, rows).run();
}

void topk_kernel(const KernelContext& ctx) {
  if (ctx.output().numel() == 0) return;
  const Rows rows = rows_of(ctx);
  const bool largest = ctx.attributes().get<bool>(2);
  visit_dtype(ctx.input(0).dtype(), [&]<class T>() {
    // Inference lets no other dtypes through. The bytes of bools are 0 and 1.
    if constexpr (std::is_arithmetic_v<T>) {
      using Element = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;
      if (largest) {
        topk_rows<Element, true>(ctx, rows);
      } else {
        topk_rows<Element, false>(ctx, rows);
      }
    }
  });
}

}  // namespace

void register_topk_kernel(KernelRegistry& registry) {
  registry.add("topk", DeviceType::cpu, in_float32(topk_kernel));
}

}  // namespace thalweg::cpu
