// Names and options of models, steps and runs.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/schema/shell_flags.hpp"
#include "flow/closures.hpp"
#include "flow/run/fields.hpp"
#include "lockstep/flow/run.hpp"

namespace lockstep::flow {

std::span<const Choice<Integrator>> choices(Integrator) {
  using enum Integrator;
  static constexpr auto kAll = std::to_array<Choice<Integrator>>(
      {{"rk2", rk2}, {"ssprk3", ssprk3}, {"rk4", rk4}, {"ab3", ab3}, {"etdrk4", etdrk4}});
  return kAll;
}
std::span<const Choice<Dealias>> choices(Dealias) {
  using enum Dealias;
  static constexpr auto kAll = std::to_array<Choice<Dealias>>(
      {{"two-thirds", two_thirds}, {"padded", padded}, {"filter", filter}, {"none", none}});
  return kAll;
}
std::span<const Choice<Closure>> choices(Closure) {
  static constexpr auto kAll = [] {
    std::array<Choice<Closure>, kClosures.size()> all{};
    for (size_t k = 0; k < all.size(); ++k) all[k] = {kClosures[k].name, kClosures[k].closure};
    return all;
  }();
  return kAll;
}
std::span<const Choice<ClosureForm>> choices(ClosureForm) {
  static constexpr auto kAll = std::to_array<Choice<ClosureForm>>(
      {{"divergence", ClosureForm::divergence}, {"simple", ClosureForm::simple}});
  return kAll;
}
std::span<const Choice<Averaging>> choices(Averaging) {
  static constexpr auto kAll =
      std::to_array<Choice<Averaging>>({{"global", Averaging::global}, {"local", Averaging::local}});
  return kAll;
}
std::span<const Choice<Advection>> choices(Advection) {
  static constexpr auto kAll =
      std::to_array<Choice<Advection>>({{"stress", Advection::stress}, {"flux", Advection::flux}});
  return kAll;
}
std::span<const Choice<ForcingKind>> choices(ForcingKind) {
  using enum ForcingKind;
  static constexpr auto kAll = std::to_array<Choice<ForcingKind>>(
      {{"none", none}, {"kolmogorov", kolmogorov}, {"stochastic", stochastic}});
  return kAll;
}
std::span<const Choice<Initial>> choices(Initial) {
  using enum Initial;
  static constexpr auto kAll = std::to_array<Choice<Initial>>({{"mcwilliams", mcwilliams},
                                                               {"vortices", vortices},
                                                               {"noise", noise},
                                                               {"taylor-green", taylor_green},
                                                               {"shear", shear}});
  return kAll;
}
std::span<const Choice<RunOptions::Format>> choices(RunOptions::Format) {
  static constexpr auto kAll = std::to_array<Choice<RunOptions::Format>>(
      {{"nc", RunOptions::Format::nc}, {"npz", RunOptions::Format::npz}});
  return kAll;
}
std::vector<Choice<Storage>> precisions() { return {{"f32", Storage::f32}, {"f64", Storage::f64}}; }

namespace {

constexpr double kMostSteps = 0x7fffffff;  // counted by 32 bits on the device
/// The closures of a kind, each by `text`, with `last` before the last one.
std::string closures(bool (*which)(const ClosureRow&), std::string (*text)(const ClosureRow&),
                     std::string_view last) {
  std::vector<std::string> all;
  for (const ClosureRow& row : kClosures)
    if (which(row)) all.push_back(text(row));
  std::string joined;
  for (size_t k = 0; k < all.size(); ++k)
    joined += fmt::format("{}{}", k == 0 ? "" : k + 1 == all.size() ? last : ", ", all[k]);
  return joined;
}
std::string name_of(const ClosureRow& row) { return std::string(row.name); }
std::string name_with_constant(const ClosureRow& row) {
  return fmt::format("{}{}", row.name, row.has_constant() ? "[:C]" : "");
}
bool any(const ClosureRow&) { return true; }
bool with_constant(const ClosureRow& row) { return row.has_constant(); }
bool dynamic(const ClosureRow& row) { return row.dynamic; }
bool is_random(const RunOptions& o) {
  const auto initial = named_initial(o.initial);
  return initial == Initial::mcwilliams || initial == Initial::noise ||
         o.model.forcing.kind == ForcingKind::stochastic;
}

}  // namespace

void describe(Schema<BoxGrid>& s) {
  s.of("flow::BoxGrid");
  s.option("nx", &BoxGrid::nx, "points along x").at_least(4).at_most(65536).shown("NX");
  s.option("ny", &BoxGrid::ny, "points along y")
      .at_least(4)
      .at_most(65536)
      .shown("NY")
      .or_else("or the file's");
  s.option("lx", &BoxGrid::lx, "length along x").at_least(1e-100).at_most(1e100).shown("LX");
  s.option("ly", &BoxGrid::ly, "length along y").at_least(1e-100).at_most(1e100).shown("LY");
  s.group({"n", "{ny}[x{nx}]", "points along each axis, or NYxNX", "N", "N or NYxNX", true,
           "{ny} x {nx} points"});
  s.group({"box", "{lx},{ly}", "lengths of the box", "", "", true, "a box of {lx} x {ly}"});
}

void describe(Schema<Forcing>& s) {
  s.of("flow::Forcing");
  s.option("forcing", &Forcing::kind, "what drives the flow").member("kind");
  s.option("forcing_wavenumber", &Forcing::wavenumber, "its wavenumber K")
      .member("wavenumber")
      .at_least(1)
      .shown("K");
  s.option("forcing_amount", &Forcing::amount, "amplitude A of kolmogorov, energy input EPS of stochastic")
      .member("amount")
      .shown("A");
  s.option("forcing_seed", &Forcing::seed, "seed of stochastic forcing; member m uses this + m")
      .member("seed")
      .shown("S");
  s.group(
      {"forcing", "{forcing}[:{forcing_wavenumber},{forcing_amount}]",
       "kolmogorov:K,A, the force A sin(K y) along x; stochastic:K,EPS, random at wavenumber K with energy "
       "input EPS",
       "FORCING", "none, kolmogorov:K,A or stochastic:K,EPS", false, ""});
  s.needed(
      "forcing_amount", [](const Forcing& f) { return f.kind != ForcingKind::none; },
      "a forcing without its amount", "none, kolmogorov:K,A or stochastic:K,EPS");
  for (const char* name : {"forcing_wavenumber", "forcing_amount"})
    s.useless(
        name, [](const Forcing& f) { return f.kind == ForcingKind::none; }, "nothing forces the flow",
        "{forcing} kolmogorov or stochastic");
  s.useless(
      "forcing_seed", [](const Forcing& f) { return f.kind != ForcingKind::stochastic; }, "nothing is random",
      "{forcing} stochastic");
}

void describe(Schema<Model>& s) {
  s.of("flow::Model");
  s.include(&Model::grid);
  s.option("viscosity", &Model::viscosity, "viscosity").flag("nu").at_least(0).shown("V");
  s.option("closure", &Model::closure, "subgrid model");
  s.option("constant", &Model::constant, "constant of a closure that is not dynamic")
      .above(0)
      .off(0)
      .or_else(closures(
          with_constant,
          [](const ClosureRow& row) { return fmt::format("{} for {}", row.constant, row.name); }, ", "))
      .shown("C");
  s.group({"closure", "{closure}[:{constant}]",
           fmt::format(
               "{} (C: {})", closures(any, name_with_constant, ", "),
               closures(
                   with_constant, [](const ClosureRow& row) { return fmt::to_string(row.constant); }, ", ")),
           "CLOSURE", closures(any, name_with_constant, " or "), false, ""});
  s.option("closure_form", &Model::form, "curl div (2 nu_t S), or nu_t laplacian(omega)").member("form");
  s.option("averaging", &Model::averaging, "averaging of a dynamic coefficient");
  s.option("advection", &Model::advection, "computed from u v and u^2 - v^2, or from u omega and v omega");
  s.include(&Model::forcing);
  s.option("drag", &Model::drag, "linear drag").at_least(0).shown("MU");
  s.option("beta", &Model::beta, "gradient of the planetary vorticity").shown("B");
  s.option("hyper_viscosity", &Model::hyper_viscosity, "NU in -NU (-laplacian)^P omega")
      .at_least(0)
      .shown("NU");
  s.option("hyper_power", &Model::hyper_power, "its P").at_least(1).at_most(16).shown("P");
  s.option("hypo_viscosity", &Model::hypo_viscosity, "NU in -NU (-laplacian)^-P omega")
      .at_least(0)
      .shown("NU");
  s.option("hypo_power", &Model::hypo_power, "its P").at_least(1).at_most(16).shown("P");
  s.group({"hyper", "{hyper_viscosity},{hyper_power}", "hyperviscosity: -NU (-laplacian)^P omega", "", "",
           false, ""});
  s.group({"hypo", "{hypo_viscosity},{hypo_power}", "hypoviscosity: -NU (-laplacian)^-P omega", "", "", false,
           ""});
  s.option("dealias", &Model::dealias, "how aliasing of products is prevented");

  s.useless(
      "constant", [](const Model& m) { return !row_of(m.closure).has_constant(); },
      "a constant without effect", "{closure} " + closures(with_constant, name_of, " or "));
  s.useless(
      "closure_form", [](const Model& m) { return m.closure == Closure::none; }, "a form without a closure",
      "a {closure}");
  s.useless(
      "averaging", [](const Model& m) { return !is_dynamic(m.closure); },
      "averaging without a dynamic closure", "{closure} " + closures(dynamic, name_of, " or "));
  s.useless(
      "hyper_power", [](const Model& m) { return m.hyper_viscosity == 0; }, "a power without a viscosity",
      "a {hyper_viscosity} above 0");
  s.useless(
      "hypo_power", [](const Model& m) { return m.hypo_viscosity == 0; }, "a power without a viscosity",
      "a {hypo_viscosity} above 0");
}

void describe(Schema<Stepping>& s) {
  s.of("flow::Stepping");
  s.option("integrator", &Stepping::integrator, "time stepping");
  s.option("dt", &Stepping::dt, "time step").above(0).shown("DT");
  s.option("cfl", &Stepping::cfl,
           "a time step of C / (max|u| / dx + max|v| / dy), at most 0.1, instead of {dt}")
      .above(0)
      .off(0)
      .shown("C");
  s.conflict("dt", "cfl");
}

void describe(Schema<SolverOptions>& s) {
  s.of("flow::SolverOptions");
  s.include(&SolverOptions::model);
  s.include(&SolverOptions::stepping);
  s.option("precision", &SolverOptions::precision, "precision of the computation", precisions());
  s.option("members", &SolverOptions::members, "flows advanced together")
      .flag("ensemble")
      .at_least(1)
      .at_most(1 << 20)
      .shown("M");
  s.derive([](SolverOptions& o, const Given& given) {
    if (given.contains("cfl") && !given.contains("dt"))
      o.stepping.dt = std::min(0.1, 0.9 * linear_dt_limit(o.model, o.stepping.integrator));
  });
}

void describe(Schema<RunOptions>& s) {
  using Use = Option::Use;
  s.of("flow::RunOptions");
  s.include_base<SolverOptions>({"forcing_seed"});
  s.option(
       "initial", &RunOptions::initial,
       "mcwilliams, vortices, noise, taylor-green, shear, or a file: .npz or .nc with omega, .npy, .mat with "
       "Omega")
      .flag("ic")
      .file(Use::input)
      .shown("NAME|FILE");
  s.option("seed", &RunOptions::seed,
           "seed of random fields and forcing; member m of an ensemble uses seed + m")
      .shown("S");
  s.option("forcing_seed", &RunOptions::forcing_seed, "seed of stochastic forcing, instead of {seed}")
      .shown("S");
  s.option("steps", &RunOptions::steps, "number of steps")
      .at_least(1)
      .at_most(kMostSteps)
      .effect(Effect::extent);
  s.option("time", &RunOptions::time,
           "final time, instead of {steps}; a fixed time step is reduced to meet it")
      .above(0)
      .off(0)
      .shown("T")
      .effect(Effect::extent);
  s.option("save_every", &RunOptions::save_every, "steps between saved fields")
      .at_least(1)
      .at_most(kMostSteps)
      .off(0)
      .or_else("first and last only")
      .effect(Effect::extent);
  s.option("history_every", &RunOptions::history_every,
           "steps between rows of energy, enstrophy, speeds and budgets in the result")
      .at_least(1)
      .at_most(kMostSteps)
      .off(0)
      .or_else("none");
  s.option("pictures", &RunOptions::pictures, "a PNG of each saved field, and of the last spectra")
      .effect(Effect::display);
  s.option("video", &RunOptions::video, "a film of the saved fields")
      .file(Use::output_file)
      .shown("FILE.mp4")
      .effect(Effect::display);
  s.option(
       "checkpoint", &RunOptions::checkpoint,
       "file written with each saved field; a run resumes from an existing one with bit-identical results")
      .file(Use::output_file)
      .shown("FILE")
      .effect(Effect::display);
  s.option("format", &RunOptions::format, "format of the result: run.nc or run.npz").effect(Effect::display);
  s.option("out", &RunOptions::folder, "folder for the results, created if missing")
      .member("folder")
      .file(Use::output_folder)
      .shown("DIR")
      .required()
      .effect(Effect::display);
  add_shell_flag(s, "watch", "energy, enstrophy and speed on stderr while it runs");
  add_shell_flag(s, "memory", "only print the device memory that the run needs");
  s.conflict("watch", "memory");
  s.conflict("steps", "time");
  s.useless(
      "seed", [](const RunOptions& o) { return !is_random(o); }, "nothing is random",
      "a random {initial}, or {forcing} stochastic");
  s.derive([](RunOptions& o, const Given& given) { o.grid_given = given.contains("ny"); });
}

}  // namespace lockstep::flow
