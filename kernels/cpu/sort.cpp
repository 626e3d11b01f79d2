// sort.cpp: the kernels of sort and argsort. Each row becomes keys (sort_key.h), which sort_items.h orders.
#include <algorithm>
#include <limits>
#include <type_traits>

#include "kernels/cpu/half.h"
#include "kernels/cpu/register.h"
#include "kernels/cpu/sort_items.h"
#include "kernels/cpu/sort_key.h"

namespace thalweg::cpu {
namespace {

/// Elements of short rows that one parallel chunk sorts.
constexpr std::int64_t kRowsChunk = 16384;

/// Above this length the threads share a row, up to it they share out the rows if there are several.
constexpr std::int64_t kLongRow = 131072;

/// The rows of a tensor along one axis. Operand 0 of `starts` is the input, operand 1 the output.
struct Rows {
  LoopNest<2> starts;
  std::int64_t length;
  std::int64_t in_stride;
  std::int64_t out_stride;
};

Rows rows_of(const KernelContext& ctx) {
  const TensorView& x = ctx.input(0);
  const TensorView& out = ctx.output();
  const int axis = normalize_axis(ctx.op().name, ctx.attributes().get<std::int64_t>(0), x.rank());
  Rows rows{{}, x.shape()[axis], x.strides()[axis], out.strides()[axis]};
  for (int i = 0; i < x.rank(); ++i) {
    if (i != axis) rows.starts.add(x.shape()[i], {x.strides()[i], out.strides()[i]});
  }
  return rows;
}

/// How one of many parallel rows is worked on: by the thread that has it.
struct OnThisThread {
  template <class Body>
  void run(std::int64_t chunks, Body&& body) const {
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) body(chunk);
  }
  template <class Item>
  Item* sort(Item* items, Item* spare, std::int64_t count) const {
    sort_items(items, spare, count);
    return items;
  }
};

/// How a long row is worked on.
template <class Item>
struct OnAllThreads {
  const KernelContext& ctx;
  LongSort<Item>& sorter;

  template <class Body>
  void run(std::int64_t chunks, Body&& body) const {
    ctx.parallel_for(chunks, body);
  }
  Item* sort(Item* items, Item* spare, std::int64_t) const {
    return sorter(items, spare, [this](std::int64_t chunks, auto&& body) { ctx.parallel_for(chunks, body); });
  }
};

/// Runs `body(begin, end)` over pieces of [0, count).
template <class Threads, class Body>
void in_pieces(const Threads& threads, std::int64_t count, Body&& body) {
  threads.run(ceil_div(count, kSplitChunk), [&](std::int64_t chunk) {
    body(chunk * kSplitChunk, std::min(count, (chunk + 1) * kSplitChunk));
  });
}

/// Sorts the keys of a row, then writes the elements.
template <class T, bool descending>
struct SortRow {
  using Out = T;
  using Item = typename SortKey<T>::Key;

  template <class Threads>
  static void apply(const Rows& rows, const T* in, T* out, Item* items, Item* spare, const Threads& threads) {
    in_pieces(threads, rows.length, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) items[i] = encode_key<T, descending>(in[i * rows.in_stride]);
    });
    const Item* sorted = threads.sort(items, spare, rows.length);
    in_pieces(threads, rows.length, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i)
        out[i * rows.out_stride] = decode_key<T, descending>(sorted[i]);
    });
    if constexpr (std::is_floating_point_v<T>) restore_zeros(rows, in, out, sorted);
  }

  /// Zeros of both signs share a key: theirs come back in the order in which the row has them.
  static void restore_zeros(const Rows& rows, const T* in, T* out, const Item* sorted) {
    const auto [first, last] =
        std::equal_range(sorted, sorted + rows.length, encode_key<T, descending>(T(0)));
    std::int64_t left = last - first;
    out += (first - sorted) * rows.out_stride;
    for (; left > 0; in += rows.in_stride) {
      if (*in != T(0)) continue;
      *out = *in;
      out += rows.out_stride;
      --left;
    }
  }
};

/// Sorts the keys of a row together with their positions, then writes those.
template <class T, bool descending, class Index>
struct ArgsortRow {
  using Out = std::int64_t;
  using Item = KeyedIndex<typename SortKey<T>::Key, Index>;

