// The order of work on CUDA: on the stand-in driver work is put off and drawn in any order that events allow. Copies,
// clears, launches, graphs and memory that is freed and given again have to end as if each had run at once.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <future>
#include <random>

#include "compile/clike/nvrtc.hpp"
#include "device/pool.hpp"
#include "driver.hpp"
#include "flow/pipeline/relay.hpp"
#include "library.hpp"
#include "lockstep/device.hpp"

namespace lockstep {
namespace {

constexpr int64_t kWords = 20000;  // of a staging slot a few, of the small one more than half

const Kernel& add_one() {
  static const Kernel k =
      kernel("test.add_one", [](At<1> at, Grid<u32, 1> a, Out<u32, 1> b) { b[at] = a[at] + 1u; });
  return k;
}
/// The work of add_one: its arguments begin with the two addresses.
void run_add_one(const FakeLaunch* launch) {
  const u32* a = nullptr;
  u32* b = nullptr;
  std::memcpy(&a, launch->arguments, sizeof a);
  std::memcpy(&b, launch->arguments + sizeof a, sizeof b);
  for (int64_t k = 0; k < kWords; ++k) b[k] = a[k] + 1;
}

class CudaOrder : public testing::Test {
 protected:
  void SetUp() override {
    std::string reason;
    if (!clike::Nvrtc::find(&reason)) GTEST_SKIP() << "NVRTC: " << reason;
    device_ = Device::open("cuda");
    driver_function<decltype(fake_kernel)>("fake_kernel")(run_add_one);
  }
  void TearDown() override {
    if (!device_.valid()) return;
    defer(0);
    driver_function<decltype(fake_kernel)>("fake_kernel")(nullptr);
  }
  void defer(uint64_t seed) {
    device_.synchronize();
    driver_function<decltype(fake_defer)>("fake_defer")(seed);
  }
  Device device_;
};

/// A buffer, what it has to hold, and the stream that wrote it last (-1: the default one).
struct Held {
  Buffer buffer;
  std::vector<u32> words;
  int stream = -1;
};

TEST_F(CudaOrder, WorkEndsAsIfItHadRunAtOnce) {
  for (uint64_t seed = 1; seed <= 25; ++seed) {
    SCOPED_TRACE(seed);
    defer(seed);
    std::mt19937 random{unsigned(seed)};
    std::vector<Stream> streams;
    std::vector<Held> all;
    const auto stream = [&](int n) { return n < 0 ? Stream() : streams[size_t(n)]; };
    const auto fill = [&](int on) {
      Held fresh{device_.allocate<u32>({kWords}), std::vector<u32>(size_t(kWords)), on};
      for (u32& word : fresh.words) word = u32(random());
      device_.write(fresh.buffer, fresh.words.data(), fresh.buffer.bytes(), stream(on));
      all.push_back(std::move(fresh));
    };
    fill(-1);
    for (int step = 0; step < 40; ++step) {
      const int on = int(random() % (streams.size() + 1)) - 1;
      Held& from = all[random() % all.size()];
      if (from.stream != on) device_.synchronize(stream(from.stream));
      Held to{Buffer(), from.words, on};
      switch (random() % 7) {
        case 0:
          if (streams.size() < 3) streams.push_back(device_.stream());
          fill(int(streams.size()) - 1);
          break;
        case 1:
          to.buffer = device_.allocate<u32>({kWords});
          device_.copy(from.buffer, to.buffer, stream(on));
          break;
        case 2:
          to.buffer = device_.allocate<u32>({kWords});
          device_.launch_on(stream(on), add_one(), {kWords}, from.buffer, to.buffer);
          for (u32& word : to.words) ++word;
          break;
        case 3:
          device_.clear(from.buffer, stream(on));
          from.words.assign(size_t(kWords), 0);
          from.stream = on;
          break;
        case 4: {
          if (from.stream >= 0 || on >= 0) device_.synchronize();
          const Buffer between = device_.allocate<u32>({kWords});
          to.buffer = device_.allocate<u32>({kWords});
          to.stream = -1;
          const Graph graph = device_.record([&] {
            device_.launch(add_one(), {kWords}, from.buffer, between);
            device_.copy(between, to.buffer);
          });
          device_.replay(graph);
          for (u32& word : to.words) ++word;
          break;
        }
        case 5:
          if (all.size() > 1) all.erase(all.begin() + int64_t(random() % all.size()));
          break;
        default: {
          std::vector<u32> got(size_t(kWords), 0);
          device_.read(from.buffer, got.data(), from.buffer.bytes(), stream(on));
          ASSERT_EQ(got, from.words);
        }
      }
      if (to.buffer) all.push_back(std::move(to));
    }
    device_.synchronize();
    for (const Held& one : all) ASSERT_EQ(device_.download<u32>(one.buffer), one.words);
  }
}

TEST_F(CudaOrder, AYoungStreamWaitsForMemoryThatOthersGaveBack) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    defer(seed);
    Buffer old = device_.allocate<u32>({kWords});
    device_.clear(old);
    old = Buffer();
    const Buffer fresh = device_.allocate<u32>({kWords});  // the same memory
    const Stream young = device_.stream();
    const std::vector<u32> words(size_t(kWords), 7);
    device_.write(fresh, words.data(), fresh.bytes(), young);
    device_.synchronize(young);
    device_.synchronize();
    ASSERT_EQ(device_.download<u32>(fresh), words);
  }
}

