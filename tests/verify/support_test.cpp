#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "registry.hpp"

namespace lockstep {
namespace {

TEST(Support, TheCommittedMatrixIsTheCode) {
  for (const DeviceStatus& status : Device::list())
    if (status.info.kind == DeviceKind::cpu && !status.available) GTEST_SKIP() << status.reason;
  const std::string path = LOCKSTEP_SOURCE_DIR "/docs/support.md", now = support_matrix(all_cases());
  if (std::getenv("LOCKSTEP_UPDATE")) std::ofstream(path) << now;
  std::stringstream committed;
  committed << std::ifstream(path).rdbuf();
  // A kernel that lost a back end shows here.
  EXPECT_EQ(committed.str(), now) << "LOCKSTEP_UPDATE=1 writes docs/support.md anew";
}

}  // namespace
}  // namespace lockstep
