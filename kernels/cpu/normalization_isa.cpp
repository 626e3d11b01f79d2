// normalization_isa.cpp: loops over rows for softmax and layer normalisation, compiled once per instruction
// set.
#include "kernels/cpu/float32_functions.h"
#include "kernels/cpu/normalization_table.h"

namespace thalweg::cpu::THALWEG_ISA {
namespace {

/// Bytes of the sums that are kept side by side. The same for every instruction set, so that all of them
/// associate alike.
constexpr int kSumBytes = 256;

struct DoubleExp {
  using Lanes = Float64Lanes;
  static THALWEG_HD Lanes::Vector apply(Lanes::Vector x) { return THALWEG_SLEEF_F64(exp, u10)(x); }
};

struct Sum {
  template <class Number>
  static THALWEG_HD Number combine(Number a, Number b) {
    return a + b;
  }
};
struct Largest {
  template <class Number>
  static THALWEG_HD Number combine(Number a, Number b) {
    return b > a ? b : a;
  }
};

/// The first `count` lanes of a register, others are `padding`.
template <class Lanes>
THALWEG_HD typename Lanes::Vector load_padded(const typename Lanes::Element* source, int64_t count,
                                              typename Lanes::Vector padding) {
  static const typename Lanes::Element numbers[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  const auto given =
      gather<Lanes>(reinterpret_cast<const char*>(source), sizeof(typename Lanes::Element), count);
  const auto limit = Lanes::splat(static_cast<typename Lanes::Element>(count));
  return load<Lanes>(numbers) < limit ? given : padding;
}

/// Combines `of(register, position, elements in it)` for a row; lanes behind its end see `padding`.
template <class Lanes, class Combine, class Of>
THALWEG_HD typename Lanes::Element reduce(const typename Lanes::Element* in, int64_t count,
                                          typename Lanes::Element start, typename Lanes::Element padding,
                                          Of of) {
  using Vector = typename Lanes::Vector;
  constexpr int registers = kSumBytes / static_cast<int>(sizeof(Vector));
  constexpr int width = Lanes::width;
  Vector sums[registers];
  for (int r = 0; r < registers; ++r) sums[r] = Lanes::splat(start);
  int64_t done = 0;
  for (; done + registers * width <= count; done += registers * width) {
    for (int r = 0; r < registers; ++r) {
      const int64_t at = done + r * width;
      sums[r] = Combine::combine(sums[r], of(load<Lanes>(in + at), at, int64_t{width}));
    }
  }
  for (int r = 0; r < registers; ++r, done += width) {
    if (count - done >= width) {
      sums[r] = Combine::combine(sums[r], of(load<Lanes>(in + done), done, int64_t{width}));
    } else if (count > done) {
      const Vector last = load_padded<Lanes>(in + done, count - done, Lanes::splat(padding));
      sums[r] = Combine::combine(sums[r], of(last, done, count - done));
    }
  }
  for (int half = registers / 2; half > 0; half /= 2) {
    for (int r = 0; r < half; ++r) sums[r] = Combine::combine(sums[r], sums[r + half]);
  }
  typename Lanes::Element lanes[width];
  store<Lanes>(lanes, sums[0]);
  for (int half = width / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) lanes[i] = Combine::combine(lanes[i], lanes[i + half]);
  }
  return lanes[0];
}

/// out = of(in, position, elements in the register).
template <class Lanes, class Of>
THALWEG_HD void map(const typename Lanes::Element* in, typename Lanes::Element* out, int64_t count, Of of) {
  constexpr int64_t item = sizeof(typename Lanes::Element);
  int64_t done = 0;
  for (; done + Lanes::width <= count; done += Lanes::width) {
    store<Lanes>(out + done, of(load<Lanes>(in + done), done, int64_t{Lanes::width}));
  }
  if (done == count) return;
  const auto last = gather<Lanes>(reinterpret_cast<const char*>(in + done), item, count - done);
  scatter<Lanes>(reinterpret_cast<char*>(out + done), item, count - done, of(last, done, count - done));
}

template <class Exp>
struct Rows {
  using Lanes = typename Exp::Lanes;
  using T = typename Lanes::Element;
  using Vector = typename Lanes::Vector;
  static constexpr T kLowest = -static_cast<T>(__builtin_inff());

  /// So many elements, a register's worth at most.
  static THALWEG_HD Vector take(const T* data, int64_t part) {
    if (part == Lanes::width) return load<Lanes>(data);
    return gather<Lanes>(reinterpret_cast<const char*>(data), sizeof(T), part);
  }
  static THALWEG_HD void put(T* data, int64_t part, Vector x) {
    if (part == Lanes::width) return store<Lanes>(data, x);
    scatter<Lanes>(reinterpret_cast<char*>(data), sizeof(T), part, x);
  }

