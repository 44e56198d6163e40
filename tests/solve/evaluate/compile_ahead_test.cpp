// Work that is done ahead on threads of its own.
#include "solve/evaluate/compile_ahead.hpp"

#include <gtest/gtest.h>

#include <atomic>

#include "lockstep/error.hpp"

namespace lockstep::solve {
namespace {

TEST(CompileAhead, WorkIsDoneOnceAndItsErrorsArrive) {
  CompileAhead ahead(3);
  std::atomic<int> sum{0};
  std::vector<CompileAhead::Handle> handles;
  for (int k = 1; k <= 100; ++k) handles.push_back(ahead.add([&sum, k] { sum += k; }));
  for (const auto& handle : handles) ahead.wait(handle);
  EXPECT_EQ(sum, 5050);
  const auto bad = ahead.add([] { throw InputError("a thing", "here", "another"); });
  EXPECT_THROW(ahead.wait(bad), InputError);
  ahead.check();
  ahead.add([] { throw DeviceError(DeviceFault::launch, "gone"); });
  ahead.wait_all();
  EXPECT_THROW(ahead.check(), DeviceError);
  ahead.check();
}

TEST(CompileAhead, WhatHasNotBegunIsDroppedAtTheEnd) {
  std::atomic<int> done{0};
  {
    CompileAhead ahead(0);
    for (int k = 0; k < 10; ++k) ahead.add([&] { ++done; });
    ahead.wait(ahead.add([&] { done += 100; }));  // by this thread, before the others
  }
  EXPECT_EQ(done, 100);
}

// Some wait for a piece of their own while others add: what a piece wrote is seen by who waited for it.
TEST(CompileAhead, ThreadsSeeWhatTheyWaitedFor) {
  CompileAhead ahead(2);
  std::vector<std::jthread> threads;
  std::atomic<int> right{0};
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      for (int k = 0; k < 50; ++k) {
        int written = 0;
        ahead.wait(ahead.add([&written, t, k] { written = 100 * t + k; }));
        right += written == 100 * t + k;
      }
    });
  threads.clear();
  EXPECT_EQ(right, 150);
}

}  // namespace
}  // namespace lockstep::solve
