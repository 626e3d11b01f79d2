// subscript.cpp: x[key], x[key] = v and len(x).
#include <optional>
#include <vector>

#include <thalweg/engine.h>

#include "buffers.h"
#include "deferred.h"
#include "engines.h"
#include "errors.h"
#include "operands.h"
#include "sites.h"
#include "subscript_key.h"
#include "subscript_mask.h"
#include "tensor_object.h"
#include "values.h"

namespace thalweg::python {

namespace {

Attributes region_attributes(const Op& op, const Key& key) {
  AttributeList attributes(op);
  attributes.set("starts", key.starts);
  attributes.set("steps", key.steps);
  attributes.set("sizes", key.sizes);
  attributes.set("drop", key.drop);
  attributes.set("insert", key.insert);
  return attributes.take();
}

Attributes array_attributes(const Op& op, const Key& key) {
  AttributeList attributes(op);
  attributes.set("axes", key.region_axes());
  attributes.set("front", AttrValue(key.front));
  return attributes.take();
}

Tensor take_region(const Tensor& x, const Key& key, SiteId site) {
  Engine& engine = x.engine();
  const Op& op = builtin(Builtin::slice);
  return engine.apply(op, {&x}, region_attributes(op, key), site);
}

/// Inputs x (and value), then the index arrays.
std::vector<const Tensor*> array_inputs(std::initializer_list<const Tensor*> first, const Key& key) {
  std::vector<const Tensor*> inputs(first);
  for (const IndexArray& array : key.arrays) inputs.push_back(&array.indices);
  return inputs;
}

Tensor take_arrays(const Tensor& x, const Key& key, SiteId site) {
  Engine& engine = x.engine();
  const Op& op = builtin(Builtin::index);
  return engine.apply(op, array_inputs({&x}, key), array_attributes(op, key), site);
}

/// Assignments cast within a kind, between integers of either sign, and from a lower kind.
bool may_assign(DType value, DType target) noexcept {
  return kind(value) <= kind(target) || (is_integer(value) && is_integer(target));
}

/// The value to assign: numbers and arrays become tensors. A number must be of the tensor's kind or a lower
/// one.
Tensor value_for(const Tensor& x, PyObject* value) {
  if (is_tensor(value)) return tensor_of(value);
  if (PyList_Check(value) || PyTuple_Check(value)) {
    // A list of real numbers goes into floating values, of any numbers into complex ones; elsewhere its own
    // kind decides whether it may.
    std::optional<DType> floating = is_inexact(x.dtype()) ? std::optional(x.dtype()) : std::nullopt;
    const Tensor nested = from_nested(x.engine(), value, floating, x.device());
    if (!nested)
      return copy_from_buffer(x.engine(), array_of_mixed("setitem", value).ptr(), std::nullopt, x.device());
    // Read again as the tensor's dtype: numbers must not wrap.
    if (floating || nested.numel() == 0 || !may_assign(nested.dtype(), x.dtype())) return nested;
    return from_nested(x.engine(), value, x.dtype(), x.device());
  }
  return to_operand(x.engine(), "setitem", value, x.dtype(), x.device());
}

void check_kind(const Tensor& x, const Tensor& value) {
  if (may_assign(value.dtype(), x.dtype())) return;
  throw DTypeError("setitem: a value of " + std::string(name(value.dtype())) +
                   " does not go into a tensor of " + std::string(name(x.dtype())) + "; cast it with astype");
}

void assign_arrays(PyObject* self, const Key& key, const Tensor& value) {
  Engine& engine = value.engine();
  const Op& index_assign = builtin(Builtin::index_assign);
  if (key.whole) {
    const auto inputs = array_inputs({&value}, key);
    return apply_in_place(self, index_assign, inputs, array_attributes(index_assign, key));
  }
  // The region with the elements replaced, then the tensor with the region replaced.
  const SiteId site = current_site();
  const Tensor region = take_region(tensor_of(self), key, site);
  const Tensor changed = engine.apply(index_assign, array_inputs({&region, &value}, key),
                                      array_attributes(index_assign, key), site);
  const Op& slice_assign = builtin(Builtin::slice_assign);
  const Tensor* const operand = &changed;
  apply_in_place(self, slice_assign, {&operand, 1}, region_attributes(slice_assign, key));
}

void assign(PyObject* self, PyObject* key_object, PyObject* value_object) {
  Tensor x = tensor_of(self);
  const Key key = parse_key(x, key_object, "setitem");
  const Tensor value = value_for(x, value_object);
  check_kind(x, value);
  // Let go of: the new value takes over the old one's memory only where nothing else holds that.
  x = Tensor();
  if (key.mask) return assign_mask(self, key.mask, value);
  if (!key.arrays.empty()) return assign_arrays(self, key, value);
  const Op& op = builtin(Builtin::slice_assign);
  const Tensor* const operand = &value;
  apply_in_place(self, op, {&operand, 1}, region_attributes(op, key));
}

}  // namespace

PyObject* tensor_subscript(PyObject* self, PyObject* key_object) {
  return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
    run_deferred();
    // A copy of the handle: the key may run Python code or wait, and other threads may rebind self meanwhile.
    const Tensor x = tensor_of(self);
    const Key key = parse_key(x, key_object, "getitem");
    const SiteId site = current_site();
    if (key.mask) return wrap(take_mask(x, key.mask));
    if (key.arrays.empty()) return wrap(take_region(x, key, site));
    if (key.whole) return wrap(take_arrays(x, key, site));
    return wrap(take_arrays(take_region(x, key, site), key, site));
  });
}

int tensor_assign_subscript(PyObject* self, PyObject* key, PyObject* value) {
  return guarded(-1, [&] {
    run_deferred();
    if (value == nullptr) throw DTypeError("delitem: elements of a tensor cannot be deleted");
    assign(self, key, value);
    return 0;
  });
}

Py_ssize_t tensor_length(PyObject* self) {
  return guarded<Py_ssize_t>(-1, [&]() -> Py_ssize_t {
    const Tensor& tensor = tensor_of(self);
    if (tensor.rank() == 0) throw DTypeError("len: a 0-d tensor has no length");
    return tensor.shape()[0];
  });
}

}  // namespace thalweg::python
