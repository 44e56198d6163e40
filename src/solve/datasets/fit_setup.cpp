#include "solve/datasets/fit_setup.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "lockstep/error.hpp"

namespace lockstep::solve {
namespace {

bool among(const std::vector<std::string>& all, const std::string& name) {
  return std::find(all.begin(), all.end(), name) != all.end();
}

}  // namespace

FitSetup::FitSetup(const io::CsvTable& table, const FitOptions& options)
    : model(Expression::parse(options.model, "model")) {
  y = &table.columns[table.column(options.y, "y")];
  for (const std::string& name : options.x) {
    x.push_back(&table.columns[table.column(name, "x")]);
    if (!among(model.names(), name))
      throw InputError(fmt::format("x column {}", name), "model", fmt::format("it in \"{}\"", options.model));
  }
  if (among(model.names(), options.y))
    throw InputError(fmt::format("the response {} in \"{}\"", options.y, options.model), "model",
                     "a formula over other columns and parameters");
  for (const std::string& name : model.names())
    if (!among(options.x, name)) parameters.push_back(name);
  if (parameters.empty())
    throw InputError("no parameters", "model", "names in the model that are no columns");
  if (!options.sigma.empty()) {
    sigma = &table.columns[table.column(options.sigma, "sigma")];
    for (size_t row = 0; row < sigma->size(); ++row)
      if (!((*sigma)[row] > 0))
        throw InputError(fmt::format("standard deviation {}", (*sigma)[row]),
                         fmt::format("column {}, row {}", options.sigma, row + 1), "a positive number");
  }
  for (const auto& [name, value] : options.initial)
    if (!among(parameters, name))
      throw InputError(fmt::format("initial value of {}", name), "fit",
                       fmt::format("one of {}", fmt::join(parameters, ", ")));
  for (const auto& [name, range] : options.bounds)
    if (!among(parameters, name))
      throw InputError(fmt::format("bounds of {}", name), "fit",
                       fmt::format("one of {}", fmt::join(parameters, ", ")));
  if (table.rows() < parameters.size())
    throw InputError(fmt::format("{} rows", table.rows()), "table",
                     fmt::format("at least {}, the number of parameters", parameters.size()));
}

FitLeaves::FitLeaves(const FitSetup& setup, const FitOptions& options) {
  std::map<std::string, autodiff::Value> leaf;
  for (const std::string& name : setup.parameters) leaf.emplace(name, graph.variable(name));
  for (const std::string& name : options.x) leaf.emplace(name, graph.parameter(name));
  value = setup.model.build(graph, [&](const std::string& name) { return leaf.at(name); });
}

}  // namespace lockstep::solve
