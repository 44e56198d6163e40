// `lockstep solve`: the commands that fit curves. Graphs, meshes and sketches have files of their own.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "commands.hpp"
#include "core/atomic_file.hpp"
#include "io/pictures/plot.hpp"
#include "io/series/csv.hpp"
#include "lockstep/error.hpp"
#include "solve/datasets/expression.hpp"
#include "solve/datasets/fit.hpp"
#include "solve/datasets/nist.hpp"
#include "solve_options.hpp"

namespace lockstep::cli {
namespace {

using nlohmann::ordered_json;

struct NistCommand {
  std::string input, start = "1";
  SolveOptions solve;
};

int run_nist(const CommonOptions& common, const NistCommand& options) {
  check_solve_options(options.solve, common);
  Session session(common);
  const solve::NistProblem nist = session.host_stage("read", [&] { return solve::read_nist(options.input); });
  if (options.solve.robust != "none")
    throw InputError(fmt::format("'{}'", options.solve.robust), "--robust",
                     "none: the certified values are those of least squares");
  const solve::NistResult result = solve::solve_nist(nist, options.start == "1" ? 1 : 2, session.context(),
                                                     minimize_options(session, options.solve));
  ordered_json document{{"name", nist.name},
                        {"start", options.start == "1" ? 1 : 2},
                        {"names", nist.parameters},
                        {"parameters", result.parameters},
                        {"certified", nist.certified},
                        {"lre", result.lre},
                        {"residual_sum_of_squares", result.residual_sum_of_squares},
                        {"certified_residual_sum_of_squares", nist.residual_sum_of_squares}};
  std::string text = fmt::format("{} from start {}: {:.1f} digits of all parameters\n", nist.name,
                                 options.start, result.lre);
  for (size_t k = 0; k < result.parameters.size(); ++k)
    text += fmt::format("  {:<4} {:>22.13e}  certified {:>18.10e}\n", nist.parameters[k],
                        result.parameters[k], nist.certified[k]);
  text += fmt::format("  residual sum of squares {:.10e}, certified {:.10e}\n  {}\n",
                      result.residual_sum_of_squares, nist.residual_sum_of_squares, outcome(result.summary));
  return finish_solve(session, options.solve, result.summary, std::move(document), text,
                      nist.name + ", start " + options.start);
}

void add_nist(CommandList& commands, CLI::App& parent) {
  Command& command = add_command(commands, parent, "nist",
                                 "a reference dataset of NIST, scored in digits of its certified values");
  auto options = std::make_shared<NistCommand>();
  // Certified digits need more than the usual tolerances.
  const solve::Options wanted = solve::nist_options();
  options->solve.linear = "dense-qr";
  options->solve.max_iterations = wanted.max_iterations;
  options->solve.function_tolerance = wanted.function_tolerance;
  options->solve.gradient_tolerance = wanted.gradient_tolerance;
  options->solve.parameter_tolerance = wanted.parameter_tolerance;
  options->solve.initial_damping = wanted.initial_damping;
  add_positional(*command.app, "FILE", options->input, "a .dat file of StRD nonlinear regression", true);
  add_choice(*command.app, "--start", options->start, "which of the file's two starts (1)", {"1", "2"});
  add_solve_options(*command.app, options->solve);
  add_common(command, "lockstep solve nist Misra1a.dat --start 2 --json");
  command.run = [&command, options] { return run_nist(command.common, *options); };
}

struct FitCommand {
  std::string input, model, x, y, sigma, initial, bounds, out, picture;
  SolveOptions solve;
};

double number_of(const std::string& text, const std::string& option) {
  const auto number = parse_number(text);
  if (!number) throw InputError(fmt::format("'{}'", text), option, "a number");
  return *number;
}

/// "a=1,b=2.5": names with what stands after them.
std::vector<std::pair<std::string, std::string>> assignments(const std::string& text,
                                                             const std::string& option) {
  std::vector<std::pair<std::string, std::string>> list;
  if (text.empty()) return list;
  for (const std::string& part : split_list(text, option)) {
    const size_t equals = part.find('=');
    if (equals == 0 || equals == std::string::npos || equals + 1 == part.size())
      throw InputError(fmt::format("'{}'", part), option, "NAME=VALUE between commas");
    for (const auto& [name, value] : list)
      if (name == part.substr(0, equals))
        throw InputError(fmt::format("'{}' a second time", name), option, "each parameter once");
    list.emplace_back(part.substr(0, equals), part.substr(equals + 1));
  }
  return list;
}

solve::FitOptions fit_options(const FitCommand& command, const io::CsvTable& table) {
  solve::FitOptions options;
  options.model = command.model;
  options.y = command.y;
  options.sigma = command.sigma;
  if (command.x.empty()) {
    // Columns that the model names.
    const solve::Expression model = solve::Expression::parse(command.model, "--model");
    for (const std::string& name : model.names())
      if (std::find(table.names.begin(), table.names.end(), name) != table.names.end())
        options.x.push_back(name);
  } else {
    options.x = split_list(command.x, "--x");
  }
  for (const auto& [name, value] : assignments(command.initial, "--initial"))
    options.initial[name] = number_of(value, "--initial");
  for (const auto& [name, value] : assignments(command.bounds, "--bounds")) {
    const size_t colon = value.find(':');
    if (colon == std::string::npos)
      throw InputError(fmt::format("'{}'", value), "--bounds", "NAME=LOW:HIGH, inf and -inf for none");
    const double low = number_of(value.substr(0, colon), "--bounds"),
                 high = number_of(value.substr(colon + 1), "--bounds");
    if (!(low < high)) throw InputError(fmt::format("'{}'", value), "--bounds", "LOW below HIGH");
    options.bounds[name] = {low, high};
    if (const auto start = options.initial.find(name);
        start != options.initial.end() && !(start->second >= low && start->second <= high))
      throw InputError(fmt::format("{} starts at {}", name, start->second), "--initial",
                       fmt::format("a start within {} of --bounds", value));
  }
  return options;
}

/// A name as a CSV field.
std::string csv_field(const std::string& name) {
  if (name.find_first_of(",;\"\t ") == std::string::npos) return name;
  std::string quoted = "\"";
  for (const char c : name) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

void write_fit(const std::string& path, const io::CsvTable& table, const std::vector<double>& fitted,
               size_t y) {
  std::string csv;
  for (const std::string& name : table.names) csv += csv_field(name) + ",";
  csv += "fitted,residual\n";
  for (size_t row = 0; row < table.rows(); ++row) {
    for (const auto& column : table.columns) csv += fmt::format("{},", column[row]);
    csv += fmt::format("{},{}\n", fitted[row], table.columns[y][row] - fitted[row]);
  }
  write_file(path, csv);
}

int run_fit(const CommonOptions& common, const FitCommand& command) {
  check_solve_options(command.solve, common);
  check_folder(command.out, "--out");
  check_folder(command.picture, "--picture");
  Session session(common);
  const io::CsvTable table = session.host_stage("read", [&] { return io::read_csv(command.input); });
  if (table.names.empty())
    throw InputError("no header line", command.input, "names of the columns in the first line");
  solve::FitOptions options = fit_options(command, table);
  options.loss = robust_option(command.solve);
  options.options = minimize_options(session, command.solve);
  const solve::FitResult result = solve::fit(table, options, session.context());
  options.options.callback = {};

  const size_t y = table.column(command.y, "--y");
  const std::vector<double>& fitted = result.fitted;
  ordered_json parameters = ordered_json::object(), errors = ordered_json::object(),
               initial = ordered_json::object();
  std::string text;
  for (size_t p = 0; p < result.parameters.size(); ++p) {
    const std::string& name = result.parameters[p];
    parameters[name] = result.values[p];
    initial[name] = result.initial[p];
    const bool known = !result.standard_errors.empty() && std::isfinite(result.standard_errors[p]);
    const auto among = [&](const std::vector<std::string>& all) {
      return std::find(all.begin(), all.end(), name) != all.end();
    };
    if (known) errors[name] = result.standard_errors[p];
    text += fmt::format("  {:<8} {:.10g}{}{}{}\n", name, result.values[p],
                        known ? fmt::format(" +- {:.3g}", result.standard_errors[p]) : "",
                        among(result.at_bound) ? " (at its bound)" : "",
                        among(result.undetermined) ? " (not determined)" : "");
  }
  if (result.singular)
    text += fmt::format("  the data do not determine {}: other values fit as well\n",
                        fmt::join(result.undetermined, ", "));
  if (result.degrees_of_freedom == 0) text += "  as many rows as parameters: no standard errors\n";
  text += fmt::format("  residual standard deviation {:.6g}, R squared {:.6g}, {} degrees of freedom\n  {}\n",
                      result.residual_standard_deviation, result.r_squared, result.degrees_of_freedom,
                      outcome(result.summary));
  ordered_json document{{"model", command.model},
                        {"rows", table.rows()},
                        {"parameters", parameters},
                        {"standard_errors", errors},
                        {"initial", initial},
                        {"covariance", result.covariance},
                        {"singular", result.singular},
                        {"undetermined", result.undetermined},
                        {"at_bound", result.at_bound},
                        {"residual_sum_of_squares", result.residual_sum_of_squares},
                        {"residual_standard_deviation", result.residual_standard_deviation},
                        {"r_squared", result.r_squared},
                        {"degrees_of_freedom", result.degrees_of_freedom}};
  if (!command.out.empty()) {
    session.host_stage("write", [&] { write_fit(command.out, table, fitted, y); });
    document["out"] = command.out;
  }
  if (!command.picture.empty()) {
    // Over the first column of x, in its order; without one over the rows.
    std::vector<double> x(table.rows());
    for (size_t row = 0; row < x.size(); ++row)
      x[row] = options.x.empty() ? double(row + 1) : table.columns[table.column(options.x[0], "--x")][row];
    std::vector<size_t> order(x.size());
    for (size_t row = 0; row < order.size(); ++row) order[row] = row;
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return x[a] < x[b]; });
    io::PlotSeries data{"data", {}, {}}, curve{"model", {}, {}};
    for (const size_t row : order) {
      for (io::PlotSeries* s : {&data, &curve}) s->x.push_back(x[row]);
      data.y.push_back(table.columns[y][row]);
      curve.y.push_back(fitted[row]);
    }
    data.line = false;
    curve.marker = false;
    const io::PlotSeries series[] = {data, curve};
    io::PlotOptions plot;
    plot.title = command.model;
    plot.x_label = options.x.empty() ? "row" : options.x[0];
    plot.y_label = command.y;
    session.host_stage("picture", [&] { io::write_drawing(command.picture, io::draw_plot(series, plot)); });
    document["picture"] = command.picture;
  }
  return finish_solve(session, command.solve, result.summary, std::move(document), text, command.model);
}

void add_fit(CommandList& commands, CLI::App& parent) {
  Command& command =
      add_command(commands, parent, "fit", "a formula fitted to columns of a table, with standard errors");
  auto options = std::make_shared<FitCommand>();
  CLI::App& app = *command.app;
  add_positional(app, "FILE", options->input, "a CSV file with a header line", true);
  add_text(app, "--model", options->model, "formula over columns and parameters", "FORMULA");
  add_text(app, "--x", options->x, "columns that the model names (all such but --y)", "NAMES");
  add_text(app, "--y", options->y, "column of the response", "NAME");
  add_text(app, "--sigma", options->sigma, "column of the response's standard deviations", "NAME");
  add_text(app, "--initial", options->initial, "start of parameters, a=1,b=2; others are found", "LIST");
  add_text(app, "--bounds", options->bounds, "limits of parameters, a=0:10,b=-inf:0", "LIST");
  add_file(app, "--out", options->out, "CSV: the table, fitted values and residuals");
  add_file(app, "--picture", options->picture, "data and model (.png, .svg)");
  require(app, "--model");
  require(app, "--y");
  add_solve_options(app, options->solve);
  add_common(command,
             "lockstep solve fit decay.csv --model \"a*exp(-b*t) + c\" --y count --bounds b=0:inf --picture "
             "decay.png");
  command.run = [&command, options] { return run_fit(command.common, *options); };
}

}  // namespace

void add_solve(CommandList& commands, CLI::App& root) {
  Command& solve = add_command(commands, root, "solve", "nonlinear least squares on any device");
  set_footer(*solve.app,
             "Example:\n  lockstep solve g2o sphere2500.g2o --linear cholesky --plot convergence.png");
  add_nist(commands, *solve.app);
  add_solve_g2o(commands, *solve.app);
  add_solve_bal(commands, *solve.app);
  add_fit(commands, *solve.app);
  add_solve_mesh(commands, *solve.app);
  add_solve_sketch(commands, *solve.app);
}

}  // namespace lockstep::cli
