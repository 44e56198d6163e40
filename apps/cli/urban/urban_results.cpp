// `lockstep urban compare` and `stats`: what is made of runs.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lockstep/urban/areas.hpp"
#include "lockstep/urban/compare.hpp"
#include "urban_call.hpp"

namespace lockstep::cli {
namespace {

std::string class_lines(const urban::StressChange& stress) {
  std::string text =
      fmt::format("{:<24} {:>12} {:>7} {:>12} {:>7} {:>12}\n",
                  stress.index == urban::ComfortIndex::utci ? "UTCI, mean over time" : "PET, mean over time",
                  "before m2", "%", "after m2", "%", "change m2");
  for (size_t k = stress.classes.size(); k-- > 0;) {
    const urban::ClassChange& c = stress.classes[k];
    if (c.before_m2 == 0 && c.after_m2 == 0) continue;
    text += fmt::format("{:<24} {:>12.0f} {:>7.1f} {:>12.0f} {:>7.1f} {:>+12.0f}\n", c.name, c.before_m2,
                        c.before_percent, c.after_m2, c.after_percent, c.after_m2 - c.before_m2);
  }
  return text;
}

int run_compare(Session& session, const urban::CompareOptions& options) {
  const urban::CompareResult result = urban::compare(options);
  std::string text;
  for (const urban::StressChange& stress : result.stress) text += class_lines(stress);
  text += fmt::format("{:<34} {:>9} {:>9} {:>9}  {}\n", "mean", "before", "after", "change",
                      "most negative and positive");
  for (const urban::SummaryChange& s : result.summaries)
    text += fmt::format("{:<34} {:>9.4g} {:>9.4g} {:>+9.3g}  {:+.3g}, {:+.3g}\n", s.name, s.before_mean,
                        s.after_mean, s.mean_change, s.lowest.after - s.lowest.before,
                        s.highest.after - s.highest.before);
  for (const urban::OutputChange& o : result.outputs)
    for (const urban::ChangePlace* p : o.places())
      text += fmt::format("{:<34} {:>9.4g} {:>9.4g} {:>+9.3g}  {} at x {:.1f}, y {:.1f}\n", o.name, p->before,
                          p->after, p->after - p->before, p->time, p->x, p->y);
  show(session, result, text + result.page.string());
  return 0;
}

int run_statistics(Session& session, const urban::AreaStatisticsOptions& options) {
  const urban::AreaStatisticsResult result = urban::area_statistics(options);
  std::string text = fmt::format("{:<24} {:<22} {:<10} {:<16} {:>10} {:>9} {:>9} {:>9}\n", "area", "group",
                                 "output", "time", "m2", "mean", "min", "max");
  constexpr size_t kShownRows = 40;
  for (size_t k = 0; k < std::min(result.rows.size(), kShownRows); ++k) {
    const urban::AreaRow& r = result.rows[k];
    text += fmt::format("{:<24} {:<22} {:<10} {:<16} {:>10.0f} {:>9.4g} {:>9.4g} {:>9.4g}\n", r.area, r.group,
                        r.output, r.time, r.m2, r.mean, r.minimum, r.maximum);
  }
  if (result.rows.size() > kShownRows)
    text += fmt::format("and {} rows more\n", result.rows.size() - kShownRows);
  show(session, result, text + result.file.string());
  return 0;
}

}  // namespace

void add_urban_results(CommandList& commands, CLI::App& urban) {
  add_call<urban::CompareOptions>(commands, urban, "compare",
                                  "compare two runs, before and after: what changes, where and when",
                                  "lockstep urban compare before after --out change", run_compare);
  add_call<urban::AreaStatisticsOptions>(commands, urban, "stats", "statistics of a run by areas",
                                         "lockstep urban stats day --areas districts.gpkg --hours 11-17 "
                                         "--threshold 'utci>38' --out districts.csv",
                                         run_statistics);
}

}  // namespace lockstep::cli
