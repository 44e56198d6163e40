// Every case of every folder, at its small sizes, on every device of this machine: against the plain
// reference, and against the interpreter bit by bit (WebGPU within its written bound).
#include <gtest/gtest.h>

#include "device/devices.hpp"
#include "lockstep/verify.hpp"
#include "registry.hpp"

namespace lockstep {
namespace {

struct Run {
  std::string device;
  const Case* c;
};
std::vector<Run> runs(bool with_interp) {
  std::vector<Run> all;
  for (const std::string& device : test_devices())
    if (with_interp || device != "interp")
      for (const Case& c : all_cases().all()) all.push_back({device, &c});
  return all;
}

class Parity : public testing::TestWithParam<Run> {
 protected:
  void check(Against against) {
    const Device& device = test_device(GetParam().device);
    for (const std::string& size : GetParam().c->small) {
      SCOPED_TRACE(size);
      const VerifyRow row = verify_case(*GetParam().c, size, device, against, test_device("interp"));
      if (!row.skipped.empty()) GTEST_SKIP() << row.skipped;
      EXPECT_TRUE(row.pass) << row.comparison.differing_elements << " of " << row.comparison.elements
                            << " elements differ, max_abs " << row.comparison.max_abs << ", max_ulp "
                            << row.comparison.max_ulp << ", finite_equal " << row.comparison.finite_equal
                            << " %, bound " << row.bound;
    }
  }
};
std::string run_name(const testing::TestParamInfo<Run>& info) {
  return test_name(info.param.device + "_" + info.param.c->name);
}

class AgainstReference : public Parity {};
INSTANTIATE_TEST_SUITE_P(, AgainstReference, testing::ValuesIn(runs(true)), run_name);
TEST_P(AgainstReference, Agrees) { check(Against::reference); }

class AgainstInterp : public Parity {};
INSTANTIATE_TEST_SUITE_P(, AgainstInterp, testing::ValuesIn(runs(false)), run_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(AgainstInterp);
TEST_P(AgainstInterp, Agrees) { check(Against::interp); }

TEST(Registry, MatchesNamesAndBeginnings) {
  EXPECT_EQ(all_cases().match("engine.copy").size(), 1u);
  EXPECT_GT(all_cases().match("engine").size(), 10u);
  EXPECT_EQ(all_cases().match("engine.").size(), all_cases().match("engine").size());
  EXPECT_THROW(all_cases().match("engine.cop"), InputError);
  EXPECT_THROW(all_cases().match("nothing"), InputError);
}

}  // namespace
}  // namespace lockstep
