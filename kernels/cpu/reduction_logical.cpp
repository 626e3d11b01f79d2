// reduction_logical.cpp: kernels of any, all and count_nonzero.
#include <algorithm>
#include <numeric>
#include <type_traits>
#include <vector>

#include "kernels/cpu/elements.h"
#include "kernels/cpu/filter_table.h"
#include "kernels/cpu/nd_copy.h"
#include "kernels/cpu/reduction.h"
#include "kernels/cpu/reduction_loops.h"
#include "kernels/cpu/strided_loop.h"

namespace thalweg::cpu {
namespace {

template <class T>
struct Any {
  using In = T;
  using Acc = std::uint8_t;
  static Acc identity() noexcept { return 0; }
  static Acc load(In x, Acc) noexcept { return functors::Convert<bool, In>{}(x); }
  static Acc combine(Acc a, Acc b) noexcept { return a | b; }
};

template <class T>
struct All {
  using In = T;
  using Acc = std::uint8_t;
  static Acc identity() noexcept { return 1; }
  static Acc load(In x, Acc) noexcept { return functors::Convert<bool, In>{}(x); }
  static Acc combine(Acc a, Acc b) noexcept { return a & b; }
};

template <class T>
struct CountNonzero {
  using In = T;
  using Acc = std::int64_t;
  static Acc identity() noexcept { return 0; }
  static Acc load(In x, Acc) noexcept { return functors::Convert<bool, In>{}(x); }
  static Acc combine(Acc a, Acc b) noexcept { return a + b; }
};

template <class Acc>
struct LogicalSink {
  Acc* output;

  static Acc center(std::int64_t) noexcept { return 0; }
  void store(std::int64_t at, Acc value) const noexcept { output[at] = value; }
};

/// Counts along rows of neighbours, the threads sharing the elements of long rows and the rows else.
template <class T>
void count_rows(const KernelContext& ctx, const ReductionPlan& plan) {
  const FilterLoops<T>& loops = filter_table();
  const std::int64_t length = plan.reduced.total();
  const std::int64_t rows = plan.kept.total();
  const T* in = ctx.input(0).as<const T>();
  std::int64_t* out = ctx.output().as<std::int64_t>();
  if (length > kReduceChunk) {
    std::vector<std::int64_t> found(static_cast<std::size_t>(ceil_div(length, kReduceChunk)));
    for (std::int64_t row = 0; row < rows; ++row) {
      const auto at = plan.kept.offsets(row);
      for_chunks(ctx, length, static_cast<std::int64_t>(found.size()), [&](std::int64_t chunk) {
        const std::int64_t begin = chunk * kReduceChunk;
        found[chunk] = loops.count_differs(in + at[0] + begin, std::min(kReduceChunk, length - begin), T(0));
      });
      out[at[1]] = std::reduce(found.begin(), found.end());
    }
    return;
  }
  const std::int64_t group = std::max<std::int64_t>(1, kReduceChunk / length);
  for_chunks(ctx, rows * length, ceil_div(rows, group), [&](std::int64_t chunk) {
    for (std::int64_t row = chunk * group; row < std::min(rows, (chunk + 1) * group); ++row) {
      const auto at = plan.kept.offsets(row);
      out[at[1]] = loops.count_differs(in + at[0], length, T(0));
    }
  });
}

template <class Reducer, class Sink>
void reduce_logical(const KernelContext& ctx, const ReductionPlan& plan, const Sink& sink) {
  using In = typename Reducer::In;
  if constexpr (std::is_same_v<Reducer, CountNonzero<In>> && std::is_arithmetic_v<In>) {
    const LoopNest<1>& reduced = plan.reduced;
    if (!plan.by_column && reduced.rank() == 1 && reduced.inner_stride(0) == 1) {
      return count_rows<In>(ctx, plan);
    }
  }
  reduce<Reducer>(ctx, plan, sink);
}

template <template <class> class Reducer>
void run_logical(const KernelContext& ctx) {
  const ReductionPlan plan = plan_reduction(ctx.input(0), reduced_axes(ctx), VisitOrder::any);
  if (plan.kept.total() == 0) return;
  using Acc = typename Reducer<std::uint8_t>::Acc;
  const LogicalSink<Acc> sink{ctx.output().as<Acc>()};
  if (plan.reduced.total() == 0) return fill_output(ctx, Reducer<std::uint8_t>::identity());
  const DType dtype = ctx.input(0).dtype();
  // Only -0.0 and nan tell a floating zero from an integer one; of integers the size is enough.
  if (dtype == DType::float32) return reduce_logical<Reducer<float>>(ctx, plan, sink);
  if (dtype == DType::float64) return reduce_logical<Reducer<double>>(ctx, plan, sink);
  if (dtype == DType::complex64) return reduce_logical<Reducer<functors::Complex<float>>>(ctx, plan, sink);
  if (dtype == DType::complex128) return reduce_logical<Reducer<functors::Complex<double>>>(ctx, plan, sink);
  visit_unsigned(item_size(dtype), [&]<class T>() { reduce_logical<Reducer<T>>(ctx, plan, sink); });
}

}  // namespace

void any_kernel(const KernelContext& ctx) { run_logical<Any>(ctx); }

void all_kernel(const KernelContext& ctx) { run_logical<All>(ctx); }

void count_nonzero_kernel(const KernelContext& ctx) { run_logical<CountNonzero>(ctx); }

}  // namespace thalweg::cpu
