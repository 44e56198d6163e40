// Which kernels are compiled and which come from the disk cache.
#include "compile/lower.hpp"
#include "compile/native/native.hpp"
#include "core/files/disk_cache.hpp"
#include "device/cpu/support.hpp"

namespace lockstep {
namespace {

/// A kernel that no earlier run has put into the cache.
Kernel fresh_kernel(const char* name) {
  const uint32_t unique = std::random_device()();
  return kernel(name, [unique](At<1> at, Out<u32, 1> out) { out[at] = Val<u32>(unique) + 1u; });
}

TEST(Cache, CompilesOnceAndCounts) {
  if (!DiskCache::global().can_write()) GTEST_SKIP() << "no kernel cache";
  const Kernel k = fresh_kernel("test.cached");
  for (int run = 0; run < 2; ++run) {
    const Device device = test::cpu();
    const Buffer out = device.allocate<u32>({4});
    device.launch(k, {4}, out);
    device.launch(k, {4}, out);
    const DeviceCounters counters = device.counters();
    EXPECT_EQ(counters.kernels_compiled, run == 0 ? 1 : 0);
    EXPECT_EQ(counters.cache_hits, run == 0 ? 0 : 1);
  }
}

TEST(Cache, TakesNothingFromAnotherGenerator) {
  if (!DiskCache::global().can_write()) GTEST_SKIP() << "no kernel cache";
  using compile::simd::compile_native;
  EXPECT_EQ(compile::simd::generator_hash().size(), 32u);
  const Kernel k = fresh_kernel("test.generator");
  EXPECT_FALSE(compile_native(k.function(), Numerics::exact)->from_cache);
  EXPECT_TRUE(compile_native(k.function(), Numerics::exact)->from_cache);
  EXPECT_FALSE(compile_native(k.function(), Numerics::exact, "changed sources")->from_cache);
  EXPECT_TRUE(compile_native(k.function(), Numerics::exact)->from_cache);
}

TEST(Cache, OtherNumericsAndProcessorsHaveOtherObjects) {
  using compile::simd::object_key;
  const Kernel k =
      kernel("test.keyed", [](At<1> at, Grid<f32, 1> a, Out<f32, 1> out) { out[at] = exp(a[at]); });
  const auto lowered = [&](compile::Target target, Numerics numerics) {
    return compile::lower(k.function(), {target, numerics});
  };
  const ir::Function exact = lowered(compile::Target::cpu, Numerics::exact);
  const std::string key = object_key(exact, "g", "znver4 +avx512f");
  EXPECT_NE(object_key(exact, "g", "znver4 -avx512f"), key);
  EXPECT_NE(object_key(exact, "g", "znver3 +avx512f"), key);
  EXPECT_NE(object_key(exact, "h", "znver4 +avx512f"), key);
  EXPECT_NE(object_key(lowered(compile::Target::cuda, Numerics::fast), "g", "znver4 +avx512f"), key);
  // The CPU has no fast forms: both numerics are one arithmetic, one object and the same bits.
  EXPECT_EQ(object_key(lowered(compile::Target::cpu, Numerics::fast), "g", "znver4 +avx512f"), key);
  const std::vector<float> a{0.1f, -3.7f, 11.25f};
  std::vector<float> kept;
  for (const Numerics numerics : {Numerics::exact, Numerics::fast}) {
    DeviceOptions options;
    options.numerics = numerics;
    const Device device = Device::open("cpu", options);
    const Buffer out = device.allocate<f32>({3});
    device.launch(k, {3}, device.upload(a), out);
    const auto got = device.download<float>(out);
    if (kept.empty()) kept = got;
    EXPECT_EQ(got, kept);
  }
}

}  // namespace
}  // namespace lockstep
