#include "device/interp/findings.hpp"

#include <gtest/gtest.h>

#include <map>

#include "lockstep/device.hpp"

using namespace lockstep;
using interp::FindingKind;

namespace {

class Findings : public testing::Test {
 protected:
  void SetUp() override {
    device = Device::open("interp");
    interp::collect_findings(device.backend(), true);
  }
  /// Count of one kind; every other kind must be absent.
  int64_t only(FindingKind kind) {
    int64_t count = 0;
    for (const auto& f : interp::findings(device.backend())) {
      if (f.kind == kind)
        count = f.count;
      else
        ADD_FAILURE() << f.text();
    }
    interp::clear_findings(device.backend());
    return count;
  }
  Buffer zeros(int64_t n) {
    Buffer b = device.allocate<i32>({n});
    device.clear(b);
    return b;
  }
  Device device;
};

constexpr KernelOptions kGroup{{8, 1, 1}};

}  // namespace

TEST_F(Findings, OutOfBoundsInBuffers) {
  const Kernel k = kernel(
      "bad.buffer", [](At<1> at, Grid<i32, 1> a, Out<i32, 1> b) { b(at.x) = a(at.x + 1) + a(at.x - 1); });
  device.launch(k, {10}, zeros(10), zeros(10));
  const auto found = interp::findings(device.backend());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kernel, "bad.buffer");
  EXPECT_NE(found[0].instruction.find("load 0:b0"), std::string::npos);
  EXPECT_EQ(found[0].lane, "point (0)");
  EXPECT_EQ(only(FindingKind::out_of_bounds), 2);
}

TEST_F(Findings, OutOfBoundsOfAnAxis) {
  // The offset of x(y, x + 1) stays inside the buffer but for the last element.
  const Kernel k = kernel("bad.axis", [](At<2> at, Grid<i32, 2> a, Out<i32, 2> b) {
    b(at.y, at.x) = a(at.y, Val<i32>(at.x) + 1);
  });
  const Buffer a = zeros(20).reshape({4, 5}), b = zeros(20).reshape({4, 5});
  device.launch(k, {3, 4}, a, b);
  EXPECT_EQ(only(FindingKind::out_of_bounds), 0);
  device.launch(k, {3, 5}, a, b);
  const auto found = interp::findings(device.backend());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_NE(found[0].instruction.find("b0"), std::string::npos) << found[0].instruction;
  EXPECT_EQ(found[0].lane, "point (4, 0)");
  EXPECT_EQ(only(FindingKind::out_of_bounds), 3);
}

TEST_F(Findings, AxesOfStoresWideAccessesAndHigherRanks) {
  const Kernel store = kernel("bad.axis_store", [](At<1> at, Out<i32, 3> b) { b(0, at.x, 1) = 7; });
  const Buffer cube = zeros(24).reshape({2, 3, 4});
  device.launch(store, {5}, cube);
  EXPECT_EQ(only(FindingKind::out_of_bounds), 2);
  const auto values = device.download<i32>(cube);
  EXPECT_EQ(values[9], 7);
  EXPECT_EQ(values[13], 0);  // dropped
  const Kernel negative = kernel("bad.axis_negative", [](At<1> at, Grid<i32, 3> a, Out<i32, 1> b) {
    b[at] = a(1, Val<i32>(at.x) - 1, 0);
  });
  device.launch(negative, {3}, cube, zeros(3));
  EXPECT_EQ(only(FindingKind::out_of_bounds), 1);
  const Kernel wide =
      kernel("bad.axis_wide", [](At<1> at, Grid<i32, 2> a, Out<i32, 1> b) { b[at] = a.wide<4>(at.x, 4)[3]; });
  device.launch(wide, {2}, zeros(12).reshape({2, 6}), zeros(2));
  EXPECT_EQ(only(FindingKind::out_of_bounds), 2);
}

TEST_F(Findings, ShiftedPositionsStayInside) {
  const Kernel k = kernel("good.shifts", [](At<2> at, Grid<i32, 2> a, Out<i32, 2> b) {
    b[at] = a[at.x(3)] + a.periodic()[at.y(-7)] + a.zero()[at.x(-1).y(1)] + a[at];
  });
  device.launch(k, {4, 5}, zeros(20).reshape({4, 5}), zeros(20).reshape({4, 5}));
  EXPECT_EQ(only(FindingKind::out_of_bounds), 0);
}

TEST_F(Findings, UniformValuesOnWhichLanesDiffer) {
  const Kernel k = kernel(
      "bad.uniform", [](Group<1> g, Out<i32, 1> b) { b(g.global()) = uniform(g.lane() / 4 + g.id()); },
      kGroup);
  device.launch(k, {2}, zeros(16));
  EXPECT_EQ(only(FindingKind::not_uniform), 8);
  const Kernel points = kernel("bad.uniform_points",
                               [](At<1> at, Grid<i32, 1> a, Out<i32, 1> b) { b[at] = uniform(a[at] * 2); });
  device.launch(points, {3}, device.upload(std::vector<i32>{1, 1, 2}), zeros(3));
  EXPECT_EQ(only(FindingKind::not_uniform), 1);
}

