// Every registered case on CUDA: the bits of the interpreter, and the plain reference within the case's
// bound.
#include "device/cuda/gpu.hpp"
#include "registry.hpp"

namespace lockstep::cuda_test {
namespace {

struct ParityTest : GpuTest {
  void run(Against against, const Device& other) {
    const CaseRegistry& registry = all_cases();
    int compared = 0;
    for (const Case& c : registry.all())
      for (const std::string& size : c.small) {
        const VerifyRow row = verify_case(c, size, device(), against, other);
        if (!row.skipped.empty()) continue;
        ++compared;
        EXPECT_TRUE(row.pass) << c.name << " " << size << ": " << row.comparison.differing_elements << " of "
                              << row.comparison.elements << " elements differ, max_ulp "
                              << row.comparison.max_ulp << ", bound " << row.bound;
      }
    EXPECT_GT(compared, 0);
  }
};

TEST_F(ParityTest, AgainstInterpreter) { run(Against::interp, Device::open("interp")); }
TEST_F(ParityTest, AgainstReference) { run(Against::reference, {}); }

}  // namespace
}  // namespace lockstep::cuda_test
