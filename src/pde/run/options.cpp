// Names and options of pde's commands.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cmath>
#include <set>

#include "core/schema/assignments.hpp"
#include "lockstep/pde/commands.hpp"

namespace lockstep::pde {

std::span<const Choice<Path>> choices(Path) {
  static constexpr auto kAll = std::to_array<Choice<Path>>({{"auto", Path::automatic},
                                                            {"fused", Path::fused},
                                                            {"two-sweep", Path::two_sweep},
                                                            {"two-kernel", Path::two_kernel}});
  return kAll;
}
std::span<const Choice<Gradients>> choices(Gradients) {
  static constexpr auto kAll = std::to_array<Choice<Gradients>>(
      {{"all", Gradients::all}, {"t1", Gradients::t1}, {"t1t2", Gradients::t1t2}, {"none", Gradients::none}});
  return kAll;
}

namespace {

using Use = Option::Use;
using Cells = std::array<double, 3>;

std::string print_cells(const Cells& v) { return fmt::format("{}", fmt::join(v, ",")); }
Cells read_cells(const std::string& text) {
  const std::vector<std::string> parts = parts_in(text);
  Cells v{};
  if (parts.size() != v.size()) throw bad_text(fmt::format("{} numbers", parts.size()), "3");
  for (size_t axis = 0; axis < v.size(); ++axis) {
    v[axis] = number_in(parts[axis]);
    if (!std::isfinite(v[axis]) || !(v[axis] > 0))
      throw bad_text(fmt::format("spacing {}", v[axis]), "three numbers above 0");
  }
  return v;
}

constexpr auto kBoundaryForm = "a rule, or rules of axes or sides";
std::string print_boundary(const BoundaryConditions& b) { return b.text(); }
BoundaryConditions read_boundary(const std::string& text) { return BoundaryConditions::parse(text); }

std::vector<std::string> read_boundaries(const std::string& text) {
  std::vector<std::string> all;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(';', at), text.size());
    all.push_back(text.substr(at, end - at));
    BoundaryConditions::parse(all.back());
    at = end + 1;
  }
  return all;
}
std::string print_boundaries(const std::vector<std::string>& all) {
  return fmt::format("{}", fmt::join(all, ";"));
}

/// Terms without a number, and those with one.
struct Switch {
  const char* name;
  bool TransportOptions::* on;
};
constexpr Switch kSwitches[] = {
    {"transport", &TransportOptions::sigma_transport}, {"compression", &TransportOptions::sigma_divergence},
    {"momentum", &TransportOptions::momentum},         {"upwind", &TransportOptions::upwind},
    {"pressure", &TransportOptions::pressure},         {"forcing", &TransportOptions::forcing}};
struct Amount {
  const char* name;
  double TransportOptions::* value;
};
constexpr Amount kAmounts[] = {{"viscosity", &TransportOptions::viscosity},
                               {"divergence", &TransportOptions::weight_divergence},
                               {"speed", &TransportOptions::weight_speed}};
constexpr auto kTerms =
    "all, transport, compression, momentum, upwind, viscosity:NU, pressure, forcing, divergence:W, speed:W";

std::string print_terms(const TransportOptions& t) {
  std::vector<std::string> parts;
  const bool all = t.sigma_transport && t.sigma_divergence && t.momentum;
  if (all) parts.emplace_back("all");
  for (const Switch& s : kSwitches) {
    const bool in_all = s.on == &TransportOptions::sigma_transport ||
                        s.on == &TransportOptions::sigma_divergence || s.on == &TransportOptions::momentum;
    if (t.*s.on && !(all && in_all)) parts.emplace_back(s.name);
  }
  for (const Amount& a : kAmounts)
    if (t.*a.value != 0) parts.push_back(fmt::format("{}:{}", a.name, t.*a.value));
  return fmt::format("{}", fmt::join(parts, ","));
}

void add_term(TransportOptions& t, const std::string& term) {
  const size_t colon = term.find(':');
  const std::string name = term.substr(0, colon);
  if (name == "all" && colon == std::string::npos) {
    t.sigma_transport = t.sigma_divergence = t.momentum = true;
    return;
  }
  for (const Switch& s : kSwitches) {
    if (name != s.name) continue;
    if (colon != std::string::npos)
      throw bad_text(fmt::format("term '{}'", term), fmt::format("{} without a number", name));
    t.*s.on = true;
    return;
  }
  for (const Amount& a : kAmounts) {
    if (name != a.name) continue;
    const double value = colon == std::string::npos ? NAN : number_in(term.substr(colon + 1));
    if (!std::isfinite(value) || value < 0)
      throw bad_text(fmt::format("term '{}'", term), fmt::format("{}:NUMBER of 0 or more", name));
    t.*a.value = value;
    return;
  }
  throw bad_text(fmt::format("unknown term '{}'", name), "");
}

