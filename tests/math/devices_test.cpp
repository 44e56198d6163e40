// The IR of each elementary function gives the bits of its host form, on every device that this machine has.
#include <gtest/gtest.h>

#include <map>

#include "lockstep/verify.hpp"

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
INSTANTIATE_TEST_SUITE_P(Devices, MathCases, ::testing::Values("interp", "cpu", "cuda", "webgpu"));

}  // namespace
}  // namespace lockstep
