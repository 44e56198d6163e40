#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

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

/// Whether host memory can be wrapped; WebGPU says that it takes none.
bool wraps(const Device& device) {
  const DeviceKind kind = device.info().kind;
  if (kind == DeviceKind::webgpu) {
    f32 number = 0;
    const auto address = uint64_t(reinterpret_cast<uintptr_t>(&number));
    EXPECT_THROW(device.wrap(Storage::f32, {1}, {address}), UnsupportedError);
  }
  return kind == DeviceKind::cpu || kind == DeviceKind::interp;
}

TEST_P(Buffers, WrapForeignMemoryInPlace) {
  std::vector<f32> v = ramp(6 * 8);
  const auto address = uint64_t(reinterpret_cast<uintptr_t>(v.data()));
  if (!wraps(device)) return;
  auto owner = std::make_shared<int>(1);
  {
    // The left half of the rows, without a copy.
    const Buffer half = device.wrap(Storage::f32, {6, 4}, {address, owner, {8, 1}});
    EXPECT_EQ(half.native(), address);
    EXPECT_EQ(half.rows(1, 1).native(), address + 8 * 4);
    EXPECT_EQ(owner.use_count(), 2);
    const auto negate = kernel("test.negate", [](At<2> at, InOut<f32, 2> x) { x[at] = -x[at]; });
    device.launch(negate, {6, 4}, half);
    for (size_t k = 0; k < v.size(); ++k) EXPECT_EQ(v[k], k % 8 < 4 ? -float(k) : float(k)) << k;
  }
  EXPECT_EQ(owner.use_count(), 1);
}

TEST_P(Buffers, WrapRefusesWhatKernelsCannotRead) {
  if (!wraps(device)) return;
  std::vector<f32> v = ramp(64);
  const auto address = uint64_t(reinterpret_cast<uintptr_t>(v.data()));
  EXPECT_THROW(device.wrap(Storage::f32, {64}, {}), InputError);
  EXPECT_THROW(device.wrap(Storage::f32, {60}, {address + 2}), InputError);
  EXPECT_THROW(device.wrap(Storage::f32, {8, 4}, {address, nullptr, {4, 2}}), InputError);
  EXPECT_THROW(device.wrap(Storage::f32, {8, 4}, {address, nullptr, {-4, 1}}), InputError);
  EXPECT_THROW(device.wrap(Storage::boolean, {8}, {address}), InputError);
  EXPECT_EQ(device.wrap(Storage::f32, {0, 4}, {}).elements(), 0);
  // Two views of one block are known to overlap, or not.
  const auto copy =
      kernel("test.copy", [](At<2> at, Grid<f32, 2> from, Out<f32, 2> to) { to[at] = from[at]; });
  const Buffer left = device.wrap(Storage::f32, {8, 4}, {address, nullptr, {8, 1}});
  const Buffer right = device.wrap(Storage::f32, {8, 4}, {address + 16, nullptr, {8, 1}});
  const Buffer middle = device.wrap(Storage::f32, {8, 4}, {address + 8, nullptr, {8, 1}});
  device.launch(copy, {8, 4}, left, right);
  EXPECT_EQ(v[5], 1.0f);
  EXPECT_THROW(device.launch(copy, {8, 4}, left, middle), InputError);
}

/// Memory may end with its page, and the page behind it may be nobody's.
TEST_P(Buffers, WrapToTheEndOfAPage) {
  if (!wraps(device)) return;
  const auto page = size_t(sysconf(_SC_PAGESIZE));
  auto* const memory = static_cast<std::byte*>(
      mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(memory, MAP_FAILED);
  munmap(memory + page, page);
  const auto n = int64_t(page / sizeof(f32));
  std::iota(reinterpret_cast<f32*>(memory), reinterpret_cast<f32*>(memory) + n, 0.0f);
  const auto ahead =
      kernel("test.ahead", [](At<1> at, Grid<f32, 1> from, Out<f32, 1> to) { to[at] = from[at.x(+3)]; });
  const Buffer from = device.wrap(Storage::f32, {n}, {uint64_t(reinterpret_cast<uintptr_t>(memory))});
  const Buffer to = device.allocate<f32>({n});
  device.launch(ahead, {n}, from, to);
  const auto got = device.download<f32>(to);
  for (int64_t k = 0; k < n; ++k) EXPECT_EQ(got[size_t(k)], float(std::min(k + 3, n - 1)));
  munmap(memory, page);
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

/// GPUs copy large ranges by a kernel; what does not begin at its steps, and ends, go other ways.
TEST_P(Buffers, LargeCopiesAreWholeAndNothingElse) {
  constexpr int64_t kCount = (int64_t(5) << 18) + 7;
  const auto v = ramp(kCount);
  const Buffer a = device.upload(v), b = device.allocate<f32>({kCount});
  for (const auto& [from, to, count] : {std::array{int64_t(0), int64_t(0), kCount},
                                        {0, 4, kCount - 9},
                                        {64, 128, kCount - 200},
                                        {1, 2, kCount - 5},
                                        {64, 0, int64_t(1) << 18},
                                        {0, 64, int64_t(1) << 19}}) {
    const auto expect = [&, from = from, to = to, count = count] {
      const auto got = device.download<f32>(b);
      std::vector<f32> expected(v.size(), 0.0f);
      std::copy_n(v.begin() + from, count, expected.begin() + to);
      EXPECT_TRUE(got == expected) << from << ", " << to << ", " << count;
    };
    const Buffer source = a.rows(from, count), target = b.rows(to, count);
    device.clear(b);
    device.copy(source, target);
    expect();
    const Graph graph = device.record([&] { device.copy(source, target); });
    device.clear(b);
    device.replay(graph);
    expect();
    const Stream stream = device.stream();
    device.clear(b);
    device.synchronize();
    device.copy(source, target, stream);
    device.synchronize(stream);
    expect();
  }
  // Within one buffer.
  device.copy(a.rows(0, 1 << 19), a.rows(1 << 19, 1 << 19));
  const auto got = device.download<f32>(a);
  EXPECT_TRUE(std::equal(got.begin(), got.begin() + (1 << 19), got.begin() + (1 << 19)));
  EXPECT_EQ(got[0], v[0]);
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
  EXPECT_EQ(device.download<f32>(device.upload(ramp(5))), ramp(5));  // and the device continues
}

TEST_P(Buffers, WrongSizesAndTypesAreRefused) {
  const Buffer b = device.upload(ramp(8));
  EXPECT_THROW(device.download<i32>(b), InputError);
  EXPECT_THROW(device.write(b, nullptr, 4), InputError);
  EXPECT_THROW(device.allocate<f32>({-1}), InputError);
}

}  // namespace
}  // namespace lockstep
