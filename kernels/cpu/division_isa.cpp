// division_isa.cpp: inner loops of floor_divide and remainder, compiled once per instruction set. The
// functors say what the results are; these loops give the same bits, a block of elements at a time and
// without fmod or divisions of integers.
#include <float.h>

#include "kernels/cpu/loops.h"

// libdivide's functions are static; its C++ templates would be shared with the rest of the program and are
// not used.
#if defined(__AVX512F__)
#define LIBDIVIDE_AVX512
#elif defined(__AVX2__)
#define LIBDIVIDE_AVX2
#elif defined(__SSE2__)
#define LIBDIVIDE_SSE2
#endif
#include <libdivide.h>

namespace thalweg::cpu::THALWEG_ISA {
namespace {

using functors::FloorDivide;
using functors::Remainder;
using functors::with_sign;

constexpr int64_t kBlock = 64;
constexpr int64_t kLongBlock = 512;  // where an element takes a fraction of a nanosecond

template <class F>
inline constexpr bool kIsRemainder = false;
template <>
inline constexpr bool kIsRemainder<Remainder> = true;

/// An input's elements block by block: where they lie if they are dense, else copied together.
template <class T, int64_t Block>
class BlockReader {
 public:
  BlockReader(const char* data, int64_t step) : data_(data), step_(step) {
    if (step != 0) return;
    for (T& each : copy_) each = *reinterpret_cast<const T*>(data);
  }

  const T* read(int64_t first, int64_t count) {
    if (step_ == 0) return copy_;
    if (step_ == sizeof(T)) return reinterpret_cast<const T*>(data_) + first;
    for (int64_t i = 0; i < count; ++i) copy_[i] = *reinterpret_cast<const T*>(data_ + (first + i) * step_);
    return copy_;
  }

 private:
  const char* data_;
  int64_t step_;
  T copy_[Block];
};

template <class T>
void write_block(const T* block, int64_t first, int64_t count, char* data, int64_t step) {
  if (step == sizeof(T)) {
    __builtin_memcpy(data + first * step, block, static_cast<size_t>(count) * sizeof(T));
    return;
  }
  for (int64_t i = 0; i < count; ++i) *reinterpret_cast<T*>(data + (first + i) * step) = block[i];
}

/// The floor of an x below 2^22 in size, or 2^51 in double precision: rounded to the nearest integer by an
/// addition that pushes the fraction out, then corrected. All of it vectorises in every instruction set.
template <class Real>
struct Rounding;
template <>
struct Rounding<float> {
  static constexpr float shift = 0x1.8p23f;
};
template <>
struct Rounding<double> {
  static constexpr double shift = 0x1.8p52;
};
template <class Real>
THALWEG_HD Real floor_of_small(Real x) {
  const Real nearest = (x + Rounding<Real>::shift) - Rounding<Real>::shift;
  return nearest - (nearest > x ? Real(1) : Real(0));
}

/// Float32. The quotient of two such numbers in double precision is below an integer where the exact one is
/// (they differ from every integer by more than its rounding error), and so small that the product with the
/// divisor is exact. A single rounding of the difference to float32 follows, as in the functor: a sum of two
/// float32 numbers rounds to the same by way of double precision.
template <class F>
struct Float32Division {
  static constexpr double kLimit = 0x1p21;

  static bool is_regular(double quotient, float b) {
    return (__builtin_fabs(quotient) < kLimit) & (__builtin_fabsf(b) <= FLT_MAX);
  }

  static THALWEG_HD void divide(const float* a, const float* b, float* out, int64_t count) {
    double quotients[kBlock];
    int64_t irregular = 0;
    for (int64_t i = 0; i < count; ++i) {
      const double x = a[i];
      const double y = b[i];
      const double quotient = x / y;
      const double whole = floor_of_small(quotient);
      quotients[i] = quotient;
      irregular |= (__builtin_fabs(quotient) < kLimit) & (__builtin_fabs(y) <= FLT_MAX) ? 0 : 1;
      if constexpr (kIsRemainder<F>) {
        out[i] = static_cast<float>(with_sign(x - whole * y, y));
      } else {
        out[i] = static_cast<float>(with_sign(whole, quotient));
      }
    }
    if (irregular == 0) return;
    for (int64_t i = 0; i < count; ++i) {
      if (!is_regular(quotients[i], b[i])) out[i] = F{}(a[i], b[i]);
    }
  }
};

#if defined(__FMA__)
/// Float64. The rounded quotient is at most one integer too high, which shows in the sign of the rest; a
/// fused multiply-add has the rest of a quotient rounded down, with the functor's one rounding.
template <class F>
struct Float64Division {
  static constexpr double kLimit = 0x1p50;

