#include "solve/fit/fit_setup.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "lockstep/error.hpp"

namespace lockstep::solve {
namespace {

bool among(const std::vector<std::string>& all, const std::string& name) {
  return std::find(all.begin(), all.end(), name) != all.end();
}
std::string numbered(const std::string& name, size_t set) { return fmt::format("{}_{}", name, set + 1); }

}  // namespace

FitSetup::FitSetup(std::span<const io::CsvTable> tables, const FitOptions& options)
    : model(Expression::parse(options.model, "model")), x_(options.x) {
  read_columns(tables, options);
  name_parameters(options);
  read_constraints(tables[0], options);
  check_shared(options);
  check_cycles();
  for (const std::string& name : names)
    if (!constraints_.contains(name)) parameters.push_back(name);
  if (parameters.empty())
    throw InputError("no parameters", "model",
                     options.constraints.empty() ? "names in the model that are not columns"
                                                 : "one in the model that no constraint gives");
  const auto spread = [&](const auto& given, auto& to, const char* what) {
    for (const auto& [name, value] : given)
      for (const std::string& one : all_of(name, fmt::format("{} of {}", what, name))) {
        if (constraints_.contains(one))
          throw InputError(fmt::format("{} of {}, which a constraint gives", what, one), "fit",
                           fmt::format("one of {}", fmt::join(parameters, ", ")));
        if (one != name && given.contains(one)) continue;
        to[one] = value;
      }
  };
  spread(options.initial, initial, "initial value");
  spread(options.bounds, bounds, "bounds");
  if (rows < parameters.size())
    throw InputError(fmt::format("{} rows", rows), "table",
                     fmt::format("at least {}, the number of parameters", parameters.size()));
}

void FitSetup::read_columns(std::span<const io::CsvTable> tables, const FitOptions& options) {
  for (const std::string& name : options.x)
    if (!among(model.names(), name))
      throw InputError(fmt::format("x column {}", name), "model", fmt::format("it in \"{}\"", options.model));
  if (among(model.names(), options.y))
    throw InputError(fmt::format("the response {} in \"{}\"", options.y, options.model), "model",
                     "a formula over other columns and parameters");
  for (const io::CsvTable& table : tables) {
    DataSet set;
    set.y = &table.columns[table.column(options.y, "y")];
    for (const std::string& name : options.x) set.x.push_back(&table.columns[table.column(name, "x")]);
    if (!options.sigma.empty()) {
      set.sigma = &table.columns[table.column(options.sigma, "sigma")];
      for (size_t row = 0; row < set.sigma->size(); ++row)
        if (!((*set.sigma)[row] > 0))
          throw InputError(fmt::format("standard deviation {}", (*set.sigma)[row]),
                           fmt::format("column {}, row {}", options.sigma, row + 1), "a positive number");
    } else if (options.absolute_sigma) {
      throw InputError("absolute standard deviations without sigma", "fit", "their column");
    }
    rows += set.rows();
    sets.push_back(std::move(set));
  }
  if (sets.empty()) throw InputError("no table", "fit", "one or more");
  if (!options.at) return;
  for (const std::string& name : options.x) options.at->column(name, "at");
  for (size_t c = 0; c < options.at->names.size(); ++c)
    if (options.at->names[c] == options.sigma)
      for (const double s : options.at->columns[c])
        if (!(s > 0)) throw InputError(fmt::format("standard deviation {}", s), "at", "a positive number");
}

void FitSetup::name_parameters(const FitOptions& options) {
  std::vector<std::string> base;
  const auto add = [&](const std::string& name) {
    if (!among(x_, name) && !among(base, name)) base.push_back(name);
  };
  for (const std::string& name : model.names()) add(name);
  if (sets.size() == 1) {
    if (!options.shared.empty())
      throw InputError(fmt::format("shared {} of one data set", options.shared[0]), "fit",
                       "several data sets");
    names = common_ = base;
    return;
  }
  for (const std::string& name : options.shared) add(name);
  for (const std::string& name : base) { add_parameter(name, !among(options.shared, name)); }
  std::set<std::string> once(names.begin(), names.end());
  once.insert(own_.begin(), own_.end());
  if (once.size() != names.size() + own_.size())
    throw InputError("parameters of the same name", "model",
                     "none that looks like another one of a data set, such as a_1 next to a");
}

void FitSetup::add_parameter(const std::string& name, bool own) {
  (own ? own_ : common_).push_back(name);
  if (!own) names.push_back(name);
  for (size_t k = 0; own && k < sets.size(); ++k) names.push_back(numbered(name, k));
}

void FitSetup::read_constraints(const io::CsvTable& table, const FitOptions& options) {
  const auto whole = [&](const std::string& name) { return fmt::format("constraint of {}", name); };
  // A name that only constraints have is a parameter too: shared, or of each data set as the constrained one is.
  for (const auto& [name, text] : options.constraints) {
    const bool own = among(own_, name) && sets.size() > 1;
    const Expression formula = Expression::parse(text, whole(name));
    for (const std::string& used : formula.names()) {
      if (among(table.names, used))
        throw InputError(fmt::format("column {}", used), whole(name), "a formula of parameters");
      if (among(names, used) || among(own_, used)) continue;
      add_parameter(used, own && !among(options.shared, used));
    }
  }
  for (const auto& [name, text] : options.constraints) {
    const Expression formula = Expression::parse(text, whole(name));
    const std::vector<std::string> given = all_of(name, whole(name));
    for (size_t k = 0; k < given.size(); ++k) {
      if (given.size() > 1 && options.constraints.contains(given[k])) continue;
      const size_t set = given.size() > 1 ? k : sets.size();
      for (const std::string& used : formula.names())
        if (resolved(used, set).empty())
          throw InputError(
              fmt::format("{}, which each data set has", used), whole(given[k]),
              fmt::format("{} or another one's, or {} among the shared", numbered(used, 0), used));
      constraints_.emplace(given[k], Constraint{formula, set});
    }
  }
}

std::string FitSetup::resolved(const std::string& name, size_t set) const {
  if (among(names, name)) return name;
  return set < sets.size() ? numbered(name, set) : std::string();
}

bool FitSetup::is_of_each(const std::string& name) const { return among(own_, name) || among(common_, name); }

std::vector<std::string> FitSetup::all_of(const std::string& name, const std::string& what) const {
  if (among(names, name)) return {name};
  if (!among(own_, name)) throw InputError(what, "fit", fmt::format("one of {}", fmt::join(names, ", ")));
  std::vector<std::string> all;
  for (size_t k = 0; k < sets.size(); ++k) all.push_back(numbered(name, k));
  return all;
}

void FitSetup::check_shared(const FitOptions& options) const {
  for (const std::string& name : options.shared) {
    bool used = among(model.names(), name);
    for (const auto& [_, constraint] : constraints_) used |= among(constraint.formula.names(), name);
    if (!used)
      throw InputError(fmt::format("shared {}", name), "fit",
                       fmt::format("a parameter of \"{}\" or of a constraint", model.text()));
  }
}

void FitSetup::check_cycles() const {
  std::set<std::string> done;
  std::vector<std::string> path;
  const std::function<void(const std::string&)> follow = [&](const std::string& name) {
    const auto found = constraints_.find(name);
    if (found == constraints_.end() || done.contains(name)) return;
    const bool again = among(path, name);
    path.push_back(name);
    if (again)
      throw InputError(fmt::format("constraints in a circle: {}", fmt::join(path, ", ")), "fit",
                       "formulas that end at free parameters");
    for (const std::string& used : found->second.formula.names()) follow(resolved(used, found->second.set));
    path.pop_back();
    done.insert(name);
  };
  for (const auto& [name, _] : constraints_) follow(name);
}

const std::string* FitSetup::constraint_of(const std::string& name) const {
  const auto found = constraints_.find(name);
  return found == constraints_.end() ? nullptr : &found->second.formula.text();
}

autodiff::Value FitSetup::build_parameter(autodiff::Tape& graph, const std::string& name,
                                          const Leaf& parameter) const {
  const auto given = constraints_.find(name);
  if (given != constraints_.end())
    return given->second.formula.build(graph, [&](const std::string& used) {
      return build_parameter(graph, resolved(used, given->second.set), parameter);
    });
  return parameter(size_t(std::find(parameters.begin(), parameters.end(), name) - parameters.begin()));
}

autodiff::Value FitSetup::build(autodiff::Tape& graph, size_t set, const Leaf& column,
                                const Leaf& parameter) const {
  return model.build(graph, [&](const std::string& name) {
    const auto x = std::find(x_.begin(), x_.end(), name);
    if (x != x_.end()) return column(size_t(x - x_.begin()));
    return build_parameter(graph, resolved(name, set), parameter);
  });
}

FitLeaves::FitLeaves(const FitSetup& setup, size_t set) {
  std::vector<autodiff::Value> leaves, columns;
  for (const std::string& name : setup.parameters) leaves.push_back(graph.variable(name));
  for (size_t k = 0; k < setup.sets[set].x.size(); ++k) columns.push_back(graph.parameter("column"));
  value = setup.build(graph, set, [&](size_t k) { return columns[k]; }, [&](size_t k) { return leaves[k]; });
}

}  // namespace lockstep::solve
