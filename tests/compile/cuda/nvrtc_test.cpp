// Every kernel of every case, printed as CUDA C++ and compiled by NVRTC; no GPU needed.
#include "compile/clike/nvrtc.hpp"

#include <gtest/gtest.h>

#include <set>

#include "compile/clike/cuda/cuda.hpp"
#include "compile/lower.hpp"
#include "device/cuda/operation_kernels.hpp"
#include "lockstep/error.hpp"
#include "registry.hpp"
#include "stencils.hpp"

namespace lockstep::clike {
namespace {

class NvrtcTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string reason;
    if (!Nvrtc::find(&reason)) GTEST_SKIP() << "NVRTC: " << reason;
  }
};

/// Kernels whose names begin so; cases share kernels, and each source is here once.
std::vector<Kernel> kernels_of(std::string_view prefix) {
  std::vector<Kernel> kernels;
  std::set<std::string> sources;
  for (const Case& c : all_cases().all())
    for (Kernel& kernel : c.kernels ? c.kernels() : std::vector<Kernel>{})
      if (kernel.name().starts_with(prefix) && sources.insert(emit_cuda(kernel.function())).second)
        kernels.push_back(std::move(kernel));
  return kernels;
}

bool is_elf(const std::vector<std::byte>& code) {
  return code.size() > 64 && code[0] == std::byte{0x7f} && code[1] == std::byte{'E'} &&
         code[2] == std::byte{'L'};
}

TEST_F(NvrtcTest, EveryKernelCompilesForSm90) {
  for (const Kernel& kernel : kernels_of(""))
    EXPECT_NO_THROW(EXPECT_TRUE(is_elf(emit_cubin(kernel.function(), Numerics::exact, 90)))) << kernel.name();
}

TEST_F(NvrtcTest, WideIndicesAndFastNumericsCompile) {
  for (const Kernel& kernel : kernels_of("engine.")) {
    EXPECT_NO_THROW(emit_cubin(kernel.function(Type::i64), Numerics::exact, 90)) << kernel.name();
    EXPECT_NO_THROW(emit_cubin(kernel.function(), Numerics::fast, 90)) << kernel.name();
  }
}

// sm_75 has no asynchronous copies, no bf16 conversion and no min.NaN.
TEST_F(NvrtcTest, OlderArchitecturesCompile) {
  for (const Kernel& kernel : kernels_of("engine.")) {
    for (int arch : {75, 80})
      EXPECT_NO_THROW(emit_cubin(kernel.function(), Numerics::exact, arch))
          << kernel.name() << " sm_" << arch;
  }
}

TEST_F(NvrtcTest, EveryOperationOfEveryTypeCompiles) {
  for (Type type : cuda_test::kNumberTypes)
    for (int arch : {75, 90})
      EXPECT_NO_THROW(emit_cubin(cuda_test::operation_kernel(type).kernel.function(), Numerics::exact, arch))
          << name(type) << " sm_" << arch;
  EXPECT_NO_THROW(emit_cubin(cuda_test::math_kernel(Type::f32).kernel.function(), Numerics::exact, 90));
  EXPECT_NO_THROW(emit_cubin(cuda_test::math_kernel(Type::f32).kernel.function(), Numerics::fast, 90));
}

TEST_F(NvrtcTest, RandomStencilsCompile) {
  int columns = 0;
  for (uint64_t seed = 1; columns < 8; ++seed) {
    const ir::Function f = fuzz::stencil({seed}).function;
    if (emit_cuda(f).find("void columns(") == std::string::npos) continue;
    ++columns;
    EXPECT_NO_THROW(emit_cubin(f, Numerics::exact, 90)) << seed;
  }
}

TEST_F(NvrtcTest, PtxKeepsIeeeArithmetic) {
  const Kernel k = kernel("test.ieee", [](At<1> at, Grid<f32, 1> a, Out<f32, 1> out) {
    out[at] = sqrt(a[at]) / 3.0f * a[at] + 1.0f;
  });
  const std::string exact = emit_ptx(k.function());
  for (const char* instruction : {"sqrt.rn.f32", "div.rn.f32", "fma.rn.f32"})
    EXPECT_NE(exact.find(instruction), std::string::npos) << instruction;
  EXPECT_EQ(exact.find(".ftz"), std::string::npos);
  EXPECT_EQ(exact.find(".approx"), std::string::npos);
  EXPECT_NE(emit_ptx(k.function(), Numerics::fast).find(".approx"), std::string::npos);
}

TEST_F(NvrtcTest, ErrorsCarryTheLog) {
  try {
    Nvrtc::get().compile("extern \"C\" __global__ void k() { undeclared_name(); }", "broken", 90,
                         CudaOutput::cubin, Numerics::exact);
    FAIL();
  } catch (const DeviceError& error) {
    EXPECT_EQ(error.fault(), DeviceFault::compile);
    EXPECT_NE(std::string(error.what()).find("undeclared_name"), std::string::npos) << error.what();
  }
}

TEST(Architecture, IsParsed) {
  EXPECT_EQ(parse_arch("sm_90"), 90);
  EXPECT_EQ(parse_arch("compute_80"), 80);
  EXPECT_EQ(parse_arch("100"), 100);
  EXPECT_THROW(parse_arch("hopper"), InputError);
  EXPECT_THROW(parse_arch("sm_"), InputError);
}

}  // namespace
}  // namespace lockstep::clike
