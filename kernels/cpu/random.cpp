// random.cpp: kernels of uniform, normal and randint.
#include "kernels/cpu/random.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/cpu/half.h"
#include "kernels/cpu/register.h"
#include "kernels/cpu/scratch.h"
#include "kernels/cpu/strided_loop.h"

namespace thalweg::cpu {

THALWEG_DECLARE_PER_ISA(fill_random, RandomTable)

namespace {

// Attribute positions of the three Ops.
constexpr std::size_t kFirst = 1;
constexpr std::size_t kSecond = 2;
constexpr std::size_t kSeed = 4;
constexpr std::size_t kCounter = 5;
constexpr std::size_t kEndpoint = 7;  // randint only

/// `body(range)` for the parts of the output. Their bounds are even, because chunks are powers of two.
template <class Body>
void for_random_ranges(const KernelContext& context, Body&& body) {
  auto seed = static_cast<std::uint64_t>(context.attributes().get<std::int64_t>(kSeed));
  auto counter = static_cast<std::uint64_t>(context.attributes().get<std::int64_t>(kCounter));
  for_ranges(context, context.output().numel(), [&](std::int64_t begin, std::int64_t end) {
    body(RandomRange{.seed = seed, .counter = counter, .begin = begin, .end = end});
  });
}

template <class T>
UniformBounds uniform_bounds(double low, double high) {
  double below = low == high ? low : std::nextafter(static_cast<T>(high), static_cast<T>(low));
  return {.low = low, .high = high, .below_high = below};
}

/// The largest number of a half-precision dtype that is below `x`.
float number_below(double x, DType dtype) {
  const std::uint16_t bits = to_half(x, dtype);
  const float nearest = from_half(bits, dtype);
  if (nearest < x) return nearest;
  // Without their sign the bits are in the order of the sizes.
  const int below = nearest == 0 ? 0x8001 : nearest > 0 ? bits - 1 : bits + 1;
  return from_half(static_cast<std::uint16_t>(below), dtype);
}

/// In float32, rounded: what would round up to `high` stays at the number below it.
void run_half_uniform(const KernelContext& context, const RandomTable& table) {
  const TensorView& out = context.output();
  const double low = context.attributes().get<double>(kFirst);
  const double high = context.attributes().get<double>(kSecond);
  const UniformBounds bounds = uniform_bounds<float>(low, high);
  const float highest =
      std::max(from_half(to_half(low, out.dtype()), out.dtype()), number_below(high, out.dtype()));
  const Scratch<float> values(out.numel());
  for_random_ranges(context, [&](const RandomRange& range) {
    table.uniform_float32(values.get(), range, bounds);
    for (std::int64_t i = range.begin; i < range.end; ++i) values[i] = std::min(values[i], highest);
    narrow(values.get() + range.begin, out, range.begin, range.end);
  });
}

void run_uniform(const KernelContext& context, const RandomTable& table) {
  if (is_half(context.output().dtype())) return run_half_uniform(context, table);
  double low = context.attributes().get<double>(kFirst);
  double high = context.attributes().get<double>(kSecond);
  const TensorView& out = context.output();
  bool single = out.dtype() == DType::float32;
  UniformBounds bounds = single ? uniform_bounds<float>(low, high) : uniform_bounds<double>(low, high);
  for_random_ranges(context, [&](const RandomRange& range) {
    if (single) return table.uniform_float32(out.as<float>(), range, bounds);
    table.uniform_float64(out.as<double>(), range, bounds);
  });
}

void run_normal(const KernelContext& context, const RandomTable& table) {
  double mean = context.attributes().get<double>(kFirst);
  double deviation = context.attributes().get<double>(kSecond);
  const TensorView& out = context.output();
  for_random_ranges(context, [&](const RandomRange& range) {
    if (out.dtype() == DType::float32) return table.normal_float32(out.as<float>(), range, mean, deviation);
    table.normal_float64(out.as<double>(), range, mean, deviation);
  });
}

void run_randint(const KernelContext& context, const RandomTable& table) {
  auto low = context.attributes().get<Scalar>(kFirst).to<std::uint64_t>();
  auto high = context.attributes().get<Scalar>(kSecond).to<std::uint64_t>();
  // Modulo 2^64 it is right for signed bounds as well; all numbers of 64 bits give 0.
  std::uint64_t count = high - low + (context.attributes().get<bool>(kEndpoint) ? 1 : 0);
  IntegerBounds bounds{.low = low, .count = count, .threshold = count == 0 ? 0 : (0 - count) % count};
  const TensorView& out = context.output();
  auto size = static_cast<int>(item_size(out.dtype()));
  auto loop = table.randint[size == 8 ? 3 : size / 2];
  for_random_ranges(context, [&](const RandomRange& range) { loop(out.data, range, bounds); });
}

}  // namespace

RandomTable random_table(Isa isa) {
  RandomTable table;
  fill_random(isa, table);
  return table;
}

void register_random_kernels(KernelRegistry& registry) {
  static const RandomTable table = random_table(active_isa());
  registry.add("uniform", DeviceType::cpu, [](const KernelContext& context) { run_uniform(context, table); });
  registry.add("normal", DeviceType::cpu,
               in_float32([](const KernelContext& context) { run_normal(context, table); }));
  registry.add("randint", DeviceType::cpu, [](const KernelContext& context) { run_randint(context, table); });
}

}  // namespace thalweg::cpu
