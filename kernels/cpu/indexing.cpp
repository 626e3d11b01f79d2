// indexing.cpp: the kernels of take, index, slice_assign, index_assign and index_add.
#include <algorithm>
#include <string>
#include <type_traits>
#include <vector>

#include <thalweg/errors.h>

#include "kernels/cpu/nd_copy.h"
#include "kernels/cpu/register.h"

namespace thalweg::cpu {
namespace {

/// Elements copied by one parallel chunk.
constexpr std::int64_t kGatherChunk = 16384;

template <class T>
[[noreturn]] void throw_out_of_bounds(const KernelContext& ctx, T index, int axis, std::int64_t size) {
  throw IndexError(ctx.op().name + ": index " + std::to_string(index) + " is out of bounds for axis " +
                   std::to_string(axis) + " with size " + std::to_string(size));
}

/// The elements of a tensor that index arrays select. The selection's axes are the tensor's other axes with
/// the arrays' common axes at `place` among them.
struct Selection {
  Shape shape;             ///< of the selection
  Strides strides;         ///< of the tensor; 0 along the arrays' axes
  std::size_t place = 0;   ///< where the arrays' axes begin in `shape`
  std::size_t behind = 0;  ///< where they end
  /// What the arrays' element number i, in C order, adds to an element's place in the tensor.
  std::vector<std::int64_t> offsets;

