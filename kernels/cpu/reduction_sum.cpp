// reduction_sum.cpp: kernels of sum, prod and mean.
#include <cmath>
#include <limits>
#include <type_traits>

#include "kernels/cpu/elements.h"
#include "kernels/cpu/reduction.h"
#include "kernels/cpu/reduction_loops.h"

namespace thalweg::cpu {
namespace {

using functors::Complex;
using functors::kIsComplex;

/// Real and complex floating values, which add up in their own type.
template <class T>
inline constexpr bool kIsInexact = std::is_floating_point_v<T> || kIsComplex<T>;

/// Integers add up as unsigned 64-bit words: they wrap as NumPy's do, and a narrower result is their low
/// bytes.
template <class T>
using Accumulator = std::conditional_t<kIsInexact<T>, T, std::uint64_t>;

template <class I, class A>
struct Sum {
  using In = I;
  using Acc = A;
  // -0.0 leaves every value as it is, 0.0 would turn -0.0 into 0.0.
  static Acc identity() noexcept {
    if constexpr (kIsComplex<A>) return {-0.0f, -0.0f};
    return std::is_floating_point_v<A> ? static_cast<A>(-0.0) : static_cast<A>(0);
  }
  static Acc load(In x, Acc) noexcept { return static_cast<Acc>(x); }
  static Acc combine(Acc a, Acc b) noexcept { return a + b; }
  static void combine_leaves(const I* data, std::int64_t count, A* values) noexcept
    requires(kIsInexact<I> && std::is_same_v<I, A>)
  {
    const DenseTable& table = dense_table();
    if constexpr (kIsComplex<I>) {
      using Part = decltype(A::real);
      table_loop<Part>(table.sum_leaves_complex64, table.sum_leaves_complex128)(
          reinterpret_cast<const Part*>(data), count, reinterpret_cast<Part*>(values));
    } else {
      table_loop<I>(table.sum_leaves_float, table.sum_leaves_double)(data, count, values);
    }
  }
  static void combine_columns(const ColumnRows<A>& rows) noexcept
    requires(kIsInexact<I> && std::is_same_v<I, A>)
  {
    const DenseTable& table = dense_table();
    if constexpr (kIsComplex<I>) {
      using Part = decltype(A::real);
      table_loop<Part>(table.sum_columns_float, table.sum_columns_double)(
          {reinterpret_cast<const Part*>(rows.first), reinterpret_cast<const Part*>(rows.rows),
           reinterpret_cast<Part*>(rows.result), 2 * rows.row_stride, rows.count, 2 * rows.width});
    } else {
      table_loop<I>(table.sum_columns_float, table.sum_columns_double)(rows);
    }
  }
};

template <class I, class A>
struct Product {
  using In = I;
  using Acc = A;
  static Acc identity() noexcept { return static_cast<Acc>(1); }
  static Acc load(In x, Acc) noexcept { return static_cast<Acc>(x); }
  static Acc combine(Acc a, Acc b) noexcept { return a * b; }
};

/// The sum of two nans is the one or the other of them, as the compiler put the operands. Results must not
/// depend on that, so all become the same nan.
template <class T>
T with_one_nan(T value) noexcept {
  if constexpr (kIsComplex<T>) {
    return {with_one_nan(value.real), with_one_nan(value.imag)};
  } else {
    return value != value ? std::numeric_limits<T>::quiet_NaN() : value;
  }
}

/// Stores an accumulator in an output of any dtype of its kind.
template <class Acc>
struct SumSink {
  void* output;
  DType dtype;

  Acc center(std::int64_t) const noexcept { return Acc{}; }
  void store(std::int64_t at, Acc value) const noexcept {
    if constexpr (kIsInexact<Acc>) {
      static_cast<Acc*>(output)[at] = with_one_nan(value);
    } else {
      store_integer(at, value);
    }
  }

 private:
  void store_integer(std::int64_t at, std::uint64_t value) const noexcept {
    if (dtype == DType::bool_) {
      static_cast<bool*>(output)[at] = value != 0;
      return;
    }
    switch (item_size(dtype)) {
      case 1: static_cast<std::uint8_t*>(output)[at] = static_cast<std::uint8_t>(value); break;
      case 2: static_cast<std::uint16_t*>(output)[at] = static_cast<std::uint16_t>(value); break;
      case 4: static_cast<std::uint32_t*>(output)[at] = static_cast<std::uint32_t>(value); break;
      default: static_cast<std::uint64_t*>(output)[at] = value;
    }
  }
};

template <class Acc>
struct MeanSink {
  Acc* output;
  double count;

  Acc center(std::int64_t) const noexcept { return Acc{}; }
  void store(std::int64_t at, Acc value) const noexcept {
    if constexpr (kIsComplex<Acc>) {
      using Part = decltype(value.real);
      output[at] =
          with_one_nan(Acc{value.real / static_cast<Part>(count), value.imag / static_cast<Part>(count)});
    } else {
      output[at] = with_one_nan(value / static_cast<Acc>(count));
    }
  }
};

template <class Acc>
Acc not_a_number() noexcept {
  if constexpr (kIsComplex<Acc>) return {NAN, NAN};
  return static_cast<Acc>(NAN);
}

template <template <class, class> class Reducer>
void run_sum(const KernelContext& ctx, int empty_value) {
  const ReductionPlan plan = plan_reduction(ctx.input(0), reduced_axes(ctx), VisitOrder::any);
  if (plan.kept.total() == 0) return;
  visit_element(ctx.input(0).dtype(), [&]<class T>() {
    using Acc = Accumulator<T>;
    const SumSink<Acc> sink{ctx.output().data, ctx.output().dtype()};
    if (plan.reduced.total() == 0) {
      for (std::int64_t i = 0; i < ctx.output().numel(); ++i) sink.store(i, static_cast<Acc>(empty_value));
    } else {
      reduce<Reducer<T, Acc>>(ctx, plan, sink);
    }
  });
}

}  // namespace

void sum_kernel(const KernelContext& ctx) { run_sum<Sum>(ctx, 0); }

void prod_kernel(const KernelContext& ctx) { run_sum<Product>(ctx, 1); }

void mean_kernel(const KernelContext& ctx) {
  const ReductionPlan plan = plan_reduction(ctx.input(0), reduced_axes(ctx), VisitOrder::any);
  if (plan.kept.total() == 0) return;
  visit_element(ctx.input(0).dtype(), [&]<class T>() {
    using Acc = std::conditional_t<kIsInexact<T>, T, double>;
    if (plan.reduced.total() == 0) return fill_output(ctx, not_a_number<Acc>());
    reduce<Sum<T, Acc>>(ctx, plan,
                        MeanSink<Acc>{ctx.output().as<Acc>(), static_cast<double>(plan.reduced.total())});
  });
}

}  // namespace thalweg::cpu
