// Products of matrices by the real cuBLAS, where there is a GPU and the library, and by tensor cores, where it has them.
#include <bit>
#include <cmath>
#include <limits>

#include "core/numbers/half.hpp"
#include "device/cuda/gpu.hpp"
#include "lockstep/primitives.hpp"
#include "primitives/products/products.hpp"
#include "primitives/products/tensor/tensor.hpp"

namespace lockstep::cuda_test {
namespace {

constexpr primitives::ProductOptions kLibrary{.library = true}, kTf32{.library = true, .tf32 = true};

constexpr int64_t kRows = 300, kDepth = 520, kColumns = 260;

struct CublasTest : GpuTest {
  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped()) return;
    fast_ = Device::open("cuda", {.numerics = Numerics::fast});
    const Buffer a = fast_.allocate<f32>({kRows, kDepth}), b = fast_.allocate<f32>({kDepth, kColumns});
    const auto path = primitives::matmul_path(fast_, a, b, fast_.allocate<f32>({kRows, kColumns}), kLibrary);
    if (!path.reason.empty()) GTEST_SKIP() << path.reason;
  }
  Device fast_;
};

std::vector<float> random_numbers(int64_t count, uint32_t seed) {
  std::vector<float> v(static_cast<size_t>(count));
  for (float& x : v) x = float(int32_t(seed = seed * 1664525u + 1013904223u)) * 0x1p-31f;
  return v;
}

/// The bound of a sum of products in f32: as many roundings as terms, and `rounded` of each factor.
void expect_close(const std::vector<float>& c, const std::vector<float>& a, const std::vector<float>& b,
                  double rounded) {
  for (int64_t i = 0; i < kRows; i += 7)
    for (int64_t j = 0; j < kColumns; j += 5) {
      double sum = 0, size = 0;
      for (int64_t k = 0; k < kDepth; ++k) {
        const double p = double(a[size_t(i * kDepth + k)]) * double(b[size_t(k * kColumns + j)]);
        sum += p;
        size += std::abs(p);
      }
      ASSERT_NEAR(double(c[size_t(i * kColumns + j)]), sum, size * (double(kDepth) * 0x1p-24 + 2 * rounded))
          << i << ", " << j;
    }
}

// The handle is made and used for the first time while a graph is recorded.
TEST_F(CublasTest, IsRecordedFromTheFirstCallOn) {
  const auto x = random_numbers(kRows * kDepth, 1), y = random_numbers(kDepth * kColumns, 2);
  const Buffer a = fast_.upload(std::span<const f32>(x), {kRows, kDepth}),
               b = fast_.upload(std::span<const f32>(y), {kDepth, kColumns}),
               c = fast_.allocate<f32>({kRows, kColumns});
  const Graph graph = fast_.record([&] { primitives::matmul(fast_, a, b, c, {}, kLibrary); });
  fast_.clear(c);
  fast_.replay(graph);
  const std::vector<f32> recorded = fast_.download<f32>(c);
  expect_close(recorded, x, y, 0);
  fast_.clear(c);
  const Stream stream = fast_.stream();
  fast_.begin_after({}, stream);
  primitives::matmul(fast_, a, b, c, stream, kLibrary);
  fast_.synchronize(stream);
  EXPECT_EQ(fast_.download<f32>(c), recorded);
  primitives::matmul(fast_, a, b, c, {}, kTf32);
  expect_close(fast_.download<f32>(c), x, y, 0x1p-10);
}

TEST_F(CublasTest, Bf16WithSumsInF32) {
  auto x = random_numbers(kRows * kDepth, 3), y = random_numbers(kDepth * kColumns, 4);
  const auto narrow = [&](std::vector<float>& v, const Shape& shape) {
    std::vector<bf16> bits(v.size());
    for (size_t k = 0; k < v.size(); ++k) {
      bits[k] = {f32_to_bf16(v[k])};
      v[k] = bf16_to_f32(bits[k].bits);
    }
    return fast_.upload(std::span<const bf16>(bits), shape);
  };
  const Buffer a = narrow(x, {kRows, kDepth}), b = narrow(y, {kDepth, kColumns}),
               c = fast_.allocate<f32>({kRows, kColumns}), rounded = fast_.allocate<bf16>({kRows, kColumns});
  primitives::matmul(fast_, a, b, c, {}, kLibrary);
  primitives::matmul(fast_, a, b, rounded, {}, kLibrary);
  expect_close(fast_.download<f32>(c), x, y, 0);
  std::vector<f32> widened;
  for (const bf16 v : fast_.download<bf16>(rounded)) widened.push_back(bf16_to_f32(v.bits));
  expect_close(widened, x, y, 0x1p-9);
}

struct TensorTest : GpuTest {
  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped()) return;
    if (std::string why = primitives::no_tensor_cores(device(), Storage::f64); !why.empty())
      GTEST_SKIP() << why;
  }
  /// Bits of c = a b of windows of 16-byte matrices (or not) with everything that f64 has; NaN as one number.
  static std::vector<uint64_t> product(const Device& device, std::string_view variant, int64_t from,
                                       int64_t pitch) {
    using L = std::numeric_limits<double>;
    constexpr double kNumbers[] = {0.0,
                                   -0.0,
                                   1.0,
                                   -1.0,
                                   1.5,
                                   -0x1.fffffp-2,
                                   L::denorm_min(),
                                   -L::denorm_min(),
                                   L::min(),
                                   -L::max(),
                                   L::max(),
                                   L::infinity(),
                                   L::quiet_NaN(),
                                   1e-160,
                                   -1e-160,
                                   3e200};
    constexpr int64_t kM = 131, kK = 37, kN = 70;
    uint32_t seed = 7;
    const auto matrix = [&](int64_t rows, int64_t width, int64_t columns, bool plain) {
      std::vector<double> v(size_t(rows * width));
      for (double& x : v) {
        seed = seed * 1664525u + 1013904223u;
        // Few of the special ones, or every sum would be NaN.
        x = plain || seed >> 28 != 0 ? double(int32_t(seed)) * 0x1p-31 : kNumbers[seed >> 20 & 15];
      }
      return device.upload(std::span<const f64>(v), {rows, width}).window({0, from}, {rows, columns});
    };
    const Buffer a = matrix(kM, kK + pitch, kK, false), b = matrix(kK, kN + pitch, kN, true),
                 c = matrix(kM, kN + pitch, kN, true);
    primitives::multiply_by(device, {}, {a, b, c}, {}, variant);
    std::vector<uint64_t> bits;
    for (const f64 x : device.download<f64>(c))
      bits.push_back(std::bit_cast<uint64_t>(std::isnan(x) ? L::quiet_NaN() : x));
    return bits;
  }
};

TEST_F(TensorTest, HaveTheBitsOfTheProcessor) {
  const Device cpu = Device::open("cpu");
  for (const auto& [from, pitch] : {std::pair<int64_t, int64_t>{0, 0}, {0, 2}, {1, 3}, {2, 6}}) {
    const std::vector<uint64_t> expected = product(cpu, "columns", from, pitch);
    for (const char* variant : {"tensor-64", "tensor-128"})
      EXPECT_EQ(product(device(), variant, from, pitch), expected) << variant << ' ' << from << ' ' << pitch;
  }
}

}  // namespace
}  // namespace lockstep::cuda_test
