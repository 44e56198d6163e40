// Turbulence of a page: a solver that is advanced, stirred and given other settings while the page shows it.
#include <cmath>
#include <cstring>
#include <optional>

#include "arrays.hpp"
#include "calls.hpp"
#include "lockstep/flow.hpp"
#include "objects.hpp"
#include "options.hpp"
#include "page_context.hpp"

namespace lockstep::web {

namespace {

using flow::Solver;
using SolverState = std::vector<std::pair<std::string, Array>>;
constexpr int64_t kMostPoints = 2048;  // along an axis

/// Settings of a flow and the field that it begins with.
struct FlowOptions : flow::SolverOptions {
  flow::Initial initial = flow::Initial::mcwilliams;
  uint64_t seed = 0;
};
void describe(Schema<FlowOptions>& s) {
  s.of("flow");
  s.include_base<flow::SolverOptions>({"members"});
  s.option("initial", &FlowOptions::initial, "the field at the start");
  s.option("seed", &FlowOptions::seed, "of random fields");
}

/// A push along a line of the box: places and steps as shares of its lengths, the speed of the push in units of the box.
struct Stroke {
  double x, y, dx, dy;
  static constexpr double kRadius = 0.03, kReach = 6;  // kReach radii away it is below f32's rounding of 1
};

struct Simulation {
  FlowOptions options;
  PageContext context;
  std::unique_ptr<Solver> solver;  // on `device`, at `state` between stages
  Device device;
  SolverState state;

