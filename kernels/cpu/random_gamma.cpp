// random_gamma.cpp: the kernel of gamma.
#include <cmath>
#include <cstdint>
#include <limits>

#include <sleef.h>

#include "kernels/cpu/half.h"
#include "kernels/cpu/nd_copy.h"
#include "kernels/cpu/register.h"
#include "kernels/philox.h"

namespace thalweg::cpu {
namespace {

using functors::random_pair;
using functors::RandomPair;
using functors::unit_interval;

/// Elements that one thread draws at a time.
constexpr std::int64_t kGammaChunk = 1024;

/// The blocks of one counter, one after the other: attempt 0 is for the first number, 1 for the next, ...
class Draws {
 public:
  Draws(std::uint64_t seed, std::uint64_t counter) noexcept : seed_(seed), counter_(counter) {}

  RandomPair next() noexcept { return random_pair(seed_, counter_, attempt_++); }

  /// Box and Muller's cosine half (1958).
  double normal() noexcept {
    const RandomPair pair = next();
    const double radius = std::sqrt(-2 * Sleef_cinz_logd1_u10purec(unit_interval(pair.first) + 0x1p-53));
    return radius * Sleef_cinz_cospid1_u05purec(2 * unit_interval(pair.second));
  }

 private:
  std::uint64_t seed_;
  std::uint64_t counter_;
  std::uint32_t attempt_ = 0;
};

/// Marsaglia and Tsang: A simple method for generating gamma variables (ACM TOMS 26, 2000). SLEEF's functions
/// without fused multiply-add, so that numbers do not depend on the processor.
double standard_gamma(double concentration, Draws draws) noexcept {
  if (!(concentration >= 0)) return std::numeric_limits<double>::quiet_NaN();
  if (concentration == 0 || std::isinf(concentration)) return concentration;
  // Below 1: a number of concentration + 1 times a power of a uniform one (the same paper, section 6).
  double logarithm = 0;
  if (concentration < 1) {
    logarithm = Sleef_cinz_logd1_u10purec(unit_interval(draws.next().first) + 0x1p-53) / concentration;
    concentration += 1;
  }
  const double d = concentration - 1.0 / 3;
  const double c = 1 / std::sqrt(9 * d);
  double v = 0;
  for (;;) {
    const double x = draws.normal();
    v = 1 + c * x;
    if (v <= 0) continue;
    v = v * v * v;
    const double u = unit_interval(draws.next().first) + 0x1p-53;
    if (u < 1 - 0.0331 * (x * x) * (x * x)) break;
    if (Sleef_cinz_logd1_u10purec(u) < 0.5 * x * x + d * (1 - v + Sleef_cinz_logd1_u10purec(v))) {
      break;
    }
  }
  const double value = d * v;
  return logarithm == 0 ? value : value * Sleef_cinz_expd1_u10purec(logarithm);
}

template <class T>
void run_gamma(const KernelContext& ctx) {
  const auto scale = ctx.attributes().get<double>(0);
  const auto seed = static_cast<std::uint64_t>(ctx.attributes().get<std::int64_t>(2));
  const auto counter = static_cast<std::uint64_t>(ctx.attributes().get<std::int64_t>(3));
  const TensorView& concentration = ctx.input(0);
  const TensorView& out = ctx.output();
  const LoopNest<2> nest = copy_nest(out.shape(), concentration.strides(), out.strides());
  const std::int64_t total = nest.total();
  ctx.parallel_for(ceil_div(total, kGammaChunk), [&](std::int64_t chunk) {
    const std::int64_t begin = chunk * kGammaChunk;
    nest.run(begin, std::min(total, begin + kGammaChunk), [&](const auto& at, std::int64_t count) {
      for (std::int64_t i = 0; i < count; ++i) {
        const double k = concentration.as<const double>()[at[0] + i * nest.inner_stride(0)];
        // The output is contiguous: where an element lies is its number.
        const std::int64_t element = at[1] + i * nest.inner_stride(1);
        const Draws draws(seed, counter + static_cast<std::uint64_t>(element));
        out.as<T>()[element] = static_cast<T>(scale * standard_gamma(k, draws));
      }
    });
  });
}

}  // namespace

void register_gamma_kernel(KernelRegistry& registry) {
  registry.add("gamma", DeviceType::cpu, in_float64([](const KernelContext& ctx) {
                 ctx.output().dtype() == DType::float32 ? run_gamma<float>(ctx) : run_gamma<double>(ctx);
               }));
}

}  // namespace thalweg::cpu
