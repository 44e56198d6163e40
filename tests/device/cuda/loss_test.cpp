// A kernel that writes out of all memory: the device is lost with the right fault, and a new opening works.
#include "device/cuda/gpu.hpp"

namespace lockstep::cuda_test {
namespace {

TEST(DeviceLoss, IsReportedAndWorkGoesOn) {
  std::string reason;
  if (!gpu(&reason)) GTEST_SKIP() << reason;
  static const Kernel wild = kernel("test.wild_store", [](At<1> at, Out<u32, 1> out, Param<i32> stride) {
    out(at.x * Val<i32>(stride)) = 1u;
  });
  static const Kernel fill = kernel("test.fill", [](At<1> at, Out<u32, 1> out) { out[at] = 5u; });
  Buffer left_over;
  {
    const Device device = Device::open("cuda");
    left_over = device.allocate<u32>({100});
    const Buffer out = device.allocate<u32>({1000});
    try {
      device.launch(wild, {64}, out, 1 << 24);
      device.synchronize();
      FAIL() << "a store to nowhere went unnoticed";
    } catch (const DeviceError& error) { EXPECT_EQ(error.fault(), DeviceFault::device_lost) << error.what(); }
    EXPECT_THROW(device.launch(fill, {1000}, out), DeviceError);  // still lost
  }
  try {
    const Device again = Device::open("cuda");
    const Buffer out = again.allocate<u32>({1000});
    again.launch(fill, {1000}, out);
    EXPECT_EQ(again.download<u32>(out), std::vector<u32>(1000, 5u));
  } catch (const UnsupportedError& error) {  // a driver that gives the process no second context
    EXPECT_NE(std::string(error.what()).find("start the program again"), std::string::npos) << error.what();
  }
  // Work continues elsewhere.
  const Device other = Device::open("interp");
  const Buffer out = other.allocate<u32>({10});
  other.launch(fill, {10}, out);
  EXPECT_EQ(other.download<u32>(out), std::vector<u32>(10, 5u));
}

}  // namespace
}  // namespace lockstep::cuda_test
