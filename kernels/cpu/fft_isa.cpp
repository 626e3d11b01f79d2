// fft_isa.cpp: transforms of lines with pocketfft's plans, compiled once per instruction set.
//
// Of pocketfft only the one-dimensional plans are used: they take numbers or vectors of numbers, one line in
// each lane, and do the same operations on both. Walking over tensors, padding and threads are the kernel's
// (fft.cpp).

// The header's namespace becomes one for each instruction set, so that the linker does not merge their code.
#define pocketfft thalweg_pocketfft::THALWEG_ISA
#define POCKETFFT_NO_MULTITHREADING
#define POCKETFFT_CACHE_SIZE 0
#include <pocketfft_hdronly.h>

#include "kernels/cpu/fft_table.h"

namespace thalweg::cpu::THALWEG_ISA {
namespace {

namespace fft = pocketfft::detail;

/// Lines are gathered into `V`, T itself or a vector with one line in each lane, and scattered from it.
template <class T, class V>
struct Lane {
  static constexpr int kCount = sizeof(V) / sizeof(T);
  static T get(const V& value, int j) {
    if constexpr (kCount == 1)
      return value;
    else
      return value[j];
  }
  static void set(V& value, int j, T number) {
    if constexpr (kCount == 1)
      value = number;
    else
      value[j] = number;
  }
};

/// Where the lines in the lanes begin. Lanes beyond the last line read it once more and write nothing.
struct Places {
  const int64_t* in;
  const int64_t* out;
  int used;

