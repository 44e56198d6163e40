// Equations that ship with Lockstep, written with pde::System as a user would.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/pde.hpp"

namespace lockstep::pde {

/// An equation with everything that makes it a problem on a grid.
struct Example {
  std::string name, description;
  System system;
  Mesh mesh;  // of `cells` cells along its axes
  std::map<std::string, double> parameters;
  std::vector<std::string> fields;  // in the order of the system
  std::string shown;                // the field whose first component a picture shows
  /// Start values of a field at a point of the unit box.
  std::function<double(const std::string& field, int component, double x, double y, double z)> start;
  /// Fields that have no time derivative: they stay as they start.
  std::vector<std::string> constant;
};

/// heat, advection_diffusion, burgers, wave, navier_stokes, maxwell, gray_scott, shallow_water.
std::vector<std::string> example_names();
/// Throws InputError for an unknown name. `cells` along each axis; 0: the example's own number.
Example make_example(std::string_view name, int64_t cells = 0);

/// How an example's fields are found: windows of levels, each minimised over all levels but its first two.
struct TrainOptions {
  int levels = 8;  // of a window
  int windows = 12;
  int iterations = 80;      // of L-BFGS for a window, at most
  double tolerance = 1e-8;  // a window is done when its loss has fallen by this factor
};
struct TrainResult {
  std::vector<double> losses_first, losses_last;  // of each window, before and after
  int iterations = 0;
  std::map<std::string, std::vector<double>> fields;  // at the end, component by component
};
/// Solves an example by minimising the trajectory loss in f64: the unknown levels start as copies of the last
/// known one, and only the gradients of the loss move them. `progress` is called after each window.
TrainResult train(const Device& device, const Example& example, const TrainOptions& options = {},
                  const std::function<void()>& progress = {});

}  // namespace lockstep::pde
