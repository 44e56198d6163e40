// Shipped equations, written with pde::System as a user would.
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

/// How an equation advances a field f by its time derivative r: f(n+1) = f(n) + dt r, f(n-1) + 2 dt r, or
/// 2 f(n) - f(n-1) + dt^2 r. A diagnostic field has no derivative and follows from the others at each level (a
/// pressure); a constant one stays as it starts. An example whose fields are all steady has no time.
enum class Advance { forward, central, second, diagnostic, constant, steady };

/// An equation with all data of a problem on a grid.
struct Example {
  std::string name, description;
  System system;
  Mesh mesh;  // with `cells` cells along its axes
  std::map<std::string, double> parameters;
  std::vector<std::pair<std::string, Advance>> fields;  // in the order of the system
  std::string shown;                                    // field whose first component is drawn
  int windows =
      12;  // default number of windows of 8 levels; for steady fields the number of grids, each twice as fine
  /// Initial values of a field at a point of the unit box.
  std::function<double(const std::string& field, int component, double x, double y, double z)> start;
  bool steady() const { return !fields.empty() && fields[0].second == Advance::steady; }
  double tolerance = 1e-6;  // a window has converged when its loss is this share of that of the initial state
  int iterations = 500;     // maximum of L-BFGS iterations per window
  std::map<std::string, double> units;  // of the box in which steady fields are searched, 1 if none is given
};

/// heat, advection_diffusion, burgers, wave, navier_stokes, maxwell, gray_scott, shallow_water, cavity, channel.
std::vector<std::string> example_names();
/// Throws InputError for an unknown name. `cells` along each axis; 0: the default of the example.
Example make_example(std::string_view name, int64_t cells = 0);

/// How an example's fields are found: windows of levels, each minimised over all levels but its first two.
struct TrainOptions {
  int levels = 0;        // of a window, 4 or more; 0: 8, and none where there is no time
  int windows = 0;       // 0: the default of the example; grids for steady fields
  int iterations = 0;    // maximum of L-BFGS iterations per window; 0: the default of the example
  double tolerance = 0;  // 0: the default of the example
};
struct TrainResult {
  std::vector<double> losses_first, losses_last;  // of each window, with all rates 0 and at the end
  int iterations = 0;
  int windows = 0, converged = 0;
  std::map<std::string, std::vector<double>> fields;  // at the end, component by component
};
/// Solves an example by minimising the trajectory loss in f64. The unknowns of a window are the rates of its
/// fields, from which their levels follow, and the diagnostic fields themselves; only gradients of the loss
/// move them. `progress` is called after each window.
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
