// The IR of each elementary function gives the bits of its host form, on every device that this machine has.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "lockstep/verify.hpp"
#include "math/reference.hpp"

namespace lockstep {
namespace {

class MathCases : public ::testing::TestWithParam<std::string> {};

// WebGPU within its bounds, the others bit for bit.
TEST_P(MathCases, MatchTheHost) {
  Device device;
  try {
    device = Device::open(GetParam());
  } catch (const UnsupportedError& e) { GTEST_SKIP() << e.what(); }
  CaseRegistry registry;
  add_math_cases(registry);
  ASSERT_GE(registry.all().size(), 100u);
  for (const Case& c : registry.all())
    for (const std::string& size : c.small) {
      if (c.needs_f64 && !device.info().limits.f64) continue;
      const VerifyRow row = verify_case(c, size, device, Against::reference, device);
      EXPECT_TRUE(row.pass) << c.name << " " << size << ": " << row.comparison.differing_elements << " of "
                            << row.comparison.elements << " differ, " << row.comparison.max_ulp << " ulp "
                            << row.skipped;
    }
}
template <class T>
void check_sincos(const Device& device) {
  std::vector<T> angles{0, T(-0.0), INFINITY, NAN, std::numeric_limits<T>::max(), T(1e9), T(-3e7)};
  for (int k = -2000; k < 2000; ++k) angles.push_back(T(k * 0.785398163397448) * (1 + T(k % 7) * T(1e-5)));
  const int64_t count = int64_t(angles.size());
  const Kernel k = kernel("test.sincos", [](At<1> at, Grid<T, 1> a, Out<T, 1> s, Out<T, 1> c) {
    const auto both = sincos(a[at]);
    s[at] = both.sin;
    c[at] = both.cos;
  });
  const Buffer a = device.upload(angles), s = device.allocate<T>(Shape{count}),
               c = device.allocate<T>(Shape{count});
  device.launch(k, Extent{count}, a, s, c);
  const std::vector<T> sines = device.download<T>(s), cosines = device.download<T>(c);
  const auto same = [](T x, T y) {
    return (x == y && std::signbit(x) == std::signbit(y)) || (x != x && y != y);
  };
  for (size_t i = 0; i < angles.size(); ++i) {
    EXPECT_TRUE(same(sines[i], math::evaluate(ir::Op::sin, angles[i]))) << angles[i];
    EXPECT_TRUE(same(cosines[i], math::evaluate(ir::Op::cos, angles[i]))) << angles[i];
  }
}
TEST(SinCos, HasTheBitsOfSineAndCosine) {
  for (const char* where : {"interp", "cpu"}) {
    const Device device = Device::open(where);
    check_sincos<f32>(device);
    check_sincos<f64>(device);
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, MathCases, ::testing::Values("interp", "cpu", "cuda", "webgpu"));

}  // namespace
}  // namespace lockstep
