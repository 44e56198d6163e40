// Runs the bodies of same_test.cpp and more_same_test.cpp: kernels on every device against C++.
#include <gtest/gtest.h>

#include "device/devices.hpp"
#include "languages.hpp"

namespace lockstep::misuse {
namespace {

constexpr int kPlaces = 8;

TEST(Misuse, KernelsSayWhatCppSays) {
  std::vector<float> start(cases().size() * kPlaces);
  for (size_t k = 0; k < start.size(); ++k) start[k] = float((k * 7 + k / 8) % 11) + 0.3f;
  std::vector<float> expected = start;
  for (size_t c = 0; c < cases().size(); ++c) {
    std::span<float> row(&expected[c * kPlaces], kPlaces);
    cases()[c].host(Host(), row);
  }
  constexpr size_t kOfAKernel = 8;
  std::vector<Kernel> kernels;
  for (size_t first = 0; first < cases().size(); first += kOfAKernel)
    kernels.push_back(kernel("test.same" + std::to_string(first),
                             [&](Group<1>, InOut<f32, 1> b) {
                               for (size_t c = first; c < std::min(first + kOfAKernel, cases().size()); ++c) {
                                 Row row{b, int(c) * kPlaces};
                                 cases()[c].lane(Lane(), row);
                               }
                             },
                             {.group = {1}, .contract = false}));
  for (const std::string& name : test_devices()) {
    const Device& device = test_device(name);
    const bool rounds = device.info().kind == DeviceKind::webgpu;  // its division and square root have bounds
    const Buffer b = device.upload(start);
    for (const Kernel& each : kernels) device.launch(each, {1}, b);
    const std::vector<float> got = device.download<float>(b);
    for (size_t k = 0; k < got.size(); ++k) {
      const std::string where =
          cases()[k / kPlaces].name + ", element " + std::to_string(k % kPlaces) + ", " + name;
      if (rounds)
        EXPECT_FLOAT_EQ(got[k], expected[k]) << where;
      else
        EXPECT_EQ(got[k], expected[k]) << where;
    }
  }
}

TEST(Misuse, LongStraightCodeIsThatOfCpp) {
  constexpr int kSteps = 3000;
  const auto run = [](auto x, auto step) {
    for (int k = 0; k < kSteps; ++k) x = step(x, 0.999f + 1e-6f * float(k), 0.001f * float(k % 7));
    return x;
  };
  const Kernel chain = kernel("test.chain", [&](At<1> at, InOut<f32, 1> b) {
    const auto step = [](const Val<f32>& x, float by, float more) { return fma(x, by, more); };
    b[at] = run(Val<f32>(b[at]), step);
  });
  const float expected = run(1.5f, [](float x, float by, float more) { return std::fma(x, by, more); });
  for (const std::string& name : host_devices()) {
    const Device& device = test_device(name);
    const Buffer b = device.upload(std::vector<float>{1.5f, 1.5f});
    device.launch(chain, {2}, b);
    EXPECT_EQ(device.download<float>(b), (std::vector<float>{expected, expected})) << name;
  }
}

TEST(Misuse, KernelsAreMadeWhileAnotherIsTraced) {
  std::map<int, Kernel> made;
  const std::function<Kernel(int)> scaled = [&](int by) {
    if (const auto found = made.find(by); found != made.end()) return found->second;
    const Kernel own = kernel("test.by" + std::to_string(by), [&, by](At<1> at, InOut<f32, 1> b) {
      Val<f32> x = b[at];
      if (by > 1) (void)scaled(by - 1);  // is traced in the midst of this one
      x = x * float(by);
      b[at] = x;
    });
    return made[by] = own;
  };
  (void)scaled(4);
  EXPECT_EQ(made.size(), 4u);
  for (const std::string& name : test_devices()) {
    const Device& device = test_device(name);
    const Buffer b = device.upload(std::vector<float>{1, 2, 3});
    for (const auto& [by, own] : made) device.launch(own, {3}, b);
    EXPECT_EQ(device.download<float>(b), (std::vector<float>{24, 48, 72})) << name;
  }
}

}  // namespace
}  // namespace lockstep::misuse
