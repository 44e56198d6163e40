// Options that the pde commands share.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lockstep/pde/run.hpp"
#include "options.hpp"

namespace lockstep::cli {

/// Options of the loss, as typed.
struct PdeOptions {
  std::string input, spacing, boundary = "periodic", weights = "1,1", terms = "all", kernel = "auto", out;
  std::map<std::string, std::string> boundaries;  // by field, as pde::RunOptions has them
  std::string parameters, residuals;
  std::string order = "2", gradients = "all";
  double dt = 0;
};

/// Arrays, mesh, boundaries and terms; `kernels`: the choices of --kernel.
void add_pde_problem(CLI::App& app, PdeOptions& options, const std::vector<std::string>& kernels);
/// These, and which gradients go where.
void add_pde_options(CLI::App& app, PdeOptions& options, const std::vector<std::string>& kernels,
                     const std::vector<std::string>& gradients);

/// The run that the options ask for, checked. Throws InputError naming the option.
pde::RunOptions parse_run(const PdeOptions& options);
pde::Gradients parse_gradients(const std::string& text);
pde::Path parse_path(const std::string& text);

}  // namespace lockstep::cli
