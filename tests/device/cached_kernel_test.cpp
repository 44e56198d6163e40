// Kernels by their keys.
#include "device/cached_kernel.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "lockstep/error.hpp"

namespace lockstep {
namespace {

Kernel scaled(const std::string& name, float factor) {
  return kernel(name, [=](At<1> at, Grid<f32, 1> x, Out<f32, 1> y) { y[at] = factor * x[at]; });
}

TEST(CachedKernel, AKeyIsAKernel) {
  int traced = 0;
  const auto get = [&](const std::string& key) {
    return cached_kernel(key, [&] { return ++traced, scaled("test.cached", 2.0f); });
  };
  EXPECT_EQ(get("test.cached a").id(), get("test.cached a").id());
  EXPECT_NE(get("test.cached a").id(), get("test.cached b").id());
  EXPECT_EQ(traced, 2);
}

// Tracing is of its thread: a kernel is traced while another one is, and neither records what belongs to the other.
TEST(CachedKernel, AKernelIsTracedFromWithinAnother) {
  Kernel inner;
  const Kernel outer = cached_kernel("test.cached outer", [&] {
    return kernel("test.cached.outer", [&](At<1> at, Grid<f32, 1> x, Out<f32, 1> y) {
      const Val<f32> before = x[at];
      inner = cached_kernel("test.cached inner", [] { return scaled("test.cached.inner", 3.0f); });
      y[at] = before + 1.0f;
    });
  });
  EXPECT_EQ(inner.name(), "test.cached.inner");
  EXPECT_EQ(inner.function().buffers.size(), 2u);
  EXPECT_EQ(outer.function().buffers.size(), 2u);
  EXPECT_EQ(cached_kernel("test.cached inner", [] { return Kernel(); }).id(), inner.id());
}

TEST(CachedKernel, ABodyThatIsRefusedIsTracedAgain) {
  const auto get = [](bool right) {
    return cached_kernel("test.cached refused", [=] {
      return kernel("test.cached.refused", [=](At<1> at, Out<i32, 1> y) { y[at] = right ? 1 : 0.5; });
    });
  };
  EXPECT_THROW(get(false), InputError);
  EXPECT_EQ(get(true).name(), "test.cached.refused");
}

TEST(CachedKernel, ThreadsTraceTogetherAndGetOne) {
  constexpr int kThreads = 4, kKernels = 20;
  std::vector<std::vector<uint64_t>> ids(kThreads);
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t)
      threads.emplace_back([&, t] {
        for (int k = 0; k < kKernels; ++k) {
          const std::string name = "test.cached.together" + std::to_string(k);
          ids[size_t(t)].push_back(cached_kernel(name, [&] { return scaled(name, float(k)); }).id());
        }
      });
  }
  for (const auto& of_thread : ids) EXPECT_EQ(of_thread, ids[0]);
}

}  // namespace
}  // namespace lockstep