  /// Axes [begin, end) of the selection; operand 0 is the tensor, operand 1 one of the selection's shape.
  LoopNest<2> nest(std::size_t begin, std::size_t end, const Strides& other) const {
    LoopNest<2> result;
    for (std::size_t axis = begin; axis < end; ++axis) result.add(shape[axis], {strides[axis], other[axis]});
    return result;
  }
  LoopNest<2> before(const Strides& other) const { return nest(0, place, other); }
  LoopNest<2> after(const Strides& other) const { return nest(behind, shape.size(), other); }
};

/// One index array on its way into a selection.
struct IndexArray {
  const TensorView& view;
  int axis;
  std::int64_t size;    ///< of the indexed axis
  std::int64_t stride;  ///< of the indexed axis
};

/// Adds what `array`, broadcast to `shape`, contributes to each offset. Throws IndexError for an index out of
/// bounds.
void add_offsets(const KernelContext& ctx, const IndexArray& array, const Shape& shape,
                 std::vector<std::int64_t>* offsets) {
  LoopNest<1> nest;
  const Strides strides = broadcast_strides(array.view.shape(), array.view.strides(), shape);
  for (std::size_t axis = 0; axis < shape.size(); ++axis) nest.add(shape[axis], {strides[axis]});
  visit_real_dtype(array.view.dtype(), [&]<class T>() {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      std::int64_t* out = offsets->data();
      nest.run(0, nest.total(), [&](const auto& at, std::int64_t count) {
        const T* in = array.view.as<const T>() + at[0];
        for (std::int64_t i = 0; i < count; ++i, ++out) {
          const T index = in[i * nest.inner_stride(0)];
          // A uint64 above 2^63-1 turns negative here and stays out of bounds: -1 would be 2^64-1.
          auto position = static_cast<std::int64_t>(index);
          if (std::is_signed_v<T> && position < 0) position += array.size;
          if (position < 0 || position >= array.size) throw_out_of_bounds(ctx, index, array.axis, array.size);
          *out += position * array.stride;
        }
      });
    }
  });
}

/// The selection of `x` by the index arrays, whose axes come after `place` of the others.
Selection select(const KernelContext& ctx, const TensorView& x, std::span<const IndexArray> arrays,
                 int place) {
  Shape common = arrays[0].view.shape();
  for (const IndexArray& array : arrays) common = broadcast_shapes(ctx.op().name, common, array.view.shape());
  bool indexed[kMaxRank] = {};
  for (const IndexArray& array : arrays) indexed[array.axis] = true;

  Selection selection;
  selection.offsets.assign(static_cast<std::size_t>(numel(common)), 0);
  for (const IndexArray& array : arrays) add_offsets(ctx, array, common, &selection.offsets);
  selection.place = static_cast<std::size_t>(place);
  selection.behind = selection.place + common.size();
  for (int axis = 0; axis <= x.rank(); ++axis) {
    if (axis == place) {
      for (std::int64_t size : common) selection.shape.push_back(size);
      selection.strides.resize(selection.shape.size(), 0);
    }
    if (axis == x.rank() || indexed[axis]) continue;
    selection.shape.push_back(x.shape()[axis]);
    selection.strides.push_back(x.strides()[axis]);
  }
  return selection;
}

/// Copies one run of a block behind a selected position.
template <class T>
void copy_run(const T* in, std::int64_t in_stride, T* out, std::int64_t out_stride,
              std::int64_t count) noexcept {
  if (in_stride == 1 && out_stride == 1) {
    std::copy_n(in, count, out);
  } else {
    for (std::int64_t i = 0; i < count; ++i) out[i * out_stride] = in[i * in_stride];
  }
}

/// Fills the output with the selected elements of `x`. Positions (a place in front with an index) are the
/// unit of the split.
template <class T>
void gather(const KernelContext& ctx, const Selection& selection, const TensorView& x) {
  const LoopNest<2> before = selection.before(ctx.output().strides());
  const LoopNest<2> after = selection.after(ctx.output().strides());
  const auto indices = static_cast<std::int64_t>(selection.offsets.size());
  const std::int64_t block = after.total();
  const std::int64_t positions = before.total() * indices;
  const std::int64_t group = std::max<std::int64_t>(1, kGatherChunk / block);
  ctx.parallel_for(ceil_div(positions, group), [&](std::int64_t chunk) {
    std::int64_t position = chunk * group;
    const std::int64_t end = std::min(positions, position + group);
    T* out = ctx.output().as<T>() + position * block;
    while (position < end) {
      const T* start = x.as<const T>() + before.offsets(position / indices)[0];
      const std::int64_t first = position % indices;
      const std::int64_t last = std::min(indices, first + end - position);
      position += last - first;
      if (block == 1) {
        for (std::int64_t i = first; i < last; ++i) *out++ = start[selection.offsets[i]];
        continue;
      }
      for (std::int64_t i = first; i < last; ++i, out += block) {
        after.run(0, block, [&](const auto& at, std::int64_t count) {
          copy_run(start + selection.offsets[i] + at[0], after.inner_stride(0), out + at[1], 1, count);
        });
      }
    }
  });
}

void gather_items(const KernelContext& ctx, const Selection& selection, const TensorView& x) {
  if (ctx.output().numel() == 0) return;
  visit_item(item_size(x.dtype()), [&]<class T>() { gather<T>(ctx, selection, x); });
}

void take_kernel(const KernelContext& ctx) {
  const TensorView& x = ctx.input(0);
  const TensorView& indices = ctx.input(1);
  if (!ctx.attributes().has(0)) {
    // The Op asked for a contiguous x: take from it as one axis.
    const TensorMeta flat{x.dtype(), x.meta->device, 0, {x.numel()}, {1}};
    const TensorView view{x.data, &flat};
    const IndexArray array{indices, 0, x.numel(), 1};
    return gather_items(ctx, select(ctx, view, {&array, 1}, 0), view);
  }
  const int axis = normalize_axis(ctx.op().name, ctx.attributes().get<std::int64_t>(0), x.rank());
  const IndexArray array{indices, axis, x.shape()[axis], x.strides()[axis]};
  gather_items(ctx, select(ctx, x, {&array, 1}, axis), x);
}

/// The selection that the attributes axes and front and the inputs from `first` on make in `x`.
Selection select_by_attributes(const KernelContext& ctx, const TensorView& x, std::size_t first) {
  const auto axes = normalize_axes(ctx.op().name, ctx.attributes().get<Dims>(0), x.rank());
  std::vector<IndexArray> arrays;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    arrays.push_back({ctx.input(first + i), axes[i], x.shape()[axes[i]], x.strides()[axes[i]]});
  }
  const bool front = ctx.attributes().get_or<bool>(1, false);
  return select(ctx, x, arrays, front ? 0 : *std::min_element(axes.begin(), axes.end()));
}

