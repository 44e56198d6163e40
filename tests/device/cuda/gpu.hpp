// The GPU under test, or a skip with the reason.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

#include "lockstep/device.hpp"
#include "lockstep/error.hpp"

namespace lockstep::cuda_test {

/// cuda:0, opened once; empty with a reason where there is none.
inline const std::optional<Device>& gpu(std::string* reason = nullptr) {
  static std::string why;
  static const std::optional<Device> device = []() -> std::optional<Device> {
    try {
      return Device::open("cuda");
    } catch (const Error& error) {
      why = error.what();
      return {};
    }
  }();
  if (reason) *reason = why;
  return device;
}

/// Skips the tests of a suite where there is no GPU.
class GpuTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string reason;
    if (!gpu(&reason)) GTEST_SKIP() << reason;
  }
  const Device& device() const { return *gpu(); }
};

}  // namespace lockstep::cuda_test