void read_terms(TransportOptions& to, const std::string& text) {
  TransportOptions t;
  t.weight_sigma = to.weight_sigma, t.weight_u = to.weight_u;
  t.sigma_transport = t.sigma_divergence = t.momentum = false;
  std::set<std::string> seen;
  for (const std::string& term : parts_in(text)) {
    const std::string name = term.substr(0, term.find(':'));
    if (!seen.insert(name).second) throw bad_text(fmt::format("term '{}' twice", name), "each term once");
    add_term(t, term);
  }
  if (t.sigma_divergence && !t.sigma_transport)
    throw bad_text("compression without transport", "transport,compression");
  if (!t.momentum && (t.pressure || t.forcing || t.viscosity != 0))
    throw bad_text("viscosity, pressure or forcing without momentum", "momentum and its parts");
  if (!t.sigma_transport && !t.momentum && t.weight_divergence == 0 && t.weight_speed == 0)
    throw bad_text("no term of the loss", "transport, momentum, divergence:W or speed:W");
  to = t;
}

/// The boundary of one field, in the map of those that differ.
void add_field_boundary(Schema<RunOptions>& s, const std::string& field, const char* what) {
  s.text(
       "boundary_" + field, fmt::format("boundary of {} instead of {{boundary}}", what), kBoundaryForm,
       [field](const RunOptions& o) {
         const auto found = o.boundaries.find(field);
         return found == o.boundaries.end() ? std::string() : found->second.text();
       },
       [field](RunOptions& o, const std::string& text) {
         o.boundaries.insert_or_assign(field, BoundaryConditions::parse(text));
       })
      .member("boundaries")
      .shown("SPEC")
      .example("clamp");
}

template <class Run>
void add_input(Schema<Run>& s) {
  s.option("input", &Run::input, "arrays of the fields (see lockstep pde --help)")
      .flag("IN.npz")
      .file(Use::input)
      .positional()
      .required();
}
template <class Run>
void add_gradients_file(Schema<Run>& s) {
  s.option("out", &Run::out, "file for the gradients (.npz)")
      .file(Use::output_file, {".npz"})
      .shown("FILE")
      .effect(Effect::display);
  s.useless(
      "out", [](const Run& o) { return o.run.gradients == Gradients::none; },
      "nothing to write with {gradients} none", "other {gradients}, or no {out}");
}
bool has_kernel(const StudyOptions& o, std::initializer_list<std::string_view> names) {
  for (const std::string& kernel : o.kernels)
    if (std::find(names.begin(), names.end(), kernel) != names.end()) return true;
  return false;
}
template <class Options>
OptionBuilder add_table(Schema<Options>& s) {
  return s.option("csv", &Options::csv, "the table as CSV")
      .file(Use::output_file, {".csv", ".txt"})
      .shown("FILE")
      .effect(Effect::display);
}

}  // namespace

void describe(Schema<TransportOptions>& s) {
  s.of("pde::TransportOptions");
  s.option("weight_sigma", &TransportOptions::weight_sigma, "weight of the sigma term")
      .at_least(0)
      .shown("WS");
  s.option("weight_u", &TransportOptions::weight_u, "weight of the u term").at_least(0).shown("WU");
  s.group({"weights", "{weight_sigma},{weight_u}", "weights of the sigma and the u term", "", "", false, ""});
  s.text("terms",
         "all (transport, compression, momentum), or a list of these and upwind, viscosity:NU, pressure, "
         "forcing, divergence:W, speed:W",
         kTerms, &print_terms, &read_terms)
      .shown("LIST")
      .example("momentum,viscosity:0.5");
}

