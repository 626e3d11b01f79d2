// device.cpp: the text form of devices.
#include <charconv>

#include <thalweg/device.h>
#include <thalweg/errors.h>

namespace thalweg {
namespace {

constexpr std::string_view kTypes[kDeviceTypeCount] = {"cpu", "cuda"};

}  // namespace

std::string to_string(Device device) {
  return std::string(kTypes[static_cast<int>(device.type)]) + ":" + std::to_string(device.index);
}

Device parse_device(std::string_view text) {
  std::size_t colon = text.find(':');
  std::string_view type = text.substr(0, colon);
  for (int i = 0; i < kDeviceTypeCount; ++i) {
    if (kTypes[i] != type) continue;
    Device device{static_cast<DeviceType>(i), 0};
    if (colon == std::string_view::npos) return device;
    const char* end = text.data() + text.size();
    const char* begin = text.data() + colon + 1;
    auto [stop, error] = std::from_chars(begin, end, device.index);
    if (begin != end && *begin != '-' && error == std::errc() && stop == end) return device;
  }
  throw DeviceError("device '" + std::string(text) +
                    "' is not known; write 'cpu', 'cpu:N', 'cuda' or 'cuda:N'");
}

}  // namespace thalweg
