// The adapter that the tests run on: the first one, software or hardware; without one they are skipped.
#pragma once

#include <gtest/gtest.h>

#include "lockstep/device.hpp"

namespace lockstep::test {

/// Sets `why` instead of opening where this machine has no adapter.
inline Device open_adapter(std::string& why, std::function<void(Limits&)> lower_limits = {},
                           Numerics numerics = Numerics::exact) {
  DeviceOptions options;
  options.numerics = numerics;
  options.lower_limits = std::move(lower_limits);
  try {
    return Device::open("webgpu", options);
  } catch (const UnsupportedError& error) {
    why = error.what();
    return {};
  }
}

}  // namespace lockstep::test

#define LOCKSTEP_OPEN_ADAPTER(device, ...)                                                   \
  std::string device##_why;                                                                  \
  const lockstep::Device device = lockstep::test::open_adapter(device##_why, ##__VA_ARGS__); \
  if (!device##_why.empty()) GTEST_SKIP() << "no WebGPU adapter: " << device##_why
