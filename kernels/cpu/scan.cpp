// scan.cpp: the kernels of cumulative_sum and cumulative_prod.
#include <algorithm>
#include <type_traits>

#include "kernels/cpu/elements.h"
#include "kernels/cpu/half.h"
#include "kernels/cpu/loop_nest.h"
#include "kernels/cpu/register.h"
#include "kernels/functors.h"

namespace thalweg::cpu {
namespace {

/// Neighbouring columns that one parallel chunk combines side by side.
constexpr std::int64_t kColumns = 1024;

/// Elements of rows that one parallel chunk combines.
constexpr std::int64_t kRowsChunk = 32768;

/// A scan along one axis. Operand 0 is the input, operand 1 the output. A row is combined from its first
/// element to its last, whatever its length: pieces put together afterwards could make sums of positive
/// numbers go down where two of them meet.
template <class In, class Out, class Combine>
class Scan {
 public:
  Scan(const KernelContext& ctx, Out first) : ctx_(ctx), first_(first) {
    const TensorView& x = ctx.input(0);
    const TensorView& out = ctx.output();
    const int axis = normalize_axis(ctx.op().name, ctx.attributes().get<std::int64_t>(0), x.rank());
    length_ = x.shape()[axis];
    initial_ = ctx.attributes().get<bool>(2);
    in_stride_ = x.strides()[axis];
    out_stride_ = out.strides()[axis];
    for (int i = 0; i < x.rank(); ++i) {
      if (i != axis) (i < axis ? before_ : after_).add(x.shape()[i], {x.strides()[i], out.strides()[i]});
    }
  }

  void run() const {
    if (ctx_.output().numel() == 0) return;
    if (after_.total() == 1) return run_rows();
    run_columns();
  }

 private:
  const In* input(std::int64_t at) const noexcept { return ctx_.input(0).template as<const In>() + at; }
  Out* output(std::int64_t at) const noexcept { return ctx_.output().template as<Out>() + at; }

  /// Rows in the last axis with more than one element.
  void run_rows() const {
    const std::int64_t rows = before_.total();
    const std::int64_t group = std::max<std::int64_t>(1, kRowsChunk / (length_ + 1));
    ctx_.parallel_for(ceil_div(rows, group), [&](std::int64_t chunk) {
      for (std::int64_t row = chunk * group; row < std::min(rows, (chunk + 1) * group); ++row) {
        const auto start = before_.offsets(row);
        scan_row(input(start[0]), output(start[1]));
      }
    });
  }

  void scan_row(const In* in, Out* out) const noexcept {
    if (initial_) {
      *out = first_;
      out += out_stride_;
    }
    if (length_ == 0) return;
    // The first element as it is: 0 + -0.0 would be 0, and 1 times a complex infinity has a nan in it.
    Out value = *out = static_cast<Out>(*in);
    for (std::int64_t i = 1; i < length_; ++i) {
      value = Combine{}(value, static_cast<Out>(in[i * in_stride_]));
      out[i * out_stride_] = value;
    }
  }

  void run_columns() const {
    const std::int64_t per_place = ceil_div(after_.total(), kColumns);
    ctx_.parallel_for(before_.total() * per_place, [&](std::int64_t chunk) {
      const auto start = before_.offsets(chunk / per_place);
      const std::int64_t begin = chunk % per_place * kColumns;
      scan_columns(input(start[0]), output(start[1]), begin, std::min(after_.total(), begin + kColumns));
    });
  }

  void scan_columns(const In* in, Out* out, std::int64_t begin, std::int64_t end) const noexcept {
    if (initial_) {
      each_column(begin, end, in, out, [&](const In*, Out* to) { *to = first_; });
      out += out_stride_;
    }
    if (length_ == 0) return;
    each_column(begin, end, in, out, [&](const In* from, Out* to) { *to = static_cast<Out>(*from); });
    for (std::int64_t i = 1; i < length_; ++i)
      add_row(begin, end, in + i * in_stride_, out + i * out_stride_);
  }

  /// Combines a row of columns with the row of results before it.
  void add_row(std::int64_t begin, std::int64_t end, const In* in, Out* out) const noexcept {
    const std::int64_t in_step = after_.inner_stride(0);
    after_.run(begin, end, [&](const auto& at, std::int64_t count) {
      const In* from = in + at[0];
      Out* to = out + at[1];
      const Out* before = to - out_stride_;
      if (in_step == 1) {
        // A donated input is overwritten element by element, which a vector's lanes may do together.
#pragma GCC ivdep
        for (std::int64_t i = 0; i < count; ++i) to[i] = Combine{}(before[i], static_cast<Out>(from[i]));
      } else {
        for (std::int64_t i = 0; i < count; ++i) {
          to[i] = Combine{}(before[i], static_cast<Out>(from[i * in_step]));
        }
      }
    });
  }

  template <class Step>
  void each_column(std::int64_t begin, std::int64_t end, const In* in, Out* out, Step&& step) const noexcept {
    after_.run(begin, end, [&](const auto& at, std::int64_t count) {
      for (std::int64_t i = 0; i < count; ++i) {
        step(in + at[0] + i * after_.inner_stride(0), out + at[1] + i * after_.inner_stride(1));
      }
    });
  }

  const KernelContext& ctx_;
  Out first_;
  std::int64_t length_;
  bool initial_;
  std::int64_t in_stride_;
  std::int64_t out_stride_;
  LoopNest<2> before_;
  LoopNest<2> after_;
};

/// The dtypes of inputs and results that inference lets meet: equal ones, and integers with their
/// accumulator.
template <class Combine>
void run_scan(const KernelContext& ctx, int first) {
  visit_element(ctx.input(0).dtype(), [&]<class In>() {
    if constexpr (!std::is_same_v<In, bool>) {
      if (ctx.output().dtype() == ctx.input(0).dtype())
        return Scan<In, In, Combine>(ctx, static_cast<In>(first)).run();
    }
    if constexpr (std::is_integral_v<In>) {
      constexpr bool is_unsigned = std::is_unsigned_v<In> && !std::is_same_v<In, bool>;
      using Natural = std::conditional_t<is_unsigned, std::uint64_t, std::int64_t>;
      Scan<In, Natural, Combine>(ctx, static_cast<Natural>(first)).run();
    }
  });
}

void cumulative_sum_kernel(const KernelContext& ctx) { run_scan<functors::Add>(ctx, 0); }
void cumulative_prod_kernel(const KernelContext& ctx) { run_scan<functors::Multiply>(ctx, 1); }

}  // namespace

void register_scan_kernels(KernelRegistry& registry) {
  registry.add("cumulative_sum", DeviceType::cpu, in_float32(cumulative_sum_kernel));
  registry.add("cumulative_prod", DeviceType::cpu, in_float32(cumulative_prod_kernel));
}

}  // namespace thalweg::cpu
