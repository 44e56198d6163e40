// Products of matrices by the vendor's library, on the stand-in driver and a stand-in cuBLAS: which ones it is given,
// with what, on which stream, in graphs, and what its failures become.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include "compile/clike/nvrtc.hpp"
#include "core/numbers/half.hpp"
#include "cublas.hpp"
#include "library.hpp"
#include "lockstep/primitives.hpp"

namespace lockstep {
namespace {

constexpr primitives::ProductOptions kLibrary{.library = true}, kTf32{.library = true, .tf32 = true};

template <class F>
F* library_function(const char* name) {
  void* library = dlopen(FAKE_CUBLAS_LIBRARY, RTLD_NOW | RTLD_NOLOAD);
  return library ? reinterpret_cast<F*>(dlsym(library, name)) : nullptr;
}

struct FakeProducts : testing::Test {
  void SetUp() override {
    std::string reason;
    if (!clike::Nvrtc::find(&reason)) GTEST_SKIP() << "NVRTC: " << reason;
    device_ = Device::open("cuda", {.numerics = Numerics::fast});
  }
  /// Those since the last call.
  std::vector<FakeProduct> calls() {
    static int64_t seen = 0;
    std::vector<FakeProduct> all;
    const auto get = library_function<decltype(fake_product)>("fake_product");
    for (FakeProduct p; get && get(seen, &p); ++seen) all.push_back(p);
    return all;
  }
  Device device_;
};

constexpr int64_t kRows = 256, kDepth = 320, kColumns = 257;  // more than the least operations

/// Small integers: their products and sums are exact in every storage but that of the result.
float at(int64_t k) { return float((k * 7 + k / 13) % 5 - 2); }

template <class E>
Buffer matrix(const Device& device, const Shape& shape) {
  std::vector<E> data(size_t(shape.elements()));
  for (size_t k = 0; k < data.size(); ++k) {
    if constexpr (std::is_same_v<E, bf16>)
      data[k] = {f32_to_bf16(at(int64_t(k)))};
    else
      data[k] = E(at(int64_t(k)));
  }
  return device.upload(std::span<const E>(data), shape);
}

double expected(int64_t i, int64_t j, int64_t depth, int64_t columns, int64_t a0 = 0, int64_t b0 = 0) {
  double sum = 0;
  for (int64_t k = 0; k < depth; ++k)
    sum += double(at(a0 + i * depth + k)) * double(at(b0 + k * columns + j));
  return sum;
}

template <class T>
void expect_product(const std::vector<T>& got) {
  for (int64_t i = 0; i < kRows; i += 15)
    for (int64_t j = 0; j < kColumns; j += 16)
      ASSERT_EQ(double(got[size_t(i * kColumns + j)]), expected(i, j, kDepth, kColumns)) << i << ", " << j;
}

TEST_F(FakeProducts, TheLibraryMultipliesF32AndF64) {
  calls();
  const Buffer a = matrix<f32>(device_, {kRows, kDepth}), b = matrix<f32>(device_, {kDepth, kColumns}),
               c = device_.allocate<f32>({kRows, kColumns});
  primitives::matmul(device_, a, b, c, {}, kLibrary);
  primitives::matmul(device_, a, b, c, {}, kTf32);
  expect_product(device_.download<f32>(c));
  const Buffer a64 = matrix<f64>(device_, {kRows, kDepth}), b64 = matrix<f64>(device_, {kDepth, kColumns}),
               c64 = device_.allocate<f64>({kRows, kColumns});
  primitives::matmul(device_, a64, b64, c64, {}, kTf32);  // says nothing of f64
  expect_product(device_.download<f64>(c64));
  const std::vector<FakeProduct> all = calls();
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].compute, 68);
  EXPECT_EQ(all[1].compute, 77);
  EXPECT_EQ(all[2].compute, 70);
  EXPECT_EQ(all[0].math_mode, 16);  // no sums in 16 bits
  EXPECT_NE(all[0].workspace, 0u);
  EXPECT_EQ(all[0].workspace_bytes, uint64_t(32) << 20);
  std::vector<std::string> names;
  for (const KernelReport& report : device_.kernels()) names.push_back(report.name);
  EXPECT_EQ(names,
            (std::vector<std::string>{"primitives.matmul.f32.cublas", "primitives.matmul.f32.cublas_tf32",
                                      "primitives.matmul.f64.cublas"}));
}

