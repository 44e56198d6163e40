// The CUDA back end on the stand-in driver: copies, argument structs, splits, graphs, and every kind of
// failure.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "compile/clike/cuda/cuda.hpp"
#include "compile/clike/nvrtc.hpp"
#include "compile/lower.hpp"
#include "device/pool.hpp"
#include "driver.hpp"
#include "library.hpp"
#include "lockstep/context.hpp"
#include "lockstep/device.hpp"

namespace lockstep {
namespace {

void fail(const char* function, int code, int nth = 1) {
  driver_function<decltype(fake_fail)>("fake_fail")(function, code, nth);
}
FakeState state() {
  FakeState s{};
  driver_function<decltype(fake_state)>("fake_state")(&s);
  return s;
}

class FakeCuda : public testing::Test {
 protected:
  void SetUp() override {
    std::string reason;
    if (!clike::Nvrtc::find(&reason)) GTEST_SKIP() << "NVRTC: " << reason;
    device_ = Device::open("cuda");
    ASSERT_NE(driver_function<decltype(fake_fail)>("fake_fail"), nullptr)
        << "the stand-in driver was not loaded";
    driver_function<decltype(fake_clear_launches)>("fake_clear_launches")();
  }
  void TearDown() override {
    if (driver_function<decltype(fake_fail)>("fake_fail")) fail("", 0);
  }
  template <class F>
  DeviceFault fault_of(F work) {
    try {
      work();
    } catch (const DeviceError& error) { return error.fault(); }
    ADD_FAILURE() << "no DeviceError";
    return DeviceFault::launch;
  }
  Device device_;
};

const Kernel& scale() {
  static const Kernel k = kernel("test.scale", [](At<3> at, Grid<f32, 3> a, Out<f32, 3> b, Param<f32> by) {
    b[at] = a[at] * Val<f32>(by);
  });
  return k;
}

TEST_F(FakeCuda, TheContextOfTheCallerStaysCurrent) {
  std::thread([] {
    const auto current = [] {
      void* context = nullptr;
      driver_function<int(void**)>("cuCtxGetCurrent")(&context);
      return reinterpret_cast<uintptr_t>(context);
    };
    driver_function<int(void*)>("cuCtxSetCurrent")(nullptr);
    const auto use_second = [] {
      const Device second = Device::open("cuda:1");
      const Buffer a = second.allocate<f32>({2, 3, 5}), b = second.allocate<f32>({2, 3, 5});
      second.clear(a);
      second.launch(scale(), {2, 3, 5}, a, b, 2.0f);
      second.download<f32>(b);
      const Graph graph = second.record([&] { second.launch(scale(), {2, 3, 5}, a, b, 2.0f); });
      second.replay(graph);
      second.synchronize();
    };
    use_second();
    EXPECT_EQ(current(), 0U);  // the runtime takes device 0 for a thread without a context
    driver_function<int(void*)>("cuCtxSetCurrent")(reinterpret_cast<void*>(uintptr_t(0x77)));
    use_second();
    Device::list();
    EXPECT_EQ(current(), 0x77U);
    FakeLaunch launch{};
    ASSERT_TRUE(driver_function<decltype(fake_launch)>("fake_launch")(0, &launch));
    EXPECT_EQ(launch.context, 0x101U);
  }).join();
}

TEST_F(FakeCuda, LargeCopiesGoByAKernelWhereItIsRight) {
  struct Arguments {
    uintptr_t from, to;
    int64_t bytes;
  };
  driver_function<decltype(fake_kernel)>("fake_kernel")([](const FakeLaunch* launch) {
    Arguments a;
    std::memcpy(&a, launch->arguments, sizeof a);
    std::memcpy(reinterpret_cast<void*>(a.to), reinterpret_cast<const void*>(a.from), size_t(a.bytes));
  });
  constexpr int64_t kCount = (1 << 19) + 3;
  std::vector<f32> v(kCount);
  for (int64_t k = 0; k < kCount; ++k) v[size_t(k)] = float(k);
  const Buffer a = device_.upload(v), b = device_.allocate<f32>({kCount});
  const auto launches = [&](auto&& work) {
    const int64_t before = state().launches;
    work();
    return state().launches - before;
  };
  EXPECT_EQ(launches([&] { device_.copy(a, b); }), 1);
  EXPECT_EQ(device_.download<f32>(b), v);
  FakeLaunch launch{};
  ASSERT_TRUE(driver_function<decltype(fake_launch)>("fake_launch")(0, &launch));
  EXPECT_EQ(launch.grid[0], unsigned(4 * kCount / 16 + 255) / 256);
  // Small, not aligned, or memory of others: the driver's. Parts that overlap go through memory that is apart from both.
  EXPECT_EQ(launches([&] { device_.copy(a.rows(0, (1 << 18) - 1), b.rows(0, (1 << 18) - 1)); }), 0);
  EXPECT_EQ(launches([&] { device_.copy(a.rows(1, 1 << 19), b.rows(1, 1 << 19)); }), 0);
  EXPECT_EQ(launches([&] { device_.copy(a.rows(0, 1 << 18), a.rows(1 << 17, 1 << 18)); }), 2);
  const Buffer other = device_.wrap(Storage::f32, {kCount}, {a.native()});
  EXPECT_EQ(launches([&] { device_.copy(other, b); }), 0);
  driver_function<decltype(fake_kernel)>("fake_kernel")(nullptr);
  // Where the kernel cannot be loaded, the driver copies.
  const Device second = Device::open("cuda");
  const Buffer c = second.upload(v), d = second.allocate<f32>({kCount});
  fail("cuModuleLoadData", 218);
  EXPECT_EQ(launches([&] { second.copy(c, d); }), 0);
  EXPECT_EQ(second.download<f32>(d), v);
}

TEST_F(FakeCuda, ReportsWhatTheDriverSaysOfAKernel) {
  device_.prepare(scale());
  const std::vector<KernelReport> reports = device_.kernels();
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].name, "test.scale");
  EXPECT_EQ(reports[0].registers, 32);
  EXPECT_EQ(reports[0].groups_at_once, 2048 / reports[0].group_lanes);
  EXPECT_DOUBLE_EQ(reports[0].occupancy, 1);
}

