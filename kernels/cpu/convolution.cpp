// convolution.cpp: the kernels of conv1d and conv2d. The input under a block of windows is copied so that
// every term of their sums is a run of neighbours, whatever the stride: sums then need no copy of each
// window.
#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "kernels/cpu/convolution_table.h"
#include "kernels/cpu/half.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/nd_copy.h"
#include "kernels/cpu/register.h"
#include "kernels/cpu/rings.h"
#include "kernels/cpu/scratch.h"

namespace thalweg::cpu {

THALWEG_DECLARE_PER_ISA(fill_convolution, ConvolutionTable)

const ConvolutionTable& convolution_table() {
  static const ConvolutionTable table = [] {
    ConvolutionTable fresh{};
    fill_convolution(active_isa(), fresh);
    return fresh;
  }();
  return table;
}

namespace {

/// Windows of one block, elements of the input that are copied for it and sums: they stay in cache.
constexpr std::int64_t kBlockPlaces = 2048;
constexpr std::int64_t kBlockElements = 32768;
/// A block is a row of windows at least, up to this length.
constexpr std::int64_t kBlockColumns = 1024;
/// Outputs are shared out in multiples of this, which fills the registers.
constexpr std::int64_t kOutputs = 8;
/// Multiply-adds above which a block's outputs are shared out, and of one parallel chunk.
constexpr std::int64_t kBlockWork = std::int64_t{1} << 24;
constexpr std::int64_t kChunkWork = std::int64_t{1} << 19;

/// How windows lie along one axis. Element k of window i sees place (i + shift[k]) * stride +
/// phases[phase[k]] of the padded input, so for each phase the windows see neighbours.
struct WindowAxis {
  std::int64_t size, count, stride, before;
  std::int64_t step;  ///< elements of memory between neighbours
  std::vector<std::int64_t> shift, phase, phases;
  std::int64_t reach = 0;  ///< the largest shift

  WindowAxis(std::int64_t size, std::int64_t count, std::int64_t kernel, std::int64_t stride,
             std::int64_t dilation, std::int64_t before, std::int64_t step)
      : size(size), count(count), stride(stride), before(before), step(step) {
    for (std::int64_t k = 0; k < kernel; ++k) {
      const std::int64_t rest = k * dilation % stride;
      shift.push_back(k * dilation / stride);
      reach = shift.back();
      phase.push_back(std::find(phases.begin(), phases.end(), rest) - phases.begin());
      if (phase.back() == std::ssize(phases)) phases.push_back(rest);
    }
  }
  /// The first neighbour of a phase at or behind place `at` of the input, which may lie before the input.
  std::int64_t first_behind(std::int64_t at, std::int64_t phase) const noexcept {
    return ceil_div(std::max<std::int64_t>(0, at + before - phase), stride);
  }
};

/// A block of windows: rows and columns of the result.
struct Block {
  std::int64_t row, rows, column, columns;
};

template <class T, class Ring>
class Convolution {
 public:
  explicit Convolution(const KernelContext& ctx)
      : ctx_(ctx),
        x_(ctx.input(0).as<const T>()),
        weight_(ctx.input(1).as<const T>()),
        bias_(ctx.input_count() > 2 ? ctx.input(2).as<const T>() : nullptr),
        result_(ctx.output().as<T>()),
        across_(axis(0)),
        down_(spatial_rank() == 1 ? WindowAxis(1, 1, 1, 1, 1, 0, 0) : axis(1)) {
    const TensorView& x = ctx.input(0);
    const Shape& weight = ctx.input(1).shape();
    const int channel_axis = x.rank() - spatial_rank() - 1;
    channel_step_ = x.strides()[channel_axis];
    batch_ = channel_axis == 0 ? 1 : x.shape()[0];
    batch_step_ = channel_axis == 0 ? 0 : x.strides()[0];
    groups_ = ctx.attributes().get<std::int64_t>(3);
    channels_ = weight[1];
    outputs_ = weight[0] / groups_;
    terms_ = numel(weight) / weight[0];
    phases_ = std::ssize(down_.phases) * std::ssize(across_.phases);
    set_block_sizes();
  }

