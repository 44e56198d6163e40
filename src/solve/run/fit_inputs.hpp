// The inputs of a fit that commands share: tables and the options of the model.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <vector>

#include "solve/fit/fit.hpp"
#include "solve/run/common.hpp"

namespace lockstep::solve {

/// Those of files, or the arrays given, checked as a file's reader does.
std::vector<io::CsvTable> read_tables(const FitModel& wanted);
/// The points of FitRun::at.
std::optional<io::CsvTable> read_points(const FitRun& wanted);
/// The line of each row of a table that read_tables() reads.
std::vector<int64_t> lines_of_rows(const std::string& file);
/// Columns of x are those of `table` that the model names, unless they are given.
FitOptions fit_options(const FitModel& wanted, const io::CsvTable& table);
/// Correlations from a covariance (count, count); empty where it is.
std::vector<double> correlations_by(const std::vector<double>& covariance, size_t count);

/// Throws OptionError for starts outside of their bounds and shared parameters of one data set.
template <class Run>
void check_fit(const Run& wanted) {
  for (const auto& [name, range] : wanted.bounds)
    if (const auto start = wanted.initial.find(name);
        start != wanted.initial.end() && !(start->second >= range.first && start->second <= range.second))
      throw wrong<Run>("initial", fmt::format("{} starts at {}", name, start->second),
                       fmt::format("a start within {}:{} of {{bounds}}", range.first, range.second));
  if (wanted.others.empty() && wanted.given.size() < 2 && !wanted.shared.empty())
    throw wrong<Run>("shared", "one data set", "two or more");
}

}  // namespace lockstep::solve
