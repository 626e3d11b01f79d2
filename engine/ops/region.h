// region.h: the part of a tensor that basic indexing selects, shared by slice and slice_assign.
#pragma once

#include <cstddef>

#include <thalweg/op.h>

namespace thalweg {

/// A strided region of input 0, relative to its offset.
struct Region {
  Shape shape;
  Strides strides;
  std::int64_t offset = 0;
};

/// The region that the attributes starts, steps, sizes, drop, insert (from position `first` on) select in
/// input 0, as the front end has normalised them: one entry per axis of the input, `drop` the axes to leave
/// out, `insert` the positions of new axes in the result. Throws IndexError led by the op's name if the
/// region leaves the input and ShapeError if the attributes contradict each other.
Region resolve_region(const InferContext& ctx, std::size_t first);

}  // namespace thalweg
