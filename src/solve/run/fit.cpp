// A formula fitted to columns of a table.
#include "solve/datasets/fit.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/files/atomic_file.hpp"
#include "core/record/journal.hpp"
#include "core/reports/json_text.hpp"
#include "io/pictures/plot.hpp"
#include "lockstep/error.hpp"
#include "lockstep/solve/documents.hpp"
#include "solve/datasets/expression.hpp"
#include "solve/run/common.hpp"

namespace lockstep::solve {
namespace {

FitOptions fit_options(const FitRun& wanted, const io::CsvTable& table) {
  FitOptions options;
  options.model = wanted.model;
  options.y = wanted.y;
  options.sigma = wanted.sigma;
  options.x = wanted.x;
  const Expression model = Expression::parse(wanted.model, "--model");
  if (wanted.x.empty())
    for (const std::string& name : model.names())
      if (std::find(table.names.begin(), table.names.end(), name) != table.names.end())
        options.x.push_back(name);
  journal::found("x", fmt::format("{}", fmt::join(options.x, ",")));
  options.initial = wanted.initial;
  options.bounds = wanted.bounds;
  options.loss = wanted.loss;
  options.options = observed(wanted.options);
  return options;
}

void write_table(const std::string& path, const io::CsvTable& table, const std::vector<double>& fitted,
                 const std::vector<double>& y) {
  std::string csv;
  for (const std::string& name : table.names) csv += io::csv_field(name) + ",";
  csv += "fitted,residual\n";
  for (size_t row = 0; row < table.rows(); ++row) {
    for (const auto& column : table.columns) csv += fmt::format("{},", column[row]);
    csv += fmt::format("{},{}\n", fitted[row], y[row] - fitted[row]);
  }
  write_file(path, csv);
}

/// Data and model over the first column of x, in its order; without one over the rows.
io::Drawing draw_fit(const FitOptions& options, const io::CsvTable& table, const std::vector<double>& fitted,
                     const std::vector<double>& y) {
  std::vector<double> x(table.rows());
  std::iota(x.begin(), x.end(), 1.0);
  if (!options.x.empty()) x = table.columns[table.column(options.x[0], "--x")];
  std::vector<size_t> order(x.size());
  std::iota(order.begin(), order.end(), size_t(0));
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return x[a] < x[b]; });
  io::PlotSeries data{"data", {}, {}}, curve{"model", {}, {}};
  for (const size_t row : order) {
    for (io::PlotSeries* s : {&data, &curve}) s->x.push_back(x[row]);
    data.y.push_back(y[row]);
    curve.y.push_back(fitted[row]);
  }
  data.line = false;
  curve.marker = false;
  const io::PlotSeries series[] = {data, curve};
  io::PlotOptions plot;
  plot.title = options.model;
  plot.x_label = options.x.empty() ? "row" : options.x[0];
  plot.y_label = options.y;
  return io::draw_plot(series, plot);
}

bool is_among(const std::vector<std::string>& all, const std::string& name) {
  return std::find(all.begin(), all.end(), name) != all.end();
}

}  // namespace