void describe(Schema<RunOptions>& s) {
  s.of("pde::RunOptions");
  s.text("spacing", &RunOptions::spacing, "cell sizes along x, y, z", "three numbers above 0", &print_cells,
         &read_cells)
      .shown("HX,HY,HZ")
      .required()
      .parts()
      .example("1,2,0.5");
  s.option("dt", &RunOptions::dt, "time between levels").above(0).at_most(1e300).shown("DT").required();
  s.text("boundary", &RunOptions::boundary, "one rule, or x=clamp,y=no_slip,…, or x-=dirichlet_face:1,…",
         kBoundaryForm, &print_boundary, &read_boundary)
      .shown("SPEC")
      .example("clamp");
  add_field_boundary(s, "sigma", "sigma");
  add_field_boundary(s, "ux", "the x component of u");
  add_field_boundary(s, "uy", "the y component of u");
  add_field_boundary(s, "uz", "the z component of u");
  add_field_boundary(s, "p", "p");
  s.text("parameters", &RunOptions::parameters,
         "values of named boundaries, lid=1,… for y+=dirichlet_face:@lid; other names are arrays of IN.npz: "
         "a number (), or a profile over the boundary",
         "NAME=NUMBER between commas", &print_assignments, &read_assignments)
      .shown("LIST")
      .parts()
      .example("lid=1");
  s.option("order", &RunOptions::order, "order of central differences",
           {{"2", 2}, {"4", 4}, {"6", 6}, {"8", 8}});
  s.include(&RunOptions::terms);
  s.text(
       "kernel", "one path, or auto", "",
       [](const RunOptions& o) {
         return o.reference ? std::string("reference") : std::string(name_among(choices(o.path), o.path));
       },
       [](RunOptions& o, const std::string& text) {
         o.reference = text == "reference";
         o.path = Path::automatic;
         for (const Choice<Path>& c : choices(Path{}))
           if (c.name == text) o.path = c.value;
       })
      .member("path")
      .among({"auto", "fused", "two-sweep", "two-kernel", "reference"})
      .effect(Effect::speed);
  s.option("gradients", &RunOptions::gradients, "levels whose gradients are computed");
  s.useless(
      "boundary_p", [](const RunOptions& o) { return !o.terms.pressure; }, "a boundary of p without its term",
      "{terms} with pressure");
  s.useless(
      "boundary_sigma", [](const RunOptions& o) { return !o.terms.sigma_transport; },
      "a boundary of sigma without its term", "{terms} with transport");
}

void describe(Schema<LossRunOptions>& s) {
  s.of("pde::LossRunOptions");
  add_input(s);
  s.include(&LossRunOptions::run);
  add_gradients_file(s);
  s.option("residuals", &LossRunOptions::residuals, "file for the residual fields (.npz)")
      .file(Use::output_file, {".npz"})
      .shown("FILE")
      .effect(Effect::display);
}

void describe(Schema<TrajectoryRunOptions>& s) {
  s.of("pde::TrajectoryRunOptions");
  add_input(s);
  s.include(&TrajectoryRunOptions::run);
  s.change("kernel").among({"auto", "fused", "two-kernel"});
  s.change("gradients").among({"all", "none"});
  add_gradients_file(s);
}

void describe(Schema<CheckRunOptions>& s) {
  s.of("pde::CheckRunOptions");
  add_input(s);
  s.include(&CheckRunOptions::run, {"gradients"});
  s.change("kernel").among({"auto", "fused", "two-sweep", "two-kernel"});
  s.option("seed", &CheckRunOptions::seed, "seed of the random directions").at_least(0).at_most(0xffffffff);
}

void describe(Schema<ConvergenceOptions>& s) {
  s.of("pde::ConvergenceOptions");
  s.option("sizes", &ConvergenceOptions::sizes, "cells along each axis")
      .at_least(10)
      .at_most(512)
      .shown("N,N…");
  s.option("out", &ConvergenceOptions::plot, "file for the plot (.svg, .png)")
      .member("plot")
      .file(Use::output_file, {".png", ".svg"})
      .shown("FILE")
      .effect(Effect::display);
  add_table(s);
}

