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
#include "kernels/cpu/matrix_batch.h"
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
/// Rows that are gathered together where neighbours belong to different rows.
constexpr std::int64_t kColumns = 16;

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
};

/// Rows across the innermost axes: some of them at a time are gathered, and put back.
template <class T, class Function>
void run_columns(const KernelContext& ctx, std::int64_t outer, std::int64_t length, std::int64_t inner) {
  const T* in = ctx.input(0).as<const T>();
  T* out = ctx.output().as<T>();
  const std::int64_t parts = ceil_div(inner, kColumns);
  const auto run = [&](Row<T>& row, T* rows, std::int64_t i) {
    const std::int64_t column = i % parts * kColumns;
    const std::int64_t columns = std::min(kColumns, inner - column);
    const std::int64_t start = i / parts * length * inner + column;
    row.for_each([&](std::int64_t at, std::int64_t n) {
      copy_matrix<T>({in + start + at * inner, columns, n, 1, inner}, {rows + at, columns, n, length, 1});
    });
    for (std::int64_t j = 0; j < columns; ++j) Function::apply(row, rows + j * length, rows + j * length);
    row.for_each([&](std::int64_t at, std::int64_t n) {
      copy_matrix<T>({rows + at, columns, n, length, 1}, {out + start + at * inner, columns, n, 1, inner});
    });
  };
  const std::int64_t count = outer * parts;
  if (length > kLongRow) {
    Scratch<T> rows(length * std::min(inner, kColumns));
    Row<T> row(length, &ctx);
    for (std::int64_t i = 0; i < count; ++i) run(row, rows.get(), i);
    return;
  }
  const std::int64_t group = std::max<std::int64_t>(1, kRowsChunk / (length * std::min(inner, kColumns)));
  ctx.parallel_for(ceil_div(count, group), [&](std::int64_t chunk) {
    Scratch<T> rows(length * std::min(inner, kColumns));
    Row<T> row(length, nullptr);
    for (std::int64_t i = chunk * group; i < std::min(count, (chunk + 1) * group); ++i) {
      run(row, rows.get(), i);
    }
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