FitRunResult run(Context& context, const FitRun& wanted) {
  check_run(wanted);
  for (const auto& [name, range] : wanted.bounds)
    if (const auto start = wanted.initial.find(name);
        start != wanted.initial.end() && !(start->second >= range.first && start->second <= range.second))
      throw wrong<FitRun>("initial", fmt::format("{} starts at {}", name, start->second),
                          fmt::format("a start within {}:{} of {{bounds}}", range.first, range.second));
  FitRunResult out;
  const io::CsvTable table = host_stage(out.host_stages, "read", [&] { return io::read_csv(wanted.file); });
  if (table.names.empty())
    throw InputError("no header line", wanted.file, "names of the columns in the first line");
  const FitOptions options = fit_options(wanted, table);
  FitResult solved = fit(table, options, context);
  const std::vector<double>& y = table.columns[table.column(wanted.y, "--y")];
  if (!wanted.out.empty()) {
    host_stage(out.host_stages, "write", [&] { write_table(wanted.out, table, solved.fitted, y); });
    wrote(out, "out", wanted.out);
  }
  if (!wanted.picture.empty()) {
    host_stage(out.host_stages, "picture",
               [&] { io::write_drawing(wanted.picture, draw_fit(options, table, solved.fitted, y)); });
    wrote(out, "picture", wanted.picture);
  }
  out.model = wanted.model;
  out.rows = int64_t(table.rows());
  out.parameters = std::move(solved.parameters);
  out.initial = std::move(solved.initial);
  out.values = std::move(solved.values);
  out.standard_errors = std::move(solved.standard_errors);
  out.covariance = std::move(solved.covariance);
  out.at_bound = std::move(solved.at_bound);
  out.undetermined = std::move(solved.undetermined);
  out.residual_sum_of_squares = solved.residual_sum_of_squares;
  out.residual_standard_deviation = solved.residual_standard_deviation;
  out.r_squared = solved.r_squared;
  out.chi_squared = solved.chi_squared;
  out.degrees_of_freedom = solved.degrees_of_freedom;
  out.summary = std::move(solved.summary);
  finish(out, wanted, wanted.model);
  return out;
}

nlohmann::ordered_json document_of(const FitRunResult& r) {
  ordered_json parameters = ordered_json::object(), errors = ordered_json::object(),
               initial = ordered_json::object();
  for (size_t p = 0; p < r.parameters.size(); ++p) {
    parameters[r.parameters[p]] = r.values[p];
    initial[r.parameters[p]] = r.initial[p];
    if (!r.standard_errors.empty() && std::isfinite(r.standard_errors[p]))
      errors[r.parameters[p]] = r.standard_errors[p];
  }
  const ordered_json chi_squared = r.chi_squared ? ordered_json(*r.chi_squared) : ordered_json();
  return whole({{"model", r.model},
                {"rows", r.rows},
                {"parameters", parameters},
                {"standard_errors", errors},
                {"initial", initial},
                {"covariance", r.covariance},
                {"singular", !r.undetermined.empty()},
                {"undetermined", r.undetermined},
                {"at_bound", r.at_bound},
                {"residual_sum_of_squares", r.residual_sum_of_squares},
                {"residual_standard_deviation", r.residual_standard_deviation},
                {"r_squared", r.r_squared},
                {"chi_squared", chi_squared},
                {"degrees_of_freedom", r.degrees_of_freedom}},
               r);
}
std::string to_json(const FitRunResult& r) { return json_text(document_of(r)); }

std::string to_text(const FitRunResult& r) {
  std::string text;
  for (size_t p = 0; p < r.parameters.size(); ++p) {
    const std::string& name = r.parameters[p];
    text += fmt::format("  {:<8} {:.10g}", name, r.values[p]);
    if (!r.standard_errors.empty() && std::isfinite(r.standard_errors[p]))
      text += fmt::format(" +- {:.3g}", r.standard_errors[p]);
    if (is_among(r.at_bound, name)) text += " (at its bound)";
    if (is_among(r.undetermined, name)) text += " (not determined)";
    text += "\n";
  }
  if (!r.undetermined.empty())
    text += fmt::format("  the data do not determine {}: other values fit as well\n",
                        fmt::join(r.undetermined, ", "));
  if (r.degrees_of_freedom == 0) text += "  as many rows as parameters: no standard errors\n";
  if (r.chi_squared) text += fmt::format("  chi squared {:.6g}\n", *r.chi_squared);
  return text +
         fmt::format("  residual standard deviation {:.6g}, R squared {:.6g}, {} degrees of freedom\n  {}\n",
                     r.residual_standard_deviation, r.r_squared, r.degrees_of_freedom, outcome(r.summary));
}

}  // namespace lockstep::solve
