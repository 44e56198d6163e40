// Names, limits and checks of models.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "flow/box.hpp"
#include "flow/modes.hpp"
#include "lockstep/error.hpp"

namespace lockstep::flow {

std::string_view name(Integrator integrator) {
  return std::array{"rk2", "ssprk3", "rk4", "ab3", "etdrk4"}[size_t(integrator)];
}
std::string_view name(Dealias dealias) {
  return std::array{"two-thirds", "padded", "filter", "none"}[size_t(dealias)];
}
std::string_view name(Closure closure) {
  return std::array{"none", "smagorinsky", "leith", "dynamic-smagorinsky", "dynamic-leith"}[size_t(closure)];
}
std::string_view name(ForcingKind kind) {
  return std::array{"none", "kolmogorov", "stochastic"}[size_t(kind)];
}
std::string_view name(Initial initial) {
  return std::array{"mcwilliams", "vortices", "noise", "taylor-green", "shear"}[size_t(initial)];
}

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

void expect(bool ok, const std::string& what, const char* where, const char* expected) {
  if (!ok) throw InputError(what, where, expected);
}
void expect_positive(double value, const char* where) {
  expect(std::isfinite(value) && value > 0, fmt::format("{}", value), where, "a finite number above 0");
}
void expect_not_negative(double value, const char* where) {
  expect(std::isfinite(value) && value >= 0, fmt::format("{}", value), where, "a finite number of 0 or more");
}

void check_grid(const BoxGrid& grid) {
  for (const int64_t n : {grid.nx, grid.ny})
    expect(n >= 4 && n <= 1 << 16, fmt::format("{} x {} points", grid.ny, grid.nx), "flow grid",
           "whole numbers from 4 to 65536");
  expect(is_sound_box(grid), fmt::format("{} x {}", grid.lx, grid.ly), "flow box", kSoundBox);
}

void check_forcing(const Model& model) {
  const Forcing& f = model.forcing;
  if (f.kind == ForcingKind::none) return;
  const Modes modes = modes_of(model);
  const bool along_y = f.kind == ForcingKind::kolmogorov;
  const auto most = double(along_y ? modes.kept_y : std::max(modes.kept_x, modes.kept_y));
  expect(f.wavenumber >= 1 && f.wavenumber <= most && (!along_y || f.wavenumber == std::floor(f.wavenumber)),
         fmt::format("wavenumber {} where {} are kept", f.wavenumber, most), "flow forcing",
         along_y ? "a whole number from 1 to the kept ones" : "1 to the kept ones");
  if (along_y)
    expect(std::isfinite(f.amount), fmt::format("amplitude {}", f.amount), "flow forcing", "a finite number");
  else
    expect_not_negative(f.amount, "flow forcing");
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

void check(const Model& model, const Stepping& stepping) {
  check_grid(model.grid);
  expect_not_negative(model.viscosity, "flow viscosity");
  expect_not_negative(model.drag, "flow drag");
  expect(std::isfinite(model.beta), fmt::format("{}", model.beta), "flow beta", "a finite number");
  expect_not_negative(model.hyper_viscosity, "flow hyperviscosity");
  expect_not_negative(model.hypo_viscosity, "flow hypoviscosity");
  for (const int power : {model.hyper_power, model.hypo_power})
    expect(power >= 1 && power <= 16, fmt::format("power {}", power), "flow hyper- or hypoviscosity",
           "1 to 16");
  expect_not_negative(model.constant, "flow closure");
  check_forcing(model);
  expect_positive(stepping.dt, "flow dt");
  const double limit = linear_dt_limit(model, stepping.integrator);
  if (stepping.cfl == 0 && stepping.dt > limit)
    throw InputError(fmt::format("dt = {} is unstable for the linear terms", stepping.dt), "flow dt",
                     fmt::format("at most {:.4g} with {}", limit, name(stepping.integrator)))
        .with_hint("--integrator etdrk4 takes the linear terms exactly");
  if (stepping.cfl == 0) return;
  expect_positive(stepping.cfl, "flow cfl");
  if (stepping.integrator == Integrator::ab3 || stepping.integrator == Integrator::etdrk4)
    throw InputError(fmt::format("cfl with {}", name(stepping.integrator)), "flow cfl",
                     "a fixed dt: the coefficients of this integrator are those of one dt");
  const double most = cfl_limit(model, stepping.integrator);
  if (stepping.cfl > most)
    throw InputError(fmt::format("cfl = {}", stepping.cfl), "flow cfl",
                     fmt::format("at most {:.4g} with {} and these modes", most, name(stepping.integrator)));
}

}  // namespace lockstep::flow
