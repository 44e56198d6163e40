// The devices that tests run on: every one that this machine opens.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lockstep/device.hpp"

namespace lockstep {

inline std::vector<std::string> test_devices() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> found;
    for (const DeviceStatus& status : Device::list())
      if (status.available) found.push_back(status.info.name);
    return found;
  }();
  return names;
}

/// The interpreter, and the CPU where this build has its code generator.
inline std::vector<std::string> host_devices() {
  std::vector<std::string> found;
  for (const DeviceStatus& status : Device::list())
    if (status.available && (status.info.kind == DeviceKind::interp || status.info.kind == DeviceKind::cpu))
      found.push_back(status.info.name);
  return found;
}

/// One open device per name for the whole test program.
inline const Device& test_device(const std::string& name) {
  static std::map<std::string, Device> open;
  auto found = open.find(name);
  if (found == open.end()) found = open.emplace(name, Device::open(name)).first;
  return found->second;
}

inline std::string test_name(const std::string& device) {
  std::string text = device;
  for (char& c : text)
    if (!isalnum(static_cast<unsigned char>(c))) c = '_';
  return text;
}

}  // namespace lockstep
