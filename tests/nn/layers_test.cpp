// Each layer in a network: outputs, loss and every component of the gradient against the plain reference.
#include <limits>

#include "lockstep/error.hpp"
#include "nn/losses.hpp"
#include "nn/network_support.hpp"

namespace lockstep::nn {
namespace {

TEST(Layers, Convolution) {
  for (const Conv2d& conv : {Conv2d{3, 3, 3, 1, 1, Activation::tanh}, Conv2d{2, 2, 3, 2, 0, Activation::gelu},
                             Conv2d{2, 3, 2, 2, 2, Activation::identity}}) {
    const NetworkSpec spec{.input = {5, 6, 2},
                           .layers = {Conv2d{2, 3, 3, 1, 1, Activation::relu}, conv, Flatten{}, Dense{3}}};
    expect_exact(make_problem(spec, 2, 2, 3));
  }
}

TEST(Layers, MaxPool) {
  for (const MaxPool2d& pool : {MaxPool2d{2, 2}, MaxPool2d{3, 1}, MaxPool2d{2, 3}})
    expect_exact(make_problem(
        {.input = {5, 7, 1}, .layers = {Conv2d{3, 2, 2, 1, 1, Activation::tanh}, pool, Flatten{}, Dense{2}}},
        3, 3, 2));
}

TEST(Layers, LayerNorm) {
  expect_exact(make_problem(
      {.input = {3, 4}, .layers = {Dense{6}, LayerNorm{}, Dense{5}, LayerNorm{0.1}, Dense{3}}}, 4, 12, 3));
}

TEST(Layers, Embedding) {
  expect_exact(make_problem({.input = {6}, .layers = {Embedding{5, 4}, Dense{3}}}, 4, 24, 3, 5));
  expect_exact(
      make_problem({.input = {6}, .layers = {Embedding{9, 3, true}, Dense{3, Activation::tanh}, Dense{2}}}, 3,
                   18, 2, 7));  // tokens 7 and 8 do not occur
}

TEST(Layers, TokensOutsideTheTableAreNaN) {
  Problem p = make_problem({.input = {1}, .layers = {Embedding{5, 4}, Dense{3}}}, 6, 6, 3, 5);
  p.inputs = {-1, 0, 4, 5, 6, 1000};
  for (const std::string& name : host_devices()) {
    SCOPED_TRACE(name);
    const std::vector<double> outputs = evaluate(Device::open(name), p, Storage::f64).outputs;
    ASSERT_EQ(outputs.size(), 18u);
    for (size_t k = 0; k < outputs.size(); ++k)
      EXPECT_EQ(std::isnan(outputs[k]), k / 3 != 1 && k / 3 != 2) << k;
  }
}

TEST(Layers, Gru) {
  for (const GruForm form : {GruForm::reset_before, GruForm::reset_after})
    expect_exact(make_problem({.input = {5, 3}, .layers = {Gru{4, form}, Gru{3, form}, Dense{2}}}, 3, 15, 2));
}

TEST(Layers, Attention) {
  for (const bool causal : {true, false})
    expect_exact(
        make_problem({.input = {5, 3}, .layers = {Dense{4}, Attention{2, causal}, Dense{2}}}, 3, 15, 2));
}

TEST(Layers, SmallTransformer) {
  const auto block = [] {
    return std::vector<LayerSpec>{
        Residual{{LayerNorm{}, Attention{2}}},
        Residual{{LayerNorm{}, Dense{8, Activation::gelu}, Dense{4}}},
    };
  };
  std::vector<LayerSpec> layers{Embedding{6, 4, true}};
  for (int k = 0; k < 2; ++k)
    for (const LayerSpec& l : block()) layers.push_back(l);
  layers.emplace_back(LayerNorm{});
  layers.emplace_back(Dense{6});
  expect_exact(make_problem({.input = {4}, .layers = layers}, 2, 8, 6, 6), 1e-11);
}

TEST(Layers, TwoHot) {
  Problem p = make_problem(
      {.input = {3}, .layers = {Dense{4, Activation::tanh}, Dense{21}}, .loss = Loss::two_hot}, 7, 7);
  p.targets = {0, 1, -3.5, 100, -1e30, 1e4, 6.38905609893065};
  expect_exact(p);
}

/// The bins of five are at -20, -10, 0, 10 and 20 before symexp.
TEST(Layers, TwoHotDistributionsStandForTheirMean) {
  const double inf = std::numeric_limits<double>::infinity(), b = std::expm1(10.0), c = std::expm1(20.0);
  const std::vector<f64> x{-inf, 0,    -inf, -inf, -inf,   // one bin
                           -inf, 0,    0,    -inf, -inf,   // halves, thirds
                           -inf, 0,    -inf, 0,    0,      //
                           3,    -700, 1,    -700, 3,      // symmetric
                           0,    0,    0,    0,    1e-3};  // nearly so
  const double tilt = std::exp(1e-3);
  const std::vector<f64> expected{-b, -b / 2, c / 3, 0, std::expm1(1e-3) * c / (4 + tilt)};
  for (const std::string& name : host_devices()) {
    SCOPED_TRACE(name);
    const Device& device = test_device(name);
    const Buffer values = device.allocate<f64>({5});
    two_hot_values(device, device.upload(std::span<const f64>(x), {5, 5}), values);
    const std::vector<f64> got = device.download<f64>(values);
    for (size_t k = 0; k < got.size(); ++k)
      EXPECT_NEAR(got[k], expected[k], 1e-12 * std::abs(expected[k])) << k;
    // Of 255 equal weights, whose values reach 5e8: nothing is left over in f32.
    const Buffer narrow = device.allocate<f32>({1});
    two_hot_values(device, device.upload(std::span<const f32>(std::vector<f32>(255, 0.3f)), {1, 255}),
                   narrow);
    EXPECT_EQ(device.download<f32>(narrow)[0], 0);
  }
}

/// The gradient is softmax less the target's weights: for any outputs, both decode to values that differ by the target.
TEST(Layers, TwoHotTargetsDecodeToThemselves) {
  const std::vector<f64> targets{0, 1, -1, 1e-9, 0.3, -3.5, 99, -4321, 1e8, 4e8, 1e30, -1e30};
  const int64_t rows = int64_t(targets.size()), bins = 255;
  const double most = std::expm1(20.0);
  cases::Random random(5);
  std::vector<f64> x;
  for (int64_t k = 0; k < rows * bins; ++k) {
    const double position = -20 + 40.0 * double(k % bins) / double(bins - 1);
    x.push_back(-position * position + random.uniform(-1, 1));
  }
  for (const std::string& name : host_devices()) {
    SCOPED_TRACE(name);
    const Device& device = test_device(name);
    const Buffer outputs = device.upload(std::span<const f64>(x), {rows, bins}),
                 losses = device.allocate<f64>({rows});
    const Buffer slopes = device.allocate<f64>({rows, bins}), values = device.allocate<f64>({rows});
    device.launch(two_hot_kernel<f64>(), {rows}, outputs, device.upload(targets), losses, slopes, 1.0);
    two_hot_values(device, outputs, values);
    const std::vector<f64> slope = device.download<f64>(slopes), value = device.download<f64>(values);
    for (int64_t r = 0; r < rows; ++r) {
      double from_slope = value[size_t(r)];
      int beside = 0;
      for (int64_t j = 0; j < bins; ++j) {
        const double position = -20 + 40.0 * double(j) / double(bins - 1), g = slope[size_t(r * bins + j)];
        from_slope -= g * std::copysign(std::expm1(std::abs(position)), position);
        beside += g < -1e-12;
      }
      const double t = std::clamp(targets[size_t(r)], -most, most);
      EXPECT_NEAR(from_slope, t, 1e-12 * std::max(1.0, std::abs(t))) << t;
      EXPECT_LE(beside, 2) << t;
    }
  }
}

TEST(Layers, DropoutFollowsSeedAndStep) {
  const NetworkSpec spec{.input = {1},
                         .layers = {Dense{4000, Activation::identity, false}, Dropout{0.3}},
                         .loss = Loss::mean_squared};
  std::vector<std::vector<double>> first;
  for (const std::string& name : host_devices()) {
    SCOPED_TRACE(name);
    const Device& device = test_device(name);
    Network network(device, spec, {.storage = Storage::f64, .seed = 5});
    device.write(network.parameters(), std::vector<f64>(4000, 1).data(), 4000 * 8);
    const Batch batch{device.upload(std::vector<f64>{1}), device.upload(std::vector<f64>(4000, 0)), 1};
    const Buffer loss = device.allocate<f64>({1});
    const auto gradient = [&](uint64_t step) {
      network.launch_gradient(batch, loss, step);
      return device.download<f64>(network.gradient());
    };
    // The gradient of mean y^2 with y = kept / 0.7 is 2 kept / 0.7^2 / 4000: mask and scale twice.
    const std::vector<double> g = gradient(3);
    int64_t kept = 0;
    for (const double v : g) {
      EXPECT_NEAR(v, v != 0 ? 2 / 0.49 / 4000 : 0, 1e-15);
      kept += v != 0;
    }
    EXPECT_NEAR(double(kept), 2800, 5 * std::sqrt(4000 * 0.3 * 0.7));
    EXPECT_EQ(gradient(3), g);
    EXPECT_NE(gradient(4), g);
    EXPECT_NE(gradient(3 + (uint64_t(1) << 32)), g);
    network.launch_loss(batch, loss);
    EXPECT_EQ(device.download<f64>(loss)[0], 1);  // nothing is dropped outside of training
    first.push_back(g);
  }
  for (const auto& g : first) EXPECT_EQ(g, first[0]);
}

TEST(Layers, SizesThatDoNotFitNameTheLayer) {
  const Device& device = test_device(host_devices()[0]);
  const auto expect = [&](const NetworkSpec& spec, const char* part) {
    try {
      const Network network(device, spec);
      ADD_FAILURE() << part;
    } catch (const InputError& e) {
      EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
    }
  };
  expect({.input = {4}, .layers = {Conv2d{2}}}, "layer1.conv2d");
  expect({.input = {2, 2, 1}, .layers = {Conv2d{2, 3, 3}}}, "layer1.conv2d");
  expect({.input = {4}, .layers = {Dense{2}, Attention{1}}}, "layer2.attention");
  expect({.input = {4, 3}, .layers = {Attention{2}}}, "2 heads of 3");
  expect({.input = {4, 3}, .layers = {Residual{{Dense{4}}}}}, "layer1.residual");
  expect({.input = {4}, .layers = {Dense{2}, Embedding{3, 2}}}, "first layer");
  expect({.input = {4}, .layers = {Dropout{1}}}, "rate 1");
  expect({.input = {4}, .layers = {Gru{2}}}, "layer1.gru");
}

}  // namespace
}  // namespace lockstep::nn
