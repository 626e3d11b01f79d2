// normalization.cpp: the kernels of softmax, log_softmax, layer_norm and rms_norm. A row stays in cache from
// the first look at it to the result.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "kernels/cpu/half.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/loop_nest.h"
#include "kernels/cpu/normalization_table.h"
#include "kernels/cpu/register.h"
#include "kernels/cpu/scratch.h"

namespace thalweg::cpu {

THALWEG_DECLARE_PER_ISA(fill_normalization, NormalizationTable)

const NormalizationTable& normalization_table() {
  static const NormalizationTable table = [] {
    NormalizationTable fresh{};
    fill_normalization(active_isa(), fresh);
    return fresh;
  }();
  return table;
}

namespace {

/// Elements that one loop sums; the sums of a row's blocks are added in double.
constexpr std::int64_t kBlock = 4096;
/// Above this length the threads share a row, up to it they share out the rows.
constexpr std::int64_t kLongRow = 8 * kBlock;
/// Elements of rows that one parallel chunk takes, at least.
constexpr std::int64_t kRowsChunk = 8192;
/// Where neighbours belong to different rows: columns that are looked at together, so many that all their
/// elements stay in cache and yet few pages are seen, and elements of each that one loop sums.
constexpr std::int64_t kLeastColumns = 64;
constexpr std::int64_t kMostColumns = 512;
constexpr std::int64_t kColumnsElements = 32768;
constexpr std::int64_t kColumnBlock = 256;

/// A row, cut into blocks.
template <class T>
class Row {
 public:
  /// With a context, its threads share the blocks.
  Row(std::int64_t length, const KernelContext* ctx)
      : length_(length), ctx_(ctx), parts_(static_cast<std::size_t>(ceil_div(length, kBlock))) {}

  std::int64_t length() const noexcept { return length_; }

  /// Calls `body(begin, count)` for every block.
  template <class Body>
  void for_each(Body body) const {
    const auto run = [&](std::int64_t block) {
      body(block * kBlock, std::min(kBlock, length_ - block * kBlock));
    };
    const auto blocks = std::ssize(parts_);
    if (ctx_ != nullptr) return ctx_->parallel_for(blocks, run);
    for (std::int64_t block = 0; block < blocks; ++block) run(block);
  }
  /// The largest result of `body(begin, count)`.
  template <class Body>
  T largest(Body body) {
    fill(body);
    return *std::max_element(parts_.begin(), parts_.end());
  }
  /// The sum of the results of `body(begin, count)`.
  template <class Body>
  double sum(Body body) {
    fill(body);
    return std::accumulate(parts_.begin(), parts_.end(), 0.0);
  }

 private:
  template <class Body>
  void fill(Body body) {
    for_each([&](std::int64_t begin, std::int64_t count) { parts_[begin / kBlock] = body(begin, count); });
  }

  std::int64_t length_;
  const KernelContext* ctx_;
  std::vector<T> parts_;
};

/// Calls `body(row, index)` for `count` rows of `length`.
template <class T, class Body>
void for_each_row(const KernelContext& ctx, std::int64_t count, std::int64_t length, Body body) {
  if (length > kLongRow) {
    Row<T> row(length, &ctx);
    for (std::int64_t i = 0; i < count; ++i) body(row, i);
    return;
  }
  const std::int64_t group = std::max<std::int64_t>(1, kRowsChunk / length);
  ctx.parallel_for(ceil_div(count, group), [&](std::int64_t chunk) {
    Row<T> row(length, nullptr);
    for (std::int64_t i = chunk * group; i < std::min(count, (chunk + 1) * group); ++i) body(row, i);
  });
}

/// Neighbouring columns, cut into blocks of rows.
template <class T>
class Columns {
 public:
  /// With a context, its threads share the blocks.
  Columns(std::int64_t length, std::int64_t step, std::int64_t most, const KernelContext* ctx)
      : length_(length),
        step_(step),
        blocks_(ceil_div(length, kColumnBlock)),
        ctx_(ctx),
        parts_(blocks_ * most),
        first_(most),
        second_(most) {}

  std::int64_t step() const noexcept { return step_; }
  std::int64_t count() const noexcept { return count_; }
  void set_count(std::int64_t count) noexcept { count_ = count; }

