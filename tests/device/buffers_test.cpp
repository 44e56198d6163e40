#include <gtest/gtest.h>

#include <numeric>

#include "device/devices.hpp"

namespace lockstep {
namespace {

class Buffers : public testing::TestWithParam<std::string> {
 protected:
  const Device& device = test_device(GetParam());
};
INSTANTIATE_TEST_SUITE_P(, Buffers, testing::ValuesIn(test_devices()),
                         [](const auto& run) { return test_name(run.param); });

std::vector<f32> ramp(int64_t n) {
  std::vector<f32> v(static_cast<size_t>(n));
  std::iota(v.begin(), v.end(), 0.0f);
  return v;
}

TEST_P(Buffers, KeepWhatWasUploaded) {
  for (int64_t n : {1, 3, 1000, 1 << 20}) {
    const auto v = ramp(n);
    EXPECT_EQ(device.download<f32>(device.upload(v)), v);
  }
}

TEST_P(Buffers, OfNoElementsAreLegal) {
  const Buffer b = device.upload(std::vector<f32>{});
  EXPECT_EQ(b.elements(), 0);
  EXPECT_TRUE(device.download<f32>(b).empty());
}

TEST_P(Buffers, WindowsReadAndWriteTheirPart) {
  const Buffer whole = device.upload(std::span<const f32>(ramp(6 * 7 * 8)), {6, 7, 8});
  const Buffer part = whole.window({1, 2, 3}, {2, 3, 4});
  EXPECT_FALSE(part.contiguous());
  std::vector<f32> expected;
  for (int z = 1; z < 3; ++z)
    for (int y = 2; y < 5; ++y)
      for (int x = 3; x < 7; ++x) expected.push_back(float((z * 7 + y) * 8 + x));
  EXPECT_EQ(device.download<f32>(part), expected);

  const std::vector<f32> minus(24, -1.0f);
  device.write(part, minus.data(), 24 * 4);
  const auto all = device.download<f32>(whole);
  EXPECT_EQ(std::count(all.begin(), all.end(), -1.0f), 24);
  EXPECT_EQ(all[0], 0.0f);
  EXPECT_EQ(device.download<f32>(part), minus);
}

TEST_P(Buffers, RowsAndReshapeShareMemory) {
  const Buffer whole = device.upload(std::span<const f32>(ramp(12)), {4, 3});
  EXPECT_EQ(device.download<f32>(whole.rows(1, 2)), (std::vector<f32>{3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(whole.reshape({2, 6}).shape(), (Shape{2, 6}));
  EXPECT_THROW(whole.reshape({5}), InputError);
  EXPECT_THROW(whole.rows(3, 2), InputError);
}

TEST_P(Buffers, CopyAndClear) {
  const auto v = ramp(1001);
  const Buffer a = device.upload(v), b = device.allocate<f32>({1001});
  device.copy(a, b);
  EXPECT_EQ(device.download<f32>(b), v);
  device.clear(b);
  EXPECT_EQ(device.download<f32>(b), std::vector<f32>(1001, 0.0f));
  EXPECT_THROW(device.copy(a, device.allocate<f32>({1000})), InputError);
}

TEST_P(Buffers, CountersFollowTheBytes) {
  const DeviceCounters before = device.counters();
  {
    const Buffer b = device.upload(ramp(1 << 18));
    EXPECT_GE(device.counters().allocated_bytes - before.allocated_bytes, 1 << 20);
    device.download<f32>(b);
  }
  const DeviceCounters after = device.counters();
  EXPECT_EQ(after.bytes_to_device - before.bytes_to_device, 1 << 20);
  EXPECT_EQ(after.bytes_from_device - before.bytes_from_device, 1 << 20);
  EXPECT_EQ(after.allocated_bytes, before.allocated_bytes);
  EXPECT_GE(after.peak_bytes, before.allocated_bytes + (1 << 20));
}

TEST_P(Buffers, AbsurdSizesAreAnAllocationError) {
  try {
    device.allocate<f32>({2000000000, 2000000000});
    FAIL();
  } catch (const DeviceError& error) { EXPECT_EQ(error.fault(), DeviceFault::allocation); }
  EXPECT_EQ(device.download<f32>(device.upload(ramp(5))), ramp(5));  // and the device goes on
}

TEST_P(Buffers, WrongSizesAndTypesAreRefused) {
  const Buffer b = device.upload(ramp(8));
  EXPECT_THROW(device.download<i32>(b), InputError);
  EXPECT_THROW(device.write(b, nullptr, 4), InputError);
  EXPECT_THROW(device.allocate<f32>({-1}), InputError);
}

}  // namespace
}  // namespace lockstep
