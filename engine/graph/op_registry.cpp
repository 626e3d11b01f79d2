// op_registry.cpp: the table of Ops, and how an Op's inference sets an ordinary output.
#include <thalweg/errors.h>
#include <thalweg/op.h>

#include "core/assert.h"
#include "core/close_matches.h"

namespace thalweg {

void InferContext::set_contiguous(std::size_t i, const Shape& shape, DType dtype) {
  checked_numel(name(), shape, item_size(dtype));
  TensorMeta& meta = output(i);
  meta.dtype = dtype;
  meta.offset = 0;
  meta.strides = contiguous_strides(shape);
  meta.shape = shape;
}

const Op& OpRegistry::add(Op op) {
  if (op.name.empty()) throw ValueError("register operator: the name is empty");
  if (!op.infer) throw ValueError("register operator '" + op.name + "': it has no infer function");
  if (try_find(op.name) != nullptr) {
    throw ValueError("register operator '" + op.name + "': the name is taken; choose another");
  }
  op.id = static_cast<std::uint32_t>(ops_.size());
  const Op& stored = *own_.emplace_back(std::make_unique<const Op>(std::move(op)));
  ops_.push_back(&stored);
  own_by_name_.emplace(stored.name, &stored);
  return stored;
}

void OpRegistry::begin_with(const OpRegistry& base) {
  THALWEG_ASSERT(ops_.empty(), "ids are places, and the first belong to the base");
  base_ = &base;
  ops_ = base.ops_;
}

const Op& OpRegistry::find(std::string_view name) const {
  if (const Op* op = try_find(name)) return *op;
  std::vector<std::string_view> names;
  names.reserve(ops_.size());
  for (const Op* op : ops_) names.push_back(op->name);
  throw ValueError("operator '" + std::string(name) + "' is not known" + did_you_mean(name, names));
}

const Op* OpRegistry::try_find(std::string_view name) const noexcept {
  const auto found = own_by_name_.find(name);
  if (found != own_by_name_.end()) return found->second;
  return base_ != nullptr ? base_->try_find(name) : nullptr;
}

}  // namespace thalweg
