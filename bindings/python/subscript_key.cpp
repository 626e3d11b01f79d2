// subscript_key.cpp: NumPy's reading of index tuples.
#include "subscript_key.h"

#include <algorithm>
#include <utility>

#include "buffers.h"
#include "subscript_mask.h"
#include "tensor_object.h"
#include "values.h"

namespace thalweg::python {

namespace {

enum class ItemKind : std::uint8_t { integer, slice, ellipsis, new_axis, array, mask };

struct Item {
  ItemKind kind;
  std::int64_t integer = 0;
  PyObject* object = nullptr;  // borrowed from the key
  Tensor array;
  /// Axes of the input that the item consumes; the ellipsis takes what is left.
  int axes = 1;
};

class KeyParser {
 public:
  KeyParser(const Tensor& x, const std::string& operation) : x_(x), operation_(operation) {}

  Key parse(PyObject* key) {
    if (PyTuple_Check(key)) {
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key); ++i)
        items_.push_back(classify(PyTuple_GET_ITEM(key, i)));
    } else {
      items_.push_back(classify(key));
    }
    Key result;
    if (take_mask(&result)) return result;
    expand_ellipsis();
    expand_masks();
    place(&result);
    return result;
  }

 private:
  [[noreturn]] void fail(const std::string& text) const { throw IndexError(operation_ + ": " + text); }

  Item classify(PyObject* object) const {
    if (PySlice_Check(object)) return {ItemKind::slice, 0, object, {}, 1};
    if (object == Py_None) return {ItemKind::new_axis, 0, object, {}, 0};
    if (object == Py_Ellipsis) return {ItemKind::ellipsis, 0, object, {}, 0};
    if (PyBool_Check(object))
      fail("True and False are not indices; use an int, or a mask of the tensor's shape");
    if (is_tensor(object)) return of_array(tensor_of(object));
    if (PyList_Check(object)) {
      Tensor indices = from_nested(x_.engine(), object, std::nullopt, x_.device());
      if (indices && indices.numel() == 0)
        indices = x_.engine().allocate(DType::int64, indices.shape(), x_.device());
      if (!indices) {
        indices = copy_from_buffer(x_.engine(), array_of_mixed(operation_, object).ptr(), std::nullopt,
                                   x_.device());
      }
      return of_array(indices);
    } else if (PyLong_Check(object)) {
      return of_integer(object);
    } else if (is_integer_scalar(object)) {
      return of_integer(object);
    } else if (PyObject_CheckBuffer(object) && PyObject_HasAttrString(object, "__array__")) {
      return of_array(copy_from_buffer(x_.engine(), object, std::nullopt, x_.device()));
    }
    fail(std::string(
             "an index must be an int, a slice, an Ellipsis, None or an array of ints or bools, not ") +
         Py_TYPE(object)->tp_name);
  }

  /// True for what works as an index by itself: NumPy's integer scalars and 0-d arrays, but not other arrays.
  static bool is_integer_scalar(PyObject* object) {
    if (!PyIndex_Check(object)) return false;
    if (PyObject* number = PyNumber_Index(object)) {
      Py_DECREF(number);
      return true;
    }
    PyErr_Clear();
    return false;
  }

  Item of_integer(PyObject* object) const {
    const py::object number = checked(PyNumber_Index(object));
    int overflow = 0;
    const long long value = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
    if (overflow != 0) fail("index does not fit in 64 bits");
    return {ItemKind::integer, value, object, {}, 1};
  }

  Item of_array(const Tensor& array) const {
    if (array.dtype() == DType::bool_) return {ItemKind::mask, 0, nullptr, array, array.rank()};
    if (!is_integer(array.dtype())) {
      fail("index arrays must have an integer or bool dtype, not " + std::string(name(array.dtype())));
    }
    return {ItemKind::array, 0, nullptr, array, 1};
  }

  /// A key that is a mask alone (an Ellipsis behind it changes nothing).
  bool take_mask(Key* result) const {
    if (items_.empty() || items_[0].kind != ItemKind::mask || items_.size() > 2) return false;
    if (items_.size() == 2 && items_[1].kind != ItemKind::ellipsis) return false;
    check_mask(items_[0].array, 0);
    result->mask = items_[0].array;
    return true;
  }

  /// Throws unless the mask has the shape of x from `axis` on, or 0 instead of a size (array API standard,
  /// boolean array indexing).
  void check_mask(const Tensor& mask, int axis) const {
    const Shape& shape = mask.shape();
    const auto fits = [](std::int64_t size, std::int64_t of_x) { return size == of_x || size == 0; };
    if (axis + mask.rank() <= x_.rank() &&
        std::equal(shape.begin(), shape.end(), x_.shape().begin() + axis, fits)) {
      return;
    }
    fail("mask of shape " + to_string(shape) + " does not match the " +
         (axis == 0 ? "first axes" : "axes from axis " + std::to_string(axis) + " on") + " of shape " +
         to_string(x_.shape()));
  }

