// map: functions of several buffers, of several types, over several rows of the flat view.
#include <gtest/gtest.h>

#include <cmath>

#include "lockstep/primitives.hpp"
#include "primitives/flat.hpp"

namespace lockstep {
namespace {

using Values = std::span<const AnyVal>;

TEST(Map, AppliesAFunctionToEachElement) {
  const int64_t row = primitives::flat_row();
  primitives::set_flat_row(8192);
  for (const char* where : {"interp", "cpu"})
    for (const int64_t count : {0, 1, 5, 8192, 20001}) {
      const Device device = Device::open(where);
      std::vector<f32> a(static_cast<size_t>(count)), b(a.size());
      std::vector<i32> n(a.size());
      for (size_t i = 0; i < a.size(); ++i) {
        a[i] = float(i) * 0.25f - 100;
        b[i] = 1 / float(i + 1);
        n[i] = int(i) % 3;
      }
      const Buffer r = device.allocate<f32>(Shape{count});
      primitives::map(
          device, [](Values x) { return select(x[2] == 1, fma(x[0], x[1], 2), abs(x[0])); },
          {device.upload(a), device.upload(b), device.upload(n)}, r);
      const std::vector<f32> got = device.download<f32>(r);
      for (size_t i = 0; i < a.size(); ++i)
        ASSERT_EQ(got[i], n[i] == 1 ? std::fma(a[i], b[i], 2.0f) : std::fabs(a[i])) << where << " " << i;
    }
  primitives::set_flat_row(row);
}

TEST(Map, TwoFunctionsOfOneShapeAreTwoKernels) {
  const Device device = Device::open("cpu");
  const Buffer x = device.upload(std::vector<f64>{1, 2, 3}), r = device.allocate<f64>(Shape{3});
  primitives::map(device, [](Values v) { return v[0] + 1; }, {x}, r);
  EXPECT_EQ(device.download<f64>(r), (std::vector<f64>{2, 3, 4}));
  primitives::map(device, [](Values v) { return v[0] * 3; }, {x}, r);
  EXPECT_EQ(device.download<f64>(r), (std::vector<f64>{3, 6, 9}));
}

TEST(Map, RefusesOtherTypesAndCounts) {
  const Device device = Device::open("cpu");
  const Buffer x = device.upload(std::vector<i32>{1, 2, 3}), r = device.allocate<f32>(Shape{3});
  EXPECT_THROW(primitives::map(device, [](Values v) { return v[0]; }, {x}, r), InputError);
  EXPECT_THROW(
      primitives::map(
          device, [](Values v) { return v[0].convert(Type::f32); }, {x}, device.allocate<f32>(Shape{4})),
      InputError);
  EXPECT_THROW(primitives::map(device, [](Values v) { return v[0] * 2; }, {r}, r), InputError);
}

}  // namespace
}  // namespace lockstep
