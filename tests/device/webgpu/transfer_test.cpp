// Bytes to, from and on the device: ragged offsets, buffers that consist of several, memory limits.
#include <random>

#include "adapter.hpp"
#include "device/backend.hpp"

namespace lockstep {
namespace {

std::vector<uint8_t> random_bytes(size_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<uint8_t> v(n);
  for (auto& b : v) b = uint8_t(random());
  return v;
}

/// Uploads, copies, clears and downloads at any offset, against the same on a host array.
void check_bytes(const Device& device, int64_t size) {
  device::Backend& backend = device.backend();
  const auto a = backend.allocate(size), b = backend.allocate(size);
  auto host_a = random_bytes(size_t(size), 1), host_b = random_bytes(size_t(size), 2);
  backend.upload(nullptr, *a, 0, host_a.data(), size);
  backend.upload(nullptr, *b, 0, host_b.data(), size);
  std::mt19937 random(3);
  for (int n = 0; n < 60; ++n) {
    const int64_t bytes = 1 + int64_t(random() % uint32_t(n % 2 ? 9 : size)),
                  from = int64_t(random() % uint32_t(size - bytes + 1)),
                  to = int64_t(random() % uint32_t(size - bytes + 1));
    SCOPED_TRACE("step " + std::to_string(n) + ": " + std::to_string(bytes) + " bytes from " +
                 std::to_string(from) + " to " + std::to_string(to));
    switch (n % 4) {
      case 0: {
        const auto fresh = random_bytes(size_t(bytes), uint32_t(n));
        backend.upload(nullptr, *b, to, fresh.data(), bytes);
        std::copy(fresh.begin(), fresh.end(), host_b.begin() + to);
        break;
      }
      case 1:
      case 2:
        backend.copy(nullptr, *a, from, *b, to, bytes);
        std::copy_n(host_a.begin() + from, bytes, host_b.begin() + to);
        break;
      default: backend.clear(nullptr, *b, to, bytes); std::fill_n(host_b.begin() + to, bytes, uint8_t(0));
    }
    std::vector<uint8_t> part(static_cast<size_t>(bytes));
    backend.download(nullptr, *b, to, part.data(), bytes);
    ASSERT_TRUE(std::equal(part.begin(), part.end(), host_b.begin() + to));
  }
  std::vector<uint8_t> all(static_cast<size_t>(size));
  backend.download(nullptr, *b, 0, all.data(), size);
  EXPECT_EQ(all, host_b);
  // From one place of a buffer to another.
  backend.copy(nullptr, *b, 1, *b, size / 2 + 2, size / 4);
  std::copy_n(std::vector<uint8_t>(host_b).begin() + 1, size / 4, host_b.begin() + size / 2 + 2);
  backend.download(nullptr, *b, 0, all.data(), size);
  EXPECT_EQ(all, host_b);
}

TEST(WebgpuTransfer, AnyOffsetAndSize) {
  LOCKSTEP_OPEN_ADAPTER(device);
  check_bytes(device, 4099);
}

TEST(WebgpuTransfer, BuffersOfSeveral) {
  LOCKSTEP_OPEN_ADAPTER(device, [](Limits& l) { l.binding_bytes = 512; });
  check_bytes(device, 29001);
}

TEST(WebgpuTransfer, MoreThanTheStagingBuffers) {
  LOCKSTEP_OPEN_ADAPTER(device);
  const auto data = random_bytes((40 << 20) + 5, 9);
  const Buffer buffer = device.upload(std::span<const uint8_t>(data), {int64_t(data.size())});
  EXPECT_TRUE(device.download<uint8_t>(buffer) == data);
}

TEST(WebgpuTransfer, EmptyBuffer) {
  LOCKSTEP_OPEN_ADAPTER(device);
  const Buffer buffer = device.allocate<f32>({0});
  EXPECT_TRUE(device.download<float>(buffer).empty());
}

TEST(WebgpuTransfer, WindowsOfRows) {
  LOCKSTEP_OPEN_ADAPTER(device);
  std::vector<float> data(20 * 30);
  for (size_t i = 0; i < data.size(); ++i) data[i] = float(i);
  const Buffer whole = device.upload(std::span<const float>(data), {20, 30});
  const Buffer part = whole.window({3, 7}, {4, 5});
  const auto got = device.download<float>(part);
  for (int y = 0; y < 4; ++y)
    for (int x = 0; x < 5; ++x) EXPECT_EQ(got[size_t(y * 5 + x)], float((y + 3) * 30 + x + 7));
  const Kernel twice = kernel("twice", [](At<2> at, InOut<f32, 2> a) { a[at] = a[at] * 2.0f; });
  device.launch(twice, {4, 5}, part);
  const auto all = device.download<float>(whole);
  for (int y = 0; y < 20; ++y)
    for (int x = 0; x < 30; ++x) {
      const bool inside = y >= 3 && y < 7 && x >= 7 && x < 12;
      EXPECT_EQ(all[size_t(y * 30 + x)], float(y * 30 + x) * (inside ? 2 : 1));
    }
}

TEST(WebgpuTransfer, TooMuchMemoryIsAnAllocationFault) {
  LOCKSTEP_OPEN_ADAPTER(device);
  try {
    const Buffer buffer = device.allocate<f32>({int64_t(1) << 30, 1024});
    FAIL() << "4 TiB were allocated";
  } catch (const DeviceError& error) { EXPECT_EQ(error.fault(), DeviceFault::allocation) << error.what(); }
  // The device continues.
  const std::vector<float> data{1, 2, 3};
  EXPECT_EQ(device.download<float>(device.upload(data)), data);
}

}  // namespace
}  // namespace lockstep
