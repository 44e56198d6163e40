// A network, its data, and what the plain reference says of them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "device/devices.hpp"
#include "lockstep/nn/network.hpp"
#include "nn/reference.hpp"
#include "verify/inputs.hpp"

namespace lockstep::nn {

struct Problem {
  NetworkSpec spec;
  int64_t examples = 3;
  std::vector<double> parameters, inputs, targets;
};

/// Random parameters (also the biases), inputs and targets; `classes` > 0: classes as targets, `tokens` > 0: whole
/// numbers below it as inputs.
inline Problem make_problem(const NetworkSpec& spec, int64_t examples, int64_t target_count,
                            int64_t classes = 0, int64_t tokens = 0) {
  Problem p{spec, examples, initial_parameters(spec, 3), {}, {}};
  cases::Random random(11);
  for (double& v : p.parameters) v = v == 0 ? random.uniform(-0.3, 0.3) : v;
  for (int64_t i = 0; i < examples * spec.input.elements(); ++i)
    p.inputs.push_back(tokens > 0 ? double(random.bits() % uint64_t(tokens)) : random.uniform(-1, 1));
  for (int64_t i = 0; i < target_count; ++i)
    p.targets.push_back(classes > 0 ? double(random.bits() % uint64_t(classes)) : random.uniform(-1, 1));
  return p;
}

inline Buffer upload_as(const Device& device, const std::vector<double>& values, Storage storage) {
  if (storage == Storage::f64) return device.upload(values);
  if (storage == Storage::i32) return device.upload(std::vector<i32>(values.begin(), values.end()));
  return device.upload(std::vector<f32>(values.begin(), values.end()));
}
inline std::vector<double> numbers(const Device& device, const Buffer& buffer) {
  if (buffer.storage() == Storage::f64) return device.download<f64>(buffer);
  const std::vector<f32> narrow = device.download<f32>(buffer);
  return {narrow.begin(), narrow.end()};
}

struct Evaluated {
  double loss = 0, gradient_loss = 0;
  std::vector<double> outputs, gradient;
};

inline Evaluated evaluate(const Device& device, const Problem& p, Storage storage, uint64_t step = 0) {
  Network network(device, p.spec, {.storage = storage});
  const Buffer parameters = network.parameters();
  device.copy(upload_as(device, p.parameters, storage), parameters);
  const Batch batch{upload_as(device, p.inputs, network.input_storage()),
                    upload_as(device, p.targets, network.target_storage()), p.examples};
  const Buffer loss = device.allocate(storage, {1});
  Evaluated e;
  network.launch_loss(batch, loss);
  e.loss = numbers(device, loss)[0];
  e.outputs = numbers(device, network.launch_outputs(batch.inputs, p.examples));
  network.launch_gradient(batch, loss, step);
  e.gradient_loss = numbers(device, loss)[0];
  e.gradient = numbers(device, network.gradient());
  return e;
}

/// Outputs, loss and every component of the gradient on all host devices: f64 against the plain reference and its
/// complex step, f32 with the same bits everywhere and near f64.
inline void expect_exact(const Problem& p, double tolerance = 1e-12) {
  const std::vector<double> expected = reference::gradient(p.spec, p.parameters, p.inputs, p.targets);
  const auto outputs = reference::outputs<double>(p.spec, p.parameters, p.inputs);
  const double loss = reference::loss<double>(p.spec, p.parameters, p.inputs, p.targets);
  double size = 0;
  for (const double g : expected) size = std::max(size, std::abs(g));
  ASSERT_GT(size, 0);
  std::vector<Evaluated> narrow;
  for (const std::string& name : host_devices()) {
    SCOPED_TRACE(name);
    const Device& device = test_device(name);
    const Evaluated wide = evaluate(device, p, Storage::f64);
    EXPECT_NEAR(wide.loss, loss, tolerance * std::max(1.0, std::abs(loss)));
    EXPECT_EQ(wide.gradient_loss, wide.loss);
    ASSERT_EQ(wide.outputs.size(), outputs.values.size());
    for (size_t i = 0; i < outputs.values.size(); ++i)
      ASSERT_NEAR(wide.outputs[i], outputs.values[i], tolerance * std::max(1.0, std::abs(outputs.values[i])))
          << i;
    ASSERT_EQ(wide.gradient.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i)
      ASSERT_NEAR(wide.gradient[i], expected[i], tolerance * std::max(size, 1e-3)) << "parameter " << i;
    narrow.push_back(evaluate(device, p, Storage::f32));
    for (size_t i = 0; i < expected.size(); ++i)
      ASSERT_NEAR(narrow.back().gradient[i], expected[i], 3e-5 * std::max(size, 1e-3)) << "parameter " << i;
  }
  for (const Evaluated& e : narrow) {
    EXPECT_EQ(e.loss, narrow[0].loss);
    EXPECT_EQ(e.outputs, narrow[0].outputs);
    EXPECT_EQ(e.gradient, narrow[0].gradient);
  }
}

}  // namespace lockstep::nn
