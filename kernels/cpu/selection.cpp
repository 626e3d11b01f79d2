// selection.cpp: the kernels of nonzero, mask_select and mask_scatter. All of them count what each chunk
// selects first, which says where the chunk's part of the result begins.
#include <algorithm>
#include <string>
#include <type_traits>
#include <vector>

#include <thalweg/errors.h>

#include "kernels/cpu/filter_table.h"
#include "kernels/cpu/half.h"
#include "kernels/cpu/nd_copy.h"
#include "kernels/cpu/register.h"

namespace thalweg::cpu {
namespace {

/// Elements of the mask that one parallel chunk looks at.
constexpr std::int64_t kMaskChunk = 16384;

/// Positions of the elements that are not zero, of at most kFilterBlock; returns how many.
template <class T>
std::int64_t positions_in(const T* in, std::int64_t stride, std::int64_t count,
                          std::uint32_t* positions) noexcept {
  if constexpr (std::is_same_v<T, bool>) {
    return positions_in(reinterpret_cast<const std::uint8_t*>(in), stride, count, positions);
  } else {
    if constexpr (std::is_arithmetic_v<T>) {
      const FilterLoops<T>& loops = filter_table();
      if (stride == 1) return loops.differs(in, count, T(0), positions);
    }
    std::int64_t found = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      positions[found] = static_cast<std::uint32_t>(i);
      found += in[i * stride] != T(0);
    }
    return found;
  }
}

/// How many elements are not zero.
template <class T>
std::int64_t count_in(const T* in, std::int64_t stride, std::int64_t count) noexcept {
  if constexpr (std::is_same_v<T, bool>) {
    return count_in(reinterpret_cast<const std::uint8_t*>(in), stride, count);
  } else {
    if constexpr (std::is_arithmetic_v<T>) {
      const FilterLoops<T>& loops = filter_table();
      if (stride == 1) return loops.count_differs(in, count, T(0));
    }
    std::int64_t found = 0;
    for (std::int64_t i = 0; i < count; ++i) found += in[i * stride] != T(0);
    return found;
  }
}

/// Some selected elements: number `which` + i of all is element `first` + `positions[i]` of the tensor, both
/// counted in C order.
struct Hits {
  std::int64_t which;
  std::int64_t count;
  std::int64_t first;
  const std::uint32_t* positions;

  std::int64_t position(std::int64_t i) const noexcept { return first + positions[i]; }
};

/// The elements of a tensor that are not zero, chunk by chunk in C order.
template <class T>
class Selected {
 public:
  Selected(const KernelContext& ctx, const TensorView& mask) : ctx_(ctx), data_(mask.as<const T>()) {
    for (int axis = 0; axis < mask.rank(); ++axis) nest_.add(mask.shape()[axis], {mask.strides()[axis]});
    starts_.resize(static_cast<std::size_t>(chunks()) + 1);
    ctx.parallel_for(chunks(), [&](std::int64_t chunk) {
      std::int64_t found = 0;
      run(chunk, [&](const T* in, std::int64_t, std::int64_t count) {
        found += count_in(in, nest_.inner_stride(0), count);
      });
      starts_[chunk + 1] = found;
    });
    for (std::size_t i = 1; i < starts_.size(); ++i) starts_[i] += starts_[i - 1];
  }

  std::int64_t count() const noexcept { return starts_.back(); }

  /// Calls `fn(hits)` until it has been called for all selected elements, on any threads.
  template <class Fn>
  void each(Fn&& fn) const {
    ctx_.parallel_for(chunks(), [&](std::int64_t chunk) {
      const std::int64_t stride = nest_.inner_stride(0);
      std::int64_t which = starts_[chunk];
      run(chunk, [&](const T* in, std::int64_t first, std::int64_t count) {
        std::uint32_t positions[kFilterRoom];
        for (std::int64_t done = 0; done < count; done += kFilterBlock) {
          const std::int64_t length = std::min(kFilterBlock, count - done);
          const std::int64_t found = positions_in(in + done * stride, stride, length, positions);
          fn(Hits{which, found, first + done, positions});
          which += found;
        }
      });
    });
  }

 private:
  std::int64_t chunks() const noexcept { return ceil_div(nest_.total(), kMaskChunk); }

  /// Calls `fn(data, first, count)` for the runs of a chunk.
  template <class Fn>
  void run(std::int64_t chunk, Fn&& fn) const {
    std::int64_t position = chunk * kMaskChunk;
    nest_.run(position, std::min(nest_.total(), position + kMaskChunk),
              [&](const auto& at, std::int64_t count) {
                fn(data_ + at[0], position, count);
                position += count;
              });
  }