  template <class Threads>
  static void apply(const Rows& rows, const T* in, std::int64_t* out, Item* items, Item* spare,
                    const Threads& threads) {
    in_pieces(threads, rows.length, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        items[i] = {static_cast<Index>(i), encode_key<T, descending>(in[i * rows.in_stride])};
      }
    });
    const Item* sorted = threads.sort(items, spare, rows.length);
    in_pieces(threads, rows.length, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i)
        out[i * rows.out_stride] = static_cast<std::int64_t>(sorted[i].index);
    });
  }
};

template <class Method, class T>
void sort_long_rows(const KernelContext& ctx, const Rows& rows) {
  using Item = typename Method::Item;
  const Scratch<Item> items(2 * rows.length);
  LongSort<Item> sorter(rows.length);
  for (std::int64_t row = 0; row < rows.starts.total(); ++row) {
    const auto start = rows.starts.offsets(row);
    Method::apply(rows, ctx.input(0).as<const T>() + start[0],
                  ctx.output().as<typename Method::Out>() + start[1], items.get(), items.get() + rows.length,
                  OnAllThreads<Item>{ctx, sorter});
  }
}

template <class Method, class T>
void sort_short_rows(const KernelContext& ctx, const Rows& rows) {
  using Item = typename Method::Item;
  const std::int64_t total = rows.starts.total();
  const std::int64_t group = std::max<std::int64_t>(1, kRowsChunk / rows.length);
  const std::int64_t chunks = ceil_div(total, group);
  // Made here, because the parallel body must not throw: room for the one row that each chunk is at.
  const Scratch<Item> items(2 * rows.length * chunks);
  ctx.parallel_for(chunks, [&](std::int64_t chunk) {
    Item* mine = items.get() + 2 * rows.length * chunk;
    for (std::int64_t row = chunk * group; row < std::min(total, (chunk + 1) * group); ++row) {
      const auto start = rows.starts.offsets(row);
      Method::apply(rows, ctx.input(0).as<const T>() + start[0],
                    ctx.output().as<typename Method::Out>() + start[1], mine, mine + rows.length,
                    OnThisThread{});
    }
  });
}

template <class Method, class T>
void sort_rows(const KernelContext& ctx, const Rows& rows) {
  const bool is_alone = rows.starts.total() == 1 && rows.length > 2 * kSplitChunk;
  if (is_alone || rows.length > kLongRow) return sort_long_rows<Method, T>(ctx, rows);
  sort_short_rows<Method, T>(ctx, rows);
}

template <class T, bool descending>
void argsort_rows(const KernelContext& ctx, const Rows& rows) {
  // An index as wide as the key makes both one number.
  if (sizeof(T) < 8 && rows.length <= std::numeric_limits<std::uint32_t>::max()) {
    return sort_rows<ArgsortRow<T, descending, std::uint32_t>, T>(ctx, rows);
  }
  sort_rows<ArgsortRow<T, descending, std::uint64_t>, T>(ctx, rows);
}

/// Calls `fn.template operator()<T, descending>(rows)` for an input that has elements.
template <class Fn>
void visit_order(const KernelContext& ctx, Fn&& fn) {
  if (ctx.input(0).numel() == 0) return;
  const Rows rows = rows_of(ctx);
  const bool descending = ctx.attributes().get<bool>(1);
  visit_dtype(ctx.input(0).dtype(), [&]<class T>() {
    // Inference lets no other dtypes through.
    if constexpr (std::is_arithmetic_v<T>) {
      if (descending) {
        fn.template operator()<T, true>(rows);
      } else {
        fn.template operator()<T, false>(rows);
      }
    }
  });
}

void sort_kernel(const KernelContext& ctx) {
  visit_order(ctx, [&]<class T, bool descending>(const Rows& rows) {
    sort_rows<SortRow<T, descending>, T>(ctx, rows);
  });
}

void argsort_kernel(const KernelContext& ctx) {
  visit_order(ctx,
              [&]<class T, bool descending>(const Rows& rows) { argsort_rows<T, descending>(ctx, rows); });
}

}  // namespace

void register_sort_kernels(KernelRegistry& registry) {
  registry.add("sort", DeviceType::cpu, in_float32(sort_kernel));
  registry.add("argsort", DeviceType::cpu, in_float32(argsort_kernel));
}

}  // namespace thalweg::cpu
