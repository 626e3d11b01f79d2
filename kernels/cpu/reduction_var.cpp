// reduction_var.cpp: kernels of var and std, in two passes: the means go to the output first, then the
// squared differences from them.
#include <cmath>
#include <limits>
#include <type_traits>

#include "kernels/cpu/reduction.h"
#include "kernels/cpu/reduction_loops.h"

namespace thalweg::cpu {
namespace {

template <class I, class A>
struct SquaredDifference {
  using In = I;
  using Acc = A;
  static Acc identity() noexcept { return Acc{0}; }
  static Acc load(In x, Acc center) noexcept {
    const Acc difference = static_cast<Acc>(x) - center;
    return difference * difference;
  }
  static Acc combine(Acc a, Acc b) noexcept { return a + b; }
};

/// Reads the means from the output and replaces each by its variance.
template <class Acc>
struct VarianceSink {
  Acc* output;
  Acc divisor;
  bool root;

  Acc center(std::int64_t at) const noexcept { return output[at]; }
  void store(std::int64_t at, Acc value) const noexcept {
    const Acc variance = value / divisor;
    output[at] = root ? std::sqrt(variance) : variance;
  }
};

enum class Moment { variance, deviation };

void run_var(const KernelContext& ctx, Moment moment) {
  const ReductionPlan plan = plan_reduction(ctx.input(0), reduced_axes(ctx), VisitOrder::any);
  if (plan.kept.total() == 0) return;
  mean_kernel(ctx);
  if (plan.reduced.total() == 0) return;
  const double correction = ctx.attributes().get_or<double>(2, 0.0);
  const double divisor = std::max(0.0, static_cast<double>(plan.reduced.total()) - correction);
  visit_real_dtype(ctx.input(0).dtype(), [&]<class T>() {
    using Acc = std::conditional_t<std::is_floating_point_v<T>, T, double>;
    reduce<SquaredDifference<T, Acc>>(
        ctx, plan,
        VarianceSink<Acc>{ctx.output().as<Acc>(), static_cast<Acc>(divisor), moment == Moment::deviation});
  });
}

}  // namespace

void var_kernel(const KernelContext& ctx) { run_var(ctx, Moment::variance); }

void std_kernel(const KernelContext& ctx) { run_var(ctx, Moment::deviation); }

}  // namespace thalweg::cpu