  static THALWEG_HD void divide(const double* a, const double* b, double* out, int64_t count) {
    double quotients[kBlock];
    int64_t irregular = 0;
    for (int64_t i = 0; i < count; ++i) {
      const double x = a[i];
      const double y = b[i];
      const double quotient = x / y;
      const double whole = floor_of_small(quotient);
      const double rest = __builtin_fma(-whole, y, x);
      const bool too_high = (rest != 0) & ((rest < 0) != (y < 0));
      quotients[i] = quotient;
      irregular |= (__builtin_fabs(quotient) < kLimit) & (__builtin_fabs(y) <= DBL_MAX) ? 0 : 1;
      if constexpr (kIsRemainder<F>) {
        out[i] = with_sign(too_high ? rest + y : rest, y);
      } else {
        out[i] = too_high ? whole - 1 : with_sign(whole, quotient);
      }
    }
    if (irregular == 0) return;
    for (int64_t i = 0; i < count; ++i) {
      if (!((__builtin_fabs(quotients[i]) < kLimit) & (__builtin_fabs(b[i]) <= DBL_MAX)))
        out[i] = F{}(a[i], b[i]);
    }
  }
};
#endif

/// Integers of 8 and 16 bits, whose quotients in single precision are below an integer where the exact ones
/// are.
template <class F, class T>
struct NarrowDivision {
  static THALWEG_HD void divide(const T* a, const T* b, T* out, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      const int32_t divisor = b[i];
      const float x = static_cast<float>(static_cast<int32_t>(a[i]));
      const float y = static_cast<float>(divisor + int32_t{divisor == 0});
      const float whole = floor_of_small(x / y);
      const int32_t result = static_cast<int32_t>(kIsRemainder<F> ? x - whole * y : whole);
      out[i] = static_cast<T>(result & -int32_t{divisor != 0});
    }
  }
};

/// Integers of 32 and 64 bits, in double precision; of the latter those below 2^51 in size, others one by
/// one.
template <class F, class T>
struct WideDivision {
  // An integer n of less than 2^51 in size is the double of these bits plus n, less the double of these bits.
  static constexpr double kShift = Rounding<double>::shift;
  static constexpr uint64_t kShiftBits = 0x4338'0000'0000'0000;

  static THALWEG_HD double real(T x) {
    if constexpr (sizeof(T) == 4 && functors::Properties<T>::is_signed) return x;
    const uint64_t bits = static_cast<uint64_t>(x) + kShiftBits;
    double shifted;
    __builtin_memcpy(&shifted, &bits, sizeof shifted);
    return shifted - kShift;
  }
  static THALWEG_HD T integer(double x) {
    const double shifted = x + kShift;
    uint64_t bits;
    __builtin_memcpy(&bits, &shifted, sizeof bits);
    return static_cast<T>(bits - kShiftBits);
  }
  /// Not 0 if x is too large.
  static THALWEG_HD uint64_t excess(T x) {
    if constexpr (sizeof(T) < 8) return 0;
    if constexpr (!functors::Properties<T>::is_signed) return static_cast<uint64_t>(x) >> 51;
    return (static_cast<uint64_t>(x) + (uint64_t{1} << 51)) >> 52;
  }

  static THALWEG_HD void divide(const T* a, const T* b, T* out, int64_t count) {
    uint64_t irregular = 0;
    for (int64_t i = 0; i < count; ++i) {
      const T zero = static_cast<T>(b[i] == 0);
      const double x = real(a[i]);
      const double y = real(static_cast<T>(b[i] + zero));
      const double whole = floor_of_small(x / y);
      const T result = integer(kIsRemainder<F> ? x - whole * y : whole);
      irregular |= excess(a[i]) | excess(b[i]);
      out[i] = static_cast<T>(result & (zero - T(1)));
    }
    if (irregular == 0) return;
    for (int64_t i = 0; i < count; ++i) {
      if ((excess(a[i]) | excess(b[i])) != 0) out[i] = F{}(a[i], b[i]);
    }
  }
};

template <class Division, class T>
void block_loop(char* const* data, const int64_t* steps, int64_t count) {
  BlockReader<T, kBlock> a(data[1], steps[1]);
  BlockReader<T, kBlock> b(data[2], steps[2]);
  T result[kBlock];
  int64_t first = 0;
  for (; first + kBlock <= count; first += kBlock) {
    Division::divide(a.read(first, kBlock), b.read(first, kBlock), result, kBlock);
    write_block(result, first, kBlock, data[0], steps[0]);
  }
  if (first == count) return;
  const int64_t rest = count - first;
  Division::divide(a.read(first, rest), b.read(first, rest), result, rest);
  write_block(result, first, rest, data[0], steps[0]);
}

/// How a quotient by one divisor, rounded down, comes from one of unsigned numbers: floor(a / d) is ~(~a / d)
/// for a negative a, and a negative d is the same with -a and -d. In short: the quotient of
/// ((a - n) ^ mask) by |d|, ^ mask ^ -n, with n = 1 for a negative d and a mask of ones where a < n.
template <class T, class U>
struct Signs {
  U negative;
  U size;