  /// A mask beside other indices stands for the positions of its true elements, as in NumPy.
  void expand_masks() {
    std::vector<Item> expanded;
    int axis = 0;
    for (Item& item : items_) {
      if (item.kind == ItemKind::mask) {
        check_mask(item.array, axis);
        for (Tensor& positions : positions_of(item.array)) {
          // That of a 0-d mask indexes a new axis of size 1.
          expanded.push_back({ItemKind::array, 0, nullptr, std::move(positions), item.axes == 0 ? 0 : 1});
        }
      } else {
        expanded.push_back(item);
      }
      axis += item.axes;
    }
    items_ = std::move(expanded);
  }

  void expand_ellipsis() {
    int consumed = 0;
    int ellipses = 0;
    for (const Item& item : items_) {
      consumed += item.axes;
      ellipses += item.kind == ItemKind::ellipsis;
    }
    if (ellipses > 1) fail("an index can have only one Ellipsis ('...')");
    if (consumed > x_.rank()) {
      fail("too many indices: " + std::to_string(consumed) + " for a tensor of " + std::to_string(x_.rank()) +
           " dimensions");
    }
    if (ellipses == 0) items_.push_back({ItemKind::ellipsis, 0, nullptr, {}, 0});
    for (Item& item : items_) {
      if (item.kind == ItemKind::ellipsis) item.axes = x_.rank() - consumed;
    }
  }

  void select(Key* key, std::int64_t start, std::int64_t step, std::int64_t size) const {
    const std::int64_t dim = x_.shape()[key->starts.size()];
    if (start != 0 || step != 1 || size != dim) key->whole = false;
    key->starts.push_back(start);
    key->steps.push_back(step);
    key->sizes.push_back(size);
  }

  void select_slice(Key* key, PyObject* slice) const {
    Py_ssize_t start, stop, step;
    if (PySlice_Unpack(slice, &start, &stop, &step) != 0) throw_python_error();
    const Py_ssize_t size = PySlice_AdjustIndices(x_.shape()[key->starts.size()], &start, &stop, step);
    select(key, size == 0 ? 0 : start, step, size);
  }

  void select_integer(Key* key, std::int64_t index) const {
    const std::size_t axis = key->starts.size();
    const std::int64_t dim = x_.shape()[axis];
    const std::int64_t position = index < 0 ? index + dim : index;
    if (position < 0 || position >= dim) {
      fail("index " + std::to_string(index) + " is out of bounds for axis " + std::to_string(axis) +
           " with size " + std::to_string(dim));
    }
    key->drop.push_back(std::int64_t(axis));
    key->whole = false;
    select(key, position, 1, 1);
  }

  static void insert_axis(Key* key, std::int64_t position) {
    key->insert.push_back(position);
    key->whole = false;
  }

  void place(Key* key) const {
    bool in_run = false;
    bool had_run = false;
    const bool any_array = std::any_of(items_.begin(), items_.end(),
                                       [](const Item& item) { return item.kind == ItemKind::array; });
    std::int64_t position = 0;  // in the region
    for (const Item& item : items_) {
      // NumPy counts ints beside index arrays as index arrays when it asks whether these stand together.
      const bool advanced = item.kind == ItemKind::array || (any_array && item.kind == ItemKind::integer);
      if (advanced && !in_run && had_run) key->front = true;
      // An Ellipsis that stands for no axis still separates, as in NumPy; the one added at the end harms
      // nothing.
      in_run = advanced;
      had_run |= advanced;
      switch (item.kind) {
        case ItemKind::integer: select_integer(key, item.integer); break;
        case ItemKind::slice:
          select_slice(key, item.object);
          ++position;
          break;
        case ItemKind::new_axis: insert_axis(key, position++); break;
        case ItemKind::array:
          key->arrays.push_back({static_cast<int>(position), item.array});
          if (item.axes == 0) {
            insert_axis(key, position);
          } else {
            select(key, 0, 1, x_.shape()[key->starts.size()]);
          }
          ++position;
          break;
        case ItemKind::ellipsis:
          for (int i = 0; i < item.axes; ++i) select(key, 0, 1, x_.shape()[key->starts.size()]);
          position += item.axes;
          break;
        case ItemKind::mask: break;
      }
    }
  }

  const Tensor& x_;
  const std::string& operation_;
  std::vector<Item> items_;
};

}  // namespace

Dims Key::region_axes() const {
  Dims axes;
  for (const IndexArray& array : arrays) axes.push_back(array.axis);
  return axes;
}

Key parse_key(const Tensor& x, PyObject* key, const std::string& operation) {
  return KeyParser(x, operation).parse(key);
}

}  // namespace thalweg::python
