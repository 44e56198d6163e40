// Networks: gradients against complex steps of a plain reference, equal bits, errors.
#include "lockstep/nn/network.hpp"

#include <numeric>

#include "lockstep/error.hpp"
#include "nn/network_support.hpp"

namespace lockstep::nn {
namespace {

TEST(Network, DenseWithEachActivation) {
  for (const Activation f :
       {Activation::identity, Activation::tanh, Activation::relu, Activation::gelu, Activation::sigmoid}) {
    SCOPED_TRACE(name(f));
    expect_exact(
        make_problem({.input = {5}, .layers = {Dense{7, f}, Dense{3, f, false}, Dense{4}}}, 6, 6, 4));
  }
}

TEST(Network, MeanSquaredOverRowsOfSequences) {
  expect_exact(make_problem({.input = {3, 4},
                             .layers = {Dense{5, Activation::tanh}, Dense{2, Activation::sigmoid}},
                             .loss = Loss::mean_squared},
                            4, 4 * 3 * 2));
}

TEST(Network, ManyRowsSumTheirBiasesInChunks) {
  // 2 * 70 rows pass through three chunks; the gradient by a bias is the plain sum over them.
  expect_exact(make_problem({.input = {70, 2}, .layers = {Dense{3, Activation::tanh}, Dense{2}}}, 2, 140, 2));
}

TEST(Network, BatchesOfChangingSizeReuseMemory) {
  const Device& device = test_device(host_devices()[0]);
  const Problem large =
      make_problem({.input = {5}, .layers = {Dense{6, Activation::relu}, Dense{3}}}, 9, 9, 3);
  Network network(device, large.spec, {.storage = Storage::f64});
  const Buffer loss = device.allocate<f64>({1});
  const Batch all{device.upload(large.inputs), upload_as(device, large.targets, Storage::i32), 9};
  const Batch part{all.inputs.rows(0, 10), all.targets.rows(0, 2), 2};
  network.launch_gradient(all, loss, 0);
  const std::vector<double> first = numbers(device, network.gradient());
  network.launch_gradient(part, loss, 0);
  EXPECT_NE(numbers(device, network.gradient()), first);
  network.launch_gradient(all, loss, 0);
  EXPECT_EQ(numbers(device, network.gradient()), first);
}

TEST(Network, InitialParametersAreUniformAndFollowTheSeed) {
  const NetworkSpec spec{.input = {300}, .layers = {Dense{200, Activation::relu}, Dense{100}}};
  const std::vector<double> a = initial_parameters(spec, 1);
  EXPECT_EQ(a, initial_parameters(spec, 1));
  EXPECT_NE(a, initial_parameters(spec, 2));
  const auto check = [&](size_t first, size_t count, double width) {
    double sum = 0, squares = 0, most = 0;
    for (size_t i = first; i < first + count; ++i) {
      sum += a[i], squares += a[i] * a[i], most = std::max(most, std::abs(a[i]));
    }
    EXPECT_LT(most, width);
    EXPECT_GT(most, 0.99 * width);
    EXPECT_NEAR(sum / double(count), 0, 5 * width / std::sqrt(3.0 * double(count)));
    EXPECT_NEAR(squares / double(count), width * width / 3, 0.02 * width * width);
  };
  check(0, 60000, std::sqrt(6.0 / 300));              // He
  check(60200, 20000, std::sqrt(6.0 / (200 + 100)));  // Glorot
  for (size_t i = 60000; i < 60200; ++i) EXPECT_EQ(a[i], 0);
}

// Radford et al. 2019 (GPT-2) draw embeddings with a standard deviation of 0.02; here of uniform numbers.
TEST(Network, EmbeddingsBeginWithADeviationOfTwoHundredths) {
  const NetworkSpec spec{.input = {32}, .layers = {Embedding{64, 64, true}}};
  const std::vector<double> all = initial_parameters(spec, 3);
  ASSERT_EQ(all.size(), size_t(64 * 64 + 32 * 64));
  double squares = 0, largest = 0;
  for (const double v : all) squares += v * v, largest = std::max(largest, std::abs(v));
  EXPECT_NEAR(std::sqrt(squares / double(all.size())), 0.02, 5e-4);
  EXPECT_NEAR(largest, 0.02 * std::sqrt(3.0), 2e-4);
}

TEST(Network, TensorsAreNamedAndWithoutGaps) {
  Network network(
      test_device(host_devices()[0]),
      {.input = {4}, .layers = {Dense{3, Activation::tanh}, Dense{2, Activation::identity, false}}});
  const auto tensors = network.tensors();
  ASSERT_EQ(tensors.size(), 3u);
  EXPECT_EQ(tensors[0].name, "layer1.dense.weight");
  EXPECT_EQ(tensors[1].name, "layer1.dense.bias");
  EXPECT_EQ(tensors[2].name, "layer2.dense.weight");
  EXPECT_EQ(tensors[2].shape, (std::vector<int64_t>{3, 2}));
  EXPECT_EQ(parameter_count(tensors), 12 + 3 + 6);
  EXPECT_EQ(network.parameters().elements(), 21);
}

TEST(Network, AccuracyCountsLargestOutputs) {
  const Device& device = test_device(host_devices()[0]);
  Network network(device, {.input = {3}, .layers = {Dense{3, Activation::identity, false}}});
  device.write(network.parameters(), std::vector<f32>{1, 0, 0, 0, 1, 0, 0, 0, 1}.data(),
               36);  // outputs = inputs
  const Buffer inputs = device.upload(std::vector<f32>{1, 0, 0, 0, 1, 1, 0, 0, 2, 3, 1, 3});
  const auto share = [&](std::vector<i32> classes) {
    return network.accuracy({inputs, device.upload(classes), 4});
  };
  EXPECT_EQ(share({0, 1, 2, 0}), 1.0);  // of equal outputs the first
  EXPECT_EQ(share({0, 2, 2, 2}), 0.5);
  EXPECT_EQ(share({1, 0, 0, 5}), 0.0);
}

TEST(Network, WrongInputIsNamed) {
  const Device& device = test_device(host_devices()[0]);
  const auto message = [](auto work) {
    try {
      work();
    } catch (const InputError& e) { return std::string(e.what()); }
    return std::string("nothing");
  };
  EXPECT_NE(message([&] { Network(device, {.input = {4}, .layers = {Dense{0}}}); }).find("layer1.dense"),
            std::string::npos);
  EXPECT_NE(message([&] { Network(device, {.input = {4}, .layers = {}}); }).find("no layers"),
            std::string::npos);
  EXPECT_NE(message([&] { Network(device, {.input = {}, .layers = {Dense{1}}}); }).find("input"),
            std::string::npos);
  EXPECT_NE(message([&] {
              Network(device, {.input = {4}, .layers = {Dense{1}}}, {.storage = Storage::f16});
            }).find("f32 or f64"),
            std::string::npos);
  Network network(device, {.input = {2}, .layers = {Dense{2}}});
  const Buffer loss = device.allocate<f32>({1}), x = device.upload(std::vector<f32>{1, 2, 3, 4});
  const Buffer classes = device.upload(std::vector<i32>{0, 7});
  EXPECT_NE(message([&] { network.launch_loss({x, classes, 3}, loss); }).find("f32 of 6"), std::string::npos);
  EXPECT_NE(message([&] { network.launch_loss({x, x, 2}, loss); }).find("i32 of 2"), std::string::npos);
  network.launch_loss({x, classes, 2}, loss);  // 7 is no class
  EXPECT_TRUE(std::isnan(device.download<f32>(loss)[0]));
}

}  // namespace
}  // namespace lockstep::nn
