// Every primitive gives the bits of its plain reference on every device that this machine has, for all small
// sizes.
#include <gtest/gtest.h>

#include "lockstep/verify.hpp"

namespace lockstep {
namespace {

class PrimitiveCases : public ::testing::TestWithParam<std::string> {};

TEST_P(PrimitiveCases, MatchTheReferenceBitForBit) {
  Device device;
  try {
    device = Device::open(GetParam());
  } catch (const UnsupportedError& e) { GTEST_SKIP() << e.what(); }
  CaseRegistry registry;
  add_primitive_cases(registry);
  ASSERT_GE(registry.all().size(), 40u);
  for (const Case& c : registry.all())
    for (const std::string& size : c.small) {
      const VerifyRow row = verify_case(c, size, device, Against::reference, device);
      EXPECT_TRUE(row.pass) << c.name << " " << size << ": " << row.comparison.differing_elements << " of "
                            << row.comparison.elements << " differ " << row.skipped;
    }
}
INSTANTIATE_TEST_SUITE_P(Devices, PrimitiveCases, ::testing::Values("interp", "cpu", "cuda"));

}  // namespace
}  // namespace lockstep