TEST_F(FakeCuda, DescribesTheDevice) {
  EXPECT_EQ(device_.info().name, "cuda:0");
  EXPECT_EQ(device_.info().architecture, "sm_90");
  EXPECT_EQ(device_.info().limits.groups[1], 65535);
  EXPECT_EQ(device_.info().limits.shared_bytes, 200000);
  EXPECT_EQ(device_.info().multiprocessors, 4);
}

TEST_F(FakeCuda, DevicesByNumber) {
  const Device second = Device::open("cuda:1");
  EXPECT_EQ(second.info().name, "cuda:1");
  const Buffer a = second.upload(std::vector<f32>(64, 2.0f)).reshape({1, 1, 64}),
               b = second.allocate<f32>({1, 1, 64});
  const Buffer elsewhere = device_.allocate<f32>({1, 1, 64});
  second.launch(scale(), {1, 1, 64}, a, b, 1.0f);
  device_.launch(scale(), {1, 1, 64}, elsewhere, device_.allocate<f32>({1, 1, 64}), 1.0f);
  second.launch(scale(), {1, 1, 64}, a, b, 1.0f);
  FakeLaunch launches[3] = {};
  for (int k = 0; k < 3; ++k)
    ASSERT_TRUE(driver_function<decltype(fake_launch)>("fake_launch")(k, &launches[k]));
  // One thread works on two devices in turn: each launch has its own device's context.
  EXPECT_NE(launches[0].context, launches[1].context);
  EXPECT_EQ(launches[0].context, launches[2].context);
  EXPECT_EQ(second.download<f32>(a), std::vector<f32>(64, 2.0f));
  EXPECT_THROW(second.launch(scale(), {1, 1, 64}, a, elsewhere, 1.0f), InputError);
  // A fault of one device leaves the other alone.
  fail("cuStreamSynchronize", 700);
  EXPECT_EQ(fault_of([&] { second.synchronize(); }), DeviceFault::device_lost);
  fail("", 0);
  EXPECT_NO_THROW(device_.synchronize());
  EXPECT_EQ(fault_of([&] { second.synchronize(); }), DeviceFault::device_lost);
  int found = 0;
  for (const DeviceStatus& status : Device::list()) found += status.info.kind == DeviceKind::cuda;
  EXPECT_EQ(found, 2);
  try {
    Device::open("cuda:2");
    FAIL() << "there is no cuda:2";
  } catch (const UnsupportedError& error) {
    EXPECT_NE(std::string(error.what()).find("cuda:0 to cuda:1"), std::string::npos) << error.what();
  }
}

