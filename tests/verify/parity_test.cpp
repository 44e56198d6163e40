// Every case of every folder, at its small sizes, on every device of this machine: against the plain
// reference, and against the interpreter bit by bit (WebGPU within its written bound).
#include <gtest/gtest.h>

#include "device/devices.hpp"
#include "registry.hpp"
#include "verify/case_results.hpp"

namespace lockstep {
namespace {

struct Run {
  const Case* c;
  std::string device;
};
/// The devices of one case follow each other and share what it gave.
std::vector<Run> runs() {
  std::vector<Run> all;
  for (const Case& c : all_cases().all())
    for (const std::string& device : test_devices()) all.push_back({&c, device});
  return all;
}

class Parity : public testing::TestWithParam<Run> {
 protected:
  static std::vector<CaseResults>& results_of(const Case& c) {
    static const Case* of = nullptr;
    static std::vector<CaseResults> results;
    if (of != &c) {
      results.clear();
      for (const std::string& size : c.small) results.emplace_back(c, size);
      of = &c;
    }
    return results;
  }
};

TEST_P(Parity, WithReferenceAndInterpreter) {
  const auto& [c, name] = GetParam();
  const Device &device = test_device(name), &interp = test_device("interp");
  std::string skipped;
  for (CaseResults& results : results_of(*c))
    for (const Against against : {Against::reference, Against::interp}) {
      if (against == Against::interp && name == "interp") continue;
      const VerifyRow row = results.verify(device, against, interp);
      if (!row.skipped.empty()) {
        skipped = row.skipped;
        continue;
      }
      EXPECT_TRUE(row.pass) << row.size << (against == Against::interp ? " interp: " : " reference: ")
                            << row.comparison.differing_elements << " of " << row.comparison.elements
                            << " elements differ, max_abs " << row.comparison.max_abs << ", max_ulp "
                            << row.comparison.max_ulp << ", finite_equal " << row.comparison.finite_equal
                            << " %, bound " << row.bound;
    }
  if (!skipped.empty()) GTEST_SKIP() << skipped;
}

INSTANTIATE_TEST_SUITE_P(, Parity, testing::ValuesIn(runs()), [](const testing::TestParamInfo<Run>& run) {
  return test_name(run.param.device + "_" + run.param.c->name);
});

TEST(Registry, MatchesNamesAndBeginnings) {
  EXPECT_EQ(all_cases().match("engine.copy").size(), 1u);
  EXPECT_GT(all_cases().match("engine").size(), 10u);
  EXPECT_EQ(all_cases().match("engine.").size(), all_cases().match("engine").size());
  EXPECT_THROW(all_cases().match("engine.cop"), InputError);
  EXPECT_THROW(all_cases().match("nothing"), InputError);
}

}  // namespace
}  // namespace lockstep
