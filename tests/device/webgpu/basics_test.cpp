// A kernel end to end, transfers, copies, graphs, events.
#include <cmath>
#include <numeric>

#include "adapter.hpp"
#include "device/webgpu/backend.hpp"

namespace lockstep {
namespace {

Kernel heat() {
  return kernel("heat.step", [](At<3> at, Grid<f32, 3> t, Out<f32, 3> next, Param<f32> a) {
    next[at] = fma(a, t[at.x(+1)] + t[at.x(-1)] - 2.0f * t[at], t[at]);
  });
}

std::vector<float> ramp(size_t n) {
  std::vector<float> v(n);
  for (size_t i = 0; i < n; ++i) v[i] = std::sin(float(i) * 0.37f) * 10.0f;
  return v;
}

TEST(WebgpuBasics, HeatStepEqualsTheLoop) {
  LOCKSTEP_OPEN_ADAPTER(device);
  const int64_t nz = 5, ny = 7, nx = 33;
  const auto t = ramp(size_t(nz * ny * nx));
  const Buffer in = device.upload(std::span<const float>(t), {nz, ny, nx}),
               out = device.allocate<f32>({nz, ny, nx});
  device.launch(heat(), {nz, ny, nx}, in, out, 0.1f);
  const auto result = device.download<float>(out);
  for (int64_t r = 0; r < nz * ny; ++r)
    for (int64_t x = 0; x < nx; ++x) {
      const float* row = t.data() + r * nx;
      const float l = row[std::max<int64_t>(x - 1, 0)], c = row[x], h = row[std::min(x + 1, nx - 1)];
      EXPECT_EQ(result[size_t(r * nx + x)], std::fma(0.1f, h + l - 2.0f * c, c)) << r << " " << x;
    }
}

Kernel add_one() {
  return kernel("add_one", [](At<1> at, InOut<f32, 1> a) { a[at] = a[at] + 1.0f; });
}

TEST(WebgpuBasics, ManySmallLaunchesKeepTheirOrder) {
  LOCKSTEP_OPEN_ADAPTER(device);
  const Kernel add = add_one(),
               twice = kernel("twice", [](At<1> at, InOut<f32, 1> a) { a[at] = a[at] * 2.0f; });
  const Buffer buffer = device.upload(std::vector<float>(10, 0.0f));
  double want = 0;
  for (int n = 0; n < 3000; ++n) {
    device.launch(add, {10}, buffer);
    want += 1;
    if (n % 100 == 99) device.launch(twice, {10}, buffer), want = float(want * 2);
    if (n % 500 == 499) {
      device.write(buffer, std::vector<float>(10, 3.0f).data(), 40);
      want = 3;
    }
    if (n == 1234) { EXPECT_EQ(device.download<float>(buffer)[3], float(want)); }
  }
  EXPECT_EQ(device.download<float>(buffer)[9], float(want));
}

TEST(WebgpuBasics, GraphsReplayLaunchesCopiesAndClears) {
  LOCKSTEP_OPEN_ADAPTER(device);
  const Kernel add = add_one();
  const Kernel mix =
      kernel("mix", [](At<1> at, Grid<f32, 1> a, Out<f32, 1> b, Param<f32> k) { b[at] = a[at] * k; });
  const Buffer a = device.upload(std::vector<float>(100, 1.0f)), b = device.allocate<f32>({100}),
               c = device.allocate<f32>({100});
  const Buffer bytes = device.upload(std::vector<uint8_t>(7, 9)),
               more = device.upload(std::vector<uint8_t>(7, 1));
  Graph graph = device.record([&] {
    for (int n = 0; n < 300; ++n) device.launch(add, {100}, a);
    device.launch(mix, {100}, a, b, 0.5f);
    device.copy(b, c);
    device.clear(b);
    device.copy(bytes.rows(1, 5), more.rows(2, 5));
    device.launch(add, {100}, b);
  });
  EXPECT_EQ(device.download<float>(a)[5], 1.0f) << "recording must not run";
  device.replay(graph);
  device.replay(graph);
  EXPECT_EQ(device.download<float>(a)[5], 601.0f);
  EXPECT_EQ(device.download<float>(c)[99], 300.5f);
  EXPECT_EQ(device.download<float>(b)[0], 1.0f);
  EXPECT_EQ(device.download<uint8_t>(more), (std::vector<uint8_t>{1, 1, 9, 9, 9, 9, 9}));
}

TEST(WebgpuBasics, EventsMeasureTime) {
  LOCKSTEP_OPEN_ADAPTER(device);
  const Kernel add = add_one();
  const Buffer buffer = device.upload(std::vector<float>(1 << 20, 0.0f));
  const double none = device.seconds([] {});
  const double some = device.seconds([&] {
    for (int n = 0; n < 20; ++n) device.launch(add, {1 << 20}, buffer);
  });
  EXPECT_GE(none, 0);
  EXPECT_GT(some, 0);
  EXPECT_LT(some, 60);
}

TEST(WebgpuBasics, BrokenShadersAreCompileFaults) {
  LOCKSTEP_OPEN_ADAPTER(device);
  auto& backend = dynamic_cast<device::webgpu::WebgpuBackend&>(device.backend());
  try {
    backend.compile_wgsl("@compute @workgroup_size(1) fn main() { let x: u32 = 1.5f; }", "broken");
    FAIL();
  } catch (const DeviceError& error) {
    EXPECT_EQ(error.fault(), DeviceFault::compile);
    EXPECT_NE(std::string(error.what()).find("broken"), std::string::npos) << error.what();
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
  }
  EXPECT_EQ(device.download<float>(device.upload(std::vector<float>{4}))[0], 4.0f);
}

TEST(WebgpuBasics, UnsupportedKernelsSayWhy) {
  LOCKSTEP_OPEN_ADAPTER(device);
  const auto reason = [&](const Kernel& k) {
    const Support s = device.supports(k);
    EXPECT_FALSE(s.ok);
    return s.reason;
  };
  EXPECT_NE(reason(kernel("f64", [](At<1> at, Out<f64, 1> o) { o[at] = f64(1); })).find("f64"),
            std::string::npos);
  EXPECT_NE(reason(kernel("i64", [](At<1> at, Out<i32, 1> o,
                                    Param<i64> p) { o[at] = cast<i32>(Val<i64>(p) * i64(3)); }))
                .find("i64"),
            std::string::npos);
  if (device.info().limits.group_lanes < 1024) {
    EXPECT_NE(reason(kernel("lanes", [](Group<1> g, Out<i32, 1> o) { o(g.id()) = 1; }, {{1024, 1, 1}, 0}))
                  .find("1024"),
              std::string::npos);
  }
  EXPECT_NE(reason(kernel("shared",
                          [](Group<1> g, Out<f32, 1> o) {
                            SharedArray<f32> s(1 << 20);
                            s[g.lane()] = 1.0f;
                            barrier();
                            o(g.id()) = Val<f32>(s[0]);
                          },
                          {{32, 1, 1}, 0}))
                .find("shared"),
            std::string::npos);
}

TEST(WebgpuBasics, ALostDeviceIsReportedAndANewOneWorks) {
  {
    LOCKSTEP_OPEN_ADAPTER(device);
    const Buffer buffer = device.upload(std::vector<float>(100, 1.0f));
    const Kernel add = add_one();
    device.launch(add, {100}, buffer);
    Graph graph = device.record([&] { device.launch(add, {100}, buffer); });
    dynamic_cast<device::webgpu::WebgpuBackend&>(device.backend()).lose_device();
    // A launch only queues work: the loss shows when it is submitted.
    const std::vector<std::function<void()>> calls{
        [&] { device.launch(add, {100}, buffer), device.synchronize(); },
        [&] { device.download<float>(buffer); },
        [&] { device.synchronize(); },
        [&] { device.upload(std::vector<float>(5, 1.0f)); },
        [&] { device.allocate<f32>({1 << 20}); },
        [&] { device.replay(graph); },
        [&] { device.clear(buffer); }};
    for (size_t i = 0; i < calls.size(); ++i) try {
        calls[i]();
        ADD_FAILURE() << "a lost device worked, call " << i;
      } catch (const DeviceError& error) {
        EXPECT_EQ(error.fault(), DeviceFault::device_lost) << error.what();
      }
  }
  LOCKSTEP_OPEN_ADAPTER(fresh);
  const Buffer buffer = fresh.upload(std::vector<float>(10, 1.0f));
  fresh.launch(add_one(), {10}, buffer);
  EXPECT_EQ(fresh.download<float>(buffer)[9], 2.0f);
}

TEST(WebgpuBasics, ListNamesEveryAdapter) {
  for (const DeviceStatus& status : device::webgpu_backend().list()) {
    if (status.available)
      EXPECT_EQ(status.info.name.rfind("webgpu:", 0), 0u);
    else
      EXPECT_FALSE(status.reason.empty());
  }
  EXPECT_THROW(device::webgpu_backend().open(9999, {}), UnsupportedError);
}

}  // namespace
}  // namespace lockstep
