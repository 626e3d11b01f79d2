// reduction_logical.cpp: kernels of any, all and count_nonzero.
#include "kernels/cpu/elements.h"
#include "kernels/cpu/nd_copy.h"
#include "kernels/cpu/reduction.h"
#include "kernels/cpu/reduction_loops.h"

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

template <template <class> class Reducer>
void run_logical(const KernelContext& ctx) {
  const ReductionPlan plan = plan_reduction(ctx.input(0), reduced_axes(ctx), VisitOrder::any);
  if (plan.kept.total() == 0) return;
  using Acc = typename Reducer<std::uint8_t>::Acc;
  const LogicalSink<Acc> sink{ctx.output().as<Acc>()};
  if (plan.reduced.total() == 0) return fill_output(ctx, Reducer<std::uint8_t>::identity());
  const DType dtype = ctx.input(0).dtype();
  // Only -0.0 and nan tell a floating zero from an integer one; of integers the size is enough.
  if (dtype == DType::float32) return reduce<Reducer<float>>(ctx, plan, sink);
  if (dtype == DType::float64) return reduce<Reducer<double>>(ctx, plan, sink);
  if (dtype == DType::complex64) return reduce<Reducer<functors::Complex<float>>>(ctx, plan, sink);
  if (dtype == DType::complex128) return reduce<Reducer<functors::Complex<double>>>(ctx, plan, sink);
  visit_unsigned(item_size(dtype), [&]<class T>() { reduce<Reducer<T>>(ctx, plan, sink); });
}

}  // namespace

void any_kernel(const KernelContext& ctx) { run_logical<Any>(ctx); }

void all_kernel(const KernelContext& ctx) { run_logical<All>(ctx); }

void count_nonzero_kernel(const KernelContext& ctx) { run_logical<CountNonzero>(ctx); }

}  // namespace thalweg::cpu
