// subscript_key.h: what a key of x[key] means, before anything is issued.
#pragma once

#include <string>
#include <vector>

#include <thalweg/engine.h>

#include "python.h"

namespace thalweg::python {

/// One index array and the axis of the input that it indexes.
struct IndexArray {
  int axis;
  Tensor indices;
};

/// A parsed key: a region of the input (basic part), then index arrays on axes of that region, or a mask.
struct Key {
  Dims starts, steps, sizes;  ///< one entry per axis of the input
  Dims drop;                  ///< axes of the input that an int removed
  Dims insert;                ///< positions of new axes in the region
  std::vector<IndexArray> arrays;
  bool front = false;  ///< the index arrays do not stand together: their axes go in front
  bool whole = true;   ///< the basic part selects everything as it is
  Tensor mask;         ///< a bool array alone, over the first axes (the other fields do not count)

  /// Axes of the region, counted after `drop` and `insert`, that the arrays index.
  Dims region_axes() const;
};

/// Parses `key` for a tensor like `x`; `operation` ("getitem", "setitem") leads error texts. Ints stay ints:
/// one out of range raises IndexError here. Issues no operator on `x`. Waits where a mask stands beside other
/// indices: it becomes index arrays.
Key parse_key(const Tensor& x, PyObject* key, const std::string& operation);

}  // namespace thalweg::python