  Simulation(const Json& request, FlowOptions given) : options(std::move(given)), context(request) {}
  /// A stage that begins with the state, on the device or, once a stage fell back, on the CPU.
  void stage(const char* name, const std::function<void(Solver&)>& work) {
    const auto with_solver = [&](const Device& on) {
      try {
        if (!solver || !device.same_as(on)) {
          solver = std::make_unique<Solver>(on, options.model, options.stepping, options.precision);
          device = on;
          if (!state.empty()) solver->set_state(state);
        }
        work(*solver);
      } catch (...) {  // what a stage left half-done is nobody's state
        solver.reset();
        throw;
      }
    };
    if (context->fallbacks().empty())
      context->run_stage(name, with_solver);
    else
      context->run_stage_on_cpu(name, with_solver);
  }
  Json status() {
    Json answer = context.status();
    answer["device"] = device.info().description;
    answer["dt"] = options.stepping.dt;
    return answer;
  }
};

Handles<std::unique_ptr<Simulation>>& simulations() {
  static Handles<std::unique_ptr<Simulation>> all{"flow"};
  return all;
}
Simulation& simulation(const Json& request) { return *simulations().at(member(request, "flow")); }

FlowOptions flow_options(const Json& request) {
  auto options = given_options<FlowOptions>(request, "lockstep.flow");
  const flow::BoxGrid& grid = options.model.grid;
  if (std::max(grid.nx, grid.ny) > kMostPoints)
    throw InputError(std::to_string(grid.ny) + " x " + std::to_string(grid.nx) + " points", "lockstep.flow",
                     "at most " + std::to_string(kMostPoints) + " along each axis on a page");
  const Json& given = member(request, "options");
  if (const auto own = given.find("forcing_seed"); own == given.end() || own->is_null())
    options.model.forcing.seed = options.seed;
  flow::check(options.model, options.stepping);
  return options;
}

Json make_flow(const Json& request) {
  auto made = std::make_unique<Simulation>(request, flow_options(request));
  Simulation& s = *made;
  const Array field = request.contains("field")
                          ? arrays().at(member(request, "field"))
                          : flow::initial_field(s.options.model.grid, s.options.initial, s.options.seed);
  s.stage("flow.initial", [&](Solver& solver) {
    solver.set_vorticity(field);
    s.state = solver.state();
  });
  Json answer = s.status();
  answer["handle"] = simulations().add(std::move(made));
  return answer;
}

/// Other settings from here on; the grid and the precision stay.
Json change_flow(const Json& request) {
  Simulation& s = simulation(request);
  const FlowOptions options = flow_options(request);
  const flow::BoxGrid &now = s.options.model.grid, &next = options.model.grid;
  if (now.nx != next.nx || now.ny != next.ny || now.lx != next.lx || now.ly != next.ly ||
      s.options.precision != options.precision || s.options.model.dealias != options.model.dealias ||
      s.options.stepping.integrator != options.stepping.integrator)
    throw InputError("another grid, box, precision, integrator or dealiasing", "flow.change",
                     "those of this flow, or a new one");
  const FlowOptions before = std::exchange(s.options, options);
  try {
    s.solver.reset();
    s.stage("flow.initial", [&](Solver& solver) { s.state = solver.state(); });
  } catch (...) {
    s.options = before;
    throw;
  }
  return s.status();
}

std::vector<Stroke> strokes_of(const Json& request) {
  constexpr size_t kMost = 1000;
  const Json& given = member(request, "strokes");
  if (!given.is_array() || given.size() > kMost)
    throw InputError("strokes", "flow.advance", "an array of at most " + std::to_string(kMost));
  std::vector<Stroke> strokes;
  for (const Json& stroke : given) {
    if (!stroke.is_array() || stroke.size() != 4)
      throw InputError("a stroke", "flow.advance", "four numbers: x, y, dx, dy");
    double v[4];
    for (size_t k = 0; k < 4; ++k) {
      if (!stroke[k].is_number() || !(std::abs(stroke[k].get<double>()) <= 100))
        throw InputError("a stroke", "flow.advance", "numbers from -100 to 100");
      v[k] = stroke[k].get<double>();
    }
    strokes.push_back({v[0], v[1], v[2], v[3]});
  }
  return strokes;
}

/// The vorticity of a velocity (dx, dy) exp(-r^2 / 2 s^2) around each stroke's place, on the periodic box.
void add_strokes(std::vector<double>& w, const flow::BoxGrid& grid, const std::vector<Stroke>& strokes) {
  const double s = Stroke::kRadius * std::min(grid.lx, grid.ly), reach = Stroke::kReach * s;
  for (const Stroke& stroke : strokes) {
    const double x = stroke.x * grid.lx, y = stroke.y * grid.ly;
    const auto first_i = int64_t(std::ceil((x - reach) / grid.dx())),
               last_i = int64_t(std::floor((x + reach) / grid.dx())),
               first_j = int64_t(std::ceil((y - reach) / grid.dy())),
               last_j = int64_t(std::floor((y + reach) / grid.dy()));
    for (int64_t j = first_j; j <= last_j; ++j)
      for (int64_t i = first_i; i <= last_i; ++i) {
        const double rx = double(i) * grid.dx() - x, ry = double(j) * grid.dy() - y;
        const int64_t row = (j % grid.ny + grid.ny) % grid.ny, col = (i % grid.nx + grid.nx) % grid.nx;
        w[size_t(row * grid.nx + col)] +=
            (stroke.dx * ry - stroke.dy * rx) / (s * s) * std::exp(-(rx * rx + ry * ry) / (2 * s * s));
      }
  }
}

/// Adds to the vorticity; time, steps and random forcing continue.
void stir(Solver& solver, const flow::BoxGrid& grid, const std::vector<Stroke>& strokes) {
  if (strokes.empty()) return;
  const SolverState before = solver.state();
  const Array now = solver.vorticity().to(Storage::f64).packed();
  const std::span<const double> field = now.as<double>();
  std::vector<double> w(field.begin(), field.end());
  add_strokes(w, grid, strokes);
  solver.set_vorticity(Array::of(std::move(w), {grid.ny, grid.nx}));
  SolverState stirred = solver.state();
  for (auto& [name, array] : stirred)
    for (const auto& [old_name, old] : before)
      if (name == old_name && (name == "clock" || name == "status")) array = old;
  solver.set_state(stirred);
}

Json advance_flow(const Json& request) {
  Simulation& s = simulation(request);
  const int64_t steps = whole(request, "steps", 0, 1'000'000);
  const std::vector<Stroke> strokes = strokes_of(request);
  SolverState next;
  Json answer;
  s.stage("flow.steps", [&](Solver& solver) {
    stir(solver, s.options.model.grid, strokes);
    solver.advance(steps);
    if (const auto blown = solver.blown_up(); !blown.empty())
      throw InputError("the flow blew up: a speed is not finite or beyond twice the limit of stability",
                       "flow.advance", "a smaller step, more viscosity or a closure");
    next = solver.state();
    const flow::Budget budget = solver.budget().front();
    answer = {{"time", solver.times().front()},
              {"steps", solver.steps().front()},
              {"energy", budget.energy},
              {"enstrophy", budget.enstrophy}};
  });
  s.state = std::move(next);
  answer.update(s.status());
  return answer;
}

/// f32 (ny, nx) into the page's memory.
Json vorticity(const Json& request) {
  Simulation& s = simulation(request);
  char* const to = page_memory(request, 4 * s.options.model.grid.points());
  s.stage("flow.picture", [&](Solver& solver) {
    const Array field = solver.vorticity().to(Storage::f32).packed();
    std::memcpy(to, field.data(), size_t(field.bytes()));
  });
  return nullptr;
}

Json spectrum(const Json& request) {
  Simulation& s = simulation(request);
  std::vector<double> energy;
  s.stage("flow.diagnostics", [&](Solver& solver) { energy = solver.spectra().front().energy; });
  return {{"energy", energy}};
}

}  // namespace

void add_turbulence_calls(Calls& calls) {
  calls["flow"] = make_flow;
  calls["change_flow"] = change_flow;
  calls["free_flow"] = [](const Json& r) { return simulations().remove(member(r, "flow")), Json(); };
  calls["advance_flow"] = advance_flow;
  calls["flow_vorticity"] = vorticity;
  calls["flow_spectrum"] = spectrum;
}

}  // namespace lockstep::web
