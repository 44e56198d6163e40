#include "urban/compare/page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/record/stamp.hpp"
#include "io/pages/html.hpp"
#include "io/pictures/plot.hpp"
#include "io/series/civil_time.hpp"
#include "io/series/csv.hpp"
#include "io/text/file.hpp"
#include "urban/results/percentiles.hpp"

namespace lockstep::urban {
namespace {

namespace html = io::html;

std::string unit_text(const std::string& unit) {
  return unit == "degC" ? "°C" : unit == "W m-2" ? "W/m²" : unit == "1" ? "" : unit;
}

const char* index_text(ComfortIndex index) { return index == ComfortIndex::utci ? "UTCI" : "PET"; }

std::string csv_of(const html::Table& table) {
  std::string text;
  const auto add = [&](const std::vector<std::string>& row) {
    for (size_t k = 0; k < row.size(); ++k) text += (k ? "," : "") + io::csv_field(row[k]);
    text += "\n";
  };
  if (table.head.empty()) return text;
  add(table.head);
  for (const auto& row : table.rows) add(row);
  return text;
}

html::Table stress_table(const StressChange& stress) {
  html::Table table{{"class", "before m²", "before %", "after m²", "after %", "change m²",
                     "hottest before m²", "hottest after m²"},
                    {},
                    {}};
  for (size_t k = stress.classes.size(); k-- > 0;) {
    const ClassChange& c = stress.classes[k];
    if (c.before_m2 == 0 && c.after_m2 == 0) continue;
    table.rows.push_back({c.name, shown_number(c.before_m2, 0), shown_number(c.before_percent, 1),
                          shown_number(c.after_m2, 0), shown_number(c.after_percent, 1),
                          shown_number(c.after_m2 - c.before_m2, 0), shown_number(c.hottest_before_m2, 0),
                          shown_number(c.hottest_after_m2, 0)});
  }
  return table;
}

html::Table summary_table(const CompareResult& result) {
  html::Table table{{"", "unit", "before", "after", "change", "lowest", "highest"}, {}, {}};
  for (const SummaryChange& s : result.summaries)
    table.rows.push_back({s.title, unit_text(s.unit), shown_number(s.before_mean, 2),
                          shown_number(s.after_mean, 2), shown_number(s.mean_change, 2),
                          shown_number(s.lowest.after - s.lowest.before, 2),
                          shown_number(s.highest.after - s.highest.before, 2)});
  return table;
}

/// Of the changes that are not the same everywhere.
html::Table distribution_table(const CompareResult& result) {
  html::Table table{{"", "unit"}, {}, {}};
  for (const double share : kShares) table.head.push_back(fmt::format("{:g} %", share));
  for (const SummaryChange& s : result.summaries) {
    if (s.change.front() == s.change.back()) continue;
    std::vector<std::string> row = {s.title, unit_text(s.unit)};
    for (const double v : s.change) row.push_back(shown_number(v, 2));
    table.rows.push_back(std::move(row));
  }
  return table;
}

html::Table place_table(const CompareResult& result) {
  html::Table table{{"", "unit", "change", "before", "after", "when", "x", "y"}, {}, {}};
  for (const OutputChange& o : result.outputs)
    for (const ChangePlace* p : o.places())
      table.rows.push_back({o.title, unit_text(o.unit), shown_number(p->after - p->before, 2),
                            shown_number(p->before, 2), shown_number(p->after, 2), p->time,
                            shown_number(p->x, 1), shown_number(p->y, 1)});
  return table;
}

/// The means of both runs over the steps, numbered from the first.
io::Drawing course_of(const OutputChange& o, const CompareResult& result) {
  io::PlotSeries before, after;
  before.name = "before";
  after.name = "after";
  before.marker = after.marker = false;
  const auto minutes = [&](size_t k) { return io::parse_iso_time(result.times[k])->minutes; };
  const io::CivilMinutes first = minutes(0),
                         midnight = io::parse_iso_time(result.times[0].substr(0, 10) + "T00:00")->minutes;
  const bool one_day = minutes(result.times.size() - 1) - first <= io::kMinutesPerDay;
  for (size_t k = 0; k < o.before_mean.size(); ++k) {
    before.x.push_back(one_day ? double(minutes(k) - midnight) / 60 : double(k + 1));
    before.y.push_back(o.before_mean[k]);
    after.y.push_back(o.after_mean[k]);
  }
  after.x = before.x;
  io::PlotOptions plot;
  plot.title = o.title + ", mean";
  plot.x_label = one_day ? "hour (end of the interval)" : "step";
  plot.y_label = unit_text(o.unit);
  plot.whole_x = true;
  plot.height = 360;
  return io::draw_plot(std::vector{before, after}, plot);
}

std::string opening(const CompareOptions& options, const CompareResult& result) {
  std::vector<std::pair<std::string, std::string>> facts;
  if (!result.place.empty()) facts.emplace_back("place", result.place);
  const auto scenario = [](const std::string& name, const std::filesystem::path& folder) {
    return name == folder.lexically_normal().filename() ? folder.string()
                                                        : fmt::format("{} ({})", name, folder.string());
  };
  const std::pair<std::string, std::string> more[] = {
      {"before", scenario(result.before_scenario, options.before)},
      {"after", scenario(result.after_scenario, options.after)},
      {"period", result.times.front() + " to " + result.times.back()},
      {"grid", fmt::format("{} × {} pixels of {:g} m", result.rows, result.cols, result.pixel_size_m)},
      {"compared",
       fmt::format("{} m² {}", shown_number(result.compared_m2, 0),
                   options.include_roofs ? "with roofs and water" : "of ground, without roofs and water")}};
  facts.insert(facts.end(), std::begin(more), std::end(more));
  if (!options.include_roofs)
    facts.emplace_back("ground",
                       fmt::format("{} m² before, {} m² after", shown_number(result.before_ground_m2, 0),
                                   shown_number(result.after_ground_m2, 0)));
  for (const RunDifference& d : result.differences)
    facts.emplace_back("differs: " + d.option, d.before + " → " + d.after);
  for (const std::string& warning : result.warnings) facts.emplace_back("warning", warning);
  return html::facts(facts);
}

}  // namespace

std::string shown_number(double value, int decimals) {
  if (!std::isfinite(value)) return "";
  const std::string text = fmt::format("{:.{}f}", value, decimals);
  // A number that rounds to zero has no sign.
  return text.find_first_of("123456789") == text.npos ? text.substr(text.starts_with('-')) : text;
}

std::vector<std::pair<std::string, std::string>> comparison_tables(const CompareResult& result) {
  html::Table classes;
  for (const StressChange& stress : result.stress) {
    const html::Table table = stress_table(stress);
    classes.head = table.head;
    classes.head.insert(classes.head.begin(), "index");
    for (std::vector<std::string> row : table.rows) {
      row.insert(row.begin(), index_text(stress.index));
      classes.rows.push_back(std::move(row));
    }
  }
  html::Table summaries = summary_table(result), places = place_table(result);
  summaries.head[0] = "summary";
  places.head[0] = "output";
  return {
      {"classes", csv_of(classes)}, {"summaries", csv_of(summaries)}, {"largest_changes", csv_of(places)}};
}

std::string comparison_page(const CompareOptions& options, const CompareResult& result) {
  std::string body = opening(options, result);
  for (const StressChange& stress : result.stress) {
    body += html::heading(fmt::format("Area by class of {}", index_text(stress.index)), 2);
    body +=
        fmt::format("<p>Mean over the steps, and at {}, which is the hottest before.</p>\n", stress.hottest);
    body += html::table(stress_table(stress));
  }
  body += html::heading("Summaries", 2) +
          "<p>Means of the pixels, and the lowest and the highest change of one of them.</p>\n" +
          html::table(summary_table(result));
  if (const html::Table table = distribution_table(result); !table.rows.empty())
    body += html::heading("Distribution of the change", 2) +
            "<p>The change that this share of the pixels does not exceed.</p>\n" + html::table(table);
  if (const html::Table table = place_table(result); !table.rows.empty())
    body += html::heading("Largest changes", 2) + html::table(table);
  if (result.steps > 1 && !result.outputs.empty()) {
    body += html::heading("Course of the means", 2);
    for (const OutputChange& o : result.outputs) body += html::figure(course_of(o, result));
  }
  std::string maps;
  size_t number = 0;
  for (const SummaryChange& s : result.summaries)
    if (!s.picture.empty()) maps += html::picture(io::read_text_file(s.picture), s.title, number++);
  if (!maps.empty())
    body += html::heading("Maps of the change", 2) + "<div class=\"maps\">" + maps + "</div>\n";
  const record::Stamp stamp = record::stamp();
  body += html::heading("Source", 2) + html::facts({{"program", stamp.program}, {"run", stamp.run}});
  return html::page(result.place.empty() ? "Before and after" : "Before and after: " + result.place, body);
}

}  // namespace lockstep::urban
