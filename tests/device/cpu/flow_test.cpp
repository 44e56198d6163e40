// Divergent control flow against the same code run lane by lane in C++.
#include "device/cpu/support.hpp"

namespace lockstep {
namespace {

using test::cpu;
using test::random_numbers;

constexpr int kN = 1003;

template <class K, class R>
void check(const Kernel& kernel, const K& inputs, R reference) {
  const Device device = cpu();
  const Buffer in = device.upload<int32_t>(inputs), out = device.allocate<i32>({kN});
  device.launch(kernel, {kN}, in, out);
  const auto got = device.download<int32_t>(out);
  for (int x = 0; x < kN; ++x)
    ASSERT_EQ(got[size_t(x)], reference(inputs[size_t(x)], x))
        << "lane " << x << " input " << inputs[size_t(x)];
}

TEST(Flow, CollatzStepsDiverge) {
  const Kernel k = kernel("test.collatz", [](At<1> at, Grid<i32, 1> in, Out<i32, 1> out) {
    Var<i32> n = Val<i32>(in[at]), steps = 0;
    while_([&] { return n > 1; },
           [&] {
             if_((n & 1) == 0, [&] { n = n / 2; }, [&] { n = 3 * n + 1; });
             steps += 1;
           });
    out[at] = steps;
  });
  check(k, random_numbers<int32_t>(kN, 1, 5000), [](int n, int) {
    int steps = 0;
    for (; n > 1; ++steps) n = n % 2 == 0 ? n / 2 : 3 * n + 1;
    return steps;
  });
}

TEST(Flow, BreakContinueReturnInNestedLoops) {
  const Kernel k = kernel("test.jumps", [](At<1> at, Grid<i32, 1> in, Out<i32, 1> out) {
    const Val<i32> v = in[at];
    Var<i32> sum = 0;
    out[at] = -1;
    return_if(v % 17 == 3);
    for_(0, 20, [&](Val<i32> i) {
      continue_if((i + v) % 3 == 0);
      for_(i, 30, 2, [&](Val<i32> j) {
        break_if(j > v % 25);
        if_(sum > 900, [&] {
          out[at] = sum;
          return_();
        });
        continue_if((j & 4) == (v & 4));
        sum += i * j;
      });
      break_if(sum > 700);
      sum += 1;
    });
    out[at] = sum + 100000;
  });
  check(k, random_numbers<int32_t>(kN, 0, 1000), [](int v, int) {
    int sum = 0;
    if (v % 17 == 3) return -1;
    for (int i = 0; i < 20; ++i) {
      if ((i + v) % 3 == 0) continue;
      for (int j = i; j < 30; j += 2) {
        if (j > v % 25) break;
        if (sum > 900) return sum;
        if ((j & 4) == (v & 4)) continue;
        sum += i * j;
      }
      if (sum > 700) break;
      sum += 1;
    }
    return sum + 100000;
  });
}

TEST(Flow, VariablesKeepTheValueWithWhichALaneLeft) {
  const Kernel leave = kernel("test.leave", [](At<1> at, Grid<i32, 1> in, Out<i32, 1> out) {
    const Val<i32> v = in[at];
    Var<i32> step = 0, twice = 0, last = -1;
    loop_([&] {
      break_if(step >= 50);
      break_if(step > v % 40);
      twice = step * 2;
      step += 1;
    });
    for_(0, 3, [&](Val<i32> round) {
      Var<i32> count = 0;
      loop_([&] {
        break_if(count * 7 > v + round);
        count += 1;
        last = count;
      });
      twice += count;
    });
    out[at] = step * 1000000 + twice * 1000 + last;
  });
  check(leave, random_numbers<int32_t>(kN, 0, 60), [](int v, int) {
    int step = 0, twice = 0, last = -1;
    while (step < 50 && step <= v % 40) twice = step * 2, ++step;
    for (int round = 0; round < 3; ++round) {
      int count = 0;
      while (count * 7 <= v + round) last = ++count;
      twice += count;
    }
    return step * 1000000 + twice * 1000 + last;
  });
}

TEST(Flow, BoundsThatDifferByLaneAndStepsDown) {
  const Kernel k = kernel("test.bounds", [](At<1> at, Grid<i32, 1> in, Out<i32, 1> out) {
    const Val<i32> v = in[at], x = at.x;
    Var<i32> h = 1;
    for_(0, v % 9, [&](Val<i32> i) { h = h * 31 + i; });
    for_(x, x + 5, 2, [&](Val<i32> i) { h = h * 31 + i; });
    for_(v % 7, x % 11, [&](Val<i32> i) { h = h * 31 + i; });
    for_(10, v % 13, -3, [&](Val<i32> i) { h = h * 31 + i; });
    out[at] = h;
  });
  check(k, random_numbers<int32_t>(kN, 0, 1000), [](int v, int x) {
    uint32_t h = 1;
    for (int i = 0; i < v % 9; ++i) h = h * 31 + uint32_t(i);
    for (int i = x; i < x + 5; i += 2) h = h * 31 + uint32_t(i);
    for (int i = v % 7; i < x % 11; ++i) h = h * 31 + uint32_t(i);
    for (int i = 10; i > v % 13; i -= 3) h = h * 31 + uint32_t(i);
    return int32_t(h);
  });
}

TEST(Flow, LocalArraysUnderMasks) {
  const Kernel k = kernel("test.local_arrays", [](At<1> at, Grid<i32, 1> in, Out<i32, 1> out) {
    const Val<i32> v = in[at];
    LocalArray<i32> a(16);
    for (int i = 0; i < 16; ++i) a[i] = i;
    for_(0, v % 23,
         [&](Val<i32> i) { if_((v + i) % 2 == 0, [&] { a[(v * 5 + i) & 15] += i; }, [&] { a[3] = v; }); });
    Var<i32> h = 0;
    for_(0, 16, [&](Val<i32> i) { h = h * 7 + a[i]; });
    out[at] = h;
  });
  check(k, random_numbers<int32_t>(kN, 0, 1000), [](int v, int) {
    uint32_t a[16], h = 0;
    for (uint32_t i = 0; i < 16; ++i) a[i] = i;
    for (int i = 0; i < v % 23; ++i) {
      if ((v + i) % 2 == 0)
        a[(v * 5 + i) & 15] += uint32_t(i);
      else
        a[3] = uint32_t(v);
    }
    for (uint32_t x : a) h = h * 7 + x;
    return int32_t(h);
  });
}

TEST(Flow, SingleLanesStoreToOnePlace) {
  const Device device = cpu();
  const Kernel k = kernel("test.single_lane", [](At<1> at, Grid<i32, 1> in, Out<i32, 1> out) {
    const Val<i32> x = at.x;
    for (int pick : {0, 5, 16, 37}) if_(x == pick, [&] { out[pick % 8] = in[at]; });
  });
  const auto in = random_numbers<int32_t>(50, 0, 1000);
  const Buffer a = device.upload<int32_t>(in), out = device.upload(std::vector<int32_t>(8, -1));
  device.launch(k, {50}, a, out);
  const auto got = device.download<int32_t>(out);
  // 0 and 16 share a place and are in different vectors of one row.
  EXPECT_TRUE(got[0] == in[0] || got[0] == in[16]);
  EXPECT_EQ(got[5], in[37] == got[5] ? in[37] : in[5]);
  EXPECT_EQ(got[1], -1);
}

}  // namespace
}  // namespace lockstep
