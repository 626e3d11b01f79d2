// runner_supported_devices.h: the devices that one engine's runners serve.
#pragma once

#include <string>
#include <vector>

#include <thalweg/device.h>

namespace thalweg {

/// A value: which devices exist here. Device ordinals (0, 1, …) index per-device tables.
class RunnerSupportedDevices {
 public:
  explicit RunnerSupportedDevices(int cpu_devices) : cpu_devices_(cpu_devices) {}

  bool contains(Device device) const noexcept {
    return device.type == DeviceType::cpu && device.index >= 0 && device.index < cpu_devices_;
  }
  int count() const noexcept { return cpu_devices_; }
  int ordinal(Device device) const noexcept { return device.index; }
  Device at(int ordinal) const noexcept { return {DeviceType::cpu, static_cast<std::int16_t>(ordinal)}; }

  std::vector<Device> all() const {
    std::vector<Device> devices;
    for (int i = 0; i < count(); ++i) devices.push_back(at(i));
    return devices;
  }
  /// "cpu:0, cpu:1": for messages.
  std::string list() const {
    std::string text;
    for (Device device : all()) text += (text.empty() ? "" : ", ") + to_string(device);
    return text;
  }

 private:
  int cpu_devices_;
};

}  // namespace thalweg