  explicit Signs(T divisor) : negative(divisor < T(1)), size(static_cast<U>(divisor)) {
    if (negative != 0) size = static_cast<U>(U(0) - size);
  }
  THALWEG_HD U mask(T a) const { return static_cast<U>(U(0) - U(a < static_cast<T>(negative))); }
  THALWEG_HD U dividend(T a) const {
    if constexpr (!functors::Properties<T>::is_signed) return a;
    return static_cast<U>((static_cast<U>(a) - negative) ^ mask(a));
  }
  THALWEG_HD U quotient(U unsigned_quotient, T a) const {
    if constexpr (!functors::Properties<T>::is_signed) return unsigned_quotient;
    return static_cast<U>(unsigned_quotient ^ mask(a) ^ (U(0) - negative));
  }
};

/// 8 and 16 bits, in lanes of 16: T. Granlund and P. L. Montgomery, "Division by Invariant Integers using
/// Multiplication", PLDI 1994, figure 4.1. libdivide begins at 32 bits, which takes twice as long.
template <class F, class T>
class NarrowFixedDivision {
 public:
  explicit NarrowFixedDivision(T divisor) : divisor_(static_cast<uint16_t>(divisor)), signs_(divisor) {
    int log2 = 0;
    while ((1u << log2) < signs_.size) ++log2;
    multiplier_ = static_cast<uint16_t>((((1u << log2) - signs_.size) << 16) / signs_.size + 1);
    first_shift_ = log2 > 0 ? 1 : 0;
    second_shift_ = log2 > 0 ? log2 - 1 : 0;
  }

  void divide(const T* a, T* out, int64_t count) const {
    const auto signs = signs_;
    const uint16_t multiplier = multiplier_;
    const int first_shift = first_shift_;
    const int second_shift = second_shift_;
    const uint16_t divisor = divisor_;
    for (int64_t i = 0; i < count; ++i) {
      const uint16_t x = signs.dividend(a[i]);
      const uint16_t high = static_cast<uint16_t>((static_cast<uint32_t>(x) * multiplier) >> 16);
      const uint16_t rest = static_cast<uint16_t>(static_cast<uint16_t>(x - high) >> first_shift);
      const uint16_t sum = static_cast<uint16_t>(high + rest);
      const uint16_t quotient = signs.quotient(static_cast<uint16_t>(sum >> second_shift), a[i]);
      out[i] = static_cast<T>(kIsRemainder<F> ? static_cast<uint16_t>(a[i]) - quotient * divisor : quotient);
    }
  }

 private:
  uint16_t divisor_;
  Signs<T, uint16_t> signs_;
  uint16_t multiplier_;
  int first_shift_;
  int second_shift_;
};

struct Divider32 {
  using Number = uint32_t;
  libdivide::libdivide_u32_t divider;

  explicit Divider32(uint32_t divisor) : divider(libdivide::libdivide_u32_gen(divisor)) {}
  uint32_t divide(uint32_t x) const { return libdivide::libdivide_u32_do(x, &divider); }
#if defined(LIBDIVIDE_VECTOR_TYPE)
  LIBDIVIDE_VECTOR_TYPE divide(LIBDIVIDE_VECTOR_TYPE x) const {
    return libdivide::libdivide_u32_do_vector(x, &divider);
  }
#endif
};

struct Divider64 {
  using Number = uint64_t;
  libdivide::libdivide_u64_t divider;

  explicit Divider64(uint64_t divisor) : divider(libdivide::libdivide_u64_gen(divisor)) {}
  uint64_t divide(uint64_t x) const { return libdivide::libdivide_u64_do(x, &divider); }
#if defined(LIBDIVIDE_VECTOR_TYPE)
  LIBDIVIDE_VECTOR_TYPE divide(LIBDIVIDE_VECTOR_TYPE x) const {
    return libdivide::libdivide_u64_do_vector(x, &divider);
  }
#endif
};

/// 32 and 64 bits.
template <class F, class T, class Divider>
class WideFixedDivision {
 public:
  explicit WideFixedDivision(T divisor)
      : divisor_(static_cast<U>(divisor)), signs_(divisor), divider_(signs_.size) {}

