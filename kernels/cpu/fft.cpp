// fft.cpp: the kernels of the Fourier transforms: one axis after another, the lines along it in parallel.
//
// An axis is cropped to the transform's length or padded with zeros to it as its lines are read. Until then
// only the part of it that counts takes part in the passes over other axes: zeros would stay zeros in them.
#include "kernels/cpu/fft.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <new>
#include <string>
#include <variant>

#include "kernels/cpu/fft_plans.h"
#include "kernels/cpu/loop_nest.h"
#include "kernels/cpu/nd_copy.h"
#include "kernels/cpu/register.h"
#include "kernels/cpu/scratch.h"

namespace thalweg::cpu {

THALWEG_DECLARE_PER_ISA(fill_fft, FftTable)

namespace {

// Attribute positions of all the Ops of the family.
constexpr std::size_t kLengths = 0;
constexpr std::size_t kAxes = 1;
constexpr std::size_t kNorm = 2;

/// Elements of the lines that one parallel chunk transforms, or one line.
constexpr std::int64_t kChunk = 16384;

/// Bytes of the lines in all lanes up to which they are transformed together: more fall out of the caches.
constexpr std::int64_t kSideBySide = std::int64_t{1} << 20;

/// Lines whose offsets are worked out at a time.
constexpr int kBlock = 64;

/// One tensor of a pass.
struct Side {
  void* data;
  Strides strides;
};

/// One operator's transform. The axes are in the order in which they are transformed.
class Transform {
 public:
  Transform(const KernelContext& ctx, const FftFunctions& functions, FftType type, bool forward)
      : ctx_(ctx), functions_(functions), type_(type), forward_(forward), extents_(ctx.input(0).shape()) {
    find_axes();
    for (std::size_t i = 0; i < axes_.size(); ++i) {
      extents_[axes_[i]] = std::min(extents_[axes_[i]], needed(i));
    }
    scale_ = scale();
  }

  void run() {
    const TensorView& x = ctx_.input(0);
    const Side in{x.data, x.strides()};
    const Side out{ctx_.output().data, ctx_.output().strides()};
    if (ctx_.output().numel() == 0) return;
    if (axes_.empty()) {
      const std::int64_t item = item_size(x.dtype());
      return copy_all(ctx_, copy_nest(x.shape(), x.strides(), out.strides), in.data, out.data, item);
    }
    if (type_ == FftType::complex_to_real && axes_.size() > 1) return run_through_scratch(in, out);
    for (std::size_t i = 0; i < axes_.size(); ++i) pass(i, i == 0 ? in : out, out);
  }

 private:
  /// The axes, the last of a real side where it is real: first or at the end.
  void find_axes() {
    const int rank = ctx_.input(0).rank();
    const AttrValue& given = ctx_.attributes()[kAxes];
    if (const auto* axis = std::get_if<std::int64_t>(&given)) {
      axes_.push_back(normalize_axis(ctx_.op().name, *axis, rank));
    } else if (const auto* axes = std::get_if<Dims>(&given)) {
      axes_ = normalize_axes(ctx_.op().name, *axes, rank);
    } else {
      for (int axis = 0; axis < rank; ++axis) axes_.push_back(axis);
    }
    last_ = axes_.empty() ? -1 : axes_.back();
    if (type_ != FftType::complex_to_real) std::reverse(axes_.begin(), axes_.end());
  }

  bool is_real(std::size_t i) const noexcept { return type_ != FftType::complex && axes_[i] == last_; }

  /// The transform's length along axis number `i`.
  std::int64_t length(std::size_t i) const {
    if (type_ != FftType::real_to_complex || !is_real(i)) return ctx_.output().shape()[axes_[i]];
    const AttrValue& given = ctx_.attributes()[kLengths];
    std::int64_t wanted = -1;
    if (const auto* n = std::get_if<std::int64_t>(&given)) wanted = *n;
    if (const auto* s = std::get_if<Dims>(&given)) wanted = s->back();
    return wanted == -1 ? ctx_.input(0).shape()[axes_[i]] : wanted;
  }

  /// Elements of the input's axis that a transform of that length takes.
  std::int64_t needed(std::size_t i) const {
    return type_ == FftType::complex_to_real && is_real(i) ? length(i) / 2 + 1 : length(i);
  }

  double scale() const {
    const auto& norm = ctx_.attributes().get<std::string>(kNorm);
    if (norm == (forward_ ? "backward" : "forward")) return 1.0;
    double count = 1.0;
    for (std::size_t i = 0; i < axes_.size(); ++i) count *= static_cast<double>(length(i));
    return norm == "ortho" ? 1.0 / std::sqrt(count) : 1.0 / count;
  }