  static T largest(const T* in, int64_t count) {
    return reduce<Lanes, Largest>(in, count, kLowest, kLowest, [](Vector x, int64_t, int64_t) { return x; });
  }

  static T exp(const T* in, T shift, T* out, int64_t count) {
    const Vector shifts = Lanes::splat(shift);
    return reduce<Lanes, Sum>(in, count, 0, kLowest, [&](Vector x, int64_t at, int64_t part) {
      const Vector power = Exp::apply(x - shifts);
      put(out + at, part, power);
      return power;
    });
  }

  static T exp_sum(const T* in, T shift, int64_t count) {
    const Vector shifts = Lanes::splat(shift);
    return reduce<Lanes, Sum>(in, count, 0, kLowest,
                              [&](Vector x, int64_t, int64_t) { return Exp::apply(x - shifts); });
  }

  static void subtract(const T* in, T shift, T further, T* out, int64_t count) {
    const Vector shifts = Lanes::splat(shift);
    const Vector others = Lanes::splat(further);
    map<Lanes>(in, out, count, [&](Vector x, int64_t, int64_t) { return (x - shifts) - others; });
  }

  /// `body(row * step + column, column, elements)` for every register of every row.
  template <class Body>
  static THALWEG_HD void for_each(int64_t rows, int64_t step, int64_t count, Body body) {
    for (int64_t row = 0; row < rows; ++row) {
      int64_t column = 0;
      for (; column + Lanes::width <= count; column += Lanes::width) {
        body(row * step + column, column, int64_t{Lanes::width});
      }
      if (column < count) body(row * step + column, column, count - column);
    }
  }

  static void largest_down(const T* in, int64_t rows, int64_t step, T* best, int64_t count) {
    for_each(rows, step, count, [&](int64_t at, int64_t column, int64_t part) {
      put(best + column, part, Largest::combine(take(best + column, part), take(in + at, part)));
    });
  }

  static void exp_down(const T* in, int64_t rows, int64_t step, const T* shifts, T* out, T* sums,
                       int64_t count) {
    for_each(rows, step, count, [&](int64_t at, int64_t column, int64_t part) {
      const Vector power = Exp::apply(take(in + at, part) - take(shifts + column, part));
      if (out != nullptr) put(out + at, part, power);
      put(sums + column, part, take(sums + column, part) + power);
    });
  }

  static void subtract_down(const T* in, int64_t rows, int64_t step, const T* shifts, const T* further,
                            T* out, int64_t count) {
    for_each(rows, step, count, [&](int64_t at, int64_t column, int64_t part) {
      put(out + at, part, (take(in + at, part) - take(shifts + column, part)) - take(further + column, part));
    });
  }

  static void scale_down(T* data, int64_t rows, int64_t step, const T* factors, int64_t count) {
    for_each(rows, step, count, [&](int64_t at, int64_t column, int64_t part) {
      put(data + at, part, take(data + at, part) * take(factors + column, part));
    });
  }

  static T sum(const T* in, int64_t count) {
    return reduce<Lanes, Sum>(in, count, 0, 0, [](Vector x, int64_t, int64_t) { return x; });
  }

  static T square_sum(const T* in, T mean, int64_t count) {
    const Vector means = Lanes::splat(mean);
    return reduce<Lanes, Sum>(in, count, 0, mean, [&](Vector x, int64_t, int64_t) {
      const Vector distance = x - means;
      return distance * distance;
    });
  }

  static void normalize(const T* in, T mean, T factor, const T* weight, const T* bias, T* out,
                        int64_t count) {
    const Vector means = Lanes::splat(mean);
    const Vector factors = Lanes::splat(factor);
    const auto unscaled = [&](Vector x, int64_t, int64_t) { return (x - means) * factors; };
    if (weight == nullptr) return map<Lanes>(in, out, count, unscaled);
    const auto scaled = [&](Vector x, int64_t at, int64_t part) {
      return unscaled(x, at, part) * take(weight + at, part);
    };
    if (bias == nullptr) return map<Lanes>(in, out, count, scaled);
    map<Lanes>(in, out, count, [&](Vector x, int64_t at, int64_t part) {
      return scaled(x, at, part) + take(bias + at, part);
    });
  }

  static void fill(RowLoops<T>& loops) {
    loops = {largest,  exp,           exp_sum,    subtract,   sum,      largest_down,
             exp_down, subtract_down, scale_down, square_sum, normalize};
  }
};

}  // namespace

void fill_normalization(NormalizationTable& table) {
  Rows<FloatExp>::fill(table);
  Rows<DoubleExp>::fill(table);
}

}  // namespace thalweg::cpu::THALWEG_ISA
