// subscript_mask.cpp: reading and writing through masks.
#include "subscript_mask.h"

#include <algorithm>
#include <string>
#include <utility>

#include <thalweg/errors.h>

#include "engines.h"
#include "errors.h"
#include "sites.h"
#include "tensor_object.h"
#include "values.h"

namespace thalweg::python {

namespace {

/// How many elements of the mask are true. A blocking read.
std::int64_t count_of(const Tensor& mask) {
  const Op& op = builtin(Builtin::count_nonzero);
  const Tensor count = mask.engine().apply(op, {&mask}, AttributeList(op).take(), current_site());
  const BlockingRead read(count);
  try {
    return count.item().to<std::int64_t>();
  } catch (...) {
    set_read_error(count);
    throw_python_error();
  }
}

Attributes count_attribute(const Op& op, std::int64_t count) {
  AttributeList attributes(op);
  attributes.set("count", AttrValue(count));
  return attributes.take();
}

Tensor reshaped(const Tensor& x, const Shape& shape) {
  const Op& op = builtin(Builtin::reshape);
  AttributeList attributes(op);
  attributes.set("shape", AttrValue(shape));
  return x.engine().apply(op, {&x}, attributes.take(), current_site());
}

/// Row `row` of a matrix, a view.
Tensor row_of(const Tensor& matrix, std::int64_t row) {
  const Op& op = builtin(Builtin::slice);
  AttributeList attributes(op);
  attributes.set("starts", Dims{row, 0});
  attributes.set("steps", Dims{1, 1});
  attributes.set("sizes", Dims{1, matrix.shape()[1]});
  attributes.set("drop", Dims{0});
  return matrix.engine().apply(op, {&matrix}, attributes.take(), current_site());
}

/// True where the value for each element of `x` is known whatever the mask selects: one row for all places,
/// or a value of the tensor's shape.
bool has_fixed_places(const TensorMeta& x, const Tensor& mask, const Tensor& value) {
  if (value.shape() == x.shape) return true;
  if (value.rank() > x.rank()) return false;
  const int rest = x.rank() - mask.rank();
  for (int axis = 0; axis < value.rank() - rest; ++axis) {
    if (value.shape()[axis] != 1) return false;
  }
  return true;
}

/// True where each axis of `value` but the first is that of `x`, or 1.
bool has_rows(const TensorMeta& x, const Tensor& mask, const Tensor& value) {
  if (value.rank() != x.rank() - mask.rank() + 1) return false;
  for (int axis = 1; axis < value.rank(); ++axis) {
    const std::int64_t size = value.shape()[axis];
    if (size != 1 && size != x.shape[mask.rank() + axis - 1]) return false;
  }
  return value.shape()[0] <= mask.numel();
}

/// True for a mask of the tensor's first axes in which a size is 0 instead of the tensor's: it selects
/// nothing.
bool is_void(const TensorMeta& x, const Tensor& mask) {
  if (mask.numel() != 0 || mask.rank() > x.rank()) return false;
  bool differs = false;
  for (int axis = 0; axis < mask.rank(); ++axis) {
    const std::int64_t size = mask.shape()[axis];
    if (size != 0 && size != x.shape[axis]) return false;
    differs = differs || size != x.shape[axis];
  }
  return differs;
}

}  // namespace

Tensor take_mask(const Tensor& x, const Tensor& mask) {
  const std::int64_t count = count_of(mask);
  const Op& op = builtin(Builtin::mask_select);
  return x.engine().apply(op, {&x, &mask}, count_attribute(op, count), current_site());
}

std::vector<Tensor> positions_of(const Tensor& mask) {
  const Tensor shaped = mask.rank() == 0 ? reshaped(mask, {1}) : mask;
  const std::int64_t count = count_of(shaped);
  const Op& op = builtin(Builtin::nonzero);
  const Tensor rows = mask.engine().apply(op, {&shaped}, count_attribute(op, count), current_site());
  std::vector<Tensor> positions;
  for (int axis = 0; axis < shaped.rank(); ++axis) positions.push_back(row_of(rows, axis));
  return positions;
}

void assign_mask(PyObject* self, Tensor mask, const Tensor& value) {
  // No handle of the old value is kept, so that the new one may take over its memory.
  const TensorMeta x = tensor_of(self).meta();
  const Tensor* const operands[] = {&value, &mask};
  const bool fixed = has_fixed_places(x, mask, value);
  if (is_void(x, mask) &&
      (fixed ? broadcast_shapes("setitem", value.shape(), x.shape) == x.shape : has_rows(x, mask, value))) {
    return;
  }
  if (fixed) {
    Shape shape = mask.shape();
    while (int(shape.size()) < x.rank()) shape.push_back(1);
    if (mask.rank() < x.rank()) mask = reshaped(mask, shape);
    return apply_in_place(self, builtin(Builtin::mask_assign), operands, {});
  }
  if (!has_rows(x, mask, value)) {
    throw ShapeError("setitem: with a mask the value must be one for all places, of the tensor's shape " +
                     to_string(x.shape) + ", or have a row for each place that the mask of shape " +
                     to_string(mask.shape()) + " selects, not be of shape " + to_string(value.shape()));
  }
  apply_in_place(self, builtin(Builtin::mask_scatter), operands, {});
}

}  // namespace thalweg::python
