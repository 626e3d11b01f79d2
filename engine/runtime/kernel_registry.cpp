// kernel_registry.cpp: kernels by (Op, device type), by name until the Ops are known and by index afterwards.
#include <utility>

#include <thalweg/errors.h>
#include <thalweg/kernel.h>

namespace thalweg {
namespace {

std::string label(std::string_view op_name, DeviceType device) {
  std::string text = to_string(Device{device, 0});
  return "kernel of '" + std::string(op_name) + "' on " + text.substr(0, text.find(':'));
}

}  // namespace

void KernelRegistry::add(std::string_view op_name, DeviceType device, KernelFn kernel) {
  if (!kernel) throw ValueError("register " + label(op_name, device) + ": the function is empty");
  auto& table = by_name_[static_cast<int>(device)];
  auto [place, added] = table.try_emplace(std::string(op_name));
  if (!added) throw ValueError("register " + label(op_name, device) + ": there is one already");
  place->second = std::make_unique<KernelFn>(std::move(kernel));
}

void KernelRegistry::bind(const OpRegistry& ops) {
  for (int device = 0; device < kDeviceTypeCount; ++device) {
    std::vector<const KernelFn*> bound(ops.all().size(), nullptr);
    for (const auto& [op_name, kernel] : by_name_[device]) {
      const Op* op = ops.try_find(op_name);
      if (op == nullptr) {
        throw ValueError("register " + label(op_name, static_cast<DeviceType>(device)) +
                         ": there is no such operator");
      }
      bound[op->id] = kernel.get();
    }
    bound_[device] = std::move(bound);
  }
}

}  // namespace thalweg
