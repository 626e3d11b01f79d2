// creation.cpp: kernels of empty, full, arange, linspace and eye.
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/cpu/half.h"
#include "kernels/cpu/register.h"
#include "kernels/cpu/strided_loop.h"
#include "kernels/functors.h"

namespace thalweg::cpu {
namespace {

/// A scalar as NumPy casts it to an element of type T.
template <class T>
T element(const Scalar& value) {
  if constexpr (kIsStdComplex<T>) {
    return value.to<T>();
  } else if (value.kind() == DTypeKind::floating) {
    return functors::Convert<T, double>{}(value.to<double>());
  } else {
    return value.to<T>();
  }
}

/// `store(T, begin, end)` for the parts of the output, T being its element type.
template <class Store>
void for_output(const KernelContext& context, Store store) {
  visit_dtype(context.output().dtype(), [&]<class T>() {
    T* out = context.output().as<T>();
    for_ranges(context, context.output().numel(),
               [&](std::int64_t begin, std::int64_t end) { store(out, begin, end); });
  });
}

/// As `for_output`, for what has no complex meaning.
template <class Store>
void for_real_output(const KernelContext& context, Store store) {
  visit_real_dtype(context.output().dtype(), [&]<class T>() {
    T* out = context.output().as<T>();
    for_ranges(context, context.output().numel(),
               [&](std::int64_t begin, std::int64_t end) { store(out, begin, end); });
  });
}

/// Any bytes will do, except that a bool may only be 0 or 1.
void run_empty(const KernelContext& context) {
  if (context.output().dtype() != DType::bool_) return;
  std::memset(context.output().data, 0, static_cast<std::size_t>(context.output().numel()));
}

void run_full(const KernelContext& context) {
  const auto& value = context.attributes().get<Scalar>(1);
  const TensorView& out = context.output();
  if (is_half(out.dtype())) {
    const std::uint16_t bits = to_half(value, out.dtype());
    return for_ranges(context, out.numel(), [&](std::int64_t begin, std::int64_t end) {
      std::fill(out.as<std::uint16_t>() + begin, out.as<std::uint16_t>() + end, bits);
    });
  }
  for_output(context, [&]<class T>(T* out, std::int64_t begin, std::int64_t end) {
    std::fill(out + begin, out + end, element<T>(value));
  });
}

/// The value after `start`. Integers stay integers, as they may be too large for a double.
template <class T>
T second_value(const Scalar& start, const Scalar& step) {
  if (start.kind() == DTypeKind::floating || step.kind() == DTypeKind::floating) {
    return functors::Convert<T, double>{}(start.to<double>() + step.to<double>());
  }
  if constexpr (std::is_floating_point_v<T>) {
    if (start.kind() != step.kind()) return static_cast<T>(start.to<double>() + step.to<double>());
  }
  auto sum = static_cast<std::int64_t>(start.to<std::uint64_t>() + step.to<std::uint64_t>());
  return start.kind() == DTypeKind::unsigned_integer ? static_cast<T>(static_cast<std::uint64_t>(sum))
                                                     : static_cast<T>(sum);
}

// As in NumPy the first two values are exact and their difference, taken in the output's dtype, is the step.
void run_arange(const KernelContext& context) {
  const auto& start = context.attributes().get<Scalar>(0);
  const auto& step = context.attributes().get<Scalar>(2);
  for_real_output(context, [&]<class T>(T* out, std::int64_t begin, std::int64_t end) {
    const T first = element<T>(start);
    const T second = second_value<T>(start, step);
    const T delta = functors::Subtract{}(second, first);
    for (std::int64_t i = begin; i < end; ++i) {
      out[i] = functors::Add{}(first, functors::Multiply{}(static_cast<T>(i), delta));
    }
    if (begin <= 1 && end > 1) out[1] = second;
  });
}

/// The values of linspace between two real numbers.
class Spacing {
 public:
  Spacing(double start, double stop, std::int64_t count, bool endpoint)
      : start_(start),
        stop_(stop),
        parts_(static_cast<double>(endpoint ? count - 1 : count)),
        step_(parts_ > 0 ? (stop - start) / parts_ : 0),
        last_(endpoint && count > 1 ? count - 1 : -1) {}

  double operator()(std::int64_t i) const {
    if (i == last_) return stop_;
    auto place = static_cast<double>(i);
    // A step that underflows to 0 must not make all values equal.
    const bool tiny = step_ == 0 && parts_ > 0;
    return (tiny ? place / parts_ * (stop_ - start_) : place * step_) + start_;
  }

 private:
  double start_, stop_, parts_, step_;
  std::int64_t last_;
};

void run_linspace(const KernelContext& context) {
  const auto start = context.attributes().get<Scalar>(0).to<std::complex<double>>();
  const auto stop = context.attributes().get<Scalar>(1).to<std::complex<double>>();
  const auto count = context.attributes().get<std::int64_t>(2);
  const bool endpoint = context.attributes().get<bool>(3);
  const Spacing real(start.real(), stop.real(), count, endpoint);
  const Spacing imag(start.imag(), stop.imag(), count, endpoint);
  for_output(context, [&]<class T>(T* out, std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      if constexpr (kIsStdComplex<T>) {
        using Part = typename T::value_type;
        out[i] = T(static_cast<Part>(real(i)), static_cast<Part>(imag(i)));
      } else {
        const double exact = std::is_floating_point_v<T> ? real(i) : std::floor(real(i));
        out[i] = functors::Convert<T, double>{}(exact);
      }
    }
  });
}

void run_eye(const KernelContext& context) {
  const TensorView& out = context.output();
  std::int64_t rows = out.shape()[0];
  std::int64_t columns = out.shape()[1];
  std::int64_t diagonal = context.attributes().get<std::int64_t>(2);
  visit_dtype(out.dtype(), [&]<class T>() {
    for_ranges(context, out.numel(), [&](std::int64_t begin, std::int64_t end) {
      std::fill(out.as<T>() + begin, out.as<T>() + end, T(0));
    });
    if (diagonal >= columns || diagonal <= -rows) return;
    std::int64_t row = diagonal < 0 ? -diagonal : 0;
    for (std::int64_t column = diagonal > 0 ? diagonal : 0; row < rows && column < columns; ++row, ++column) {
      out.as<T>()[row * columns + column] = T(1);
    }
  });
}

}  // namespace

void register_creation_kernels(KernelRegistry& registry) {
  registry.add("empty", DeviceType::cpu, run_empty);
  registry.add("full", DeviceType::cpu, run_full);
  registry.add("arange", DeviceType::cpu, in_float64(run_arange));
  registry.add("linspace", DeviceType::cpu, in_float64(run_linspace));
  registry.add("eye", DeviceType::cpu, in_float64(run_eye));
}

}  // namespace thalweg::cpu
