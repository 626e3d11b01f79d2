// half.cpp: runs kernels that compute in float32 on half-precision operands.
#include "kernels/cpu/half.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/cpu/loop_nest.h"
#include "kernels/cpu/scratch.h"

namespace thalweg::cpu {

THALWEG_DECLARE_PER_ISA(fill_half, HalfTable)

namespace {

/// Elements that HalfLoop converts at a time: with four operands 8 KiB of floats.
constexpr std::int64_t kPiece = 512;

/// Elements per chunk of conversions of whole operands.
constexpr std::int64_t kConvertChunk = 32768;

void convert(Loop loop, const void* from, std::int64_t from_step, void* to, std::int64_t to_step,
             std::int64_t count) {
  char* const data[] = {static_cast<char*>(to), static_cast<char*>(const_cast<void*>(from))};
  const std::int64_t steps[] = {to_step, from_step};
  loop(data, steps, count);
}

/// A half-precision operand's stand-in of another dtype.
class StandIn {
 public:
  StandIn(const TensorView& view, DType dtype, bool is_input)
      : view_(view), meta_(*view.meta), bytes_(place(is_input) * item_size(dtype)) {
    meta_.dtype = dtype;
    meta_.offset = 0;
  }

  TensorView view() const noexcept { return {bytes_.get(), &meta_}; }

  /// Fills it with the operand's values.
  void fill(const KernelContext& context) const {
    LoopNest<2> nest;
    for (const std::size_t axis : axes_by_step()) {
      nest.add(meta_.shape[axis], {view_.strides()[axis], meta_.strides[axis]});
    }
    const Loop widen = half_table().widen[half_format(view_.dtype())];
    context.parallel_for(ceil_div(nest.total(), kConvertChunk), [&](std::int64_t chunk) {
      const std::int64_t begin = chunk * kConvertChunk;
      nest.run(begin, std::min(nest.total(), begin + kConvertChunk), [&](const auto& at, std::int64_t count) {
        convert(widen, view_.as<std::uint16_t>() + at[0], nest.inner_stride(0) * 2,
                reinterpret_cast<float*>(bytes_.get()) + at[1], nest.inner_stride(1) * 4, count);
      });
    });
  }

  /// Rounds its values to the operand, which is contiguous.
  void round(const KernelContext& context) const {
    const std::int64_t count = view_.numel();
    const int format = half_format(view_.dtype());
    const HalfTable& table = half_table();
    context.parallel_for(ceil_div(count, kConvertChunk), [&](std::int64_t chunk) {
      const std::int64_t begin = chunk * kConvertChunk;
      const std::int64_t end = std::min(count, begin + kConvertChunk);
      const char* from = bytes_.get() + begin * item_size(meta_.dtype);
      if (meta_.dtype == DType::float32) {
        return narrow(reinterpret_cast<const float*>(from), view_, begin, end);
      }
      const Loop to_odd = table.to_odd[static_cast<int>(meta_.dtype)];
      float piece[kPiece];
      for (std::int64_t at = begin; at < end; at += kPiece) {
        const std::int64_t part = std::min(kPiece, end - at);
        convert(to_odd, from + (at - begin) * 8, 8, piece, 4, part);
        convert(table.narrow[format], piece, 4, view_.as<std::uint16_t>() + at, 2, part);
      }
    });
  }

 private:
  /// The axes along which an input moves, largest step first: read in this order, memory is walked forwards.
  SmallVector<std::size_t, 8> axes_by_step() const {
    SmallVector<std::size_t, 8> axes;
    for (std::size_t axis = 0; axis < meta_.shape.size(); ++axis) {
      if (meta_.shape[axis] != 1 && (view_.strides()[axis] != 0 || meta_.shape[axis] == 0)) {
        axes.push_back(axis);
      }
    }
    std::stable_sort(axes.begin(), axes.end(), [&](std::size_t a, std::size_t b) {
      return std::abs(view_.strides()[a]) > std::abs(view_.strides()[b]);
    });
    return axes;
  }

  /// Lays an input out densely with its axes in the order of its own steps, so that a transposed one stays
  /// transposed and a contiguous one contiguous; broadcast axes keep step 0. Returns the number of elements.
  std::int64_t place(bool is_input) {
    if (!is_input) return meta_.numel();
    const auto axes = axes_by_step();
    std::int64_t count = 1;
    for (std::size_t i = axes.size(); i-- > 0;) {
      meta_.strides[axes[i]] = count;
      count *= meta_.shape[axes[i]];
    }
    return count;
  }