  void run() const {
    const std::int64_t down = ceil_div(down_.count, rows_);
    const std::int64_t across = ceil_div(across_.count, columns_);
    const std::int64_t shares = ceil_div(outputs_, share_);
    const std::int64_t units = batch_ * groups_ * down * across * shares;
    const std::int64_t work =
        std::max<std::int64_t>(1, rows_ * columns_ * terms_ * std::min(share_, outputs_));
    const std::int64_t group = std::max<std::int64_t>(1, kChunkWork / work);
    ctx_.parallel_for(ceil_div(units, group), [&](std::int64_t chunk) {
      Scratch<T> data(channels_ * channel_size(rows_) + kPlacesRoom);
      Scratch<T> sums(step_ * (rows_ * pitch() + kPlacesRoom));
      for (std::int64_t unit = chunk * group; unit < std::min(units, (chunk + 1) * group); ++unit) {
        const std::int64_t column = unit / shares % across * columns_;
        const std::int64_t row = unit / (shares * across) % down * rows_;
        const Block block{row, std::min(rows_, down_.count - row), column,
                          std::min(columns_, across_.count - column)};
        convolve(block, unit / (shares * across * down), unit % shares * share_, data.get(), sums.get());
      }
    });
  }

 private:
  int spatial_rank() const noexcept { return ctx_.input(1).rank() - 2; }

  /// Axis 0 is the last one.
  WindowAxis axis(int from_behind) const {
    const TensorView& x = ctx_.input(0);
    const auto i = static_cast<std::size_t>(spatial_rank() - 1 - from_behind);
    const auto& attributes = ctx_.attributes();
    return {x.shape()[x.rank() - 1 - from_behind],
            ctx_.output().shape()[ctx_.output().rank() - 1 - from_behind],
            ctx_.input(1).shape()[i + 2],
            attributes.get<Dims>(0)[i],
            attributes.get<Dims>(2)[i],
            attributes.get<Dims>(1)[2 * i],
            x.strides()[x.rank() - 1 - from_behind]};
  }

  void set_block_sizes() {
    const std::int64_t places = std::clamp<std::int64_t>(
        kBlockElements / std::max<std::int64_t>(1, channels_ * phases_), 64, kBlockPlaces);
    columns_ = std::min({across_.count, kBlockColumns, places});
    rows_ = std::clamp<std::int64_t>(places / pitch(), 1, down_.count);
    const std::int64_t work = std::max<std::int64_t>(1, rows_ * columns_ * terms_);
    share_ = std::max<std::int64_t>(1, kBlockWork / work / kOutputs) * kOutputs;
    step_ = std::max<std::int64_t>(1, kBlockElements / (rows_ * pitch()) / kOutputs) * kOutputs;
    step_ = std::min({step_, share_, outputs_});
  }

  /// Elements from one row of a block's copy to the next, and of one channel's copy.
  std::int64_t pitch() const noexcept { return columns_ + across_.reach; }
  std::int64_t phase_size(std::int64_t rows) const noexcept { return (rows + down_.reach) * pitch(); }
  std::int64_t channel_size(std::int64_t rows) const noexcept { return phases_ * phase_size(rows); }

  /// One block of one group of one example, of as many outputs as make a share.
  void convolve(const Block& block, std::int64_t example_and_group, std::int64_t output, T* data,
                T* sums) const {
    const std::int64_t group = example_and_group % groups_;
    const std::int64_t example = example_and_group / groups_;
    copy_block(block, x_ + example * batch_step_ + group * channels_ * channel_step_, data);
    const std::vector<std::int64_t> offsets = term_offsets(block.rows);
    const std::int64_t places = (block.rows - 1) * pitch() + block.columns;
    const std::int64_t end = std::min(outputs_, output + share_);
    for (; output < end; output += step_) {
      const std::int64_t first = group * outputs_ + output;
      const std::int64_t count = std::min(step_, end - output);
      sum_terms({data, offsets.data(), terms_, weight_ + first * terms_, terms_, sums, places + kPlacesRoom,
                 count, places});
      for (std::int64_t i = 0; i < count; ++i) {
        place_sums(block, sums + i * (places + kPlacesRoom), example * groups_ * outputs_ + first + i,
                   first + i);
      }
    }
  }

  /// The input under a block: for each channel and each pair of phases rows and columns of neighbours.
  void copy_block(const Block& block, const T* x, T* data) const noexcept {
    for (std::int64_t channel = 0; channel < channels_; ++channel, x += channel_step_) {
      for (std::int64_t row_phase : down_.phases) {
        const std::int64_t first = down_.first_behind(0, row_phase);
        const std::int64_t last = down_.first_behind(down_.size, row_phase);
        T* out = data;
        data += std::ssize(across_.phases) * phase_size(block.rows);
        for (std::int64_t row = block.row; row < block.row + block.rows + down_.reach; ++row) {
          const T* in = row < first || row >= last
                            ? nullptr
                            : x + (row * down_.stride + row_phase - down_.before) * down_.step;
          for (std::size_t i = 0; i < across_.phases.size(); ++i) {
            copy_row(block, in, across_.phases[i],
                     out + static_cast<std::int64_t>(i) * phase_size(block.rows));
          }
          out += pitch();
        }
      }
    }
    std::fill_n(data, kPlacesRoom, T(0));
  }

