// device.h: where a tensor's bytes live and its operators run.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace thalweg {

enum class DeviceType : std::uint8_t { cpu, cuda };

inline constexpr int kDeviceTypeCount = 2;

/// One device: `cpu:0`, or `cpu:1` where the CPU poses as several devices, or `cuda:N`.
struct Device {
  DeviceType type = DeviceType::cpu;
  std::int16_t index = 0;

  friend bool operator==(Device, Device) noexcept = default;
};

/// "cpu:0", "cuda:1": the form used in messages, JSON and traces.
std::string to_string(Device device);

/// Parses "cpu", "cpu:1", "cuda", "cuda:0"; throws DeviceError. Existence is the engine's to check.
Device parse_device(std::string_view text);

}  // namespace thalweg