  const TensorView& view_;
  TensorMeta meta_;
  Scratch<char> bytes_;
};

void run_on_stand_ins(const KernelContext& context, const KernelFn& kernel, DType dtype) {
  const std::size_t inputs = context.input_count();
  std::vector<TensorView> views(context.inputs().begin(), context.inputs().end());
  views.insert(views.end(), context.outputs().begin(), context.outputs().end());
  std::vector<std::unique_ptr<StandIn>> stand_ins(views.size());
  for (std::size_t i = 0; i < views.size(); ++i) {
    if (!is_half(views[i].dtype())) continue;
    const TensorView& operand = i < inputs ? context.input(i) : context.output(i - inputs);
    stand_ins[i] = std::make_unique<StandIn>(operand, dtype, i < inputs);
    if (i < inputs) stand_ins[i]->fill(context);
    views[i] = stand_ins[i]->view();
  }
  const std::span<const TensorView> all(views);
  kernel(context.with_views(all.first(inputs), all.subspan(inputs)));
  for (std::size_t i = inputs; i < views.size(); ++i) {
    if (stand_ins[i] != nullptr) stand_ins[i]->round(context);
  }
}

KernelFn in_dtype(KernelFn kernel, DType dtype) {
  half_table();  // a bad THALWEG_CPU_ISA is reported here
  return [kernel = std::move(kernel), dtype](const KernelContext& context) {
    if (!has_half(context)) return kernel(context);
    run_on_stand_ins(context, kernel, dtype);
  };
}

}  // namespace

HalfTable half_table(Isa isa) {
  HalfTable table{};
  fill_half(isa, table);
  return table;
}

const HalfTable& half_table() {
  static const HalfTable table = half_table(active_isa());
  return table;
}

HalfLoop::HalfLoop(Loop loop, const TensorView& output, std::span<const TensorView> inputs)
    : loop_(loop), inputs_(static_cast<int>(inputs.size())) {
  const HalfTable& table = half_table();
  if (is_half(output.dtype())) narrow_ = table.narrow[half_format(output.dtype())];
  for (int k = 0; k < inputs_; ++k) {
    if (is_half(inputs[k].dtype())) widen_[k] = table.widen[half_format(inputs[k].dtype())];
  }
}

void HalfLoop::operator()(char* const* data, const std::int64_t* steps, std::int64_t count) const {
  float pieces[4][kPiece];
  char* at[4];
  std::int64_t piece_steps[4];
  for (std::int64_t begin = 0; begin < count; begin += kPiece) {
    const std::int64_t part = std::min(kPiece, count - begin);
    at[0] = narrow_ != nullptr ? reinterpret_cast<char*>(pieces[0]) : data[0] + begin * steps[0];
    piece_steps[0] = narrow_ != nullptr ? std::int64_t{sizeof(float)} : steps[0];
    for (int k = 1; k <= inputs_; ++k) {
      const bool is_single = steps[k] == 0;
      at[k] = data[k] + begin * steps[k];
      piece_steps[k] = steps[k];
      if (widen_[k - 1] == nullptr) continue;
      if (!is_single || begin == 0) {
        convert(widen_[k - 1], at[k], steps[k], pieces[k], sizeof(float), is_single ? 1 : part);
      }
      at[k] = reinterpret_cast<char*>(pieces[k]);
      piece_steps[k] = is_single ? 0 : std::int64_t{sizeof(float)};
    }
    loop_(at, piece_steps, part);
    if (narrow_ != nullptr) {
      convert(narrow_, pieces[0], sizeof(float), data[0] + begin * steps[0], steps[0], part);
    }
  }
}

bool has_half(const KernelContext& context) noexcept {
  for (const TensorView& view : context.inputs()) {
    if (is_half(view.dtype())) return true;
  }
  for (const TensorView& view : context.outputs()) {
    if (is_half(view.dtype())) return true;
  }
  return false;
}

KernelFn in_float32(KernelFn kernel) { return in_dtype(std::move(kernel), DType::float32); }
KernelFn in_float64(KernelFn kernel) { return in_dtype(std::move(kernel), DType::float64); }

void narrow(const float* values, const TensorView& output, std::int64_t begin, std::int64_t end) {
  convert(half_table().narrow[half_format(output.dtype())], values, sizeof(float),
          output.as<std::uint16_t>() + begin, sizeof(std::uint16_t), end - begin);
}

}  // namespace thalweg::cpu
