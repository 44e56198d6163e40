// Cases of the solver: right-hand sides and steps against the plain reference.
#include "flow/codec/cases.hpp"

#include <algorithm>
#include <cmath>
#include <memory>

#include "flow/reference.hpp"
#include "flow/surrogate/cases.hpp"
#include "lockstep/flow.hpp"
#include "lockstep/verify.hpp"

namespace lockstep {

namespace {

using namespace flow;

constexpr int64_t kCaseSteps = 3;    // compared with the reference
constexpr int64_t kBenchSteps = 10;  // of one run
constexpr int64_t kMostRandom = 2048 * 2048;

struct FlowCase {
  std::string name;
  Model model;
  Stepping stepping;
  bool step = true;     // steps; else one right-hand side
  bool in_f32 = false;  // in addition to f64
};

/// How much finer than 256 points a side a grid is; 1 below.
double finer_of(const BoxGrid& grid) { return std::max(1.0, double(std::max(grid.nx, grid.ny)) / 256); }

/// On grids beyond 256 points a side the smallest scales are damped as on 256.
Model sized(Model model, const std::string& size) {
  const std::vector<int64_t> n = parse_size(size);
  model.grid.ny = n.size() > 1 ? n[n.size() - 2] : n[0];
  model.grid.nx = n.back();
  const double finer = finer_of(model.grid);
  model.viscosity /= finer;
  model.hyper_viscosity /= std::pow(finer, 2.0 * model.hyper_power);
  return model;
}
/// The time step is shorter there as the spacing is.
Stepping sized(Stepping stepping, const Model& model) {
  stepping.dt /= finer_of(model.grid);
  return stepping;
}

/// A size of three numbers begins with the members.
int64_t members_of(const std::string& size) {
  const std::vector<int64_t> n = parse_size(size);
  return n.size() == 3 ? n[0] : 1;
}

Array field_of(const Model& model, int64_t members, uint64_t seed) {
  std::vector<double> all;
  // Random fields are made by plain transforms, which take long on grids that only bench requests.
  const Initial which = model.grid.points() > kMostRandom ? Initial::vortices : Initial::mcwilliams;
  for (int64_t m = 0; m < members; ++m) {
    const Array one = initial_field(model.grid, which, seed + uint64_t(m));
    all.insert(all.end(), one.as<double>().begin(), one.as<double>().end());
  }
  return Array::of(std::move(all), {members, model.grid.ny, model.grid.nx});
}

/// The members' spectra one behind the other, in the type of the case.
Array reference_spectra(const FlowCase& c, const Model& model, const Array& fields, Storage storage) {
  std::vector<double> all;
  for (int64_t m = 0; m < fields.size(0); ++m) {
    Model own = model;
    own.forcing.seed += uint64_t(m);
    reference::Flow flow(own, c.stepping);
    const Array one = fields[m].packed();
    flow.set_vorticity(one.as<double>());
    reference::Spectrum result;
    if (c.step) {
      for (int64_t s = 0; s < kCaseSteps; ++s) flow.step();
      result = flow.spectrum();
    } else {
      result = flow.right_hand_side(flow.spectrum());
    }
    for (const auto& value : result) all.insert(all.end(), {value.real(), value.imag()});
  }
  const Modes modes = modes_of(model);
  return Array::of(std::move(all), {fields.size(0), modes.rows(), modes.columns(), 2}).to(storage);
}

Case solver_case(const FlowCase& f, Storage storage) {
  const bool f64 = storage == Storage::f64;
  Case c;
  c.name = "flow." + f.name + (f64 ? ".f64" : "");
  c.dtype = f64 ? "f64" : "f32";
  c.needs_f64 = f64;
  c.small = {"2x16x24", "2x16x32"};
  c.full = {"16x16", "30x22", "96x64", "64x128"};
  c.bench = {"256x256", "1024x1024"};
  if (f.name == "step.rk2.smagorinsky" && !f64) {
    c.full.insert(c.full.end(), {"8192x16", "16x8192"});  // the longest lines of fused kernels
    c.bench.push_back("64x256x256");
  }
  c.reference = Bound::relative(f64 ? 1e-12 : 3e-5);
  c.webgpu = Bound::relative(1e-5);
  c.fast = Bound::relative(f64 ? 1e-11 : 1e-4);
  c.make = [=](const std::string& size, uint64_t seed) {
    const Model model = sized(f.model, size);
    const Stepping stepping = sized(f.stepping, model);
    const auto fields = std::make_shared<const Array>(field_of(model, members_of(size), seed));
    const double points = double(fields->elements()), bytes = f64 ? 8 : 4;
    const double evaluations = f.stepping.integrator == Integrator::rk2      ? 2
                               : f.stepping.integrator == Integrator::ssprk3 ? 3
                               : f.stepping.integrator == Integrator::ab3    ? 1
                                                                             : 4;
    CaseProblem p;
    // The state of 4/9 of half the points, read and written once a step.
    const double operations = f.step ? double(kBenchSteps) : 1;
    p.operations = operations;
    p.bytes = operations * 2 * points * bytes * 4 / 9;
    p.flops =
        operations * (f.step ? evaluations : 1) * points * (23.3 * std::log2(double(model.grid.nx)) + 60);
    p.reference = [=] { return std::vector{reference_spectra(f, model, *fields, storage)}; };
    p.bind = [=](const Device& device) {
      const auto solver = std::make_shared<Solver>(device, model, stepping, storage, fields->size(0));
      solver->set_vorticity(*fields);
      if (!f.step)
        return CaseRun{[=] { solver->evaluate(); }, [=] { return std::vector{solver->right_hand_side()}; }};
      return CaseRun{[=] { solver->advance(kBenchSteps); },
                     [=] {
                       solver->set_vorticity(*fields);
                       solver->advance(kCaseSteps);
                       return std::vector{solver->spectrum()};
                     }};
    };
    return p;
  };
  c.kernels = [=] {
    return Solver(Device::open("interp"), sized(f.model, "16x16"), f.stepping, storage, 1).kernels();
  };
  return c;
}

Model case_model(Closure closure = Closure::none) {
  return {.viscosity = 1e-3, .closure = closure, .drag = 0.05};
}

std::vector<FlowCase> flow_cases() {
  const Stepping fixed{Integrator::rk2, 2e-3};
  std::vector<FlowCase> all;
  for (const ClosureRow& row : kClosures)
    all.push_back({"rhs." + std::string(row.name), case_model(row.closure), fixed, false, !row.dynamic});
  Model simple = case_model(Closure::smagorinsky), padded = case_model(), flux = case_model(Closure::leith);
  simple.form = ClosureForm::simple;
  all.push_back({"rhs.smagorinsky.simple", simple, fixed, false});
  Model local = case_model(Closure::dynamic_smagorinsky);
  local.averaging = Averaging::local;
  all.push_back({"rhs.dynamic-smagorinsky.local", local, fixed, false});
  padded.dealias = Dealias::padded;
  padded.beta = 1;
  padded.hyper_viscosity = 1e-8;
  padded.hyper_power = 2;
  padded.hypo_viscosity = 0.1;
  all.push_back({"rhs.padded", padded, fixed, false});
  flux.advection = Advection::flux;
  flux.forcing = {ForcingKind::kolmogorov, 2, 0.3};
  all.push_back({"rhs.flux", flux, fixed, false});
  for (const Integrator i :
       {Integrator::rk2, Integrator::ssprk3, Integrator::rk4, Integrator::ab3, Integrator::etdrk4})
    all.push_back({"step." + std::string(name(i)), case_model(), {i, 2e-3}, true, i == Integrator::rk4});
  Model smagorinsky = case_model(Closure::smagorinsky), stochastic = case_model();
  smagorinsky.drag = 0;
  all.push_back({"step.rk2.smagorinsky", smagorinsky, fixed, true, true});
  stochastic.dealias = Dealias::filter;
  stochastic.forcing = {ForcingKind::stochastic, 3, 0.5, 7};
  all.push_back({"step.stochastic", stochastic, fixed});
  return all;
}

}  // namespace

void add_flow_cases(CaseRegistry& registry) {
  for (const FlowCase& c : flow_cases()) {
    if (c.in_f32) registry.add(solver_case(c, Storage::f32));
    registry.add(solver_case(c, Storage::f64));
  }
  add_codec_cases(registry);
  add_surrogate_cases(registry);
}

}  // namespace lockstep
