// Every case of every folder, at its small sizes, on every device of this machine: against the plain reference, and
// against the interpreter bit by bit (WebGPU within its written bound).
#include <gtest/gtest.h>

#include "device/devices.hpp"
#include "lockstep/case.hpp"

namespace lockstep {
namespace {

const CaseRegistry& registry() {
  static const CaseRegistry all = [] {
    CaseRegistry r;
    add_engine_cases(r);
    return r;
  }();
  return all;
}

struct Run {
  std::string device;
  const Case* c;
};
std::vector<Run> runs() {
  std::vector<Run> all;
  for (const std::string& device : test_devices())
    for (const Case& c : registry().all()) all.push_back({device, &c});
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
      EXPECT_TRUE(row.pass) << row.comparison.differing_elements << " of " << row.comparison.elements << " elements differ, max_abs "
                            << row.comparison.max_abs << ", max_ulp " << row.comparison.max_ulp << ", finite_equal "
                            << row.comparison.finite_equal << " %, bound " << row.bound;
    }
  }
};
INSTANTIATE_TEST_SUITE_P(, Parity, testing::ValuesIn(runs()), [](const auto& info) { return test_name(info.param.device + "_" + info.param.c->name); });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Parity);

TEST_P(Parity, Reference) { check(Against::reference); }
TEST_P(Parity, Interp) {
  if (GetParam().device == "interp") GTEST_SKIP() << "the interpreter itself";
  check(Against::interp);
}

TEST(Registry, MatchesNamesAndBeginnings) {
  EXPECT_EQ(registry().match("engine.copy").size(), 1u);
  EXPECT_GT(registry().match("engine").size(), 10u);
  EXPECT_EQ(registry().match("engine.").size(), registry().match("engine").size());
  EXPECT_THROW(registry().match("engine.cop"), InputError);
  EXPECT_THROW(registry().match("nothing"), InputError);
}

}  // namespace
}  // namespace lockstep