// Memory of one stream goes round in its order. Each thread's buffers are freed while the work on them waits; none waits for
// the other stream.
TEST_F(CudaOrder, MemoryOfOneStreamGoesRoundOnItAlone) {
  const auto waits = [] {
    FakeState state{};
    driver_function<decltype(fake_state)>("fake_state")(&state);
    return state.event_waits;
  };
  for (uint64_t seed = 1; seed <= 15; ++seed) {
    SCOPED_TRACE(seed);
    defer(seed);
    const std::array<Stream, 2> streams{device_.stream(), device_.stream()};
    std::array<Buffer, 2> sums;
    for (Buffer& sum : sums) sum = device_.allocate<u32>({kWords});
    int64_t waits_before = 0;
    for (u32 round = 0; round < 12; ++round) {
      if (round == 2) waits_before = waits();
      for (size_t s = 0; s < 2; ++s) {
        const device::OneStreamMemory memory(device_, streams[s]);
        const Buffer a = device_.allocate<u32>({kWords}), b = device_.allocate<u32>({kWords});
        const std::vector<u32> words(size_t(kWords), 100 * u32(s) + round);
        device_.write(a, words.data(), a.bytes(), streams[s]);
        device_.launch_on(streams[s], add_one(), {kWords}, a, b);
        device_.copy(b, sums[s], streams[s]);
      }
    }
    EXPECT_EQ(waits(), waits_before) << "a stream waited for another one";
    for (size_t s = 0; s < 2; ++s) {
      device_.synchronize(streams[s]);
      std::vector<u32> got(size_t(kWords), 0);
      device_.read(sums[s], got.data(), sums[s].bytes(), streams[s]);
      ASSERT_EQ(got, std::vector<u32>(size_t(kWords), 100 * u32(s) + 12)) << s;
    }
  }
}

TEST_F(CudaOrder, WorkOfOthersIsFollowedAndPreceded) {
  const auto make = driver_function<int(void**, unsigned)>("cuStreamCreate");
  const auto destroy = driver_function<int(void*)>("cuStreamDestroy_v2");
  const auto set = driver_function<int(unsigned long long, unsigned char, size_t, void*)>("cuMemsetD8Async");
  void* foreign = nullptr;
  ASSERT_EQ(make(&foreign, 0), 0);
  const NativeStream stream = NativeStream(reinterpret_cast<uintptr_t>(foreign));
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    defer(seed);
    const Buffer a = device_.allocate<u32>({kWords}), b = device_.allocate<u32>({kWords});
    device_.clear(a);
    device_.end_before(stream);
    set(a.native(), 3, size_t(a.bytes()), foreign);
    device_.begin_after(stream);
    device_.launch(add_one(), {kWords}, a, b);
    ASSERT_EQ(device_.download<u32>(b), std::vector<u32>(size_t(kWords), 0x03030304));
  }
  defer(0);
  destroy(foreign);
}

TEST_F(CudaOrder, StreamsOfTheDeviceFollowEachOther) {
  const Buffer a = device_.allocate<u32>({kWords}), b = device_.allocate<u32>({kWords}),
               c = device_.allocate<u32>({kWords});
  const Graph graph = device_.record([&] { device_.launch(add_one(), {kWords}, b, c); });
  const Stream first = device_.stream(), then = device_.stream();
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    defer(seed);
    const auto given = std::vector<u32>(size_t(kWords), u32(seed));
    device_.write(a, given.data(), a.bytes());
    device_.begin_after({}, first);
    device_.on(first, [&] { device_.launch(add_one(), {kWords}, a, b); });
    device_.begin_after(first, then);
    device_.on(then, [&] { device_.replay(graph); });
    device_.begin_after(then, {});
    ASSERT_EQ(device_.download<u32>(c), std::vector<u32>(size_t(kWords), u32(seed) + 2));
  }
}

// Two threads as flow's pipeline has them: one makes frames, replays included, the other one takes each as soon as it is
// passed on, on a separate stream. It ends as if the frames had been made before.
TEST_F(CudaOrder, WhatIsPassedOnIsWhole) {
  constexpr int64_t kFrames = 12, kTogether = 3;
  const Buffer state = device_.allocate<u32>({kWords}), next = device_.allocate<u32>({kWords}),
               frames = device_.allocate<u32>({kFrames, kWords}),
               taken = device_.allocate<u32>({kFrames, kWords});
  const Graph step = device_.record([&] {
    device_.launch(add_one(), {kWords}, state, next);
    device_.copy(next, state);
  });
  const auto frame = [](const Buffer& all, int64_t k) { return all.rows(k, 1).reshape({kWords}); };
  const Stream side = device_.stream();
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE(seed);
    defer(seed);
    device_.clear(state);
    device_.clear(frames);
    device_.clear(taken);
    device_.synchronize();
    flow::Relay relay(device_, kFrames / kTogether);
    std::future<void> other = std::async(std::launch::async, [&] {
      device_.on(side, [&] {
        for (int64_t part = 0; part < kFrames / kTogether; ++part) {
          ASSERT_TRUE(relay.follow(part));
          for (int64_t k = part * kTogether; k < (part + 1) * kTogether; ++k)
            device_.launch(add_one(), {kWords}, frame(frames, k), frame(taken, k));
        }
        device_.synchronize(side);
      });
    });
    for (int64_t k = 0; k < kFrames; ++k) {
      device_.replay(step);
      device_.copy(state, frame(frames, k));
      if ((k + 1) % kTogether == 0) relay.pass();
    }
    other.get();
    const auto all = device_.download<u32>(taken);
    for (int64_t k = 0; k < kFrames; ++k)
      for (int64_t word = 0; word < kWords; word += 997)
        ASSERT_EQ(all[size_t(k * kWords + word)], u32(k + 2));
    relay.stop();
    EXPECT_FALSE(relay.follow(kFrames));
  }
}

}  // namespace
}  // namespace lockstep
