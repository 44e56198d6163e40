// Names, limits and checks of models.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "flow/box.hpp"
#include "flow/modes.hpp"
#include "lockstep/flow.hpp"

namespace lockstep::flow {

namespace {

/// How far an integrator's region of stability reaches along the imaginary and the negative real axis. RK2
/// grows by (k u dt)^4 / 8 a step there: 1 is where that stays slow.
struct Reach {
  double imaginary, real;
};
Reach reach(Integrator integrator) {
  switch (integrator) {
    case Integrator::rk2: return {1, 2};
    case Integrator::ssprk3: return {std::sqrt(3.0), 2.51};
    case Integrator::rk4: return {2 * std::sqrt(2.0), 2.78};
    case Integrator::ab3: return {0.72, 6.0 / 11};
    case Integrator::etdrk4: return {2 * std::sqrt(2.0), std::numeric_limits<double>::infinity()};
  }
  return {};
}

[[noreturn]] void refuse_model(const char* option, const std::string& what, const std::string& expected,
                               const std::string& hint = "") {
  static const OptionList& all = schema_of<SolverOptions>();
  throw all.error({OptionError::Kind::invalid, option, what, expected, hint});
}

void check_forcing(const Model& model) {
  const Forcing& f = model.forcing;
  if (f.kind == ForcingKind::none) return;
  const Modes modes = modes_of(model);
  const bool along_y = f.kind == ForcingKind::kolmogorov;
  const auto most = double(along_y ? modes.kept_y : std::max(modes.kept_x, modes.kept_y));
  if (f.wavenumber > most || (along_y && f.wavenumber != std::floor(f.wavenumber)))
    refuse_model("forcing_wavenumber", fmt::format("wavenumber {} where {} are kept", f.wavenumber, most),
                 along_y ? "a whole number from 1 to the kept ones" : "1 to the kept ones");
  if (!along_y && f.amount < 0)
    refuse_model("forcing_amount", fmt::format("an energy input of {}", f.amount), "0 or more");
}

}  // namespace

double cfl_limit(const Model& model, Integrator integrator) {
  const Modes modes = modes_of(model);
  const double share = std::max(2 * double(modes.kept_x) / double(model.grid.nx),
                                2 * double(modes.kept_y) / double(model.grid.ny));
  return reach(integrator).imaginary / (kPi * share);
}

double linear_dt_limit(const Model& model, Integrator integrator) {
  const Modes modes = modes_of(model);
  const double kx = 2 * kPi / model.grid.lx, ky = 2 * kPi / model.grid.ly;
  const auto damping = [&](double k2) {
    return model.viscosity * k2 + model.drag + model.hyper_viscosity * std::pow(k2, model.hyper_power) +
           model.hypo_viscosity * std::pow(k2, -model.hypo_power);
  };
  const double most =
      std::max(damping(std::pow(kx * double(modes.kept_x), 2) + std::pow(ky * double(modes.kept_y), 2)),
               damping(std::pow(std::min(kx, ky), 2)));
  double limit = std::numeric_limits<double>::infinity();
  if (integrator == Integrator::etdrk4) return limit;
  if (most > 0) limit = reach(integrator).real / most;
  if (model.beta != 0) limit = std::min(limit, reach(integrator).imaginary * kx / std::abs(model.beta));
  return limit;
}

double eddy_limit(const Model& model, Integrator integrator) {
  const Modes modes = modes_of(model);
  const double kx = 2 * kPi / model.grid.lx * double(modes.kept_x),
               ky = 2 * kPi / model.grid.ly * double(modes.kept_y);
  // The closure is explicit with etdrk4 too, whose stages are those of rk4.
  const double real = std::min(reach(integrator).real, reach(Integrator::rk4).real);
  return real / 2 / (kx * kx + ky * ky);
}

void check(const Model& model, const Stepping& stepping) {
  schema_of<Model>().check(&model);
  schema_of<Stepping>().check(&stepping);
  const BoxGrid& grid = model.grid;
  if (!is_sound_box(grid)) refuse_model("lx", fmt::format("a box of {} x {}", grid.lx, grid.ly), kSoundBox);
  check_forcing(model);
  const double limit = linear_dt_limit(model, stepping.integrator);
  if (stepping.cfl == 0 && stepping.dt > limit)
    refuse_model("dt", fmt::format("dt = {} is unstable for the linear terms", stepping.dt),
                 fmt::format("at most {:.4g} with {}", limit, name(stepping.integrator)),
                 "{integrator} etdrk4 integrates the linear terms exactly");
  if (stepping.cfl == 0) return;
  if (stepping.integrator == Integrator::ab3 || stepping.integrator == Integrator::etdrk4)
    refuse_model("cfl", fmt::format("cfl with {}", name(stepping.integrator)),
                 "a fixed dt, on which the coefficients of this integrator depend");
  const double most = cfl_limit(model, stepping.integrator);
  if (stepping.cfl > most)
    refuse_model("cfl", fmt::format("cfl = {}", stepping.cfl),
                 fmt::format("at most {:.4g} with {} and these modes", most, name(stepping.integrator)));
}

}  // namespace lockstep::flow
