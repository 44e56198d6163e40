// Loops that compilers unroll in unlike ways: up and down, to negated and to other bounds, for_ and while_.
#pragma once

#include <gtest/gtest.h>

#include "lockstep/device.hpp"
#include "lockstep/kernel/kernel.hpp"

namespace lockstep::test {

/// Every loop of every lane hashes its indices; compares them with the interpreter's. `wide`: 64-bit counters
/// too.
inline void loops_run_as_often_as_they_should(const Device& device, bool wide) {
  int slots = 0;
  const Kernel k = kernel(wide ? "test.loops" : "test.loops32", [&](At<1> at, Out<u32, 2> out, Param<i32> p) {
    const Val<i32> x = at.x, n = x & 15, low = 0 - n, far = x * -1;
    slots = 0;
    const auto count = [&](auto loop) {
      Var<u32> hash = 0x811c9dc5u;
      loop([&](const Val<i32>& i) { hash = (hash ^ cast<u32>(i)) * 16777619u; });
      out(slots++, x) = Val<u32>(hash);
    };
    for (int step : {-1, -2, -3}) {
      count([&](auto body) { for_(0, low, step, body); });
      count([&](auto body) { for_(Val<i32>(p), low, step, body); });
      count([&](auto body) { for_(n, far, step, body); });
      if (!wide) continue;
      const Val<i64> end = Val<i64>(0) - cast<i64>(n);
      count([&](auto body) { for_(Val<i64>(0), end, step, [&](Val<i64> i) { body(cast<i32>(i)); }); });
    }
    for (int step : {1, 2, 3}) {
      count([&](auto body) { for_(low, 3, step, body); });
      count([&](auto body) { for_(-9, low, step, body); });
    }
    count([&](auto body) {
      Var<i32> i = 0;
      while_([&] { return i > low; },
             [&] {
               body(Val<i32>(i));
               i -= 1;
             });
    });
  });
  const int64_t n = 1000;
  const auto run = [&](const Device& d) {
    const Buffer out = d.allocate<u32>({slots, n});
    d.clear(out);
    d.launch(k, {n}, out, 5);
    return d.download<u32>(out);
  };
  const std::vector<u32> got = run(device), expected = run(Device::open("interp"));
  ASSERT_EQ(slots, wide ? 19 : 16);
  for (int64_t s = 0; s < slots; ++s)
    for (int64_t x = 0; x < n; ++x)
      ASSERT_EQ(got[size_t(s * n + x)], expected[size_t(s * n + x)]) << "loop " << s << ", x = " << x;
}

}  // namespace lockstep::test
