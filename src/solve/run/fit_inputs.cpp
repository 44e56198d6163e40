#include "solve/run/fit_inputs.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "core/record/journal.hpp"
#include "io/text/file.hpp"
#include "lockstep/error.hpp"

namespace lockstep::solve {
namespace {

io::CsvTable read_table(const std::string& file) {
  io::CsvTable table = io::read_csv(file);
  if (table.names.empty()) throw InputError("no header line", file, "names of the columns in the first line");
  return table;
}
/// A table of arrays, with the checks that a file's reader makes.
io::CsvTable checked(const FitTable& given, const std::string& where) {
  if (given.names.size() != given.columns.size() || given.columns.empty() || given.columns[0].empty())
    throw InputError(fmt::format("{} names of {} columns", given.names.size(), given.columns.size()), where,
                     "as many of both, with rows");
  for (size_t k = 0; k < given.columns.size(); ++k) {
    const std::vector<double>& column = given.columns[k];
    if (column.size() != given.columns[0].size())
      throw InputError(fmt::format("{} rows of column {}", column.size(), given.names[k]), where,
                       fmt::format("{}, as of {}", given.columns[0].size(), given.names[0]));
    const auto bad = std::find_if(column.begin(), column.end(), [](double v) { return !std::isfinite(v); });
    if (bad != column.end())
      throw InputError(fmt::format("column {} is {}", given.names[k], *bad),
                       fmt::format("{}, row {}", where, bad - column.begin() + 1), "a finite number");
  }
  return {given.names, given.columns};
}

}  // namespace

FitOptions fit_options(const FitModel& wanted, const io::CsvTable& table) {
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
  options.constraints = wanted.constraints;
  options.shared = wanted.shared;
  return options;
}

std::vector<io::CsvTable> read_tables(const FitModel& wanted) {
  std::vector<io::CsvTable> tables;
  for (const FitTable& table : wanted.given)
    tables.push_back(checked(table, fmt::format("data set {}", tables.size() + 1)));
  if (tables.empty()) {
    tables.push_back(read_table(wanted.file));
    for (const std::string& file : wanted.others) tables.push_back(read_table(file));
  }
  return tables;
}

std::optional<io::CsvTable> read_points(const FitRun& wanted) {
  if (wanted.at_given) return checked(*wanted.at_given, "at");
  if (wanted.at.empty()) return std::nullopt;
  return read_table(wanted.at);
}

std::vector<int64_t> lines_of_rows(const std::string& file) {
  std::vector<int64_t> lines;
  io::for_each_csv_row(io::read_text_file(file, "a table of numbers (CSV)"), file,
                       [&](const std::vector<std::string>&, bool first, const io::TextScanner& scan) {
                         if (!first) lines.push_back(scan.line());
                       });
  return lines;
}

std::vector<double> correlations_by(const std::vector<double>& covariance, size_t count) {
  std::vector<double> out(covariance.size());
  for (size_t p = 0; p < count && !covariance.empty(); ++p)
    for (size_t q = 0; q < count; ++q) {
      const double scale = std::sqrt(covariance[p * count + p]) * std::sqrt(covariance[q * count + q]);
      out[p * count + q] = p == q ? 1 : scale > 0 ? covariance[p * count + q] / scale : 0;
    }
  return out;
}

}  // namespace lockstep::solve