TEST_F(FakeCuda, StagesAndGraphsAreRangesOfTheProfiler) {
  void* library = dlopen(FAKE_NVTX_LIBRARY, RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(library, nullptr) << "the profiler's library was not loaded";
  auto* take = reinterpret_cast<void (*)(char*, size_t)>(dlsym(library, "fake_ranges"));
  ASSERT_NE(take, nullptr);
  char text[1000];
  take(text, sizeof text);
  ContextOptions options;
  options.device = "cuda";
  Context context(options);
  context.run_stage("test.outer", [&](const Device& device) {
    const Buffer a = device.allocate<f32>({1, 1, 64}), b = device.allocate<f32>({1, 1, 64});
    device.launch(scale(), {1, 1, 64}, a, b, 1.0f);
    const Graph graph = device.record([&] { device.launch(scale(), {1, 1, 64}, a, b, 1.0f); });
    device.replay(graph);
    context.run_stage("test.inner", [](const Device&) {});
  });
  take(text, sizeof text);
  std::string ranges = text;
  // The kernel may have been compiled before: its range is then missing.
  if (const size_t compiled = ranges.find("+kernel_test_scale - "); compiled != std::string::npos)
    ranges.erase(compiled, std::strlen("+kernel_test_scale - "));
  EXPECT_EQ(ranges, "+test.outer +graph - +test.inner - - ");
}

TEST_F(FakeCuda, CopiesCrossStagingSlots) {
  // Small, then large: the pinned slots grow.
  for (int64_t n : {int64_t(1), int64_t(1023), int64_t(32) << 10, (int64_t(32) << 10) + 1, int64_t(1) << 20,
                    (int64_t(5) << 20) + 3, int64_t(7)}) {
    std::vector<u32> data(static_cast<size_t>(n));
    for (size_t k = 0; k < data.size(); ++k) data[k] = u32(k) * 2654435761u;
    EXPECT_EQ(device_.download<u32>(device_.upload(data)), data) << n;
  }
}

TEST_F(FakeCuda, PacksTheArgumentsOfEveryPiece) {
  const Buffer a = device_.allocate<f32>({3, 300000, 2}), b = device_.allocate<f32>({3, 300000, 2});
  device_.launch(scale(), {3, 300000, 2}, a, b, 2.5f);
  const clike::ArgumentLayout layout =
      clike::argument_layout(compile::lower(scale().function(), {compile::Target::cuda}));
  int64_t covered = 0, next_y = 0;
  FakeLaunch launch{};
  for (int64_t n = 0; driver_function<decltype(fake_launch)>("fake_launch")(n, &launch); ++n) {
    int32_t offset_y = -1;
    for (const clike::ArgumentField& field : layout.fields) {
      uint64_t word = 0;
      std::memcpy(&word, launch.arguments + field.offset, field.bytes);
      switch (field.kind) {
        case clike::ArgumentKind::buffer: EXPECT_NE(word, 0u); break;
        case clike::ArgumentKind::stride: EXPECT_EQ(word, field.axis == 0 ? 600000u : 2u); break;
        case clike::ArgumentKind::extent:
          EXPECT_EQ(word, field.axis == 0 ? 2u : field.axis == 1 ? 300000u : 3u);
          break;
        case clike::ArgumentKind::scalar: EXPECT_EQ(word, detail::bits_of(2.5f)); break;
        case clike::ArgumentKind::offset:
          if (field.axis == 1) offset_y = int32_t(word);
          break;
        case clike::ArgumentKind::shape: break;
      }
    }
    EXPECT_EQ(offset_y, next_y);
    EXPECT_LE(launch.grid[1], 65535u);
    next_y += int64_t(launch.grid[1]) * launch.block[1];
    covered += int64_t(launch.grid[1]) * launch.block[1];
  }
  EXPECT_GE(covered, 300000);
  EXPECT_LT(covered, 300000 + 65536);
}

TEST_F(FakeCuda, RecordingUsesAStreamOfItsOwn) {
  const Buffer a = device_.allocate<f32>({1, 1, 64}), b = device_.allocate<f32>({1, 1, 64});
  device_.launch(scale(), {1, 1, 64}, a, b, 1.0f);
  const Graph graph = device_.record([&] { device_.launch(scale(), {1, 1, 64}, a, b, 1.0f); });
  device_.launch(scale(), {1, 1, 64}, a, b, 1.0f);
  FakeLaunch before{}, recorded{}, after{};
  const auto get = driver_function<decltype(fake_launch)>("fake_launch");
  ASSERT_TRUE(get(0, &before) && get(1, &recorded) && get(2, &after));
  EXPECT_NE(before.stream, recorded.stream);
  EXPECT_EQ(before.stream, after.stream);
  device_.replay(graph);
}

TEST_F(FakeCuda, FailuresHaveTheRightFault) {
  const Buffer a = device_.allocate<f32>({1, 1, 64}), b = device_.allocate<f32>({1, 1, 64});
  const auto launch = [&] { device_.launch(scale(), {1, 1, 64}, a, b, 1.0f); };
  fail("cuModuleLoadData", 209);
  EXPECT_EQ(fault_of(launch), DeviceFault::compile);
  launch();  // the next try compiles again
  fail("cuLaunchKernel", 701);
  EXPECT_EQ(fault_of(launch), DeviceFault::launch);
  fail("cuLaunchKernel", 1);
  EXPECT_EQ(fault_of(launch), DeviceFault::launch);
  launch();
}

TEST_F(FakeCuda, AllocationIsTriedAgainBeforeItFails) {
  fail("cuMemAllocFromPoolAsync", 2);
  EXPECT_TRUE(device_.allocate<f32>({100000}));  // after the pool was trimmed
  const int64_t before = state().allocated_bytes;
  fail("cuMemAllocFromPoolAsync", 2, 0);
  EXPECT_EQ(fault_of([&] { device_.allocate<f32>({100000}); }), DeviceFault::allocation);
  EXPECT_EQ(state().allocated_bytes, before);
  fail("", 0);
  EXPECT_TRUE(device_.allocate<f32>({100000}));
}

TEST_F(FakeCuda, WhatAStreamKeepsGoesBeforeAnAllocationFails) {
  constexpr int64_t kMib = int64_t(1) << 20;
  const Stream stream = device_.stream();
  const device::OneStreamMemory memory(device_, stream);
  const int64_t before = state().allocated_bytes;
  for (const int64_t mib : {20, 12}) {  // above and below the sizes that a stream keeps
    SCOPED_TRACE(mib);
    { const Buffer freed = device_.allocate<f32>({2 * kMib}); }
    ASSERT_EQ(state().allocated_bytes, before + 8 * kMib) << "the stream keeps nothing";
    driver_function<decltype(fake_memory)>("fake_memory")(before + mib * kMib);
    const Buffer large = device_.allocate<f32>({mib * kMib / 4});
    EXPECT_EQ(state().allocated_bytes, before + mib * kMib);
    fail("", 0);
  }
}

TEST_F(FakeCuda, SmallMemoryGoesRoundWithoutTheDriver) {
  { const Buffer first = device_.allocate<f32>({100}); }
  const int64_t before = state().allocated_bytes;
  fail("cuMemAllocFromPoolAsync", 2, 0);
  const Buffer again = device_.allocate<f32>({120});  // of the same class
  EXPECT_EQ(state().allocated_bytes, before);
  EXPECT_EQ(fault_of([&] { device_.allocate<f32>({120}); }), DeviceFault::allocation);
}

TEST_F(FakeCuda, AFatalErrorLosesTheDevice) {
  {
    const Device device = Device::open("cuda");
    Buffer left_over = device.allocate<f32>({1, 1, 64});
    const Buffer b = device.allocate<f32>({1, 1, 64});
    fail("cuStreamSynchronize", 700);
    EXPECT_EQ(fault_of([&] { device.synchronize(); }), DeviceFault::device_lost);
    EXPECT_EQ(fault_of([&] { device.launch(scale(), {1, 1, 64}, left_over, b, 1.0f); }),
              DeviceFault::device_lost);
    EXPECT_EQ(fault_of([&] { device.allocate<f32>({100}); }), DeviceFault::device_lost);
    EXPECT_THROW(Device::open("cuda"), UnsupportedError);  // the driver gives no context
    fail("", 0);                                           // now it does
    const Device again = Device::open("cuda");
    EXPECT_EQ(again.download<f32>(again.upload(std::vector<f32>{1, 2, 3})), (std::vector<f32>{1, 2, 3}));
  }  // buffers of the lost device go quietly
}

TEST_F(FakeCuda, AStageAfterALossSaysWhetherTheDeviceComesBack) {
  std::vector<std::string> lines;
  ContextOptions options;
  options.device = "cuda";
  options.on_fallback = [&](const std::string& line) { lines.push_back(line); };
  Context context(options);
  int runs = 0;
  const auto work = [&](const Device& device) {
    ++runs;
    if (device.info().kind == DeviceKind::cuda && runs == 1) fail("cuStreamSynchronize", 700);
    device.synchronize();
    return device.info().kind;
  };
  // The stand-in driver, like driver 580, gives no context as long as the error persists.
  EXPECT_NE(context.stage("test.first", work), DeviceKind::cuda);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find("cannot be opened again in this process"), std::string::npos) << lines[0];
  EXPECT_NE(context.stage("test.second", work), DeviceKind::cuda);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_TRUE(lines[1].starts_with("[GPU] test.second failed: cuda:0 was lost; cuda:0 cannot be opened"))
      << lines[1];
  EXPECT_EQ(context.fallbacks(), (std::map<std::string, int64_t>{{"test.first", 1}, {"test.second", 1}}));
  fail("", 0);
  Context later(options);
  runs = 1;
  EXPECT_EQ(later.stage("test.third", work), DeviceKind::cuda);
  EXPECT_EQ(lines.size(), 2u);
}