  /// One row of one phase, zeros where it lies in the padding; `in` is null for a row of zeros.
  void copy_row(const Block& block, const T* in, std::int64_t phase, T* out) const noexcept {
    if (in == nullptr) {
      std::fill_n(out, pitch(), T(0));
      return;
    }
    const std::int64_t begin =
        std::clamp<std::int64_t>(across_.first_behind(0, phase) - block.column, 0, pitch());
    const std::int64_t end =
        std::clamp<std::int64_t>(across_.first_behind(across_.size, phase) - block.column, begin, pitch());
    std::fill_n(out, begin, T(0));
    if (begin < end) {
      const std::int64_t step = across_.stride * across_.step;
      in += ((block.column + begin) * across_.stride + phase - across_.before) * across_.step;
      if (step == 1) {
        std::copy_n(in, end - begin, out + begin);
      } else {
        for (std::int64_t i = 0; i < end - begin; ++i) out[begin + i] = in[i * step];
      }
    }
    std::fill_n(out + end, pitch() - end, T(0));
  }

  /// Where the terms of the first window's sum lie in a block's copy, in the order of the weights.
  std::vector<std::int64_t> term_offsets(std::int64_t rows) const {
    std::vector<std::int64_t> offsets;
    offsets.reserve(static_cast<std::size_t>(terms_));
    for (std::int64_t channel = 0; channel < channels_; ++channel) {
      for (std::size_t i = 0; i < down_.shift.size(); ++i) {
        for (std::size_t j = 0; j < across_.shift.size(); ++j) {
          const std::int64_t phase = down_.phase[i] * std::ssize(across_.phases) + across_.phase[j];
          offsets.push_back(channel * channel_size(rows) + phase * phase_size(rows) +
                            down_.shift[i] * pitch() + across_.shift[j]);
        }
      }
    }
    return offsets;
  }

  static void sum_terms(const TermSums<T>& sums) {
    if constexpr (std::is_same_v<T, float>) {
      convolution_table().term_sums_float(sums);
    } else if constexpr (std::is_same_v<T, double>) {
      convolution_table().term_sums_double(sums);
    } else {
      for (std::int64_t o = 0; o < sums.outputs; ++o) {
        T* out = sums.result + o * sums.result_step;
        std::fill_n(out, sums.places, T(0));
        for (std::int64_t t = 0; t < sums.terms; ++t) {
          Ring::apply_row(out, sums.data + sums.offsets[t], sums.weights[o * sums.weights_step + t],
                          sums.places);
        }
      }
    }
  }

  void place_sums(const Block& block, const T* sums, std::int64_t plane, std::int64_t output) const noexcept {
    T* out = result_ + (plane * down_.count + block.row) * across_.count + block.column;
    for (std::int64_t row = 0; row < block.rows; ++row, sums += pitch(), out += across_.count) {
      if (bias_ == nullptr) {
        std::copy_n(sums, block.columns, out);
      } else {
        const T bias = bias_[output];
        std::transform(sums, sums + block.columns, out, [&](T sum) { return Ring::add(sum, bias); });
      }
    }
  }

  const KernelContext& ctx_;
  const T* x_;
  const T* weight_;
  const T* bias_;
  T* result_;
  WindowAxis across_, down_;
  std::int64_t batch_, batch_step_, channel_step_;
  std::int64_t groups_, channels_, outputs_;  ///< the last two of one group
  std::int64_t terms_, phases_;
  std::int64_t rows_, columns_;  ///< of a block
  std::int64_t share_, step_;    ///< outputs of one unit of work, and summed before they are placed
};

void convolution_kernel(const KernelContext& ctx) {
  if (ctx.output().numel() == 0) return;
  visit_ring(ctx.output().dtype(), [&]<class T, class Ring>() { Convolution<T, Ring>(ctx).run(); });
}

}  // namespace

void register_convolution_kernels(KernelRegistry& registry) {
  for (const char* name : {"conv1d", "conv2d"}) {
    registry.add(name, DeviceType::cpu, in_float32(convolution_kernel));
  }
}

}  // namespace thalweg::cpu
