// packing_node.cpp: saved values that hooks pack and unpack.
#include "autograd/packing_node.h"

#include <string>
#include <utility>

#include <thalweg/errors.h>

namespace thalweg {

void PackingNode::pack_saved() {
  SavedTensorsHooks* const hooks = saved_tensors_hooks();
  if (hooks == nullptr) return;
  const GradMode unrecorded(false);
  packed_.resize(saved_.size());
  metas_.resize(saved_.size());
  set_host_below();
  for (std::size_t at = 0; at < saved_.size(); ++at) {
    if (!saved_[at]) continue;
    const TensorMeta& meta = saved_[at].meta();
    metas_[at] = {meta.dtype, meta.device, meta.shape};
    packed_[at] = hooks->pack(saved_[at]);
    saved_[at] = Tensor();
  }
}

TensorList PackingNode::take_saved(bool keep) {
  std::vector<std::shared_ptr<PackedValue>> packed;
  TensorList values;
  {
    const Lock guard(*this);
    values = take_locked(keep);
    packed = keep ? packed_ : std::exchange(packed_, {});
  }
  for (std::size_t at = 0; at < packed.size(); ++at) {
    if (!packed[at]) continue;
    const Tensor value = packed[at]->unpack();
    check(value, metas_[at]);
    values[at] = value.detach();
  }
  return values;
}

void PackingNode::check(const Tensor& value, const ValueMeta& meta) const {
  if (value.shape() != meta.shape) {
    throw ShapeError(name() + ": unpack returned shape " + to_string(value.shape()) +
                     " for a saved tensor of shape " + to_string(meta.shape));
  }
  if (value.dtype() != meta.dtype) {
    throw DTypeError(name() + ": unpack returned " + std::string(thalweg::name(value.dtype())) +
                     " for a saved tensor of " + std::string(thalweg::name(meta.dtype)));
  }
  if (value.device() != meta.device) {
    throw DeviceError(name() + ": unpack returned a tensor on " + to_string(value.device()) +
                      " for one saved on " + to_string(meta.device) + "; bring it there with .to(device)");
  }
}

int PackingNode::visit_host(VisitHost visit, void* argument) {
  if (const int stop = OpNode::visit_host(visit, argument)) return stop;
  const Lock guard(*this);
  for (const std::shared_ptr<PackedValue>& each : packed_) {
    // A backward under way may have the other reference.
    if (!each || each.use_count() != 1) continue;
    if (const int stop = each->visit_host(visit, argument)) return stop;
  }
  return 0;
}

}  // namespace thalweg