void index_kernel(const KernelContext& ctx) {
  gather_items(ctx, select_by_attributes(ctx, ctx.input(0), 1), ctx.input(0));
}

/// Makes the output a copy of input 0, unless it is input 0's own bytes, donated.
void copy_unless_donated(const KernelContext& ctx) {
  const TensorView& x = ctx.input(0);
  if (x.data == ctx.output().data) return;
  copy_all(ctx, copy_nest(x.shape(), x.strides(), ctx.output().strides()), x.data, ctx.output().data,
           item_size(x.dtype()));
}

/// Strides that read the value (input 1) as `shape`, leading axes of size 1 too many left out.
Strides value_strides(const TensorView& value, const Shape& shape) {
  const std::size_t extra = value.shape().size() > shape.size() ? value.shape().size() - shape.size() : 0;
  const std::span<const std::int64_t> sizes = value.shape();
  const std::span<const std::int64_t> strides = value.strides();
  return broadcast_strides(Shape(sizes.subspan(extra)), Strides(strides.subspan(extra)), shape);
}

void slice_assign_kernel(const KernelContext& ctx) {
  copy_unless_donated(ctx);
  const Dims& starts = ctx.attributes().get<Dims>(0);
  const Dims& steps = ctx.attributes().get<Dims>(1);
  Shape shape = ctx.attributes().get<Dims>(2);
  if (numel(shape) == 0) return;
  Strides strides = ctx.output().strides();
  std::int64_t offset = 0;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    offset += starts[axis] * strides[axis];
    if (shape[axis] > 1) strides[axis] *= steps[axis];
  }
  // The value broadcasts against the region as slice would return it.
  auto normal = [&](std::size_t attribute, std::size_t extra) {
    const Dims given = ctx.attributes().has(attribute) ? ctx.attributes().get<Dims>(attribute) : Dims{};
    auto axes = normalize_axes(ctx.op().name, given, static_cast<int>(shape.size() + extra * given.size()));
    std::sort(axes.begin(), axes.end());
    return axes;
  };
  const auto dropped = normal(3, 0);
  for (std::size_t i = dropped.size(); i-- > 0;) {
    shape.erase(dropped[i]);
    strides.erase(dropped[i]);
  }
  for (int axis : normal(4, 1)) {
    shape.insert(axis, 1);
    strides.insert(axis, 0);
  }
  const TensorView& value = ctx.input(1);
  const std::int64_t item = item_size(value.dtype());
  copy_all(ctx, copy_nest(shape, value_strides(value, shape), strides), value.data,
           advance(ctx.output().data, offset, item), item);
}

/// Writes the value's elements to the selected places, those of the last index last.
template <class T>
void scatter(const KernelContext& ctx, const Selection& selection) {
  const TensorView& value = ctx.input(1);
  const Strides strides = value_strides(value, selection.shape);
  const LoopNest<2> before = selection.before(strides);
  const LoopNest<2> after = selection.after(strides);
  const LoopNest<2> along = selection.nest(selection.place, selection.behind, strides);
  const auto indices = static_cast<std::int64_t>(selection.offsets.size());
  const std::int64_t places = before.total();
  const std::int64_t group = std::max<std::int64_t>(1, kGatherChunk / (indices * after.total()));
  // Places in front of the arrays' axes never overlap; within one the order of the indices matters.
  ctx.parallel_for(ceil_div(places, group), [&](std::int64_t chunk) {
    for (std::int64_t place = chunk * group; place < std::min(places, (chunk + 1) * group); ++place) {
      const auto start = before.offsets(place);
      const T* in = value.as<const T>() + start[1];
      T* out = ctx.output().as<T>() + start[0];
      const std::int64_t* offset = selection.offsets.data();
      along.run(0, indices, [&](const auto& index, std::int64_t count) {
        for (std::int64_t i = 0; i < count; ++i, ++offset) {
          const T* from = in + index[1] + i * along.inner_stride(1);
          after.run(0, after.total(), [&](const auto& at, std::int64_t run) {
            copy_run(from + at[1], after.inner_stride(1), out + *offset + at[0], after.inner_stride(0), run);
          });
        }
      });
    }
  });
}

