// Edges of the host API: sizes, strides and boundaries that it takes and refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <numeric>

#include "device/backend.hpp"
#include "device/devices.hpp"

namespace lockstep {
namespace {

class Edges : public testing::TestWithParam<std::string> {
 protected:
  const Device& device = test_device(GetParam());
  bool wraps() const {
    return device.info().kind == DeviceKind::cpu || device.info().kind == DeviceKind::interp;
  }
};
INSTANTIATE_TEST_SUITE_P(, Edges, testing::ValuesIn(test_devices()),
                         [](const auto& run) { return test_name(run.param); });

template <class F>
std::string said_of(F act) {
  try {
    act();
  } catch (const InputError& error) { return error.what(); }
  return "accepted";
}

template <class E>
uint64_t address_of(const std::vector<E>& v) {
  return uint64_t(reinterpret_cast<uintptr_t>(v.data()));
}

TEST_P(Edges, OverlappingCopiesAreThoseOfAMove) {
  for (const int64_t n : {40, 1000, 3 << 20})
    for (const auto& [from, to] :
         {std::pair<int64_t, int64_t>{0, 1}, {1, 0}, {0, 4}, {8, 0}, {3, 3}, {0, 33}}) {
      std::vector<uint8_t> v(size_t(n) + 40);
      for (size_t k = 0; k < v.size(); ++k) v[k] = uint8_t(k * 7 + k / 251);
      const Buffer all = device.upload(v);
      device.copy(all.rows(from, n), all.rows(to, n));
      std::memmove(v.data() + to, v.data() + from, size_t(n));
      EXPECT_EQ(device.download<uint8_t>(all), v) << n << " from " << from << " to " << to;
    }
}

TEST_P(Edges, OverlappingCopiesAreRecorded) {
  std::vector<i32> v(100);
  std::iota(v.begin(), v.end(), 0);
  const Buffer all = device.upload(v);
  const Graph graph = device.record([&] { device.copy(all.rows(0, 99), all.rows(1, 99)); });
  for (int turn = 0; turn < 3; ++turn) {
    device.replay(graph);
    std::memmove(v.data() + 1, v.data(), 99 * sizeof(i32));
    EXPECT_EQ(device.download<i32>(all), v);
  }
}

TEST_P(Edges, SizesOutOfRangeAreRefusedByName) {
  const Buffer b = device.upload(std::vector<f32>(40)).reshape({8, 5});
  EXPECT_EQ(said_of([&] { b.rows(1, INT64_MAX); }),
            "first 1 and count 9223372036854775807 [Buffer::rows]: expected rows from 0 to 8");
  EXPECT_THROW(b.rows(INT64_MAX, 1), InputError);
  EXPECT_THROW(b.rows(-1, 1), InputError);
  EXPECT_THROW(b.rows(8, INT64_MIN), InputError);
  EXPECT_EQ(said_of([&] { b.window({1, 1}, {2, INT64_MAX}); }),
            "offset (1, 1) and size (2, 9223372036854775807) [Buffer::window]: expected a part of (8, 5)");
  EXPECT_THROW(b.window({INT64_MAX, 0}, {INT64_MAX, 0}), InputError);
  EXPECT_THROW(b.window({0, -1}, {1, 1}), InputError);
  EXPECT_THROW(b.window({0}, {1}), InputError);
  EXPECT_EQ(said_of([&] { b.reshape({-10, -4}); }),
            "shape (-10, -4) [Buffer::reshape]: expected axes of 0 to 2^31 - 1");
  EXPECT_EQ(said_of([&] { b.rows(0, 1).window({0, 0}, {1, 1}).reshape(Shape{}); }),
            "shape of rank 0 [Buffer::reshape]: expected rank 1 to 4");
  EXPECT_THROW(b.reshape({int64_t(1) << 31, int64_t(1) << 31, 4, 40}), InputError);
  EXPECT_THROW(b.reshape({1 << 30, 1 << 30, 1 << 30, 40}), InputError);  // 40 * 2^90 is 0 in 64 bits
  EXPECT_EQ(b.window({3, 2}, {0, 3}).reshape({3, 0}).elements(), 0);
}

TEST_P(Edges, WrapsThatNoMemoryHoldsAreRefused) {
  if (!wraps()) GTEST_SKIP() << GetParam() << " wraps no memory of this process";
  const std::vector<f32> v(64);
  const auto wrap = [&](const Shape& shape, const std::array<int64_t, 4>& strides, uint64_t address) {
    return said_of([&] { device.wrap(Storage::f32, shape, {address, nullptr, strides}); });
  };
  EXPECT_EQ(
      wrap({2, 2}, {int64_t(1) << 62, 1}, address_of(v)),
      "stride 4611686018427387904 of axis 0 in shape (2, 2) [Device::wrap]: expected less than 2^61 bytes "
      "from the first to the last element");
  // 3 * 2^61 bytes, and 2^64, which are 0 in 64 bits.
  for (const auto& [rows, stride] : {std::pair(4, int64_t(1) << 59), {5, int64_t(1) << 60}})
    EXPECT_THAT(wrap({rows, 2}, {stride, 1}, address_of(v)), testing::HasSubstr("less than 2^61 bytes from"));
  EXPECT_EQ(wrap({INT32_MAX, INT32_MAX, INT32_MAX}, {0, 0, 1}, address_of(v)),
            "shape (2147483647, 2147483647, 2147483647) [Device::wrap]: expected less than 2^61 bytes");
  EXPECT_EQ(wrap({4, 4}, {4, 1}, UINT64_MAX - 15),
            "address 0xfffffffffffffff0 with 64 bytes [Device::wrap]: expected an address range within the "
            "address space");
  EXPECT_EQ(wrap({2, 2}, {-1, 1}, address_of(v)),
            "stride -1 of axis 0 [Device::wrap]: expected strides of 0 or more, and 1 of the last axis");
  EXPECT_EQ(wrap({1, 64}, {-77, 1}, address_of(v)), "accepted");  // of an axis of one element
}

TEST_P(Edges, OverlapIsThatOfBytesWhateverTheStrides) {
  if (!wraps()) GTEST_SKIP() << GetParam() << " wraps no memory of this process";
  const auto copy =
      kernel("test.copy", [](At<2> at, Grid<f32, 2> from, Out<f32, 2> to) { to[at] = from[at]; });
  const auto widen = kernel(
      "test.widen", [](At<2> at, Grid<uint8_t, 2> from, Out<f32, 2> to) { to[at] = cast<f32>(from[at]); });
  std::vector<f32> v(256, 1.0f);
  const auto f32s = [&](int64_t first, const Shape& shape, std::array<int64_t, 4> strides) {
    return device.wrap(Storage::f32, shape, {address_of(v) + uint64_t(first) * 4, nullptr, strides});
  };
  const auto bytes = [&](int64_t first, const Shape& shape, std::array<int64_t, 4> strides) {
    return device.wrap(Storage::u8, shape, {address_of(v) + uint64_t(first), nullptr, strides});
  };
  using testing::HasSubstr;
  const auto launch = [&](const Kernel& k, const Buffer& from, const Buffer& to) {
    return said_of([&] { device.launch(k, {4, 8}, from, to); });
  };
  // One row for all, inside of what is written and next to it.
  EXPECT_THAT(launch(copy, f32s(8, {4, 8}, {0, 1}), f32s(0, {4, 8}, {8, 1})), HasSubstr("overlap"));
  EXPECT_EQ(launch(copy, f32s(32, {4, 8}, {0, 1}), f32s(0, {4, 8}, {8, 1})), "accepted");
  EXPECT_EQ(launch(copy, f32s(8, {4, 8}, {0, 1}), f32s(0, {4, 8}, {16, 1})), "accepted");
  // Bytes among floats: rows of 8 bytes between rows of 32.
  EXPECT_THAT(launch(widen, bytes(24, {4, 8}, {40, 1}), f32s(0, {4, 8}, {10, 1})), HasSubstr("overlap"));
  EXPECT_EQ(launch(widen, bytes(32, {4, 8}, {40, 1}), f32s(0, {4, 8}, {10, 1})), "accepted");
  EXPECT_THAT(launch(widen, bytes(33, {4, 8}, {40, 1}), f32s(0, {4, 8}, {10, 1})), HasSubstr("overlap"));
  // No buffer that is written may overlap itself.
  EXPECT_THAT(launch(copy, f32s(128, {4, 8}, {8, 1}), f32s(0, {4, 8}, {0, 1})),
              HasSubstr("strides (0, 1) of shape (4, 8)"));
  EXPECT_THAT(launch(copy, f32s(128, {4, 8}, {8, 1}), f32s(0, {4, 8}, {7, 1})),
              HasSubstr("test.copy, argument 2 (b1"));
  EXPECT_EQ(launch(copy, f32s(128, {4, 8}, {7, 1}), f32s(0, {4, 8}, {8, 1})), "accepted");
  const std::vector<f32> data(32);
  EXPECT_EQ(said_of([&] { device.write(f32s(0, {4, 8}, {0, 1}), data.data(), 128); }),
            "strides (0, 1) of shape (4, 8) [Device::write]: expected a buffer whose elements do not "
            "share memory");
}

TEST_P(Edges, EmptyBuffersUnderARuleGiveZero) {
  const Buffer whole = device.upload(std::vector<f32>(36, 5.0f)).reshape({6, 6});
  for (const Boundary rule : {Boundary::clamp, Boundary::periodic, Boundary::zero}) {
    const auto two = kernel("test.empty2", [rule](At<1> at, Grid<f32, 2> x, Out<f32, 1> out) {
      out(at.x) = x.with(rule)(at.x - 2, 3 - at.x) + 1.0f;
    });
    const auto one = kernel("test.empty1", [rule](At<1> at, Grid<f32, 1> x, Out<f32, 1> out) {
      out(at.x) = x.with(rule)(at.x - 2) + 1.0f;
    });
    const Buffer out = device.upload(std::vector<f32>(7, -1.0f));
    const std::vector<f32> ones(7, 1.0f);
    for (const Shape& size : {Shape{0, 3}, Shape{3, 0}, Shape{0, 0}}) {
      device.launch(two, {7}, whole.window({3, 2}, size), out);
      EXPECT_EQ(device.download<f32>(out), ones) << int(rule) << " " << to_string(size);
    }
    const Buffer again = device.upload(std::vector<f32>(7, -1.0f));
    const Graph graph = device.record([&] { device.launch(one, {7}, device.allocate<f32>({0}), again); });
    device.replay(graph);
    EXPECT_EQ(device.download<f32>(again), ones) << int(rule);
    device.launch(two, {0}, whole.rows(6, 0), out);
  }
}

TEST_P(Edges, AnEmptyBufferWithoutARuleIsStillOutOfBounds) {
  if (device.info().kind != DeviceKind::interp) GTEST_SKIP() << "only the interpreter checks bounds";
  const auto read =
      kernel("test.unruled", [](At<1> at, Grid<f32, 1> x, Out<f32, 1> out) { out(at.x) = x(at.x); });
  EXPECT_THROW(device.launch(read, {3}, device.allocate<f32>({0}), device.allocate<f32>({3})), DeviceError);
}

TEST(EdgesOfOptions, ThreadsThatNoMachineHasAreRefused) {
  for (const int threads : {-5, 1000000}) {
    DeviceOptions options;
    options.threads = threads;
    EXPECT_THROW(Device::open("interp", options), InputError) << threads;
  }
}

TEST_P(Edges, DomainsWhosePointsExceed64BitsAreNotEmpty) {
  // 2^22 * 2^21 * 2^21 is 0 in 64 bits; the buffer is too small for it, and a launch that does nothing would not say so.
  const auto fill = kernel("test.fill", [](At<3> at, Out<f32, 3> x) { x[at] = 1.0f; });
  EXPECT_THROW(device.launch(fill, {1 << 22, 1 << 21, 1 << 21}, device.allocate<f32>({1, 1, 1})), InputError);
}

constexpr int32_t kLongest = INT32_MAX, kEnd = 16, kShift = 5;

/// The values that the last kEnd points read kShift further on, of an axis that is kLongest long.
Kernel read_ahead(Boundary rule) {
  return kernel("test.ahead", [rule](At<1> at, Grid<uint8_t, 1> in, Out<i32, 1> out) {
    if_(at.x >= kLongest - kEnd,
        [&] { out(at.x - (kLongest - kEnd)) = cast<i32>(in.with(rule)[at.x(+kShift)]); });
  });
}

TEST_P(Edges, ShiftedReadsOfTheLongestAxis) {
  const DeviceKind kind = device.info().kind;
  if (kind == DeviceKind::interp || device.info().software) GTEST_SKIP() << "2^31 points take minutes here";
  // Pages that nobody touches take no memory.
  void* const pages = mmap(nullptr, size_t(kLongest) + 4096, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(pages, MAP_FAILED);
  {
    Buffer in;
    try {
      in = wraps() ? device.wrap(Storage::u8, {kLongest}, {uint64_t(reinterpret_cast<uintptr_t>(pages))})
                   : device.allocate<uint8_t>({kLongest});
    } catch (const DeviceError& error) { GTEST_SKIP() << error.what(); }
    std::vector<uint8_t> ends(2 * kEnd);
    std::iota(ends.begin(), ends.end(), uint8_t(1));  // 1 … 16 at the end, 17 … at the start
    device.write(in.rows(kLongest - kEnd, kEnd), ends.data(), kEnd);
    device.write(in.rows(0, kEnd), ends.data() + kEnd, kEnd);
    const Buffer out = device.allocate<i32>({kEnd});
    for (const Boundary rule : {Boundary::clamp, Boundary::zero, Boundary::periodic}) {
      device.launch(read_ahead(rule), {kLongest}, in, out);
      const auto got = device.download<i32>(out);
      for (int k = 0; k < kEnd; ++k) {
        const int at = k + kShift;
        const int outside = rule == Boundary::clamp ? kEnd : rule == Boundary::zero ? 0 : at + 1;
        EXPECT_EQ(got[size_t(k)], at < kEnd ? at + 1 : outside) << int(rule) << " " << k;
      }
    }
  }
  munmap(pages, size_t(kLongest) + 4096);
}

/// The number of passes of loops over the longest axis, whose last step ends beyond 2^31. Each step counts one: if the
/// counter wraps, the loop continues and the number is too large.
TEST_P(Edges, StridesOverTheLongestAxisEnd) {
  constexpr int kStride = 1 << 19;
  device::Backend& backend = device.backend();
  const auto passes = kernel("test.passes", [](At<1> at, Grid<f32, 1> in, Out<i32, 1> out) {
    Var<i32> count = 0;
    for_(at.x, in.size(0), kStride, [&](Val<i32>) {
      count += 1;
      break_if(count > 8192);
    });
    out[at] = count;
  });
  const float seven = 7;
  for (const bool long_axes : {false, true}) {
    const int32_t size = long_axes ? kLongest : kLongest - int32_t(ir::kLongAxis);
    const auto module = backend.compile(passes.function(Type::i32, long_axes), {});
    const auto in = backend.allocate(16), out = backend.allocate(4 * kEnd);
    backend.upload(nullptr, *in, 0, &seven, 4);
    const device::Binding buffers[] = {{in.get(), 0, 4, {size}, {0}}, {out.get(), 0, 4 * kEnd, {kEnd}, {1}}};
    device::Dispatch d;
    d.module = module.get();
    d.extent = {kEnd, 1, 1};
    d.count = {(kEnd + module->group[0] - 1) / module->group[0], 1, 1};
    d.buffers = buffers;
    backend.dispatch(d);
    std::vector<i32> got(kEnd);
    backend.download(nullptr, *out, 0, got.data(), 4 * kEnd);
    for (int k = 0; k < kEnd; ++k)
      EXPECT_EQ(got[size_t(k)], (int64_t(size) - k + kStride - 1) / kStride) << long_axes << k;
  }
}

// Each lane begins at its own place, next to its neighbour's, and ends near the end of the type.
TEST_P(Edges, CountersOfNeighboursEndByThemselves) {
  const auto passes =
      kernel("test.neighbours", [](At<1> at, Out<i32, 2> out, Param<i32> most, Param<i32> least) {
        const auto count = [&](Val<i32> begin, Val<i32> end, int step) {
          Var<i32> turns = 0;
          for_(begin, end, step, [&](Val<i32>) {
            turns += 1;
            break_if(turns > 100);
          });
          return Val<i32>(turns);
        };
        out(0, at.x) = count(at.x, most, 1 << 28);
        out(1, at.x) = count(-at.x, least, -(1 << 28));
        out(2, at.x) = count(at.x, least, -(1 << 28));
        out(3, at.x) = count(-at.x, most, 1 << 28);
      });
  constexpr int64_t kLanes = 40, kStep = 1 << 28, kMost = INT32_MAX, kLeast = INT32_MIN;
  const Buffer out = device.allocate<i32>({4, kLanes});
  device.launch(passes, {kLanes}, out, int32_t(kMost), int32_t(kLeast));
  const auto got = device.download<i32>(out);
  const auto up = [&](int64_t begin) { return (kMost - begin + kStep - 1) / kStep; };
  const auto down = [&](int64_t begin) { return (begin - kLeast + kStep - 1) / kStep; };
  for (int64_t k = 0; k < kLanes; ++k) {
    EXPECT_EQ(got[size_t(k)], up(k)) << k;
    EXPECT_EQ(got[size_t(kLanes + k)], down(-k)) << k;
    EXPECT_EQ(got[size_t(2 * kLanes + k)], down(k)) << k;
    EXPECT_EQ(got[size_t(3 * kLanes + k)], up(-k)) << k;
  }
}

// A launch takes the form for long axes where a buffer has one: here 2^31 - 1 rows that are all the same.
TEST_P(Edges, LaunchesSeeLongAxes) {
  if (!wraps())
    GTEST_SKIP() << GetParam() << " wraps no memory of this process, of which rows that repeat are made";
  const auto count = kernel("test.count", [](At<1> at, Grid<f32, 2> in, Out<i32, 1> out) {
    Var<i32> passes = 0;
    for_(at.x, in.size(0), 1 << 20, [&](Val<i32>) {
      passes += 1;
      break_if(passes > 8192);
    });
    out[at] = passes;
  });
  f32 row[4] = {};
  const Buffer in = device.wrap(Storage::f32, {kLongest, 1},
                                {uint64_t(reinterpret_cast<uintptr_t>(row)), nullptr, {0, 1}}),
               out = device.allocate<i32>({1});
  device.launch(count, {1}, in, out);
  EXPECT_EQ(device.download<i32>(out)[0], 2048);
}

// Where the whole domain would take too long: its last rows alone, of a grid whose rows are all the same one. The
// interpreter sees whether coordinates stay inside.
TEST_P(Edges, ShiftedReadsOfTheLongestAxisStayInside) {
  device::Backend& backend = device.backend();
  const float seven = 7;
  for (const Boundary rule : {Boundary::clamp, Boundary::zero, Boundary::periodic}) {
    const auto ahead = kernel("test.ahead2", [rule](At<2> at, Grid<f32, 2> in, Out<f32, 1> out) {
      out(at.y - (kLongest - kEnd)) = in.with(rule)[at.y(+kShift)];
    });
    EXPECT_EQ(ahead.function().buffers[0].reach, kShift);
    const auto module = backend.compile(ahead.function(Type::i32, true), {});
    const auto in = backend.allocate(16), out = backend.allocate(4 * kEnd);
    backend.upload(nullptr, *in, 0, &seven, 4);
    const device::Binding buffers[] = {{in.get(), 0, 4, {kLongest, 1}, {0, 1}},
                                       {out.get(), 0, 4 * kEnd, {kEnd}, {1}}};
    device::Dispatch d;
    d.module = module.get();
    d.extent = {1, kLongest, 1};
    d.offset = {0, kLongest - kEnd, 0};
    d.count = {1, (kEnd + module->group[1] - 1) / module->group[1], 1};
    d.buffers = buffers;
    backend.dispatch(d);
    std::vector<f32> got(kEnd);
    backend.download(nullptr, *out, 0, got.data(), 4 * kEnd);
    for (int k = 0; k < kEnd; ++k)
      EXPECT_EQ(got[size_t(k)], rule == Boundary::zero && k + kShift >= kEnd ? 0.0f : 7.0f) << int(rule) << k;
  }
}

}  // namespace
}  // namespace lockstep