  /// A complex spectrum takes more room than the real result: all passes but the last go to memory of their
  /// own.
  void run_through_scratch(const Side& in, const Side& out) {
    Shape shape = ctx_.output().shape();
    shape[last_] = extents_[last_];
    const std::int64_t item = item_size(ctx_.input(0).dtype());
    const Scratch<char> memory(checked_numel(ctx_.op().name, shape, item) * item);
    const Side spectrum{memory.get(), contiguous_strides(shape)};
    const std::size_t last = axes_.size() - 1;
    for (std::size_t i = 0; i < last; ++i) pass(i, i == 0 ? in : spectrum, spectrum);
    pass(last, spectrum, out);
  }

  /// Transforms axis number `i` from one tensor into another or the same.
  void pass(std::size_t i, const Side& in, const Side& out) {
    const int axis = axes_[i];
    const FftType type = is_real(i) ? type_ : FftType::complex;
    LoopNest<2> lines;
    for (int other = 0; other < static_cast<int>(extents_.size()); ++other) {
      if (other != axis) lines.add(extents_[other], {in.strides[other], out.strides[other]});
    }
    const std::int64_t item = (type == FftType::complex ? 2 : 1) * functions_.real_bytes;
    const std::int64_t lanes = length(i) * item * functions_.lanes <= kSideBySide ? functions_.lanes : 1;
    const FftLine line{.in_count = extents_[axis],
                       .in_stride = in.strides[axis],
                       .out_stride = out.strides[axis],
                       .side_by_side = lanes > 1,
                       .forward = forward_,
                       .scale = i == 0 ? scale_ : 1.0};
    const auto plan = fft_plan(functions_, length(i), type == FftType::complex);
    const std::int64_t group = ceil_div(std::max(kChunk / length(i), std::int64_t{1}), lanes) * lanes;
    run_lines(lines, group, [&](const std::int64_t* from, const std::int64_t* to, std::int64_t count) {
      functions_.run[static_cast<int>(type)](plan.get(), line, in.data, out.data, from, to, count);
    });
    extents_[axis] = type == FftType::real_to_complex ? length(i) / 2 + 1 : length(i);
  }

  /// `transform(in_offsets, out_offsets, count)` for all lines, `per_chunk` of them in one piece.
  template <class Fn>
  void run_lines(const LoopNest<2>& lines, std::int64_t per_chunk, Fn&& transform) const {
    const std::int64_t total = lines.total();
    // A parallel body may not throw: the only reason there is for it is kept.
    std::atomic<bool> out_of_memory{false};
    ctx_.parallel_for(ceil_div(total, per_chunk), [&](std::int64_t chunk) {
      const std::int64_t end = std::min(total, (chunk + 1) * per_chunk);
      try {
        for (std::int64_t begin = chunk * per_chunk; begin < end; begin += kBlock) {
          run_block(lines, begin, std::min(end, begin + kBlock), transform);
        }
      } catch (const std::bad_alloc&) {
        out_of_memory.store(true, std::memory_order_relaxed);
      }
    });
    if (out_of_memory.load(std::memory_order_relaxed)) throw std::bad_alloc();
  }

  template <class Fn>
  static void run_block(const LoopNest<2>& lines, std::int64_t begin, std::int64_t end, Fn& transform) {
    std::int64_t from[kBlock];
    std::int64_t to[kBlock];
    int filled = 0;
    lines.run(begin, end, [&](const auto& at, std::int64_t count) {
      for (std::int64_t i = 0; i < count; ++i, ++filled) {
        from[filled] = at[0] + i * lines.inner_stride(0);
        to[filled] = at[1] + i * lines.inner_stride(1);
      }
    });
    transform(from, to, filled);
  }

  const KernelContext& ctx_;
  const FftFunctions& functions_;
  FftType type_;
  bool forward_;
  double scale_ = 1.0;
  SmallVector<int, 4> axes_;
  int last_ = -1;
  /// Of each axis the elements that count: of the input until the axis is transformed, then of the result.
  Shape extents_;
};

void add_kernel(KernelRegistry& registry, const char* name, FftType type, bool forward) {
  static const FftTable table = fft_table(active_isa());
  registry.add(name, DeviceType::cpu, [type, forward](const KernelContext& ctx) {
    const bool single = real_dtype(ctx.input(0).dtype()) == DType::float32;
    Transform(ctx, single ? table.float32 : table.float64, type, forward).run();
  });
}

}  // namespace

FftTable fft_table(Isa isa) {
  FftTable table{};
  fill_fft(isa, table);
  return table;
}

void register_fft_kernels(KernelRegistry& registry) {
  for (const char* name : {"fft", "fftn"}) add_kernel(registry, name, FftType::complex, true);
  for (const char* name : {"ifft", "ifftn"}) add_kernel(registry, name, FftType::complex, false);
  for (const char* name : {"rfft", "rfftn"}) add_kernel(registry, name, FftType::real_to_complex, true);
  for (const char* name : {"irfft", "irfftn"}) add_kernel(registry, name, FftType::complex_to_real, false);
  add_kernel(registry, "hfft", FftType::complex_to_real, true);
  add_kernel(registry, "ihfft", FftType::real_to_complex, false);
}

}  // namespace thalweg::cpu