void describe(Schema<StudyOptions>& s) {
  s.of("pde::StudyOptions");
  s.option("sizes", &StudyOptions::sizes, "cells along each axis")
      .at_least(4)
      .at_most(1024)
      .or_else("by the device")
      .shown("N,N…");
  s.text("boundaries", &StudyOptions::boundaries, "boundary specifications between semicolons",
         "SPEC, or several with semicolons between", &print_boundaries, &read_boundaries)
      .shown("SPEC;SPEC…")
      .parts(";")
      .example("clamp;periodic");
  s.option("kernels", &StudyOptions::kernels, "two-kernel, fused, two-sweep, trajectory (time of a level)",
           {{"two-kernel", "two-kernel"},
            {"fused", "fused"},
            {"two-sweep", "two-sweep"},
            {"trajectory", "trajectory"}})
      .shown("K,K…");
  s.option("orders", &StudyOptions::orders, "2, 4, 6, 8", {{"2", 2}, {"4", 4}, {"6", 6}, {"8", 8}})
      .shown("N,N…");
  s.option("gradients", &StudyOptions::gradients, "all, t1, t1t2, none",
           {{"all", "all"}, {"t1", "t1"}, {"t1t2", "t1t2"}, {"none", "none"}})
      .shown("G,G…");
  s.option("tiles", &StudyOptions::tiles,
           "tiles of the fused kernel and the two sweeps: lanes along x and y, rows per lane, planes per "
           "chunk, groups per multiprocessor, residual levels per sweep of a trajectory")
      .or_else("by the device")
      .shown("XxYxROWS[xPLANES[xGROUPS[xLEVELS]]],…");
  s.option("system", &StudyOptions::flow, "flow: incompressible", {{"transport", false}, {"flow", true}})
      .member("flow");
  s.option("graph", &StudyOptions::graph, "time the replay of a recording");
  s.option("levels", &StudyOptions::levels, "levels of a trajectory").at_least(3).at_most(1000).shown("T");
  s.option("iterations", &StudyOptions::iterations, "runs per row")
      .at_least(1)
      .at_most(10000)
      .off(0)
      .or_else("half a second, 5 to 50");
  add_table(s);
  s.useless(
      "levels", [](const StudyOptions& o) { return !has_kernel(o, {"trajectory"}); }, "of trajectories",
      "{kernels} with trajectory");
  s.useless(
      "tiles", [](const StudyOptions& o) { return !has_kernel(o, {"fused", "two-sweep", "trajectory"}); },
      "nothing has tiles", "{kernels} fused, two-sweep or trajectory");
}

void describe(Schema<TrainOptions>& s) {
  s.of("pde::TrainOptions");
  s.option("levels", &TrainOptions::levels, "time levels of a window")
      .at_least(4)
      .at_most(64)
      .off(0)
      .or_else("8; none for cavity and channel");
  s.option("windows", &TrainOptions::windows,
           "consecutive windows, or, for cavity and channel, grids, each twice as fine")
      .at_least(1)
      .at_most(100000)
      .off(0)
      .or_else("by the example");
  s.option("iterations", &TrainOptions::iterations,
           "largest number of L-BFGS steps per window; if a window needs more, the exit code is 1")
      .at_least(1)
      .at_most(100000)
      .off(0)
      .or_else("by the example");
  s.option("tolerance", &TrainOptions::tolerance,
           "loss at which a window has converged, as a share of the loss at rest")
      .above(0)
      .off(0)
      .or_else("by the example")
      .in_shell(false);
}

void describe(Schema<ExampleOptions>& s) {
  s.of("pde::ExampleOptions");
  s.option("name", &ExampleOptions::name, fmt::format("{}", fmt::join(example_names(), ", ")))
      .flag("NAME")
      .positional()
      .required();
  s.option("out", &ExampleOptions::folder, "folder for the fields (.npy) and the picture (.png)")
      .member("folder")
      .file(Use::output_folder)
      .shown("DIR")
      .required()
      .effect(Effect::display);
  s.option("cells", &ExampleOptions::cells, "cells along each axis")
      .at_least(8)
      .at_most(4096)
      .off(0)
      .or_else("by the example");
  s.text("parameters", &ExampleOptions::parameters,
         "numbers instead of the example's, nu=0.0025,lid=1; an unknown name lists them",
         "NAME=NUMBER between commas", &print_assignments, &read_assignments)
      .shown("LIST")
      .parts()
      .example("nu=0.0025");
  s.include(&ExampleOptions::train);
}

std::vector<NamedSchema> schemas() {
  return {
      {"pde.loss", &schema_of<LossRunOptions>()},    {"pde.trajectory", &schema_of<TrajectoryRunOptions>()},
      {"pde.check", &schema_of<CheckRunOptions>()},  {"pde.study", &schema_of<StudyOptions>()},
      {"pde.example", &schema_of<ExampleOptions>()}, {"pde.convergence", &schema_of<ConvergenceOptions>()}};
}

}  // namespace lockstep::pde
