#include "lockstep/kernel/vec.hpp"

#include <gtest/gtest.h>

#include <complex>
#include <random>

#include "lockstep/device.hpp"
#include "lockstep/kernel/elements.hpp"

namespace lockstep {
namespace {

std::vector<f32> run(const Kernel& kernel, int64_t results) {
  const Device device = Device::open("interp");
  const Buffer r = device.allocate<f32>({results});
  device.launch(kernel, {1}, r);
  return device.download<f32>(r);
}

TEST(Vec, OperatorsActPerComponent) {
  const auto k = kernel("vec.operators", [](At<1>, Out<f32, 1> r) {
    const Vec3<f32> a(1, 2, 3), b(4, 5, 6);
    const Vec3<f32> c = (a + b * 2.0f - Vec3<f32>::splat(1.0f)) / b;
    for (int i = 0; i < 3; ++i) r[i] = c[i];
    const Vec3<f32> d = fma(a, b, -a);
    r[3] = d.x(), r[4] = d.y(), r[5] = d.z();
    r[6] = max(a, min(b, Vec3<f32>(9, 0, 0))).x();
    r[7] = select(a.x() < b.x(), a, b).y();
    r[8] = Vec4<f32>(1, 2, 3, 4).xyz().xy().y();
    r[9] = abs(-a).z();
  });
  EXPECT_EQ(run(k, 10), (std::vector<f32>{8.0f / 4, 11.0f / 5, 14.0f / 6, 3, 8, 15, 4, 2, 2, 3}));
}

TEST(Vec, DotCrossLengthNormalize) {
  const auto k = kernel("vec.products", [](At<1>, Out<f32, 1> r) {
    const Vec3<f32> a(1, 2, 3), b(4, 5, 6);
    r[0] = dot(a, b);
    const auto c = cross(a, b);
    for (int i = 0; i < 3; ++i) r[1 + i] = c[i];
    r[4] = length(Vec2<f32>(3, 4));
    const auto n = normalize(Vec4<f32>(0, 2, 0, 0));
    for (int i = 0; i < 4; ++i) r[5 + i] = n[i];
  });
  EXPECT_EQ(run(k, 9), (std::vector<f32>{32, -3, 6, -3, 5, 0, 1, 0, 0}));
}

TEST(Vec, VariablesChangeInLoops) {
  const auto k = kernel("vec.variables", [](At<1>, Out<f32, 1> r) {
    VarVec<f32, 2> p = Vec2<f32>(1, 0);
    for_(0, 4, [&](Val<i32>) { p = Vec2<f32>(p) * 2.0f + Vec2<f32>(0, 1); });
    r[0] = p[0];
    r[1] = p[1];
  });
  EXPECT_EQ(run(k, 2), (std::vector<f32>{16, 15}));
}

TEST(Complex, QuotientsAreAccurateForOperandsOfAnySize) {
  const Kernel divide = kernel("complex.divide", [](At<1> at, Grid<f32, 2> a, Grid<f32, 2> b, Out<f32, 2> q) {
    elements<Complex<f32>>(q)[at] = elements<Complex<f32>>(a)[at] / elements<Complex<f32>>(b)[at];
  });
  constexpr int64_t kCount = 2000;
  std::mt19937 random(3);
  std::uniform_real_distribution<double> exponent(-15, 15), part(-1, 1), skew(-8, 0);
  std::vector<f32> a, b;
  for (int64_t k = 0; k < kCount; ++k) {
    const double size_a = std::pow(10, exponent(random)), size_b = std::pow(10, exponent(random) * 2);
    const double small = std::pow(10, skew(random));  // of one part of b
    for (double s : {size_a, size_a}) a.push_back(f32(s * part(random)));
    const bool first = k % 2;
    b.push_back(f32(size_b * part(random) * (first ? small : 1)));
    b.push_back(f32(size_b * part(random) * (first ? 1 : small)));
  }
  for (const char* name : {"interp", "cpu"}) {
    const Device device = Device::open(name);
    const Buffer q = device.allocate<f32>({kCount, 2});
    device.launch(divide, {kCount}, device.upload<f32>(a, {kCount, 2}), device.upload<f32>(b, {kCount, 2}),
                  q);
    const std::vector<f32> got = device.download<f32>(q);
    for (size_t k = 0; k < size_t(2 * kCount); k += 2) {
      // Squares of f32 are normal numbers in double.
      const std::complex<double> x(a[k], a[k + 1]), y(b[k], b[k + 1]),
          exact = x * std::conj(y) / std::norm(y);
      if (std::abs(exact) < 1e-36 || std::abs(exact) > 1e38) continue;
      EXPECT_LE(std::abs(std::complex<double>(got[k], got[k + 1]) - exact), 3e-7 * std::abs(exact))
          << name << ": " << x << " / " << y;
    }
  }
}

}  // namespace
}  // namespace lockstep