  void divide(const T* a, T* out, int64_t count) const {
    const auto signs = signs_;
    const U divisor = divisor_;
    alignas(64) U x[kLongBlock];
    for (int64_t i = 0; i < count; ++i) x[i] = signs.dividend(a[i]);
    divide_all(x, count);
    for (int64_t i = 0; i < count; ++i) {
      const U quotient = signs.quotient(x[i], a[i]);
      out[i] = static_cast<T>(kIsRemainder<F> ? static_cast<U>(a[i]) - quotient * divisor : quotient);
    }
  }

 private:
  using U = typename Divider::Number;

  void divide_all(U* x, int64_t count) const {
    const Divider divider = divider_;
    int64_t i = 0;
#if defined(LIBDIVIDE_VECTOR_TYPE)
    constexpr int64_t width = sizeof(LIBDIVIDE_VECTOR_TYPE) / sizeof(U);
    for (; i + width <= count; i += width) {
      auto* vector = reinterpret_cast<LIBDIVIDE_VECTOR_TYPE*>(x + i);
      *vector = divider.divide(*vector);
    }
#endif
    for (; i < count; ++i) x[i] = divider.divide(x[i]);
  }

  U divisor_;
  Signs<T, U> signs_;
  Divider divider_;
};

template <class F, class T>
struct FixedDivisionOf {
  using type = NarrowFixedDivision<F, T>;
};
template <class F, class T>
  requires(sizeof(T) == 4)
struct FixedDivisionOf<F, T> {
  using type = WideFixedDivision<F, T, Divider32>;
};
template <class F, class T>
  requires(sizeof(T) == 8)
struct FixedDivisionOf<F, T> {
  using type = WideFixedDivision<F, T, Divider64>;
};

template <class F, class T>
void fixed_loop(char* const* data, const int64_t* steps, int64_t count) {
  const T divisor = *reinterpret_cast<const T*>(data[2]);
  T result[kLongBlock];
  if (divisor == 0) {
    const T zero = F{}(T(0), divisor);
    for (int64_t i = 0; i < count; ++i) *reinterpret_cast<T*>(data[0] + i * steps[0]) = zero;
    return;
  }
  const typename FixedDivisionOf<F, T>::type division(divisor);
  BlockReader<T, kLongBlock> a(data[1], steps[1]);
  for (int64_t first = 0; first < count; first += kLongBlock) {
    const int64_t length = count - first < kLongBlock ? count - first : kLongBlock;
    division.divide(a.read(first, length), result, length);
    write_block(result, first, length, data[0], steps[0]);
  }
}

/// Below this a divisor's reciprocal costs more than it saves.
constexpr int64_t kFewElements = 32;

// Without vector comparisons of 64 bits the loop in double precision is slower than division.
#if defined(__AVX2__)
constexpr bool kComparesInt64 = true;
#else
constexpr bool kComparesInt64 = false;
#endif

template <class F, class T>
void integer_loop(char* const* data, const int64_t* steps, int64_t count) {
  if (steps[2] == 0 && count >= kFewElements) return fixed_loop<F, T>(data, steps, count);
  if constexpr (sizeof(T) < 4) {
    block_loop<NarrowDivision<F, T>, T>(data, steps, count);
  } else if constexpr (sizeof(T) == 4 || kComparesInt64) {
    block_loop<WideDivision<F, T>, T>(data, steps, count);
  } else {
    binary_loop<F, T, T, T>(data, steps, count);
  }
}

template <class F, class... T>
void fill_integers(Loop* row, Types<T...>) {
  ((row[kLoopIndex<T>] = integer_loop<F, T>), ...);
}

template <class F>
void fill(Loop* row) {
  fill_integers<F>(row, IntegerTypes{});
  row[kLoopIndex<float>] = block_loop<Float32Division<F>, float>;
#if defined(__FMA__)
  row[kLoopIndex<double>] = block_loop<Float64Division<F>, double>;
#else
  row[kLoopIndex<double>] = binary_loop<F, double, double, double>;
#endif
}

}  // namespace

void fill_division(ElementwiseTable& table) {
  fill<FloorDivide>(table.binary[static_cast<int>(BinaryFn::floor_divide)]);
  fill<Remainder>(table.binary[static_cast<int>(BinaryFn::remainder)]);
}

}  // namespace thalweg::cpu::THALWEG_ISA
