// Text, JSON, picture and page of a fit.
#include "solve/run/fit_results.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/reports/json_text.hpp"
#include "io/pages/html.hpp"
#include "io/pictures/plot.hpp"
#include "lockstep/solve/documents.hpp"
#include "solve/run/common.hpp"

namespace lockstep::solve {
namespace {

bool is_among(const std::vector<std::string>& all, const std::string& name) {
  return std::find(all.begin(), all.end(), name) != all.end();
}
std::string remark(const FitRunResult& r, const std::string& name) {
  if (const auto given = r.constraints.find(name); given != r.constraints.end())
    return fmt::format("= {}", given->second);
  if (is_among(r.at_bound, name)) return "at its bound";
  return is_among(r.undetermined, name) ? "not determined" : "";
}
std::string error_of(const FitRunResult& r, size_t p) {
  return r.standard_errors.empty() || !std::isfinite(r.standard_errors[p])
             ? ""
             : fmt::format("{:.3g}", r.standard_errors[p]);
}
/// Statistics by name, as text and page have them.
std::vector<std::pair<std::string, std::string>> statistics_of(const FitRunResult& r) {
  std::vector<std::pair<std::string, std::string>> rows;
  const auto add = [&](const char* name, std::string value) { rows.emplace_back(name, std::move(value)); };
  if (r.chi_squared) add("chi squared", fmt::format("{:.6g}", *r.chi_squared));
  if (r.chi_squared_probability)
    add("probability of one as large or larger", fmt::format("{:.3g}", *r.chi_squared_probability));
  if (r.tests.akaike)
    add("information criteria", fmt::format("Akaike {:.6g}, Bayes {:.6g}", *r.tests.akaike, *r.tests.bayes));
  if (r.tests.runs_probability)
    add("runs of residuals of one sign", fmt::format("{}, by chance {:.3g}, probability {:.3g}", r.tests.runs,
                                                     r.tests.runs_expected, *r.tests.runs_probability));
  if (r.tests.normality)
    add("normality of residuals", fmt::format("K squared {:.3g}, probability {:.3g}", *r.tests.normality,
                                              *r.tests.normality_probability));
  return rows;
}

struct Correlation {
  double value;
  std::string first, second;
};
/// Those of at least 0.1, largest first.
std::vector<Correlation> correlations_of(const FitRunResult& r) {
  std::vector<Correlation> all;
  const size_t count = r.parameters.size();
  for (size_t p = 0; p < count && !r.correlations.empty(); ++p)
    for (size_t q = p + 1; q < count; ++q)
      if (const double c = r.correlations[p * count + q]; std::abs(c) >= 0.1)
        all.push_back({c, r.parameters[p], r.parameters[q]});
  std::stable_sort(all.begin(), all.end(), [](const Correlation& a, const Correlation& b) {
    return std::abs(a.value) > std::abs(b.value);
  });
  return all;
}

std::vector<double> plotted(const FitRunResult& fit, std::span<const double> half, size_t first,
                            const std::vector<size_t>& order, double sign) {
  std::vector<double> out;
  for (const size_t row : order) out.push_back(fit.fitted[first + row] + sign * half[first + row]);
  return out;
}

}  // namespace

io::Drawing draw_fit(const FitRunResult& fit, std::span<const io::CsvTable> tables, const std::string& x,
                     const std::string& y) {
  std::vector<io::PlotSeries> series;
  size_t first = 0;
  for (size_t k = 0; k < tables.size(); ++k) {
    const io::CsvTable& table = tables[k];
    const std::vector<double>& response = table.columns[table.column(y, "--y")];
    std::vector<double> at(table.rows());
    std::iota(at.begin(), at.end(), 1.0);
    if (!x.empty()) at = table.columns[table.column(x, "--x")];
    std::vector<size_t> order(at.size());
    std::iota(order.begin(), order.end(), size_t(0));
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return at[a] < at[b]; });
    const std::string number = tables.size() > 1 ? fmt::format(" {}", k + 1) : "";
    io::PlotSeries data{"data" + number, {}, {}}, curve{"model" + number, {}, {}};
    for (const size_t row : order) {
      for (io::PlotSeries* s : {&data, &curve}) s->x.push_back(at[row]);
      data.y.push_back(response[row]);
      curve.y.push_back(fit.fitted[first + row]);
    }
    data.line = false;
    curve.marker = false;
    series.push_back(data), series.push_back(curve);
    if (fit.bands)
      for (const bool of_curve : {true, false})
        for (const double sign : {1.0, -1.0}) {
          io::PlotSeries band{"", curve.x, {}};
          band.y = plotted(fit, of_curve ? fit.bands->confidence : fit.bands->prediction, first, order, sign);
          if (sign > 0)
            band.name = fmt::format("{} {:.0f} %{}", of_curve ? "curve" : "measurements",
                                    100 * fit.bands->level, number);
          band.marker = false, band.dashed = !of_curve;
          band.ink = io::series_ink(2 * tables.size() + 2 * k + (of_curve ? 0 : 1));
          series.push_back(std::move(band));
        }
    first += table.rows();
  }
  io::PlotOptions plot;
  plot.title = fit.model;
  plot.x_label = x.empty() ? "row" : x;
  plot.y_label = y;
  return io::draw_plot(series, plot);
}

