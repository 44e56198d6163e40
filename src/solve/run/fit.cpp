// A formula fitted to columns of tables.

#include <fmt/format.h>

#include <algorithm>

#include "core/files/atomic_file.hpp"
#include "solve/run/common.hpp"
#include "solve/run/fit_inputs.hpp"
#include "solve/run/fit_results.hpp"

namespace lockstep::solve {
namespace {

/// The columns of numbers that all data sets have; where there are several, after the number of the set.
void write_table(const FitRun& wanted, std::span<const io::CsvTable> tables, const FitRunResult& fit) {
  std::vector<std::string> names;
  for (const std::string& name : tables[0].names)
    if (std::all_of(tables.begin(), tables.end(), [&](const io::CsvTable& t) {
          const auto at = std::find(t.names.begin(), t.names.end(), name);
          return at != t.names.end() && !t.faults.contains(size_t(at - t.names.begin()));
        }))
      names.push_back(name);
  std::string csv = tables.size() > 1 ? "data_set," : "";
  for (const std::string& name : names) csv += io::csv_field(name) + ",";
  csv += fit.bands ? "fitted,residual,confidence,prediction\n" : "fitted,residual\n";
  size_t at = 0;
  for (size_t k = 0; k < tables.size(); ++k) {
    const io::CsvTable& table = tables[k];
    const std::vector<double>& y = table.columns[table.column(wanted.y, "--y")];
    for (size_t row = 0; row < table.rows(); ++row, ++at) {
      if (tables.size() > 1) csv += fmt::format("{},", k + 1);
      for (const std::string& name : names)
        csv += fmt::format("{},", table.columns[table.column(name, "--out")][row]);
      csv += fmt::format("{},{}", fit.fitted[at], y[row] - fit.fitted[at]);
      if (fit.bands) csv += fmt::format(",{},{}", fit.bands->confidence[at], fit.bands->prediction[at]);
      csv += "\n";
    }
  }
  write_file(wanted.out, csv);
}

/// The points' columns of numbers with the curve and its bands; where there are several data sets, after the number of the set.
void write_curve(const FitRun& wanted, const io::CsvTable& points, const FitCurve& curve) {
  const auto rows = size_t(curve.rows), sets = curve.fitted.size() / rows;
  std::string csv = sets > 1 ? "data_set," : "";
  std::vector<size_t> columns;
  for (size_t c = 0; c < points.columns.size(); ++c)
    if (!points.faults.contains(c)) columns.push_back(c), csv += io::csv_field(points.names[c]) + ",";
  csv += fmt::format("fitted{}{}\n", curve.confidence.empty() ? "" : ",confidence",
                     curve.prediction.empty() ? "" : ",prediction");
  for (size_t at = 0; at < curve.fitted.size(); ++at) {
    if (sets > 1) csv += fmt::format("{},", at / rows + 1);
    for (const size_t c : columns) csv += fmt::format("{},", points.columns[c][at % rows]);
    csv += fmt::format("{}", curve.fitted[at]);
    for (const std::vector<double>* half : {&curve.confidence, &curve.prediction})
      if (!half->empty()) csv += fmt::format(",{}", (*half)[at]);
    csv += "\n";
  }
  write_file(wanted.curve, csv);
}

FitRunResult result_of(FitResult solved, const FitRun& wanted, std::span<const io::CsvTable> tables) {
  FitRunResult out;
  out.model = wanted.model;
  for (const io::CsvTable& table : tables) {
    out.rows += int64_t(table.rows());
    out.rows_of_sets.push_back(int64_t(table.rows()));
  }
  if (wanted.correlations) out.correlations = correlations_by(solved.covariance, solved.parameters.size());
  out.parameters = std::move(solved.parameters);
  out.constraints = std::move(solved.constraint);
  out.initial = std::move(solved.initial);
  out.values = std::move(solved.values);
  out.fitted = std::move(solved.fitted);
  out.standard_errors = std::move(solved.standard_errors);
  out.covariance = std::move(solved.covariance);
  out.at_bound = std::move(solved.at_bound);
  out.undetermined = std::move(solved.undetermined);
  out.residual_sum_of_squares = solved.residual_sum_of_squares;
  out.residual_standard_deviation = solved.residual_standard_deviation;
  out.r_squared = solved.r_squared;
  out.chi_squared = solved.chi_squared;
  out.chi_squared_probability = solved.chi_squared_probability;
  out.degrees_of_freedom = solved.degrees_of_freedom;
  out.tests = solved.tests;
  out.profile = std::move(solved.profile);
  out.bands = std::move(solved.bands);
  out.at = std::move(solved.at);
  out.summary = std::move(solved.summary);
  return out;
}

}  // namespace

FitRunResult run(Context& context, const FitRun& wanted) {
  check_run(wanted);
  check_fit(wanted);
  std::vector<StageRecord> stages;
  const std::vector<io::CsvTable> tables = host_stage(stages, "read", [&] { return read_tables(wanted); });
  FitOptions options = fit_options(wanted, tables[0]);
  options.at = read_points(wanted);
  options.absolute_sigma = wanted.absolute_sigma, options.profile = wanted.profile,
  options.bands = wanted.bands;
  options.loss = wanted.loss, options.options = observed(wanted.options);
  FitRunResult out = result_of(fit(tables, options, context), wanted, tables);
  out.host_stages = std::move(stages);
  if (!wanted.out.empty()) {
    host_stage(out.host_stages, "write", [&] { write_table(wanted, tables, out); });
    wrote(out, "out", wanted.out);
  }
  if (!wanted.curve.empty()) {
    host_stage(out.host_stages, "write", [&] { write_curve(wanted, *options.at, *out.at); });
    wrote(out, "curve", wanted.curve);
  }
  if (!wanted.picture.empty() || !wanted.report.empty()) {
    const std::string x = options.x.empty() ? "" : options.x[0];
    const io::Drawing picture =
        host_stage(out.host_stages, "picture", [&] { return draw_fit(out, tables, x, wanted.y); });
    if (!wanted.picture.empty()) {
      io::write_drawing(wanted.picture, picture);
      wrote(out, "picture", wanted.picture);
    }
    if (!wanted.report.empty()) {
      write_file(wanted.report, fit_page(out, picture));
      wrote(out, "report", wanted.report);
    }
  }
  finish(out, wanted, wanted.model);
  return out;
}

}  // namespace lockstep::solve