  const KernelContext& ctx_;
  const T* data_;
  LoopNest<1> nest_;
  std::vector<std::int64_t> starts_;
};

void check_count(const KernelContext& ctx, std::int64_t found, std::int64_t expected) {
  if (found == expected) return;
  throw ShapeError(ctx.op().name + ": " + std::to_string(found) +
                   " elements are selected, but the result has " + std::to_string(expected));
}

/// Writes where the hits stand along each axis: `count` of all for one axis after the other.
void write_places(const Hits& hits, const Shape& shape, std::int64_t* out, std::int64_t count) noexcept {
  const int last = static_cast<int>(shape.size()) - 1;
  if (last == 0) {
    for (std::int64_t i = 0; i < hits.count; ++i) out[hits.which + i] = hits.position(i);
    return;
  }
  // Divides once for a row along the last axis, not for each of its hits.
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t outer[kMaxRank];
  for (std::int64_t i = 0; i < hits.count; ++i) {
    const std::int64_t position = hits.position(i);
    if (position >= end) {
      std::int64_t rest = position / shape[last];
      begin = rest * shape[last];
      end = begin + shape[last];
      for (int axis = last - 1; axis > 0; --axis) {
        outer[axis] = rest % shape[axis];
        rest /= shape[axis];
      }
      outer[0] = rest;
    }
    for (int axis = 0; axis < last; ++axis) out[axis * count + hits.which + i] = outer[axis];
    out[last * count + hits.which + i] = position - begin;
  }
}

void nonzero_kernel(const KernelContext& ctx) {
  const TensorView& x = ctx.input(0);
  const std::int64_t count = ctx.output().shape()[1];
  visit_dtype(x.dtype(), [&]<class T>() {
    const Selected<T> selected(ctx, x);
    check_count(ctx, selected.count(), count);
    selected.each(
        [&](const Hits& hits) { write_places(hits, x.shape(), ctx.output().as<std::int64_t>(), count); });
  });
}

/// The nest of the axes that come first (the mask's) or after them.
LoopNest<2> axes_of(const TensorView& x, int begin, int end, const Strides& other) {
  LoopNest<2> nest;
  for (int axis = begin; axis < end; ++axis) nest.add(x.shape()[axis], {x.strides()[axis], other[axis]});
  return nest;
}

/// Where element number `position` of the mask lies in x.
std::int64_t place_of(const LoopNest<2>& places, std::int64_t position) noexcept {
  // The usual case without a division.
  return places.rank() <= 1 ? position * places.inner_stride(0) : places.offsets(position)[0];
}

/// Copies one row behind a place of the mask.
template <class T>
void copy_row(const LoopNest<2>& rest, const T* from, T* to) noexcept {
  if (rest.total() == 1) {
    *to = *from;
  } else {
    copy_range(rest, 0, rest.total(), from, to, sizeof(T));
  }
}

void mask_select_kernel(const KernelContext& ctx) {
  const TensorView& x = ctx.input(0);
  const TensorView& mask = ctx.input(1);
  const Selected<bool> selected(ctx, mask);
  check_count(ctx, selected.count(), ctx.output().shape()[0]);
  if (ctx.output().numel() == 0) return;
  const Strides dense = contiguous_strides(x.shape());
  const LoopNest<2> places = axes_of(x, 0, mask.rank(), dense);
  const LoopNest<2> rest = axes_of(x, mask.rank(), x.rank(), dense);
  visit_item(item_size(x.dtype()), [&]<class T>() {
    const T* in = x.as<const T>();
    T* out = ctx.output().as<T>();
    if (rest.total() == 1 && places.rank() <= 1) {
      const std::int64_t stride = places.inner_stride(0);
      return selected.each([&](const Hits& hits) {
        for (std::int64_t i = 0; i < hits.count; ++i) out[hits.which + i] = in[hits.position(i) * stride];
      });
    }
    selected.each([&](const Hits& hits) {
      for (std::int64_t i = 0; i < hits.count; ++i) {
        copy_row(rest, in + place_of(places, hits.position(i)), out + (hits.which + i) * rest.total());
      }
    });
  });
}

void mask_scatter_kernel(const KernelContext& ctx) {
  const TensorView& x = ctx.input(0);
  const TensorView& value = ctx.input(1);
  const TensorView& mask = ctx.input(2);
  const Selected<bool> selected(ctx, mask);
  if (selected.count() != value.shape()[0]) {
    throw ShapeError(ctx.op().name + ": the mask selects " + std::to_string(selected.count()) +
                     " places, but the value has " + std::to_string(value.shape()[0]) + " rows");
  }
  const TensorView& out = ctx.output();
  if (x.data != out.data) {
    copy_all(ctx, copy_nest(x.shape(), x.strides(), out.strides()), x.data, out.data, item_size(x.dtype()));
  }
  if (out.numel() == 0) return;
  LoopNest<2> rest;
  for (int axis = mask.rank(); axis < x.rank(); ++axis) {
    const std::size_t behind = static_cast<std::size_t>(axis - mask.rank()) + 1;
    rest.add(x.shape()[axis],
             {value.shape()[behind] == 1 ? 0 : value.strides()[behind], out.strides()[axis]});
  }
  visit_item(item_size(x.dtype()), [&]<class T>() {
    const T* from = value.as<const T>();
    T* to = out.as<T>();
    selected.each([&](const Hits& hits) {
      for (std::int64_t i = 0; i < hits.count; ++i) {
        copy_row(rest, from + (hits.which + i) * value.strides()[0], to + hits.position(i) * rest.total());
      }
    });
  });
}

}  // namespace

void register_selection_kernels(KernelRegistry& registry) {
  registry.add("nonzero", DeviceType::cpu, in_float32(nonzero_kernel));
  registry.add("mask_select", DeviceType::cpu, mask_select_kernel);
  registry.add("mask_scatter", DeviceType::cpu, mask_scatter_kernel);
}

}  // namespace thalweg::cpu