TEST_F(FakeCuda, WaitingForAllOutlivesTheStreamsOfOtherThreads) {
  std::atomic<bool> ends{false};
  std::vector<std::jthread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      while (!ends) const Stream passing = device_.stream();
    });
  for (int k = 0; k < 300; ++k) EXPECT_NO_THROW(device_.synchronize());
  ends = true;
}

TEST_F(FakeCuda, AStageWaitsForItsOwnStreamsOnly) {
  ContextOptions options;
  options.device = "cuda";
  Context context(options);
  const Stream others[] = {context.device().stream(), context.device().stream()};
  const auto waits_of = [&](auto work) {
    const int64_t before = state().stream_waits;
    context.run_stage("test.waits", work);
    return state().stream_waits - before;
  };
  EXPECT_EQ(waits_of([](const Device&) {}), 0);
  const Buffer a = context.device().allocate<f32>({1, 1, 64}), b = context.device().allocate<f32>({1, 1, 64});
  EXPECT_EQ(waits_of([&](const Device& device) { device.launch(scale(), {1, 1, 64}, a, b, 1.0f); }), 1);
  EXPECT_EQ(waits_of([&](const Device& device) {
              device.launch_on(others[0], scale(), {1, 1, 64}, a, b, 1.0f);
              device.launch_on(others[0], scale(), {1, 1, 64}, a, b, 1.0f);
            }),
            1);
}

