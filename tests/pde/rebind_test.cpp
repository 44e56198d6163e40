// A bound loss on other arrays, its value on the device, gradients times a seed that lies there.
#include <gtest/gtest.h>

#include <cmath>

#include "lockstep/error.hpp"
#include "pde/paths.hpp"
#include "pde/problems.hpp"

namespace lockstep::pde {
namespace {

using testing::devices;
using testing::mesh_of;
using testing::random_state;
using testing::upload;

FieldBuffers arrays_like(const Device& device, const Inputs& inputs) {
  FieldBuffers all;
  for (const auto& [name, levels] : inputs.fields)
    for (size_t l = 0; l < 3; ++l) {
      all[name][l] = device.allocate(levels[l].storage(), levels[l].shape());
      device.clear(all[name][l]);
    }
  return all;
}

std::vector<LossOptions> all_paths() {
  std::vector<LossOptions> all = testing::paths();
  all.emplace_back().path = Path::two_sweep;
  return all;
}

float value_of(const Device& device, const BoundLoss& bound) {
  const Buffer value = device.allocate<f32>({1});
  bound.loss_into(value);
  return device.download<float>(value)[0];
}

TEST(Rebind, OtherArraysHaveTheBitsOfAFreshBinding) {
  const Mesh mesh = mesh_of({20, 9, 13}, "x=free_slip,y-=clamp,y+=dirichlet_face:0.5,z=no_slip", 2);
  const Loss loss(transport(3), mesh);
  std::vector<float> mask(size_t(mesh.count()), 1), other_mask = mask;
  for (size_t i = 0; i < mask.size(); i += 3) mask[i] = 0.5f, other_mask[i + i % 2] = 0;
  for (const Device& device : devices())
    for (const LossOptions& way : all_paths()) {
      const bool masked = way.path != Path::two_sweep;
      const Inputs first = upload(device, mesh, random_state<float>(mesh, 1),
                                  masked ? mask : std::vector<float>()),
                   second = upload(device, mesh, random_state<float>(mesh, 2),
                                   masked ? other_mask : std::vector<float>());
      const BoundLoss bound = loss.bind(device, first, way), fresh = loss.bind(device, second, way);
      bound.run();
      const double before = bound.loss();
      const FieldBuffers own = arrays_like(device, second);
      const BoundLoss moved = bound.rebind(second.fields, own, second.mask);
      moved.run();
      fresh.run();
      EXPECT_EQ(moved.loss(), fresh.loss());
      EXPECT_EQ(value_of(device, moved), float(fresh.loss()));
      for (const char* field : {"sigma", "u"})
        for (int level = -1; level <= 1; ++level) {
          const Buffer& mine = own.at(field)[size_t(level + 1)];
          EXPECT_EQ(device.download<float>(mine), device.download<float>(fresh.gradient(field, level)));
          EXPECT_EQ(device.download<float>(moved.gradient(field, level)), device.download<float>(mine));
        }
      bound.run();
      EXPECT_EQ(bound.loss(), before);
    }
}

TEST(Rebind, BytesAreThoseOfFieldsGradientsAndMask) {
  const Mesh mesh = mesh_of({6, 5, 4}, "clamp", 2);
  const Loss loss(transport(3), mesh);
  const Device device = Device::open("cpu");
  const std::vector<float> mask(size_t(mesh.count()), 1);
  for (const bool masked : {false, true}) {
    const Inputs inputs =
        upload(device, mesh, random_state<float>(mesh, 1), masked ? mask : std::vector<float>());
    // Three levels of sigma and of three components of u, and as many gradients.
    EXPECT_EQ(loss.bind(device, inputs).bytes(), double(mesh.count()) * 4 * (3 * 4 * 2 + (masked ? 1 : 0)));
  }
}

TEST(Rebind, GradientsStandWhereTheCallerWantsThem) {
  const Mesh mesh = mesh_of({12, 9, 8}, "periodic", 2);
  const Loss loss(transport(3), mesh);
  for (const Device& device : devices()) {
    Inputs inputs = upload(device, mesh, random_state<double>(mesh, 3));
    const BoundLoss plain = loss.bind(device, inputs);
    inputs.gradients["u"][1] = device.allocate<f64>({3, 8, 9, 12});
    const BoundLoss bound = loss.bind(device, inputs);
    plain.run();
    bound.run();
    EXPECT_EQ(device.download<double>(inputs.gradients["u"][1]),
              device.download<double>(plain.gradient("u", 0)));
    EXPECT_EQ(device.download<double>(bound.gradient("sigma", 1)),
              device.download<double>(plain.gradient("sigma", 1)));
    inputs.gradients["u"][1] = device.allocate<f64>({8, 9, 12});
    EXPECT_THROW(loss.bind(device, inputs), InputError);
    inputs.gradients = {{"nothing", {}}};
    EXPECT_THROW(loss.bind(device, inputs), InputError);
  }
}

TEST(Rebind, WhatDoesNotFitIsRefused) {
  const Mesh mesh = mesh_of({12, 9, 8}, "periodic", 2);
  const Loss loss(transport(3), mesh);
  const Device device = devices().front();
  const Inputs inputs = upload(device, mesh, random_state<float>(mesh, 3));
  const BoundLoss bound = loss.bind(device, inputs);
  FieldBuffers other = inputs.fields;
  other["sigma"][0] = device.allocate<f32>({7, 9, 12});
  EXPECT_THROW(bound.rebind(other, {}), InputError);
  other["sigma"][0] = device.allocate<f64>({8, 9, 12});
  EXPECT_THROW(bound.rebind(other, {}), InputError);
  EXPECT_THROW(bound.rebind({{"pressure", {}}, {"x", {inputs.fields.at("sigma")[0]}}}, {}), InputError);
  EXPECT_THROW(bound.loss_into(device.allocate<f32>({2})), InputError);
  EXPECT_THROW(bound.loss_into(Buffer()), InputError);
  TrajectoryInputs levels;
  for (const char* name : {"sigma", "u"})
    for (int n = 0; n < 5; ++n) levels.fields[name].push_back(inputs.fields.at(name)[size_t(n % 3)]);
  const BoundLoss trajectory = loss.bind_trajectory(device, levels);
  EXPECT_THROW(trajectory.rebind(inputs.fields, {}), UnsupportedError);
  trajectory.run();
  EXPECT_EQ(value_of(device, trajectory), float(trajectory.loss()));
}

template <class T>
void expect_scaled(const Device& device, int64_t n, double seed, double scale) {
  std::vector<std::vector<T>> all;
  std::vector<Buffer> arrays;
  for (int k = 0; k < 10; ++k) {  // more than one launch takes
    std::vector<T> v(size_t(n + k));
    for (size_t i = 0; i < v.size(); ++i) v[i] = T(std::sin(double(i) + k));
    arrays.push_back(device.upload(v));
    all.push_back(std::move(v));
  }
  scale_gradients(device, arrays, device.upload(std::vector<T>{T(seed)}), scale);
  for (size_t k = 0; k < all.size(); ++k) {
    for (T& x : all[k]) x *= T(seed) / T(scale);
    EXPECT_EQ(device.download<T>(arrays[k]), all[k]);
  }
}

TEST(ScaleGradients, MultipliesByASeedOnTheDevice) {
  for (const Device& device : devices()) {
    expect_scaled<float>(device, 1000, 3, 1);
    expect_scaled<float>(device, 1000, 0.3, 8);
    expect_scaled<float>(device, 1000, 4, 4);
    expect_scaled<double>(device, 37, -2, 0.5);
    const Buffer seed = device.upload(std::vector<float>{2.0f});
    const std::vector<Buffer> mixed{device.allocate<f32>({4}), device.allocate<f64>({4})};
    EXPECT_THROW(scale_gradients(device, mixed, seed), InputError);
    EXPECT_THROW(scale_gradients(device, {}, Buffer()), InputError);
    EXPECT_THROW(scale_gradients(device, {}, seed, 0), InputError);
  }
}

}  // namespace
}  // namespace lockstep::pde
