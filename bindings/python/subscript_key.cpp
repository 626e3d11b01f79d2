// subscript_key.cpp: NumPy's reading of index tuples.
#include "subscript_key.h"

#include <algorithm>

#include "buffers.h"
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

  /// A key that is a mask alone (an Ellipsis beside it changes nothing).
  bool take_mask(Key* result) const {
    const auto is_mask = [](const Item& item) { return item.kind == ItemKind::mask; };
    const auto mask = std::find_if(items_.begin(), items_.end(), is_mask);
    if (mask == items_.end()) return false;
    for (const Item& item : items_) {
      if (&item != &*mask && item.kind != ItemKind::ellipsis)
        fail("a mask together with other indices is not supported");
    }
    if (mask != items_.begin()) fail("a mask after an Ellipsis is not supported");
    const Shape& shape = mask->array.shape();
    const bool matches =
        mask->array.rank() <= x_.rank() && std::equal(shape.begin(), shape.end(), x_.shape().begin());
    if (!matches) {
      fail("mask of shape " + to_string(shape) + " does not match the first axes of shape " +
           to_string(x_.shape()));
    }
    result->mask = mask->array;
    return true;
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
        case ItemKind::new_axis:
          key->insert.push_back(position++);
          key->whole = false;
          break;
        case ItemKind::array:
          key->arrays.push_back({static_cast<int>(position++), item.array});
          select(key, 0, 1, x_.shape()[key->starts.size()]);
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
