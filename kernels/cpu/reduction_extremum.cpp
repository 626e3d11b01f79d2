// reduction_extremum.cpp: kernels of max and min.
#include <limits>
#include <type_traits>

#include "kernels/cpu/reduction.h"
#include "kernels/cpu/reduction_loops.h"

namespace thalweg::cpu {
namespace {

template <class T>
struct Max {
  using In = T;
  using Acc = T;
  static Acc identity() noexcept {
    return std::is_floating_point_v<T> ? -std::numeric_limits<T>::infinity()
                                       : std::numeric_limits<T>::lowest();
  }
  static Acc load(In x, Acc) noexcept { return x; }
  // nan stays: b > a is false for a nan in a, b != b is true for one in b. Two selections in a row are what
  // compilers turn into SIMD blends.
  static Acc combine(Acc a, Acc b) noexcept {
    const Acc larger = b > a ? b : a;
    return b != b ? b : larger;
  }
  static void combine_leaves(const T* data, std::int64_t count, T* values) noexcept
    requires(std::is_floating_point_v<T>)
  {
    table_loop<T>(dense_table().max_leaves_float, dense_table().max_leaves_double)(data, count, values);
  }
  static void combine_columns(const ColumnRows<T>& rows) noexcept
    requires(std::is_floating_point_v<T>)
  {
    table_loop<T>(dense_table().max_columns_float, dense_table().max_columns_double)(rows);
  }
};

template <class T>
struct Min {
  using In = T;
  using Acc = T;
  static Acc identity() noexcept {
    return std::is_floating_point_v<T> ? std::numeric_limits<T>::infinity() : std::numeric_limits<T>::max();
  }
  static Acc load(In x, Acc) noexcept { return x; }
  static Acc combine(Acc a, Acc b) noexcept {
    const Acc smaller = b < a ? b : a;
    return b != b ? b : smaller;
  }
  static void combine_leaves(const T* data, std::int64_t count, T* values) noexcept
    requires(std::is_floating_point_v<T>)
  {
    table_loop<T>(dense_table().min_leaves_float, dense_table().min_leaves_double)(data, count, values);
  }
  static void combine_columns(const ColumnRows<T>& rows) noexcept
    requires(std::is_floating_point_v<T>)
  {
    table_loop<T>(dense_table().min_columns_float, dense_table().min_columns_double)(rows);
  }
};

template <class T>
struct PlainSink {
  T* output;

  T center(std::int64_t) const noexcept { return T{}; }
  void store(std::int64_t at, T value) const noexcept { output[at] = value; }
};

template <template <class> class Reducer>
void run_extremum(const KernelContext& ctx) {
  const ReductionPlan plan = plan_reduction(ctx.input(0), reduced_axes(ctx), VisitOrder::any);
  // The Op's inference has refused outputs without elements to reduce.
  if (plan.kept.total() == 0) return;
  visit_real_dtype(ctx.input(0).dtype(), [&]<class T>() {
    using Element = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;
    reduce<Reducer<Element>>(ctx, plan, PlainSink<Element>{ctx.output().as<Element>()});
  });
}

}  // namespace

void max_kernel(const KernelContext& ctx) { run_extremum<Max>(ctx); }

void min_kernel(const KernelContext& ctx) { run_extremum<Min>(ctx); }

}  // namespace thalweg::cpu