TEST_F(FakeProducts, OfBf16WindowsAndBatches) {
  calls();
  const int64_t count = 3;
  const Buffer a = matrix<bf16>(device_, {count, kRows, kDepth}),
               b = matrix<bf16>(device_, {count, kDepth, kColumns}),
               c = device_.allocate<f32>({count, kRows, kColumns});
  primitives::matmul(device_, a, b, c, {}, kLibrary);
  const std::vector<f32> all = device_.download<f32>(c);
  for (int64_t n = 0; n < count; ++n)
    for (int64_t i = 0; i < kRows; i += 51)
      for (int64_t j = 0; j < kColumns; j += 64)
        ASSERT_EQ(double(all[size_t((n * kRows + i) * kColumns + j)]),
                  expected(i, j, kDepth, kColumns, n * kRows * kDepth, n * kDepth * kColumns));
  // Rows of a window lie further apart than they are long.
  const Buffer wide = matrix<f32>(device_, {kRows, kDepth}), part = wide.window({0, 0}, {kRows, 300}),
               right = matrix<f32>(device_, {kDepth, kColumns}).rows(0, 300),
               to = device_.allocate<f32>({kRows, kColumns});
  primitives::matmul(device_, part, right, to, {}, kLibrary);
  const std::vector<f32> got = device_.download<f32>(to);
  for (int64_t i = 0; i < kRows; i += 51)
    for (int64_t j = 0; j < kColumns; j += 64) {
      double sum = 0;
      for (int64_t k = 0; k < 300; ++k) sum += double(at(i * kDepth + k)) * double(at(k * kColumns + j));
      ASSERT_EQ(double(got[size_t(i * kColumns + j)]), sum);
    }
  const std::vector<FakeProduct> products = calls();
  ASSERT_EQ(products.size(), 2u);
  EXPECT_EQ(products[0].count, 3);
  EXPECT_EQ(products[0].type_a, 14);
  EXPECT_EQ(products[0].type_c, 0);
  EXPECT_EQ(products[0].compute, 68);
}

TEST_F(FakeProducts, StreamsAndGraphsHaveTheirOwnMemory) {
  calls();
  const Buffer a = matrix<f32>(device_, {kRows, kDepth}), b = matrix<f32>(device_, {kDepth, kColumns}),
               c = device_.allocate<f32>({kRows, kColumns});
  const Stream stream = device_.stream();
  primitives::matmul(device_, a, b, c, {}, kLibrary);
  primitives::matmul(device_, a, b, c, stream, kLibrary);
  device_.synchronize();
  const Graph graph = device_.record([&] { primitives::matmul(device_, a, b, c, {}, kLibrary); });
  device_.clear(c);
  device_.replay(graph);
  expect_product(device_.download<f32>(c));
  const std::vector<FakeProduct> all = calls();
  ASSERT_EQ(all.size(), 3u);
  for (size_t k = 0; k < 3; ++k) {
    EXPECT_NE(all[k].stream, all[(k + 1) % 3].stream);
    EXPECT_NE(all[k].workspace, all[(k + 1) % 3].workspace);
  }
}

TEST_F(FakeProducts, OnlyWhereNumericsAreFastAndTheProductIsLarge) {
  calls();
  const auto path = [](const Device& device, int64_t n) {
    const Buffer a = device.allocate<bf16>({n, n}), c = device.allocate<f32>({n, n});
    return primitives::matmul_path(device, a, a, c, kLibrary);
  };
  EXPECT_EQ(path(device_, 512).kernel, "primitives.matmul.bf16.f32.cublas");
  EXPECT_EQ(path(device_, 512).reason, "");
  EXPECT_EQ(path(device_, 16).kernel, "primitives.matmul.bf16.f32");
  EXPECT_EQ(path(device_, 16).reason, "a small product");
  const Device exact = Device::open("cuda");
  EXPECT_EQ(path(exact, 512).kernel, "primitives.matmul.wide.f32");
  EXPECT_EQ(path(exact, 512).reason, "exact numerics");
  EXPECT_EQ(path(Device::open("interp", {.numerics = Numerics::fast}), 512).reason, "no library on interp");
  const Buffer a = device_.allocate<f32>({512, 512}), c = device_.allocate<f32>({512, 512});
  EXPECT_EQ(primitives::matmul_path(device_, a, a, c, {.library = false}).reason,
            "the library was not requested");
  const auto f32_path = [&](int64_t m, int64_t k, primitives::ProductOptions how = {}) {
    const Buffer x = device_.allocate<f32>({m, k}), y = device_.allocate<f32>({k, 512});
    return primitives::matmul_path(device_, x, y, device_.allocate<f32>({m, 512}), how).reason;
  };
  EXPECT_EQ(f32_path(512, 64), "short sums");
  EXPECT_EQ(f32_path(512, 64, {.tf32 = true}), "");
  EXPECT_EQ(f32_path(100, 64), "");
  EXPECT_EQ(f32_path(16, 64), "a small product");
  // By itself, and without tf32.
  EXPECT_EQ(primitives::matmul_path(device_, a, a, c).kernel, "primitives.matmul.f32.cublas");
  EXPECT_TRUE(calls().empty());
}

TEST_F(FakeProducts, FailuresAreThoseOfTheDevice) {
  const Buffer a = matrix<f32>(device_, {kRows, kDepth}), b = matrix<f32>(device_, {kDepth, kColumns}),
               c = device_.allocate<f32>({kRows, kColumns});
  primitives::matmul(device_, a, b, c, {}, kLibrary);
  const auto fault = [&](int status) {
    library_function<decltype(fake_cublas_fail)>("fake_cublas_fail")(status);
    try {
      primitives::matmul(device_, a, b, c, {}, kLibrary);
    } catch (const DeviceError& e) { return e.fault(); }
    return DeviceFault::compile;
  };
  EXPECT_EQ(fault(13), DeviceFault::launch);
  EXPECT_EQ(fault(3), DeviceFault::allocation);
  primitives::matmul(device_, a, b, c, {}, kLibrary);
  EXPECT_THROW(primitives::matmul(device_, a, b, a, {}, kLibrary), InputError);
}

}  // namespace
}  // namespace lockstep