TEST_F(FakeCuda, ARecordingTakesWhatItsOwnThreadLaunches) {
  const Buffer a = device_.allocate<f32>({1, 1, 64}), b = device_.allocate<f32>({1, 1, 64});
  const auto launch = [&] { device_.launch(scale(), {1, 1, 64}, a, b, 1.0f); };
  launch();
  device_.record([&] {
    launch();
    std::jthread(launch).join();
  });
  FakeLaunch before{}, recorded{}, other{};
  const auto get = driver_function<decltype(fake_launch)>("fake_launch");
  ASSERT_TRUE(get(0, &before) && get(1, &recorded) && get(2, &other));
  EXPECT_NE(before.stream, recorded.stream);
  EXPECT_EQ(before.stream, other.stream);
}

TEST_F(FakeCuda, ALossWhileOthersAskForTheDevice) {
  ContextOptions options;
  options.device = "cuda";
  options.on_fallback = [](const std::string&) {};
  Context context(options);
  std::atomic<bool> ends{false};
  std::jthread reader([&] {
    while (!ends) EXPECT_EQ(context.device().info().kind, DeviceKind::cuda);
  });
  const Device first = context.device();
  int runs = 0;
  context.run_stage("test.loss", [&](const Device&) {
    if (++runs > 1) return;
    throw DeviceError(DeviceFault::device_lost, "planned");
  });
  ends = true;
  EXPECT_FALSE(context.device().same_as(first));
  EXPECT_EQ(runs, 2);
}

/// The work of scale(), its arguments where the printer put them.
std::vector<clike::ArgumentField> scale_fields;
void run_scale(const FakeLaunch* launch) {
  const f32* a = nullptr;
  f32 *b = nullptr, by = 0;
  int buffer = 0;
  for (const clike::ArgumentField& field : scale_fields) {
    const unsigned char* at = launch->arguments + field.offset;
    if (field.kind == clike::ArgumentKind::buffer && buffer++ == 0)
      std::memcpy(&a, at, sizeof a);
    else if (field.kind == clike::ArgumentKind::buffer)
      std::memcpy(&b, at, sizeof b);
    else if (field.kind == clike::ArgumentKind::scalar)
      std::memcpy(&by, at, sizeof by);
  }
  for (int k = 0; k < 64; ++k) b[k] = a[k] * by;
}