TEST_F(Findings, UniformValuesThatDifferByTurnOrGroupAreRight) {
  const Kernel k = kernel(
      "good.uniform",
      [](Group<1> g, Out<i32, 1> b) {
        Var<i32> sum = 0;
        for_(0, 3, [&](Val<i32> turn) {
          Var<i32> left = turn;
          while_([&] { return left > 0; },
                 [&] {
                   // Lanes take part in different turns; those of one turn agree.
                   if_((g.lane() & 1) == (left & 1), [&] { sum += uniform(turn * 10 + left + g.id()); });
                   left -= 1;
                 });
          barrier();
        });
        b(g.global()) = sum;
      },
      kGroup);
  device.launch(k, {2}, zeros(16));
  EXPECT_EQ(only(FindingKind::not_uniform), 0);
}

TEST_F(Findings, OutOfBoundsInArrays) {
  const Kernel k = kernel(
      "bad.arrays",
      [](Group<1> g, Out<i32, 1> b) {
        SharedArray<i32> s(8);
        LocalArray<i32> l(4);
        s[g.lane()] = 1;
        l[g.lane()] = 2;      // lanes 4 to 7
        s[g.lane() + 8] = 3;  // all
        b(g.global()) = l[g.lane() & 3] * 0 + s[g.lane()] + 0;
      },
      kGroup);
  device.launch(k, {1}, zeros(8));
  bool out = false;
  for (const auto& f : interp::findings(device.backend())) {
    if (f.kind != FindingKind::out_of_bounds) continue;
    EXPECT_EQ(f.count, 12);
    out = true;
  }
  EXPECT_TRUE(out);
}

TEST_F(Findings, MisalignedWideAccess) {
  const Kernel k = kernel("bad.wide", [](At<1> at, Grid<i32, 1> a, Out<i32, 1> b) {
    const auto v = a.wide<4>(at.x * 2);
    b[at] = v[0] + v[3];
  });
  device.launch(k, {3}, zeros(8), zeros(3));
  EXPECT_EQ(only(FindingKind::misaligned), 1);
}

TEST_F(Findings, UninitialisedMemory) {
  const Kernel copy = kernel("bad.first", [](At<1> at, Grid<i32, 1> a, Out<i32, 1> b) { b[at] = a[at]; });
  const Buffer fresh = device.allocate<i32>({4}), out = device.allocate<i32>({4});
  device.launch(copy, {4}, fresh, out);
  EXPECT_EQ(only(FindingKind::uninitialised), 4);
  device.launch(copy, {4}, zeros(4), fresh);
  device.launch(copy, {4}, fresh, out);  // written by the launch before
  EXPECT_EQ(only(FindingKind::uninitialised), 0);
  const Kernel arrays = kernel(
      "bad.arrays",
      [](Group<1> g, Out<i32, 1> b) {
        SharedArray<i32> s(8);
        LocalArray<i32> l(2);
        if_(g.lane() < 6, [&] { s[g.lane()] = 1; });
        l[0] = 1;
        b(g.global()) = s[g.lane()] + l[1];
      },
      kGroup);
  device.launch(arrays, {2}, zeros(16));
  EXPECT_EQ(only(FindingKind::uninitialised), 2 * (2 + 8));
}

TEST_F(Findings, RacesInSharedMemory) {
  const auto body = [](bool with_barrier) {
    return [with_barrier](Group<1> g, Out<i32, 1> b) {
      SharedArray<i32> s(8);
      s[g.lane()] = g.lane();
      if (with_barrier) barrier();
      b(g.global()) = s[g.lane() ^ 1];
    };
  };
  device.launch(kernel("good.swap", body(true), kGroup), {3}, zeros(24));
  EXPECT_EQ(only(FindingKind::race), 0);
  device.launch(kernel("bad.swap", body(false), kGroup), {3}, zeros(24));
  // The lanes run in turn: what is read before it is written is not initialised, and its write then races.
  int64_t races = 0;
  for (const auto& f : interp::findings(device.backend()))
    if (f.kind == FindingKind::race) races = f.count;
  EXPECT_EQ(races, 3 * 8);
}

TEST_F(Findings, WriteAfterReadNeedsABarrier) {
  const auto body = [](bool with_barrier) {
    return [with_barrier](Group<1> g, Out<i32, 1> b) {
      SharedArray<i32> s(8);
      s[g.lane()] = g.lane();
      barrier();
      b(g.global()) = s[(g.lane() + 1) & 7];
      if (with_barrier) barrier();
      s[g.lane()] = 0;
    };
  };
  device.launch(kernel("good.reuse", body(true), kGroup), {1}, zeros(8));
  EXPECT_EQ(only(FindingKind::race), 0);
  device.launch(kernel("bad.reuse", body(false), kGroup), {1}, zeros(8));
  EXPECT_GT(only(FindingKind::race), 0);
}

