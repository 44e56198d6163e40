#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "io/series/csv.hpp"
#include "io/series/logs/log_builder.hpp"
#include "io/text/text_scanner.hpp"
#include "lockstep/error.hpp"

namespace lockstep::io {
namespace {

bool all_numbers(const std::vector<std::string>& fields) {
  double ignored = 0;
  return std::all_of(fields.begin(), fields.end(),
                     [&](const std::string& f) { return parse_double(f, ignored); });
}

double step_in(const std::string& field, const TextScanner& scan) {
  double step = 0;
  if (!parse_double(field, step) || !std::isfinite(step) || step < 0)
    scan.fail(fmt::format("the step is '{}'", shown(field)), "a number from 0");
  return step;
}

}  // namespace

TrainingLog parse_csv_log(std::string_view text, std::string_view where) {
  LogBuilder builder(where);
  std::vector<std::string> names;
  size_t step_column = 0;
  for_each_csv_row(
      text, where, [&](const std::vector<std::string>& fields, bool first, const TextScanner& scan) {
        if (first) {
          const bool header = !all_numbers(fields);
          for (size_t c = 0; c < fields.size(); ++c)
            names.push_back(header ? fields[c] : c == 0 ? "step" : std::to_string(c + 1));
          const std::string_view step = step_name_of(names);
          if (step.empty())
            scan.fail("no column of steps", "one of step, global_step, iteration, iter, epoch in the header");
          step_column = size_t(std::find(names.begin(), names.end(), step) - names.begin());
          for (size_t c = 0; c < names.size(); ++c) {
            if (names[c].empty()) scan.fail("a column without a name", "a name for each column");
            if (std::find(names.begin(), names.begin() + ptrdiff_t(c), names[c]) !=
                names.begin() + ptrdiff_t(c))
              scan.fail(fmt::format("column '{}' is repeated", shown(names[c])), "each name once");
            if (c != step_column) builder.name_column(names[c]);
          }
          if (header) return;
        }
        if (fields.size() != names.size())
          scan.fail(fmt::format("{} fields", fields.size()), fmt::format("{} as above", names.size()));
        const double step = step_in(fields[step_column], scan);
        for (size_t c = 0; c < fields.size(); ++c) {
          double value = 0;
          if (c == step_column || fields[c].empty()) continue;
          if (parse_double(fields[c], value))
            builder.add(names[c], step, value, scan.line());
          else
            builder.add_flaw(names[c], fmt::format("column '{}' is '{}'", shown(names[c]), shown(fields[c])),
                             "a finite number", scan.line());
        }
      });
  if (names.empty()) throw InputError("no rows", where, "a log of a training run (CSV)");
  return builder.finish(names[step_column]);
}

}  // namespace lockstep::io