  int64_t input(int lane) const { return in[lane < used ? lane : used - 1]; }
};

/// Elements of a line that are copied before the next line's turn. One element of every line at a time would
/// have lines that lie a power of two apart push each other out of the cache.
constexpr int64_t kTile = 8;

/// `copy(element, lane)` for elements [begin, end) of `lanes` lines.
template <class Copy>
void for_tiles(int64_t begin, int64_t end, int lanes, Copy copy) {
  for (; begin < end; begin += kTile) {
    const int64_t tile_end = end - begin < kTile ? end : begin + kTile;
    for (int j = 0; j < lanes; ++j) {
      for (int64_t i = begin; i < tile_end; ++i) copy(i, j);
    }
  }
}

template <class T, class V>
void run_complex(const void* plan, const FftLine& line, const void* in, void* out, const Places& at,
                 V* numbers) {
  using L = Lane<T, V>;
  const auto& transform = *static_cast<const fft::pocketfft_c<T>*>(plan);
  const auto length = static_cast<int64_t>(transform.length());
  const auto* from = static_cast<const fft::cmplx<T>*>(in);
  auto* to = static_cast<fft::cmplx<T>*>(out);
  auto* buffer = reinterpret_cast<fft::cmplx<V>*>(numbers);
  for_tiles(0, line.in_count, L::kCount, [&](int64_t i, int j) {
    const fft::cmplx<T>& number = from[at.input(j) + i * line.in_stride];
    L::set(buffer[i].r, j, number.r);
    L::set(buffer[i].i, j, number.i);
  });
  for (int64_t i = line.in_count; i < length; ++i) buffer[i].r = buffer[i].i = V{};
  transform.exec(buffer, static_cast<T>(line.scale), line.forward);
  if (static_cast<void*>(buffer) == to + at.out[0]) return;
  for_tiles(0, length, at.used, [&](int64_t i, int j) {
    to[at.out[j] + i * line.out_stride].Set(L::get(buffer[i].r, j), L::get(buffer[i].i, j));
  });
}

// pocketfft's real plans keep a half spectrum as r0, r1, i1, r2, i2, …; of an even length the last number is
// real.

template <class T, class V>
void run_real_to_complex(const void* plan, const FftLine& line, const void* in, void* out, const Places& at,
                         V* buffer) {
  using L = Lane<T, V>;
  const auto& transform = *static_cast<const fft::pocketfft_r<T>*>(plan);
  const auto length = static_cast<int64_t>(transform.length());
  const T* from = static_cast<const T*>(in);
  auto* to = static_cast<fft::cmplx<T>*>(out);
  for_tiles(0, line.in_count, L::kCount,
            [&](int64_t i, int j) { L::set(buffer[i], j, from[at.input(j) + i * line.in_stride]); });
  for (int64_t i = line.in_count; i < length; ++i) buffer[i] = V{};
  transform.exec(buffer, static_cast<T>(line.scale), true);
  const T sign = line.forward ? T(1) : T(-1);
  const auto set_real = [&](int64_t k, const V& value) {
    for (int j = 0; j < at.used; ++j) to[at.out[j] + k * line.out_stride].Set(L::get(value, j), T(0));
  };
  set_real(0, buffer[0]);
  for_tiles(1, (length + 1) / 2, at.used, [&](int64_t k, int j) {
    to[at.out[j] + k * line.out_stride].Set(L::get(buffer[2 * k - 1], j), sign * L::get(buffer[2 * k], j));
  });
  if (length % 2 == 0) set_real(length / 2, buffer[length - 1]);
}

template <class T, class V>
void run_complex_to_real(const void* plan, const FftLine& line, const void* in, void* out, const Places& at,
                         V* buffer) {
  using L = Lane<T, V>;
  const auto& transform = *static_cast<const fft::pocketfft_r<T>*>(plan);
  const auto length = static_cast<int64_t>(transform.length());
  const auto* from = static_cast<const fft::cmplx<T>*>(in);
  T* to = static_cast<T*>(out);
  const T sign = line.forward ? T(-1) : T(1);
  const auto get_real = [&](int64_t k, V& value) {
    for (int j = 0; j < L::kCount; ++j) {
      L::set(value, j, k < line.in_count ? from[at.input(j) + k * line.in_stride].r : T(0));
    }
  };
  const int64_t pairs_end = (length + 1) / 2;
  const int64_t given = line.in_count < pairs_end ? line.in_count : pairs_end;
  get_real(0, buffer[0]);
  for_tiles(1, given, L::kCount, [&](int64_t k, int j) {
    const fft::cmplx<T>& number = from[at.input(j) + k * line.in_stride];
    L::set(buffer[2 * k - 1], j, number.r);
    L::set(buffer[2 * k], j, sign * number.i);
  });
  for (int64_t k = given < 1 ? 1 : given; k < pairs_end; ++k) buffer[2 * k - 1] = buffer[2 * k] = V{};
  if (length % 2 == 0) get_real(length / 2, buffer[length - 1]);
  transform.exec(buffer, static_cast<T>(line.scale), false);
  if (static_cast<void*>(buffer) == to + at.out[0]) return;
  for_tiles(0, length, at.used,
            [&](int64_t i, int j) { to[at.out[j] + i * line.out_stride] = L::get(buffer[i], j); });
}

template <class T, FftType type, class V>
void run_lanes(const void* plan, const FftLine& line, const void* in, void* out, const Places& at,
               V* buffer) {
  if constexpr (type == FftType::complex) return run_complex<T, V>(plan, line, in, out, at, buffer);
  if constexpr (type == FftType::real_to_complex)
    return run_real_to_complex<T, V>(plan, line, in, out, at, buffer);
  if constexpr (type == FftType::complex_to_real)
    return run_complex_to_real<T, V>(plan, line, in, out, at, buffer);
}

template <class T, FftType type>
void run(const void* plan, const FftLine& line, const void* in, void* out, const int64_t* in_offsets,
         const int64_t* out_offsets, int64_t count) {
  constexpr bool is_complex = type == FftType::complex;
  constexpr int lanes = fft::VLEN<T>::val;
  const size_t length = is_complex ? static_cast<const fft::pocketfft_c<T>*>(plan)->length()
                                   : static_cast<const fft::pocketfft_r<T>*>(plan)->length();
  const size_t numbers = is_complex ? 2 * length : length;
  int64_t done = 0;
  if constexpr (lanes > 1) {
    // Fewer lines than half the lanes take less time one by one.
    constexpr int least = lanes / 2 > 1 ? lanes / 2 : 2;
    if (line.side_by_side && count >= least) {
      fft::arr<fft::vtype_t<T>> buffer(numbers);
      for (; count - done >= least; done += lanes) {
        const int used = count - done < lanes ? static_cast<int>(count - done) : lanes;
        run_lanes<T, type>(plan, line, in, out, {in_offsets + done, out_offsets + done, used}, buffer.data());
      }
    }
  }
  if (done >= count) return;
  // A single line is transformed where its result goes, if its elements lie side by side there.
  const bool in_place = type != FftType::real_to_complex && line.out_stride == 1;
  fft::arr<T> buffer(in_place ? 0 : numbers);
  for (; done < count; ++done) {
    T* place = static_cast<T*>(out) + out_offsets[done] * (is_complex ? 2 : 1);
    run_lanes<T, type>(plan, line, in, out, {in_offsets + done, out_offsets + done, 1},
                       in_place ? place : buffer.data());
  }
}

template <class T>
void* make_plan(int64_t length, bool complex) {
  if (complex) return new fft::pocketfft_c<T>(static_cast<size_t>(length));
  return new fft::pocketfft_r<T>(static_cast<size_t>(length));
}

template <class T>
void free_plan(void* plan, bool complex) {
  if (complex) return delete static_cast<fft::pocketfft_c<T>*>(plan);
  delete static_cast<fft::pocketfft_r<T>*>(plan);
}

template <class T>
void fill(FftFunctions& functions) {
  functions.real_bytes = sizeof(T);
  functions.lanes = fft::VLEN<T>::val;
  functions.make_plan = make_plan<T>;
  functions.free_plan = free_plan<T>;
  functions.run[static_cast<int>(FftType::complex)] = run<T, FftType::complex>;
  functions.run[static_cast<int>(FftType::real_to_complex)] = run<T, FftType::real_to_complex>;
  functions.run[static_cast<int>(FftType::complex_to_real)] = run<T, FftType::complex_to_real>;
}

}  // namespace

void fill_fft(FftTable& table) {
  fill<float>(table.float32);
  fill<double>(table.float64);
}

}  // namespace thalweg::cpu::THALWEG_ISA
