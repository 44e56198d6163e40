// Sine and cosine of one argument: the bits of the two functions on the host.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "lockstep/device.hpp"
#include "math/reference.hpp"

namespace lockstep {
namespace {

template <class T>
void check_sincos(const Device& device) {
  std::vector<T> angles{0, T(-0.0), INFINITY, NAN, std::numeric_limits<T>::max(), T(1e9), T(-3e7)};
  for (int k = -2000; k < 2000; ++k) angles.push_back(T(k * 0.785398163397448) * (1 + T(k % 7) * T(1e-5)));
  const int64_t count = int64_t(angles.size());
  const Kernel k = kernel("test.sincos", [](At<1> at, Grid<T, 1> a, Out<T, 1> s, Out<T, 1> c) {
    const auto both = sincos(a[at]);
    s[at] = both.sin;
    c[at] = both.cos;
  });
  const Buffer a = device.upload(angles), s = device.allocate<T>(Shape{count}),
               c = device.allocate<T>(Shape{count});
  device.launch(k, Shape{count}, a, s, c);
  const std::vector<T> sines = device.download<T>(s), cosines = device.download<T>(c);
  const auto same = [](T x, T y) {
    return (x == y && std::signbit(x) == std::signbit(y)) || (x != x && y != y);
  };
  for (size_t i = 0; i < angles.size(); ++i) {
    EXPECT_TRUE(same(sines[i], math::evaluate(ir::Op::sin, angles[i]))) << angles[i];
    EXPECT_TRUE(same(cosines[i], math::evaluate(ir::Op::cos, angles[i]))) << angles[i];
  }
}
TEST(SinCos, HasTheBitsOfSineAndCosine) {
  for (const char* where : {"interp", "cpu"}) {
    const Device device = Device::open(where);
    check_sincos<f32>(device);
    check_sincos<f64>(device);
  }
}

}  // namespace
}  // namespace lockstep