void index_assign_kernel(const KernelContext& ctx) {
  // Selected before anything is written: an index out of bounds leaves x as it is.
  const Selection selection = select_by_attributes(ctx, ctx.output(), 2);
  copy_unless_donated(ctx);
  if (numel(selection.shape) == 0) return;
  visit_item(item_size(ctx.output().dtype()), [&]<class T>() { scatter<T>(ctx, selection); });
}

/// Adds the value's elements to the selected places, in the order of the indices.
template <class T>
void scatter_add(const KernelContext& ctx, const Selection& selection) {
  const TensorView& value = ctx.input(1);
  const Strides strides = value_strides(value, selection.shape);
  const LoopNest<2> before = selection.before(strides);
  const LoopNest<2> after = selection.after(strides);
  const LoopNest<2> along = selection.nest(selection.place, selection.behind, strides);
  const auto indices = static_cast<std::int64_t>(selection.offsets.size());
  const std::int64_t block = after.total();
  // No two chunks share an element: they differ in the place in front or in the part of the block behind.
  const std::int64_t part =
      std::clamp<std::int64_t>(kGatherChunk / indices, 16, std::max<std::int64_t>(16, block));
  const std::int64_t parts = ceil_div(block, part);
  ctx.parallel_for(before.total() * parts, [&](std::int64_t chunk) {
    const auto start = before.offsets(chunk / parts);
    const std::int64_t first = chunk % parts * part;
    const std::int64_t last = std::min(block, first + part);
    const T* in = value.as<const T>() + start[1];
    T* out = ctx.output().as<T>() + start[0];
    const std::int64_t* offset = selection.offsets.data();
    along.run(0, indices, [&](const auto& index, std::int64_t count) {
      for (std::int64_t i = 0; i < count; ++i, ++offset) {
        const T* from = in + index[1] + i * along.inner_stride(1);
        after.run(first, last, [&](const auto& at, std::int64_t run) {
          const T* source = from + at[1];
          T* target = out + *offset + at[0];
          for (std::int64_t k = 0; k < run; ++k) {
            T& sum = target[k * after.inner_stride(0)];
            sum = static_cast<T>(sum + source[k * after.inner_stride(1)]);
          }
        });
      }
    });
  });
}

void index_add_kernel(const KernelContext& ctx) {
  // Selected before anything is written: an index out of bounds leaves x as it is.
  const Selection selection = select_by_attributes(ctx, ctx.output(), 2);
  copy_unless_donated(ctx);
  if (numel(selection.shape) == 0) return;
  visit_dtype(ctx.output().dtype(), [&]<class T>() {
    if constexpr (!std::is_same_v<T, bool>) scatter_add<T>(ctx, selection);
  });
}

}  // namespace

void register_indexing_kernels(KernelRegistry& registry) {
  registry.add("take", DeviceType::cpu, take_kernel);
  registry.add("index", DeviceType::cpu, index_kernel);
  registry.add("slice_assign", DeviceType::cpu, slice_assign_kernel);
  registry.add("index_assign", DeviceType::cpu, index_assign_kernel);
  registry.add("index_add", DeviceType::cpu, index_add_kernel);
}

}  // namespace thalweg::cpu
