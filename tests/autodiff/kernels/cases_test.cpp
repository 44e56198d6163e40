// verify_gradients: each kernel that a case launches, with the arguments of its launch.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "lockstep/differentiate.hpp"
#include "lockstep/kernel.hpp"
#include "lockstep/verify.hpp"

namespace lockstep {
namespace {

const Kernel& scaled() {
  static const Kernel k = kernel("scaled", [](At<2> at, Grid<f64, 2> x, Param<f64> a, Out<f64, 2> y,
                                              Param<f64> b) { y[at] = a * x[at] + b; });
  return k;
}

/// A launch with a window for its input, a recorded one, one of whole numbers and one that checks.
CaseRun bind(const Device& device) {
  std::vector<double> values;
  for (int k = 0; k < 40; ++k) values.push_back(0.25 * k - 3);
  const Buffer x = device.upload<double>(values, {5, 8}).window({1, 2}, {3, 4});
  const Buffer y = device.allocate<f64>({3, 4}), z = device.allocate<f64>({3, 4});
  const Buffer n = device.allocate<i32>({7});
  const Kernel square =
      kernel("square", [](At<2> at, Grid<f64, 2> v, Out<f64, 2> w) { w[at] = v[at] * v[at]; });
  const Kernel count = kernel("count", [](At<1> at, Out<i32, 1> to) { to[at] = at.x * 2; });
  const Kernel checked = kernel("checked", [](At<2> at, Grid<f64, 2> v, Out<f64, 2> w) {
    check(v[at] < 100.0, "small");
    w[at] = v[at];
  });
  const Graph graph = device.record([&] { device.launch(square, {3, 4}, y, z); });
  return {[=] {
            device.launch(scaled(), {3, 4}, x, 2.5, y, -1.0);
            device.launch(scaled(), {3, 4}, x, 2.5, y, -1.0);
            device.replay(graph);
            device.launch(square, {3, 4}, y, z);
            device.launch(count, {7}, n);
            device.launch(checked, {3, 4}, y, z);
          },
          [=] { return std::vector<Array>{device.download(z)}; }};
}

Case sample() {
  Case c;
  c.name = "sample";
  c.make = [](const std::string&, uint64_t) {
    CaseProblem problem;
    problem.bind = bind;
    return problem;
  };
  return c;
}

TEST(VerifyGradients, EachKernelOfACaseOnce) {
  const auto rows = verify_gradients(sample(), "1", Device::open("cpu"), Device::open("interp"));
  std::vector<std::string> names;
  for (const GradientRow& row : rows) names.push_back(row.kernel);
  EXPECT_EQ(names, (std::vector<std::string>{"scaled", "square", "count", "checked"}));
  for (size_t k : {0, 1}) {
    EXPECT_TRUE(rows[k].pass && rows[k].same_bits && rows[k].rejected.empty()) << rows[k].rejected;
    EXPECT_NEAR(rows[k].check.forward, rows[k].check.difference, 1e-6 * rows[k].check.scale);
  }
  EXPECT_NE(rows[2].rejected.find("kernel count"), std::string::npos);
  EXPECT_NE(rows[3].rejected.find("check or print_if"), std::string::npos) << rows[3].rejected;
}

// y = a x + b: the gradient of x is a times the cotangents, whose products with x and 1 sum up to those of a and b.
TEST(VerifyGradients, UsesTheArgumentsOfTheLaunch) {
  const auto rows = verify_gradients(sample(), "1", Device::open("cpu"), Device::open("interp"));
  const std::vector<Array>& g = rows.at(0).check.gradients;
  ASSERT_EQ(g.size(), 3u);
  ASSERT_EQ(g[0].elements(), 12);
  double of_a = 0, of_b = 0;
  for (int k = 0; k < 12; ++k) {
    const double x = 0.25 * ((k / 4 + 1) * 8 + k % 4 + 2) - 3, cotangent = g[0].as<f64>()[k] / 2.5;
    of_a += x * cotangent;
    of_b += cotangent;
  }
  EXPECT_NEAR(g[1].as<f64>()[0], of_a, 1e-12);
  EXPECT_NEAR(g[2].as<f64>()[0], of_b, 1e-12);
}

Case of_launch(const std::function<void(const Device&)>& launch) {
  Case c;
  c.name = "one";
  c.make = [launch](const std::string&, uint64_t) {
    CaseProblem problem;
    problem.bind = [launch](const Device& device) {
      return CaseRun{[=] { launch(device); }, [] { return std::vector<Array>(); }};
    };
    return problem;
  };
  return c;
}

// Narrow floats are compared in f64 too, much closer than f32 rounds; missing values have no derivative.
TEST(VerifyGradients, NarrowFloatsInF64) {
  const auto launch = [](const Device& device) {
    const Kernel k =
        kernel("narrow", [](At<1> at, Grid<f32, 1> x, Grid<f16, 1> h, Out<bf16, 1> y, Param<f32> a) {
          Var<f32> v = stop_gradient(x[at]) + x[at];
          for_(0, 9, [&](auto) { v = sin(v * a) + h[at] * exp(-0.3f * v); });
          y[at] = v;
        });
    const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
    device.launch(k, {4}, device.upload(std::vector<float>{0.3f, nan, -0.7f, inf}),
                  device.upload(std::vector<f16>{f16{0x3c00}, f16{0x7e00}, f16{0xb800}, f16{0x3800}}),
                  device.allocate<bf16>({4}), 1.1f);
  };
  const auto rows = verify_gradients(of_launch(launch), "1", Device::open("cpu"), Device::open("interp"));
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_TRUE(rows[0].pass && rows[0].same_bits) << rows[0].rejected;
  ASSERT_TRUE(rows[0].wide);
  const KernelGradientCheck& wide = *rows[0].wide;
  EXPECT_GT(wide.scale, 0);
  EXPECT_LE(std::fabs(wide.forward - wide.reverse), 1e-13 * wide.scale);
  EXPECT_GT(std::fabs(wide.forward - rows[0].check.forward), 1e-13 * wide.scale)
      << "f32 is compared with itself";
}

TEST(VerifyGradients, TermsThatCancelLeaveTheirRounding) {
  const auto launch = [](const Device& device) {
    const Kernel k = kernel("cancelling", [](At<1> at, Grid<f32, 1> x, Out<f32, 1> y) {
      const Val<f32> v = x[at];
      y[at] = 0.1f * v + 0.2f * v - 0.3f * v;
    });
    device.launch(k, {7}, device.upload(std::vector<float>{1, 2, 3, 4, 5, 6, 7}), device.allocate<f32>({7}));
  };
  const auto rows = verify_gradients(of_launch(launch), "1", Device::open("cpu"), Device::open("interp"));
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_TRUE(rows[0].pass && rows[0].rejected.empty());
  EXPECT_GT(std::fabs(rows[0].check.forward - rows[0].check.reverse), 1e-4 * rows[0].check.scale);
}
TEST(VerifyGradients, LongKernelsAreLeftOut) {
  const auto launch = [](const Device& device) {
    const Kernel k = kernel("long", [](At<1> at, Grid<f64, 1> x, Out<f64, 1> y) {
      Val<f64> v = x[at];
      for (int n = 0; n < 5000; ++n) v = sin(v * x[at]);
      y[at] = v;
    });
    device.launch(k, {1}, device.upload(std::vector<double>{0.5}), device.allocate<f64>({1}));
  };
  const auto rows = verify_gradients(of_launch(launch), "1", Device::open("interp"), Device::open("interp"));
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_FALSE(rows[0].pass);
  EXPECT_NE(rows[0].left_out.find("instructions; at most 20000"), std::string::npos) << rows[0].left_out;
}

}  // namespace
}  // namespace lockstep
