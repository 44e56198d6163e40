// Native kernels: the same arguments and results as the corresponding portable kernel.
#include "lockstep/native.hpp"

#include "device/cuda/gpu.hpp"

namespace lockstep::cuda_test {
namespace {

const Kernel& portable() {
  static const Kernel k = kernel("test.scale_rows", [](At<2> at, Grid<f32, 2> in, Grid<f64, 1> by,
                                                       Out<f32, 2> out, Param<f32> add, Param<bool> twice) {
    const Val<f32> v = in[at] * cast<f32>(Val<f64>(by[Val<i32>(at.y)])) + Val<f32>(add);
    out[at] = select(Val<bool>(twice), v + v, v);
  });
  return k;
}
// Four points of a row per thread.
const Kernel& native() {
  static const Kernel k = native_kernel(portable(), {.cuda = {R"(
extern "C" __global__ void scale_rows(const __grid_constant__ Arguments a) {
  const int y = a.offset_y + int(blockIdx.y);
  for (int k = 0; k < 4; ++k) {
    const int x = a.offset_x + int(blockIdx.x * 256u + threadIdx.x) + 64 * k;
    if (x >= a.extent_x || y >= a.extent_y) continue;
    const float v = __fmaf_rn(a.b0[y * a.b0_s0 + x], float(a.b1[y]), a.p0);
    a.b2[y * a.b2_s0 + x] = a.p1 ? v + v : v;
  }
})",
                                                              "scale_rows"},
                                                     .block = {64, 1, 1},
                                                     .points = {256, 1, 1}});
  return k;
}

struct NativeKernelTest : GpuTest {};

TEST_F(NativeKernelTest, GivesTheBitsOfThePortableOne) {
  const int64_t rows = 70003, columns = 301;  // more rows than one launch has groups
  std::vector<f32> in(size_t(rows * columns));
  std::vector<f64> by(static_cast<size_t>(rows));
  for (size_t k = 0; k < in.size(); ++k) in[k] = f32(k % 1009) * 0.37f - 100;
  for (size_t k = 0; k < by.size(); ++k) by[k] = 1.0 / f64(k + 1);
  const Buffer a = device().upload(std::span<const f32>(in), {rows, columns}), b = device().upload(by);
  for (const bool twice : {false, true}) {
    std::vector<std::vector<f32>> results;
    for (const Kernel& k : {portable(), native()}) {
      const Buffer out = device().allocate<f32>({rows, columns});
      device().clear(out);
      device().launch(k, {rows, columns}, a, b, out, 0.5f, twice);
      results.push_back(device().download<f32>(out));
    }
    EXPECT_EQ(results[0], results[1]);
  }
}

TEST_F(NativeKernelTest, BrokenSourceIsACompileFault) {
  const Kernel broken = native_kernel(
      portable(),
      {.cuda = {"extern \"C\" __global__ void k(const __grid_constant__ Arguments a) { nonsense; }", "k"}});
  try {
    device().prepare(broken);
    FAIL();
  } catch (const DeviceError& error) { EXPECT_EQ(error.fault(), DeviceFault::compile); }
}

TEST(NativeKernel, RunsOnCudaOnly) {
  const Device interp = Device::open("interp");
  EXPECT_FALSE(interp.supports(native()).ok);
  EXPECT_TRUE(interp.supports(portable()).ok);
  EXPECT_THROW(interp.prepare(native()), UnsupportedError);
  EXPECT_EQ(native().name(), "test.scale_rows.native");
  EXPECT_EQ(native_form(portable()), nullptr);
  EXPECT_THROW(native_kernel(portable(), {}), InputError);
}

}  // namespace
}  // namespace lockstep::cuda_test