  /// Calls `body(first element, rows, block)` for every block.
  template <class Body>
  void for_each(Body body) const {
    const auto run = [&](std::int64_t block) {
      const std::int64_t row = block * kColumnBlock;
      body(row * step_, std::min(kColumnBlock, length_ - row), block);
    };
    if (ctx_ != nullptr) return ctx_->parallel_for(blocks_, run);
    for (std::int64_t block = 0; block < blocks_; ++block) run(block);
  }
  /// The largest result for each column of `body(first element, rows, results of that block)`.
  template <class Body>
  const T* largest(Body body) {
    reduce(-std::numeric_limits<T>::infinity(), body);
    for (std::int64_t i = 0; i < count_; ++i) {
      first_[i] = parts_[i];
      for (std::int64_t block = 1; block < blocks_; ++block) {
        first_[i] = std::max(first_[i], parts_[block * count_ + i]);
      }
    }
    return first_.get();
  }
  /// `convert(sum)` of the results for each column.
  template <class Body, class Convert>
  const T* sum(Body body, Convert convert) {
    reduce(T(0), body);
    for (std::int64_t i = 0; i < count_; ++i) {
      double total = 0;
      for (std::int64_t block = 0; block < blocks_; ++block) total += parts_[block * count_ + i];
      second_[i] = static_cast<T>(convert(total));
    }
    return second_.get();
  }

 private:
  template <class Body>
  void reduce(T start, Body body) {
    std::fill_n(parts_.get(), blocks_ * count_, start);
    for_each([&](std::int64_t at, std::int64_t rows, std::int64_t block) {
      body(at, rows, parts_.get() + block * count_);
    });
  }