TEST_F(Findings, RacesBetweenPointsAndGroups) {
  const Kernel same = kernel("bad.same", [](At<1> at, Out<i32, 1> b) { b(at.x / 2) = at.x; });
  device.launch(same, {8}, zeros(4));
  EXPECT_EQ(only(FindingKind::race), 4);
  const Kernel neighbour =
      kernel("bad.neighbour", [](At<1> at, InOut<i32, 1> b) { b[at] = b((at.x + 1) & 7) + 1; });
  device.launch(neighbour, {8}, zeros(8));
  EXPECT_EQ(only(FindingKind::race), 8);
  const Kernel groups = kernel(
      "bad.groups",
      [](Group<1> g, InOut<i32, 1> b) {
        b(g.lane()) = g.id();  // every group the same eight
        barrier();
      },
      kGroup);
  device.launch(groups, {2}, zeros(8));
  EXPECT_EQ(only(FindingKind::race), 8);
}

TEST_F(Findings, AtomicsDoNotRaceWithEachOther) {
  const Kernel count = kernel("good.count", [](At<1> at, InOut<i32, 1> b) { b.atomic_add(at.x & 1, at.x); });
  const Buffer b = zeros(2);
  device.launch(count, {100}, b);
  EXPECT_EQ(only(FindingKind::race), 0);
  EXPECT_EQ(device.download<i32>(b), (std::vector<i32>{2450, 2500}));
  const Kernel mixed = kernel("bad.mixed", [](At<1> at, InOut<i32, 1> c) {
    c.atomic_add(0, 1);
    if_(at.x == 5, [&] { c(0) = 7; });
  });
  device.launch(mixed, {8}, zeros(2));
  EXPECT_GT(only(FindingKind::race), 0);
}

TEST_F(Findings, ANewLaunchStartsAfresh) {
  const Kernel k = kernel("good.inplace",
                          [](At<1> at, InOut<i32, 1> b, Param<i32> shift) { b((at.x + shift) & 7) = at.x; });
  const Buffer b = zeros(8);
  for (int shift = 0; shift < 5; ++shift) device.launch(k, {8}, b, shift);
  EXPECT_EQ(only(FindingKind::race), 0);
}

TEST_F(Findings, DivergentBarrierUnderAWrongPromise) {
  const Kernel k = kernel(
      "bad.promise",
      [](Group<1> g, Out<i32, 1> b) {
        if_(uniform(g.lane() < 3), [&] { barrier(); });
        b(g.global()) = 1;
      },
      kGroup);
  const Buffer b = zeros(8);
  device.launch(k, {1}, b);
  std::map<FindingKind, int64_t> counts;
  for (const auto& f : interp::findings(device.backend())) counts[f.kind] = f.count;
  EXPECT_EQ(counts,
            (std::map<FindingKind, int64_t>{{FindingKind::divergence, 1}, {FindingKind::not_uniform, 5}}));
  EXPECT_EQ(device.download<i32>(b), std::vector<i32>(8, 1));
}

TEST_F(Findings, MissingWaitShows) {
  const auto body = [](bool wait) {
    return [wait](Group<1> g, Grid<i32, 1> a, Out<i32, 1> b) {
      SharedArray<i32> s(8);
      a.copy_async(s, g.lane(), g.global());
      async_commit();
      if (wait) async_wait(0);
      barrier();
      b(g.global()) = s[7 - g.lane()];
    };
  };
  std::vector<i32> numbers(16);
  for (int k = 0; k < 16; ++k) numbers[k] = k;
  const Buffer a = device.upload(numbers), b = zeros(16);
  device.launch(kernel("good.async", body(true), kGroup), {2}, a, b);
  EXPECT_EQ(only(FindingKind::uninitialised), 0);
  EXPECT_EQ(device.download<i32>(b)[9], 14);
  device.launch(kernel("bad.async", body(false), kGroup), {2}, a, b);
  EXPECT_EQ(only(FindingKind::uninitialised), 16);
}

TEST(FindingsByDefault, EndTheLaunchWithAnError) {
  const Device device = Device::open("interp");
  const Kernel k = kernel("bad.buffer", [](At<1> at, Out<i32, 1> b) { b(at.x + 1) = 1; });
  const Buffer b = device.allocate<i32>({10});
  try {
    device.launch(k, {10}, b);
    FAIL() << "no error";
  } catch (const DeviceError& e) {
    EXPECT_EQ(e.fault(), DeviceFault::launch);
    const std::string text = e.what();
    EXPECT_NE(text.find("kernel bad.buffer: 1 accesses out of bounds, first in `store 0:b0"),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("at point (9)"), std::string::npos) << text;
  }
}