std::string fit_page(const FitRunResult& fit, const io::Drawing& picture) {
  namespace html = io::html;
  html::Table parameters{{"parameter", "value", "standard error", "start", ""}, {}, {}};
  for (size_t p = 0; p < fit.parameters.size(); ++p)
    parameters.rows.push_back({fit.parameters[p], fmt::format("{:.10g}", fit.values[p]), error_of(fit, p),
                               fmt::format("{:.6g}", fit.initial[p]), remark(fit, fit.parameters[p])});
  std::vector<std::pair<std::string, std::string>> facts{
      {"model", fit.model},
      {"rows", fmt::format("{}", fmt::join(fit.rows_of_sets, " + "))},
      {"degrees of freedom", fmt::format("{}", fit.degrees_of_freedom)},
      {"residual standard deviation", fmt::format("{:.6g}", fit.residual_standard_deviation)},
      {"R squared", fmt::format("{:.6g}", fit.r_squared)}};
  for (auto& row : statistics_of(fit)) facts.push_back(std::move(row));
  facts.emplace_back("minimisation", outcome(fit.summary));
  for (const std::string& note : fit.summary.notes) facts.emplace_back("note", note);
  std::string body = html::figure(picture) + html::heading("Parameters", 2) + html::table(parameters) +
                     html::heading("Statistics", 2) + html::facts(facts);
  if (!fit.correlations.empty()) {
    html::Table table{{"parameters", "correlation"}, {}, {}};
    for (const Correlation& c : correlations_of(fit))
      table.rows.push_back({fmt::format("{}, {}", c.first, c.second), fmt::format("{:+.4f}", c.value)});
    body += html::heading("Correlations", 2) + html::table(table);
  }
  if (!fit.profile.empty()) {
    html::Table table{{"parameter"}, {}, {}};
    for (const char* side : {"from", "to"})
      for (const double level : profile_levels())
        table.head.push_back(fmt::format("{} {:.2f} %", side, 100 * level));
    for (const FitProfile& row : fit.profile) {
      table.rows.push_back({row.parameter});
      for (const auto& ends : {row.lower, row.upper})
        for (const double end : ends) table.rows.back().push_back(fmt::format("{:.8g}", end));
    }
    body += html::heading("Profile likelihood", 2) + html::table(table);
  }
  return html::page("Fit: " + fit.model, body);
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
  const auto optional = [](const std::optional<double>& value) {
    return value ? ordered_json(*value) : ordered_json();
  };
  const ordered_json chi_squared = optional(r.chi_squared);
  ordered_json document{{"model", r.model},
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
                        {"degrees_of_freedom", r.degrees_of_freedom},
                        {"chi_squared_probability", optional(r.chi_squared_probability)},
                        {"akaike", optional(r.tests.akaike)},
                        {"bayes", optional(r.tests.bayes)},
                        {"runs",
                         {{"found", r.tests.runs},
                          {"expected", r.tests.runs_expected},
                          {"probability", optional(r.tests.runs_probability)}}},
                        {"normality",
                         {{"k_squared", optional(r.tests.normality)},
                          {"probability", optional(r.tests.normality_probability)}}}};
  if (r.rows_of_sets.size() > 1) document["rows_of_sets"] = r.rows_of_sets;
  if (!r.constraints.empty()) document["constraints"] = r.constraints;
  if (!r.correlations.empty()) document["correlations"] = r.correlations;
  if (!r.profile.empty()) {
    ordered_json& profile = document["profile"] = {{"levels", profile_levels()}};
    for (const FitProfile& row : r.profile)
      profile["parameters"][row.parameter] = {{"lower", row.lower}, {"upper", row.upper}};
  }
  if (r.bands)
    document["bands"] = {
        {"level", r.bands->level}, {"confidence", r.bands->confidence}, {"prediction", r.bands->prediction}};
  if (r.at) {
    ordered_json& at = document["at"] = {{"rows", r.at->rows}, {"fitted", r.at->fitted}};
    if (!r.at->confidence.empty()) at["confidence"] = r.at->confidence;
    if (!r.at->prediction.empty()) at["prediction"] = r.at->prediction;
  }
  return whole(std::move(document), r);
}
std::string to_json(const FitRunResult& r) { return json_text(document_of(r)); }

std::string to_text(const FitRunResult& r) {
  std::string text;
  for (size_t p = 0; p < r.parameters.size(); ++p) {
    const std::string& name = r.parameters[p];
    text += fmt::format("  {:<8} {:.10g}", name, r.values[p]);
    if (const std::string error = error_of(r, p); !error.empty()) text += " +- " + error;
    if (const std::string more = remark(r, name); !more.empty()) text += fmt::format(" ({})", more);
    text += "\n";
  }
  if (!r.undetermined.empty())
    text += fmt::format("  the data do not determine {}: other values fit as well\n",
                        fmt::join(r.undetermined, ", "));
  if (r.degrees_of_freedom == 0) text += "  as many rows as parameters: no standard errors\n";
  for (const auto& [name, value] : statistics_of(r)) text += fmt::format("  {} {}\n", name, value);
  for (const Correlation& c : correlations_of(r))
    text += fmt::format("  correlation of {} and {}: {:+.4f}\n", c.first, c.second, c.value);
  for (const FitProfile& row : r.profile)
    for (size_t k = 0; k < row.lower.size(); ++k)
      text += fmt::format("  {:<8} {:.2f} % within {:.8g} and {:.8g}\n", row.parameter,
                          100 * profile_levels()[k], row.lower[k], row.upper[k]);
  return text +
         fmt::format("  residual standard deviation {:.6g}, R squared {:.6g}, {} degrees of freedom\n  {}\n",
                     r.residual_standard_deviation, r.r_squared, r.degrees_of_freedom, outcome(r.summary));
}

}  // namespace lockstep::solve
