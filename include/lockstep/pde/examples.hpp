// Equations that the library contains as examples, written with pde::System like those of a user.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/context.hpp"
#include "lockstep/pde.hpp"

namespace lockstep::pde {

/// How an equation advances a field f from its time derivative r. forward: f(n+1) = f(n) + dt r. central:
/// f(n+1) = f(n-1) + 2 dt r. second: f(n+1) = 2 f(n) - f(n-1) + dt^2 r. diagnostic: the field has no time derivative and
/// follows from the others at each level, such as a pressure. constant: the field keeps its initial value. steady: the
/// problem does not depend on time; then all fields are steady.
enum class Advance { forward, central, second, diagnostic, constant, steady };

/// An equation with all data of a problem on a grid.
struct Example {
  std::string name, description;
  System system;
  Mesh mesh;  // with `cells` cells along its axes
  std::map<std::string, double> parameters;
  std::vector<std::pair<std::string, Advance>> fields;  // in the order of the system
  std::string shown;                                    // field whose first component is drawn
  /// Default number of windows of 8 levels. For steady fields: number of grids, each twice as fine as the previous one.
  int windows = 12;
  /// Initial values of a field at a point of the unit box.
  std::function<double(const std::string& field, int component, double x, double y, double z)> start;
  bool steady() const { return !fields.empty() && fields[0].second == Advance::steady; }
  double tolerance = 1e-6;  // a window has converged when its loss is this share of that of the initial state
  int iterations = 500;     // maximum of L-BFGS iterations per window
  std::map<std::string, double> units;  // scales of the unknowns of steady fields, by name; missing: 1
};

/// heat, advection_diffusion, burgers, wave, navier_stokes, maxwell, gray_scott, shallow_water, cavity, channel.
std::vector<std::string> example_names();
/// `cells`: number of cells along each axis; 0: the default of the example. Throws InputError for an unknown name.
Example make_example(std::string_view name, int64_t cells = 0);

/// How the fields of an example are computed: window by window, each minimised over all its levels except the first two.
struct TrainOptions {
  int levels = 0;        // of a window, 4 or more; 0: 8; not used for steady fields
  int windows = 0;       // windows, or grids for steady fields; 0: the default of the example
  int iterations = 0;    // maximum of L-BFGS iterations per window; 0: the default of the example
  double tolerance = 0;  // 0: the default of the example
};
struct TrainResult {
  std::vector<double> losses_first,
      losses_last;  // of each window: with all time derivatives 0, and at the end
  int iterations = 0;
  int windows = 0, converged = 0;
  std::map<std::string, std::vector<double>> fields;  // at the end, component by component
};
/// Solves an example by minimising the trajectory loss in f64. The unknowns of a window are the time derivatives of its
/// fields, from which the levels are computed, and the diagnostic fields. They are changed by L-BFGS steps on the
/// gradients of the loss only. `progress` is called after each window.
TrainResult train(const Device& device, const Example& example, const TrainOptions& options = {},
                  const std::function<void()>& progress = {});

struct ExampleOptions {
  std::string name;
  int64_t cells = 0;                         // along each axis; 0: the default of the example
  std::map<std::string, double> parameters;  // instead of those of the example
  std::filesystem::path folder;  // created if missing; the fields as NAME.npy, a picture as EXAMPLE.png
  TrainOptions train;
  std::function<void(int64_t done, int64_t windows)> progress;
};
struct ExampleResult {
  std::string name, description;
  std::array<int64_t, 2> cells{};  // ny, nx
  int levels = 0;
  TrainResult train;  // a window did not converge: train.converged < train.windows
  std::filesystem::path picture;
  std::vector<StageRecord> host_stages;
  bool converged() const { return train.converged == train.windows; }
};
/// Solves an example and writes its fields and its picture. Stage "pde.example".
ExampleResult run_example(Context& context, const ExampleOptions& options);
/// Members of the program's JSON, in one object.
std::string to_json(const ExampleResult& result);

}  // namespace lockstep::pde