  std::int64_t length_, step_, blocks_;
  std::int64_t count_ = 0;
  const KernelContext* ctx_;
  Scratch<T> parts_, first_, second_;
};

struct Softmax {
  /// exp(x - largest) over its sum. A nan, or infinity - infinity, makes the sum nan and so all of the row.
  template <class T>
  static void apply(Row<T>& row, const T* in, T* out) {
    const RowLoops<T>& loops = normalization_table();
    const T shift = row.largest([&](std::int64_t at, std::int64_t n) { return loops.largest(in + at, n); });
    const double sum =
        row.sum([&](std::int64_t at, std::int64_t n) { return loops.exp(in + at, shift, out + at, n); });
    const T factor = static_cast<T>(1 / sum);
    row.for_each([&](std::int64_t at, std::int64_t n) {
      loops.normalize(out + at, T(0), factor, nullptr, nullptr, out + at, n);
    });
  }
  template <class T>
  static void apply(Columns<T>& columns, const T* in, T* out) {
    const RowLoops<T>& loops = normalization_table();
    const std::int64_t step = columns.step();
    const std::int64_t count = columns.count();
    const T* shifts = columns.largest([&](std::int64_t at, std::int64_t rows, T* best) {
      loops.largest_down(in + at, rows, step, best, count);
    });
    const T* factors =
        columns.sum([&](std::int64_t at, std::int64_t rows,
                        T* sums) { loops.exp_down(in + at, rows, step, shifts, out + at, sums, count); },
                    [](double sum) { return 1 / sum; });
    columns.for_each([&](std::int64_t at, std::int64_t rows, std::int64_t) {
      loops.scale_down(out + at, rows, step, factors, count);
    });
  }
};

struct LogSoftmax {
  template <class T>
  static void apply(Row<T>& row, const T* in, T* out) {
    const RowLoops<T>& loops = normalization_table();
    const T shift = row.largest([&](std::int64_t at, std::int64_t n) { return loops.largest(in + at, n); });
    const double sum =
        row.sum([&](std::int64_t at, std::int64_t n) { return loops.exp_sum(in + at, shift, n); });
    const T further = static_cast<T>(std::log(sum));
    row.for_each(
        [&](std::int64_t at, std::int64_t n) { loops.subtract(in + at, shift, further, out + at, n); });
  }
  template <class T>
  static void apply(Columns<T>& columns, const T* in, T* out) {
    const RowLoops<T>& loops = normalization_table();
    const std::int64_t step = columns.step();
    const std::int64_t count = columns.count();
    const T* shifts = columns.largest([&](std::int64_t at, std::int64_t rows, T* best) {
      loops.largest_down(in + at, rows, step, best, count);
    });
    const T* further =
        columns.sum([&](std::int64_t at, std::int64_t rows,
                        T* sums) { loops.exp_down(in + at, rows, step, shifts, nullptr, sums, count); },
                    [](double sum) { return std::log(sum); });
    columns.for_each([&](std::int64_t at, std::int64_t rows, std::int64_t) {
      loops.subtract_down(in + at, rows, step, shifts, further, out + at, count);
    });
  }
};

/// Calls `Function::apply` for all columns: an axis of `length` with axes of `inner` elements inside it.
template <class T, class Function>
void run_columns(const KernelContext& ctx, std::int64_t outer, std::int64_t length, std::int64_t inner) {
  const T* in = ctx.input(0).as<const T>();
  T* out = ctx.output().as<T>();
  const std::int64_t fitting = kColumnsElements / length / kLeastColumns * kLeastColumns;
  const std::int64_t width = std::min(inner, std::clamp(fitting, kLeastColumns, kMostColumns));
  const std::int64_t parts = ceil_div(inner, width);
  const std::int64_t count = outer * parts;
  const auto run = [&](Columns<T>& columns, std::int64_t i) {
    const std::int64_t column = i % parts * width;
    columns.set_count(std::min(width, inner - column));
    const std::int64_t start = i / parts * length * inner + column;
    Function::apply(columns, in + start, out + start);
  };
  if (length > kLongRow) {
    Columns<T> columns(length, inner, width, &ctx);
    for (std::int64_t i = 0; i < count; ++i) run(columns, i);
    return;
  }
  const std::int64_t group = std::max<std::int64_t>(1, kRowsChunk / (length * width));
  ctx.parallel_for(ceil_div(count, group), [&](std::int64_t chunk) {
    Columns<T> columns(length, inner, width, nullptr);
    for (std::int64_t i = chunk * group; i < std::min(count, (chunk + 1) * group); ++i) run(columns, i);
  });
}

template <class Function>
void softmax_kernel(const KernelContext& ctx) {
  const Shape& shape = ctx.output().shape();
  if (numel(shape) == 0) return;
  const int axis =
      normalize_axis(ctx.op().name, ctx.attributes().get<std::int64_t>(0), static_cast<int>(shape.size()));
  std::int64_t inner = 1;
  for (std::size_t i = static_cast<std::size_t>(axis) + 1; i < shape.size(); ++i) inner *= shape[i];
  const std::int64_t length = shape[axis];
  const std::int64_t outer = numel(shape) / (length * inner);
  const auto run = [&]<class T>() {
    if (inner > 1) return run_columns<T, Function>(ctx, outer, length, inner);
    const T* in = ctx.input(0).as<const T>();
    T* out = ctx.output().as<T>();
    for_each_row<T>(ctx, outer, length, [&](Row<T>& row, std::int64_t i) {
      Function::apply(row, in + i * length, out + i * length);
    });
  };
  if (ctx.output().dtype() == DType::float32) return run.template operator()<float>();
  run.template operator()<double>();
}

/// (x - mean) / sqrt(mean of its square + eps) * weight + bias; without a mean for rms_norm.
template <class T>
void normalize_rows(const KernelContext& ctx, bool has_mean) {
  const RowLoops<T>& loops = normalization_table();
  const auto parameter_at = [&](std::size_t i) {
    return ctx.input_count() > i ? ctx.input(i).as<const T>() : nullptr;
  };
  const T* in = ctx.input(0).as<const T>();
  const T* weight = parameter_at(1);
  const T* bias = parameter_at(2);
  T* out = ctx.output().as<T>();
  const Shape& shape = ctx.output().shape();
  const std::int64_t axes = ctx.attributes().get<std::int64_t>(0);
  const double eps = ctx.attributes().get<double>(1);
  std::int64_t length = 1;
  for (std::size_t i = shape.size() - static_cast<std::size_t>(axes); i < shape.size(); ++i)
    length *= shape[i];
  for_each_row<T>(ctx, numel(shape) / length, length, [&](Row<T>& row, std::int64_t i) {
    const T* x = in + i * length;
    const auto size = static_cast<double>(length);
    T mean = 0;
    if (has_mean) {
      mean = static_cast<T>(row.sum([&](std::int64_t at, std::int64_t n) { return loops.sum(x + at, n); }) /
                            size);
    }
    const double squares =
        row.sum([&](std::int64_t at, std::int64_t n) { return loops.square_sum(x + at, mean, n); });
    const T factor = static_cast<T>(1 / std::sqrt(squares / size + eps));
    row.for_each([&](std::int64_t at, std::int64_t n) {
      const auto part = [&](const T* parameter) { return parameter == nullptr ? nullptr : parameter + at; };
      loops.normalize(x + at, mean, factor, part(weight), part(bias), out + i * length + at, n);
    });
  });
}

KernelFn normalization_kernel(bool has_mean) {
  return in_float32([has_mean](const KernelContext& ctx) {
    if (ctx.output().numel() == 0) return;
    if (ctx.output().dtype() == DType::float32) return normalize_rows<float>(ctx, has_mean);
    normalize_rows<double>(ctx, has_mean);
  });
}

}  // namespace

void register_normalization_kernels(KernelRegistry& registry) {
  registry.add("softmax", DeviceType::cpu, in_float32(softmax_kernel<Softmax>));
  registry.add("log_softmax", DeviceType::cpu, in_float32(softmax_kernel<LogSoftmax>));
  registry.add("layer_norm", DeviceType::cpu, normalization_kernel(true));
  registry.add("rms_norm", DeviceType::cpu, normalization_kernel(false));
}

}  // namespace thalweg::cpu
