#include "pde_options.hpp"

#include <fmt/format.h>

#include <cmath>

#include "lockstep/error.hpp"

namespace lockstep::cli {

namespace {

struct FieldOption {
  const char *field, *option, *what;
};
constexpr FieldOption kFields[] = {{"sigma", "--boundary-sigma", "sigma"},
                                   {"ux", "--boundary-ux", "the x component of u"},
                                   {"uy", "--boundary-uy", "the y component of u"},
                                   {"uz", "--boundary-uz", "the z component of u"},
                                   {"p", "--boundary-p", "p"}};

}  // namespace

void add_pde_problem(CLI::App& app, PdeOptions& o, const std::vector<std::string>& kernels) {
  add_positional(app, "IN.npz", o.input, "arrays of the fields (see lockstep pde --help)", true);
  add_text(app, "--spacing", o.spacing, "cell sizes along x, y, z", "HX,HY,HZ");
  require(app, "--spacing");
  add_number(app, "--dt", o.dt, "time between levels", "DT", {0, 1e300, true});
  require(app, "--dt");
  add_text(app, "--boundary", o.boundary,
           "periodic (default), or x=clamp,y=no_slip,…, or x-=dirichlet_face:1,…", "SPEC");
  for (const auto& [field, option, what] : kFields)
    add_text(app, option, o.boundaries[field], fmt::format("of {} instead of --boundary", what), "SPEC");
  add_text(app, "--parameters", o.parameters,
           "numbers of sides with a name, lid=1,… for y+=dirichlet_face:@lid; names that are not here are "
           "arrays of "
           "IN.npz: a number (), or a profile over the side",
           "LIST");
  add_choice(app, "--order", o.order, "order of central differences (default 2)", {"2", "4", "6", "8"});
  add_text(app, "--weights", o.weights, "weights of the sigma and the u term (default 1,1)", "WS,WU");
  add_text(app, "--terms", o.terms,
           "all (default: transport,compression,momentum) or a list of all, these and upwind, viscosity:NU, "
           "pressure, forcing, "
           "divergence:W, speed:W",
           "LIST");
  add_choice(app, "--kernel", o.kernel, "auto (default), or one path", kernels);
}

void add_pde_options(CLI::App& app, PdeOptions& o, const std::vector<std::string>& kernels,
                     const std::vector<std::string>& gradients) {
  add_pde_problem(app, o, kernels);
  add_choice(app, "--gradients", o.gradients, "levels whose gradients are wanted (default all)", gradients);
  add_output_file(app, "--out", o.out, "where the gradients go (.npz)", {".npz"});
}

namespace {

/// Numbers between commas; `count` of them.
std::vector<double> parse_numbers(const std::string& text, const std::string& option, size_t count) {
  std::vector<double> numbers;
  for (const std::string& part : split_list(text, option)) {
    const auto number = parse_number(part);
    if (!number || !std::isfinite(*number))
      throw InputError(fmt::format("'{}'", part), option, "a finite number");
    numbers.push_back(*number);
  }
  if (numbers.size() != count)
    throw InputError(fmt::format("{} numbers", numbers.size()), option, fmt::format("{}", count));
  return numbers;
}

pde::TransportOptions parse_terms(const PdeOptions& options) {
  pde::TransportOptions t;
  const std::vector<double> weights = parse_numbers(options.weights, "--weights", 2);
  for (double w : weights)
    if (w < 0) throw InputError(fmt::format("weight {}", w), "--weights", "numbers of 0 or more");
  t.weight_sigma = weights[0];
  t.weight_u = weights[1];
  if (options.terms == "all") return t;
  t.sigma_transport = t.sigma_divergence = t.momentum = false;
  for (const std::string& term : split_list(options.terms, "--terms")) {
    if (term == "all") {
      t.sigma_transport = t.sigma_divergence = t.momentum = true;
      continue;
    }
    const size_t colon = term.find(':');
    const std::string name = term.substr(0, colon);
    const auto value = [&] {
      const auto number = colon == std::string::npos ? std::nullopt : parse_number(term.substr(colon + 1));
      if (!number || !std::isfinite(*number) || *number < 0)
        throw InputError(fmt::format("term '{}'", term), "--terms",
                         fmt::format("{}:NUMBER of 0 or more", name));
      return *number;
    };
    const auto plain = [&] {
      if (colon != std::string::npos)
        throw InputError(fmt::format("term '{}'", term), "--terms", fmt::format("{} without a number", name));
      return true;
    };
    if (name == "transport")
      t.sigma_transport = plain();
    else if (name == "compression")
      t.sigma_divergence = plain();
    else if (name == "momentum")
      t.momentum = plain();
    else if (name == "upwind")
      t.upwind = plain();
    else if (name == "pressure")
      t.pressure = plain();
    else if (name == "forcing")
      t.forcing = plain();
    else if (name == "viscosity")
      t.viscosity = value();
    else if (name == "divergence")
      t.weight_divergence = value();
    else if (name == "speed")
      t.weight_speed = value();
    else
      throw InputError(fmt::format("unknown term '{}'", name), "--terms",
                       "all, transport, compression, momentum, upwind, viscosity:NU, pressure, forcing, "
                       "divergence:W, speed:W");
  }
  if (t.sigma_divergence && !t.sigma_transport)
    throw InputError("compression without transport", "--terms", "transport,compression");
  if (!t.momentum && (t.pressure || t.forcing || t.viscosity != 0))
    throw InputError("viscosity, pressure or forcing without momentum", "--terms", "momentum and its parts");
  if (!t.sigma_transport && !t.momentum && t.weight_divergence == 0 && t.weight_speed == 0)
    throw InputError("no term of the loss", "--terms", "transport, momentum, divergence:W or speed:W");
  return t;
}

}  // namespace

pde::RunOptions parse_run(const PdeOptions& options) {
  pde::RunOptions run;
  const std::vector<double> spacing = parse_numbers(options.spacing, "--spacing", 3);
  for (size_t a = 0; a < 3; ++a) {
    if (!(spacing[a] > 0))
      throw InputError(fmt::format("spacing {}", spacing[a]), "--spacing", "three numbers above 0");
    run.spacing[a] = spacing[a];
  }
  run.dt = options.dt;
  run.order = std::stoi(options.order);
  run.boundary = pde::BoundaryConditions::parse(options.boundary);
  for (const auto& [field, spec] : options.boundaries)
    if (!spec.empty()) run.boundaries.emplace(field, pde::BoundaryConditions::parse(spec));
  for (const auto& [name, value] : assignments(options.parameters, "--parameters"))
    run.parameters[name] = number_of(value, "--parameters");
  run.terms = parse_terms(options);
  if (run.boundaries.count("p") && !run.terms.pressure)
    throw InputError("a boundary of p without its term", "--boundary-p", "--terms with pressure");
  if (run.boundaries.count("sigma") && !run.terms.sigma_transport)
    throw InputError("a boundary of sigma without its term", "--boundary-sigma", "--terms with transport");
  run.residuals = !options.residuals.empty();
  run.gradients = parse_gradients(options.gradients);
  run.reference = options.kernel == "reference";
  run.path = parse_path(options.kernel);
  run.where = options.input;
  return run;
}

pde::Gradients parse_gradients(const std::string& text) {
  return text == "none"   ? pde::Gradients::none
         : text == "t1"   ? pde::Gradients::t1
         : text == "t1t2" ? pde::Gradients::t1t2
                          : pde::Gradients::all;
}
pde::Path parse_path(const std::string& text) {
  return text == "fused"        ? pde::Path::fused
         : text == "two-sweep"  ? pde::Path::two_sweep
         : text == "two-kernel" ? pde::Path::two_kernel
                                : pde::Path::automatic;
}

}  // namespace lockstep::cli
