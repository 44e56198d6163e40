// Reverse mode against forward mode, complex steps and differences, and the same bits everywhere, on random kernels.
// LOCKSTEP_GRADIENT_KERNELS: how many.
#include <cstdlib>

#include "complex_step.hpp"
#include "random_kernels.hpp"

namespace lockstep {
namespace {

void expect_agreement(testing::GradientCase (*make)(uint64_t)) {
  const char* text = std::getenv("LOCKSTEP_GRADIENT_KERNELS");
  const int count = text ? std::atoi(text) : 150;
  Device interp;
  int smooth = 0;
  for (int seed = 1; seed <= count; ++seed) {
    if (seed % 50 == 1) interp = Device::open("interp");  // a device keeps its kernels
    const testing::GradientCase c = make(uint64_t(seed));
    const KernelGradientCheck check =
        check_gradient(interp, c.kernel, c.extent, c.arguments(interp), c.which, uint64_t(seed));
    ASSERT_TRUE(std::isfinite(check.forward)) << seed;
    ASSERT_NEAR(check.reverse, check.forward, 1e-12 * check.scale + 1e-300) << "seed " << seed;
    testing::expect_complex_step(c, interp, uint64_t(seed));
    // A branch on the data makes the difference jump where a step of it crosses; that is rare.
    smooth += std::fabs(check.difference - check.forward) <= 1e-6 * (check.scale + 1) ? 1 : 0;
    if (seed % 10 == 0) c.expect_same_bits();
    if (::testing::Test::HasFatalFailure()) FAIL() << "seed " << seed;
  }
  EXPECT_GE(smooth, count - 1 - count / 50);
}

TEST(RandomGradients, ModesAndDevicesAgree) { expect_agreement(testing::random_gradient_case); }
TEST(RandomGradients, ModesAndDevicesAgreeOnGroups) { expect_agreement(testing::random_group_case); }

}  // namespace
}  // namespace lockstep