TEST_F(FakeCuda, NumbersOfAGraphChange) {
  const FakeState before = state();
  {
    scale_fields =
        clike::print_cuda(compile::lower(scale().function(), {compile::Target::cuda, Numerics::exact}),
                          {Numerics::exact, 90})
            .arguments.fields;
    driver_function<decltype(fake_kernel)>("fake_kernel")(run_scale);
    const Shape all{1, 1, 64};
    const Buffer a = device_.upload(std::vector<f32>(64, 2.0f)).reshape(all), b = device_.allocate<f32>(all),
                 c = device_.allocate<f32>(all);
    const Graph graph = device_.record([&] {
      device_.launch(scale(), all, a, b, per_replay("first", 3.0f));
      device_.clear(c);
      device_.launch(scale(), all, b, c, 5.0f);
      device_.launch(scale(), all, c, a, per_replay("last", 1.0f));
    });
    device_.replay(graph);
    EXPECT_EQ(device_.download<f32>(a), std::vector<f32>(64, 30.0f));
    device_.replay(graph, Arguments().set("last", 0.5f));
    EXPECT_EQ(device_.download<f32>(a), std::vector<f32>(64, 225.0f));
    device_.replay(graph, Arguments().set("first", 1.0f));
    EXPECT_EQ(device_.download<f32>(a), std::vector<f32>(64, 562.5f));
    fail("cuGraphExecKernelNodeSetParams", 1);
    EXPECT_EQ(fault_of([&] { device_.replay(graph, Arguments().set("first", 2.0f)); }), DeviceFault::launch);
    fail("cuStreamGetCaptureInfo_v2", 1);
    EXPECT_EQ(fault_of([&] {
                device_.record([&] { device_.launch(scale(), all, a, b, per_replay("first", 3.0f)); });
              }),
              DeviceFault::launch);
    driver_function<decltype(fake_kernel)>("fake_kernel")(nullptr);
  }
  EXPECT_EQ(state().live_graphs, before.live_graphs);
}

TEST_F(FakeCuda, NothingIsLeftBehind) {
  const FakeState before = state();
  {
    const Device device = Device::open("cuda");
    const Stream stream = device.stream();
    const Buffer a = device.upload(std::vector<f32>(64, 1.0f)).reshape({1, 1, 64}),
                 b = device.allocate<f32>({1, 1, 64});
    device.launch_on(stream, scale(), {1, 1, 64}, a, b, 1.0f);
    const Graph graph = device.record([&] { device.launch(scale(), {1, 1, 64}, a, b, 1.0f); });
    device.replay(graph);
    EXPECT_DOUBLE_EQ(device.seconds([&] { device.replay(graph); }), 2.5e-3);
  }
  const FakeState after = state();
  EXPECT_EQ(after.allocated_bytes, before.allocated_bytes);
  EXPECT_EQ(after.live_streams, before.live_streams);
  EXPECT_EQ(after.live_events, before.live_events);
  EXPECT_EQ(after.live_modules, before.live_modules);
  EXPECT_EQ(after.live_graphs, before.live_graphs);
  EXPECT_EQ(after.pinned_buffers, before.pinned_buffers);
}

// Each in a process of its own, before the driver is loaded here.
std::string reason_with(const char* variable, const char* value) {
  setenv(variable, value, 1);
  for (const DeviceStatus& status : Device::list())
    if (status.info.kind == DeviceKind::cuda) return status.available ? "available" : status.reason;
  return "not listed";
}
TEST(FakeCudaDeathTest, ReasonsOfAbsence) {
  const auto says = [](const char* variable, const char* value, const char* part) {
    const std::string reason = reason_with(variable, value);
    std::exit(reason.find(part) != std::string::npos ? 0 : (fprintf(stderr, "%s\n", reason.c_str()), 1));
  };
  EXPECT_EXIT(says("FAKE_CUDA_VERSION", "11020", "too old"), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(says("FAKE_CUDA_DEVICES", "0", "no usable device"), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(says("FAKE_CUDA_MAJOR", "6", "older than sm_70"), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace lockstep
