#include "flow_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lockstep/error.hpp"
#include "lockstep/flow/memory.hpp"
#include "lockstep/verify.hpp"
#include "memory_bound.hpp"

namespace lockstep::cli {
namespace {

double number_of(const std::string& text, const std::string& option, const std::string& expected) {
  const std::optional<double> number = parse_number(text);
  if (!number || !std::isfinite(*number)) throw InputError(fmt::format("'{}'", text), option, expected);
  return *number;
}

/// "A,B" as two numbers.
std::pair<double, double> pair_of(const std::string& text, const std::string& option,
                                  const std::string& expected) {
  const std::vector<std::string> parts = split_list(text, option);
  if (parts.size() != 2) throw InputError(fmt::format("'{}'", text), option, expected);
  return {number_of(parts[0], option, expected), number_of(parts[1], option, expected)};
}

/// The part before the first colon, and the one behind it.
std::pair<std::string, std::optional<std::string>> split_name(const std::string& text) {
  const size_t colon = text.find(':');
  if (colon == text.npos) return {text, std::nullopt};
  return {text.substr(0, colon), text.substr(colon + 1)};
}

/// The value of an enumeration whose last one is `last`.
template <class E>
std::optional<E> named(const std::string& text, E last) {
  for (int k = 0; k <= int(last); ++k)
    if (text == flow::name(E(k))) return E(k);
  return std::nullopt;
}

void take_grid(const FlowArguments& a, flow::RunOptions& o) {
  if (!a.box.empty()) {
    const auto [lx, ly] = pair_of(a.box, "--box", "LX,LY");
    o.model.grid.lx = lx;
    o.model.grid.ly = ly;
  }
  if (a.n.empty()) return;
  std::vector<int64_t> n;
  constexpr size_t longest = 24;  // beyond that a number of the text does not fit
  if (a.n.size() <= longest && a.n.find_first_not_of("0123456789x") == a.n.npos) n = parse_size(a.n);
  if (n.empty() || n.size() > 2) throw InputError(fmt::format("'{}'", a.n), "--n", "N or NYxNX");
  check_flow_sides(n.front(), n.back(), "--n");
  o.model.grid.ny = n.front();
  o.model.grid.nx = n.back();
  o.grid_given = true;
}

void take_closure(const FlowArguments& a, flow::RunOptions& o) {
  const std::string expected = "none, smagorinsky[:C], leith[:C], dynamic-smagorinsky or dynamic-leith";
  const auto [word, constant] = split_name(a.closure);
  const auto closure = named(word, flow::Closure::dynamic_leith);
  const bool fixed = closure == flow::Closure::smagorinsky || closure == flow::Closure::leith;
  if (!closure || (constant && !fixed))
    throw InputError(fmt::format("'{}'", a.closure), "--closure", expected);
  o.model.closure = *closure;
  if (constant) {
    o.model.constant = number_of(*constant, "--closure", "a constant above 0");
    if (!(o.model.constant > 0)) throw InputError(*constant, "--closure", "a constant above 0");
  }
  if (!a.closure_form.empty()) {
    if (closure == flow::Closure::none)
      throw InputError("a form without a closure", "--closure-form", "--closure beside it");
    if (a.closure_form == "simple") o.model.form = flow::ClosureForm::simple;
  }
  if (!a.averaging.empty()) {
    if (fixed || closure == flow::Closure::none)
      throw InputError("averaging without a dynamic closure", "--averaging",
                       "dynamic-smagorinsky or dynamic-leith");
    if (a.averaging == "local") o.model.averaging = flow::Averaging::local;
  }
}

void take_forcing(const FlowArguments& a, flow::RunOptions& o) {
  const std::string expected = "none, kolmogorov:K,A or stochastic:K,EPS";
  const auto [word, numbers] = split_name(a.forcing);
  const auto kind = named(word, flow::ForcingKind::stochastic);
  if (!kind || numbers.has_value() != (kind != flow::ForcingKind::none))
    throw InputError(fmt::format("'{}'", a.forcing), "--forcing", expected);
  o.model.forcing.kind = *kind;
  if (!numbers) return;
  const auto [k, amount] = pair_of(*numbers, "--forcing", expected);
  o.model.forcing.wavenumber = k;
  o.model.forcing.amount = amount;
}

void take_power(const std::string& text, const char* option, double& coefficient, int& power) {
  if (text.empty()) return;
  const auto [nu, p] = pair_of(text, option, "NU,P with a whole P from 1 to 16");
  if (p != std::floor(p) || p < 1 || p > 16 || nu < 0)
    throw InputError(fmt::format("'{}'", text), option, "NU,P with a whole P from 1 to 16");
  coefficient = nu;
  power = int(p);
}

void take_steps(const FlowArguments& a, flow::RunOptions& o) {
  o.stepping.integrator = *named(a.integrator, flow::Integrator::etdrk4);
  if (a.dt) o.stepping.dt = *a.dt;
  if (a.cfl) {
    o.stepping.cfl = *a.cfl;
    o.stepping.dt = std::min(0.1, 0.9 * flow::linear_dt_limit(o.model, o.stepping.integrator));
  }
  if (a.steps > 0) o.steps = a.steps;
  if (a.time) o.time = *a.time;
  o.save_every = a.save_every;
  o.history_every = a.history_every;
}

}  // namespace

void add_flow_options(CLI::App& app, FlowArguments& a) {
  add_text(app, "--n", a.n, "points along each axis; NYxNX for others (default 256, or the file's)", "N");
  add_file(app, "--ic", a.initial,
           "mcwilliams, vortices, noise, taylor-green, shear, or a file: .npz or .nc with omega, .npy, .mat "
           "with Omega",
           "NAME|FILE");
  add_integer(app, "--seed", a.seed, "of random fields and forcing; member m of an ensemble has seed + m",
              "S", 0, INT64_MAX);
  add_number(app, "--nu", a.nu, "viscosity (default 1e-4)", "V");
  add_number(app, "--dt", a.dt, "time step (default 1e-3)", "DT");
  add_number(app, "--cfl", a.cfl,
             "a time step of C / (max|u| / dx + max|v| / dy), at most 0.1, instead of --dt", "C");
  add_integer(app, "--steps", a.steps, "steps to do (default 1000)", "N", 1, INT64_MAX / 2);
  add_number(app, "--time", a.time,
             "time to end at, instead of --steps; a fixed step is made smaller to meet it", "T",
             {0, 1e300, true});
  add_choice(app, "--integrator", a.integrator, "time stepping (default rk4)",
             {"rk2", "ssprk3", "rk4", "ab3", "etdrk4"});
  add_choice(app, "--dealias", a.dealias, "what keeps products from aliasing (default two-thirds)",
             {"two-thirds", "padded", "filter", "none"});
  add_text(app, "--closure", a.closure,
           "none, smagorinsky[:C], leith[:C], dynamic-smagorinsky, dynamic-leith (C: 0.17, 0.3)", "CLOSURE");
  add_choice(app, "--closure-form", a.closure_form, "curl div (2 nu_t S), or nu_t laplacian(omega)",
             {"divergence", "simple"});
  add_choice(app, "--averaging", a.averaging, "of a dynamic coefficient (default global)",
             {"global", "local"});
  add_choice(app, "--advection", a.advection, "by u v and u^2 - v^2, or by u omega and v omega",
             {"stress", "flux"});
  add_text(app, "--forcing", a.forcing,
           "none; kolmogorov:K,A, the force A sin(K y) along x; stochastic:K,EPS, random at wavenumber K "
           "with energy "
           "input EPS",
           "FORCING");
  add_number(app, "--drag", a.drag, "linear drag", "MU");
  add_number(app, "--beta", a.beta, "gradient of the planetary vorticity", "B");
  add_text(app, "--hyper", a.hyper, "hyperviscosity: -NU (-laplacian)^P omega", "NU,P");
  add_text(app, "--hypo", a.hypo, "hypoviscosity: -NU (-laplacian)^-P omega", "NU,P");
  add_choice(app, "--precision", a.precision, "of the computation (default f32)", {"f32", "f64"});
  add_integer(app, "--ensemble", a.members, "flows advanced together", "M", 1, 1 << 20);
  add_text(app, "--box", a.box, "lengths of the box (default 2 pi)", "LX,LY");
  add_integer(app, "--save-every", a.save_every, "steps between saved fields (default: first and last)", "N",
              1, INT64_MAX / 2);
  add_integer(app, "--history-every", a.history_every,
              "steps between rows of energy, enstrophy, speeds and budgets in the result (default: none)",
              "N", 1, INT64_MAX / 2);
  add_flag(app, "--pictures", a.pictures, "a PNG of each saved field, and of the last spectra");
  add_output_file(app, "--video", a.video, "a film of the saved fields", "FILE.mp4");
  add_output_file(app, "--checkpoint", a.checkpoint,
                  "written with each saved field; a run that finds it goes on from there with the same bits");
  add_choice(app, "--format", a.format, "of the result: run.nc (default) or run.npz", {"nc", "npz"});
  add_output_folder(app, "--out", a.out, "folder for the results; it is made if missing");
  require(app, "--out");
}

void check_flow_options(const CLI::App& app, const FlowArguments& a) {
  refuse_both(app, "--dt", "--cfl");
  refuse_both(app, "--steps", "--time");
  const bool random =
      a.initial == "mcwilliams" || a.initial == "noise" || a.forcing.starts_with("stochastic");
  if (!random)
    refuse_given(app, {"--seed"}, "nothing is random", "a random --ic, or --forcing stochastic:K,EPS");
}

void check_flow_sides(int64_t ny, int64_t nx, const std::string& given) {
  constexpr int64_t least = 4, most = 65536;
  if (std::min(ny, nx) < least || std::max(ny, nx) > most)
    throw InputError(fmt::format("{} x {} points", ny, nx), given,
                     fmt::format("{} to {} points along each axis", least, most));
}

void require_flow_memory(Context& context, const flow::RunOptions& run, bool fallback,
                         const std::string& given) {
  if (!run.grid_given) return;
  const flow::BoxGrid& grid = run.model.grid;
  const double points = static_cast<double>(grid.ny) * static_cast<double>(grid.nx);
  const std::string option = run.members > 1 ? given + " and --ensemble" : given;
  // The start is made on the host in f64, as a field and its transform.
  const double host = 16 * points;
  require_host_memory(host, option);
  const Device device = context.device();
  const double bytes = static_cast<double>(
      flow::memory_bytes(run.model, run.stepping, run.precision, run.members, device.info()));
  const double memory = static_cast<double>(device.memory().total_bytes);
  const bool on_host = device.info().kind == DeviceKind::cpu || device.info().kind == DeviceKind::interp;
  if (on_host || (fallback && bytes > memory))
    require_host_memory(bytes, option);
  else
    require_memory(bytes, memory, option, device.info().name);
}

flow::RunOptions flow_run_options(const FlowArguments& a) {
  flow::RunOptions o;
  take_grid(a, o);
  o.initial = a.initial;
  o.seed = uint64_t(a.seed);
  o.model.viscosity = a.nu;
  o.model.drag = a.drag;
  o.model.beta = a.beta;
  take_power(a.hyper, "--hyper", o.model.hyper_viscosity, o.model.hyper_power);
  take_power(a.hypo, "--hypo", o.model.hypo_viscosity, o.model.hypo_power);
  take_closure(a, o);
  take_forcing(a, o);
  o.model.dealias = *named(a.dealias, flow::Dealias::none);
  if (a.advection == "flux") o.model.advection = flow::Advection::flux;
  take_steps(a, o);
  o.precision = a.precision == "f64" ? Storage::f64 : Storage::f32;
  o.members = a.members;
  o.pictures = a.pictures;
  o.video = a.video;
  o.checkpoint = a.checkpoint;
  if (a.format == "npz") o.format = flow::RunOptions::Format::npz;
  o.folder = a.out;
  return o;
}

}  // namespace lockstep::cli
