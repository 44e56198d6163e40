#include "urban/results/run_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "core/numbers/parse_number.hpp"
#include "io/pages/html.hpp"
#include "io/pictures/plot.hpp"
#include "io/series/civil_time.hpp"
#include "io/text/json_text.hpp"
#include "lockstep/error.hpp"
#include "urban/pictures/clock.hpp"
#include "urban/pictures/stress_clock.hpp"
#include "urban/radiation/sky_luminance.hpp"
#include "urban/series/outputs/summary.hpp"

namespace lockstep::urban {
namespace {

namespace html = io::html;
using nlohmann::json;

/// Members of a record that others may have written: of another type they count as absent.
class PageRecord {
 public:
  explicit PageRecord(json record) : record_(std::move(record)) {}

  const json& member(const char* name) const {
    static const json none;
    const auto found = record_.find(name);
    return found == record_.end() ? none : *found;
  }
  static std::string text_of(const json& object, const char* name) {
    const auto found = object.is_object() ? object.find(name) : object.end();
    return object.is_object() && found != object.end() && found->is_string() ? found->get<std::string>() : "";
  }
  static double number_of(const json& object, const char* name) {
    const auto found = object.is_object() ? object.find(name) : object.end();
    return object.is_object() && found != object.end() && found->is_number() ? found->get<double>() : NAN;
  }
  std::string text(const char* name) const { return text_of(record_, name); }
  double number(const char* name) const { return number_of(record_, name); }
  std::string option(const char* name) const {
    const json& options = member("options");
    return options.is_object() && options.contains(name) ? text_of(options[name], "value") : "";
  }
  bool flag(const char* name) const { return option(name) == "true"; }
  std::string file(const char* name) const {
    const std::string path = option(name);
    return path.substr(path.find_last_of('/') + 1);
  }

 private:
  const json record_;
};

std::string fixed(double value, int decimals) {
  return std::isfinite(value) ? fmt::format("{:.{}f}", value, decimals) : "";
}
std::string paragraph(const std::string& text) { return "<p>" + io::xml_escaped(text) + "</p>\n"; }
std::string bullets(const std::vector<std::string>& lines) {
  std::string out = "<ul>\n";
  for (const std::string& line : lines) out += "<li>" + io::xml_escaped(line) + "</li>\n";
  return out + "</ul>\n";
}

std::string degrees_text(double value, char positive, char negative) {
  return fmt::format("{:.4f}° {}", std::abs(value), value < 0 ? negative : positive);
}

Site site_of(const PageRecord& r) {
  const json& place = r.member("place");
  const auto number = [&](const char* name) { return PageRecord::number_of(place, name); };
  return {number("latitude"), number("longitude"), 0, number("utc_offset")};
}
std::optional<double> saving_of(const PageRecord& r) {
  return parse_number<double>(r.option("daylight-saving"));
}
std::string time_of(const PageRecord& r, const char* name) {
  const auto time = io::parse_iso_time(r.text(name));
  return time ? clock_text(site_of(r), time->minutes, saving_of(r)) : r.text(name);
}

std::string title_of(const PageRecord& r, const std::string& folder) {
  const std::string place = r.option("place"), scenario = r.option("scenario");
  std::string title = "Thermal comfort: " + (place.empty() ? folder : place);
  return scenario.empty() ? title : title + ", " + scenario;
}

std::string opening(const PageRecord& r) {
  const double scale = r.number("projection_scale"), rows = r.number("rows"), cols = r.number("cols"),
               px = r.number("pixel_size") / (scale > 0 ? scale : 1);
  const Site site = site_of(r);
  std::vector<std::pair<std::string, std::string>> facts;
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) facts.emplace_back(name, value);
  };
  add("place", r.option("place"));
  add("scenario", r.option("scenario"));
  add("position", std::isfinite(site.latitude_deg) ? degrees_text(site.latitude_deg, 'N', 'S') + ", " +
                                                         degrees_text(site.longitude_deg, 'E', 'W')
                                                   : "");
  add("area", fmt::format("{:.0f} m × {:.0f} m, {:.0f} × {:.0f} pixels of {:g} m", cols * px, rows * px, cols,
                          rows, px));
  add("period", fmt::format("{} to {}, {:.0f} steps; times name the end of an interval", time_of(r, "from"),
                            time_of(r, "to"), r.number("steps")));
  add("weather", r.file("weather"));
  add("ground and buildings", r.file("dsm"));
  add("ground", r.file("dem"));
  add("plants", r.file("cdsm"));
  add("land cover", r.file("land-cover"));
  add("points", r.file("poi"));
  return html::facts(facts);
}

std::string method(const PageRecord& r) {
  const std::string preset = r.option("preset"), posture = r.option("posture");
  std::string text =
      "Mean radiant temperature is computed for every pixel and step by the SOLWEIG model: short- and "
      "longwave radiation "
      "from the sky, walls, plants and the ground, with shadows of buildings and trees and sky view factors "
      "from the "
      "height grids. ";
  text += preset == "corrected" ? "The rules are those of the cited papers (preset corrected). "
          : preset.empty()      ? ""
                                : fmt::format("The rules are those of {} (preset {}). ",
                                         preset == "umep" ? "UMEP" : "the Python package solweig", preset);
  for (const auto& [name, sky] : choices(SkyModel{}))
    if (r.option("sky") == name) text += fmt::format(fmt::runtime(row_of(sky).about), r.option("patches"));
  text +=
      fmt::format("The body is {}. UTCI and PET follow from it and from air temperature, humidity and wind. ",
                  posture.empty() ? "standing" : posture);
  if (const std::string hours = r.option("hours"); !hours.empty())
    text += fmt::format("Means, highest values and hours are of the hours {} of the day. ", hours);
  text += r.flag("include-roofs")
              ? "Means and maps count every pixel, roofs and water too."
              : "Means and maps count ground that people can use, without roofs and water.";
  return paragraph(text);
}

std::string unit_text_of(const std::string& name) {
  return name.find("hours") != name.npos                         ? "h"
         : name[0] == 'k' || name[0] == 'l'                      ? "W/m²"
         : name.starts_with("gvf") || name.starts_with("shadow") ? ""
                                                                 : "°C";
}

std::string summary_tables(const PageRecord& r) {
  html::Table table{{"", "unit", "mean", "lowest", "highest"}, {}, {}};
  if (const json& list = r.member("summaries"); list.is_array())
    for (const json& s : list) {
      const std::string name = PageRecord::text_of(s, "name");
      if (name.empty() || name == "ground") continue;
      table.rows.push_back(
          {summary_title(name), unit_text_of(name), fixed(PageRecord::number_of(s, "mean"), 2),
           fixed(PageRecord::number_of(s, "min"), 2), fixed(PageRecord::number_of(s, "max"), 2)});
    }
  std::string out = table.rows.empty() ? "" : html::heading("Over the period", 2) + html::table(table);
  html::Table stress{{"", "class", "m²", "%"}, {}, {}};
  if (const json& list = r.member("stress"); list.is_array())
    for (const json& s : list)
      stress.rows.push_back({summary_title(PageRecord::text_of(s, "grid")), PageRecord::text_of(s, "class"),
                             fixed(PageRecord::number_of(s, "m2"), 0),
                             fixed(PageRecord::number_of(s, "percent"), 1)});
  if (!stress.rows.empty()) out += html::heading("Area by class of thermal stress", 2) + html::table(stress);
  return out;
}

/// "Universal thermal climate index, 2015-06-21 15:00" of utci_20150621T1500, else the summary's title.
std::string caption_of(const std::string& name) {
  constexpr std::string_view kChange = "_change";
  if (name.ends_with(kChange))
    return summary_title(std::string_view(name).substr(0, name.size() - kChange.size())) + ", change";
  const size_t cut = name.rfind('_');
  if (cut == name.npos || name.size() != cut + 14 || name[cut + 9] != 'T') return summary_title(name);
  const std::string t = name.substr(cut + 1);
  return fmt::format("{}, {}-{}-{} {}:{}", summary_title(std::string_view(name).substr(0, cut)),
                     t.substr(0, 4), t.substr(4, 2), t.substr(6, 2), t.substr(9, 2), t.substr(11, 2));
}

using Pictures = std::vector<std::pair<std::string, std::string>>;

/// Comfort first; without those of hours that nowhere occur.
Pictures chosen_maps(const PageRecord& r, Pictures pictures) {
  if (const json& list = r.member("summaries"); list.is_array())
    std::erase_if(pictures, [&](const auto& picture) {
      return std::any_of(list.begin(), list.end(), [&](const json& s) {
        return PageRecord::text_of(s, "name") == picture.first &&
               picture.first.find("hours") != std::string::npos && PageRecord::number_of(s, "max") == 0;
      });
    });
  const auto rank = [](const std::string& name) {
    constexpr std::string_view kFirst[] = {"utci", "pet", "sun", "tmrt"};
    size_t k = 0;
    while (k < std::size(kFirst) && !name.starts_with(kFirst[k])) ++k;
    return k;
  };
  std::stable_sort(pictures.begin(), pictures.end(),
                   [&](const auto& a, const auto& b) { return rank(a.first) < rank(b.first); });
  return pictures;
}

enum class MapSize { small, large };

/// Large maps are printed two to a page, so that their legends can be read; small ones six to a page.
std::string maps(const Pictures& pictures, const char* title, MapSize size, size_t& number) {
  constexpr size_t most = 24;
  if (pictures.empty()) return {};
  std::string out = html::heading(title, 2);
  const size_t shown = std::min(pictures.size(), most);
  if (shown < pictures.size())
    out += paragraph(fmt::format("{} of {} maps, at even distances.", shown, pictures.size()));
  out += size == MapSize::large ? "<div class=\"maps large\">\n" : "<div class=\"maps\">\n";
  for (size_t k = 0; k < shown; ++k) {
    const auto& [name, bytes] = pictures[k * pictures.size() / shown];
    out += html::picture(bytes, caption_of(name), ++number);
  }
  return out + "</div>\n";
}

std::string tables(const std::vector<PageTable>& some, const char* title) {
  constexpr size_t kMost = 400;  // rows that a reader looks at
  std::string out;
  for (const PageTable& one : some) {
    if (one.rows.size() < 2) continue;
    const size_t end = std::min(one.rows.size(), kMost + 1);
    out += html::heading(one.title, 3);
    if (end < one.rows.size())
      out += paragraph(fmt::format("The first {} of {} rows.", kMost, one.rows.size() - 1));
    out +=
        html::table({one.rows.front(), {one.rows.begin() + 1, one.rows.begin() + std::ptrdiff_t(end)}, {}});
  }
  return out.empty() ? out : html::heading(title, 2) + out;
}

/// The rows of poi.csv of one point.
struct PointCourse {
  std::vector<std::string> times;
  std::map<std::string, std::vector<double>> columns;
};
std::vector<std::pair<std::string, PointCourse>> courses_of(
    const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::pair<std::string, PointCourse>> points;
  if (rows.size() < 2 || rows[0].size() < 3 || rows[0][0] != "id" || rows[0][1] != "time") return points;
  for (size_t k = 1; k < rows.size(); ++k) {
    if (rows[k].size() != rows[0].size()) continue;
    if (points.empty() || points.back().first != rows[k][0]) points.emplace_back(rows[k][0], PointCourse());
    PointCourse& course = points.back().second;
    course.times.push_back(rows[k][1]);
    for (size_t c = 2; c < rows[0].size(); ++c)
      course.columns[rows[0][c]].push_back(parse_number<double>(rows[k][c]).value_or(NAN));
  }
  return points;
}

io::Drawing plot_of(const std::string& id, const PointCourse& course) {
  std::vector<io::PlotSeries> series;
  for (const char* name : {"Ta", "Tmrt", "UTCI", "PET"}) {
    const auto found = course.columns.find(name);
    if (found == course.columns.end() ||
        std::none_of(found->second.begin(), found->second.end(), [](double v) { return std::isfinite(v); }))
      continue;
    io::PlotSeries& line = series.emplace_back();
    line.name = name;
    line.y = found->second;
    line.marker = false;
    for (size_t k = 0; k < line.y.size(); ++k) {
      const auto first = io::parse_iso_time(course.times.front()), now = io::parse_iso_time(course.times[k]);
      line.x.push_back(
          first && now ? double(now->minutes - first->minutes / io::kMinutesPerDay * io::kMinutesPerDay) / 60
                       : double(k));
    }
  }
  io::PlotOptions plot;
  plot.title = "Point " + id;
  plot.x_label = "hours since " + course.times.front().substr(0, 10) + " 00:00, the weather's clock";
  plot.y_label = "°C";
  plot.whole_x = true;
  plot.height = 340;
  return io::draw_plot(series, plot);
}

std::string point_sections(const std::vector<std::vector<std::string>>& rows) {
  const auto points = courses_of(rows);
  if (points.empty()) return {};
  html::Table table{{"point", "index", "mean", "highest", "at"}, {}, {}};
  std::string plots;
  constexpr size_t kMostPlots = 12;
  size_t drawn = 0;
  for (const auto& [id, course] : points) {
    for (const char* name : {"Tmrt", "UTCI", "PET"}) {
      const auto found = course.columns.find(name);
      if (found == course.columns.end()) continue;
      double sum = 0, n = 0, highest = -INFINITY;
      size_t at = 0;
      for (size_t k = 0; k < found->second.size(); ++k) {
        const double v = found->second[k];
        if (!std::isfinite(v)) continue;
        sum += v, ++n;
        if (v > highest) highest = v, at = k;
      }
      if (n > 0) table.rows.push_back({id, name, fixed(sum / n, 1), fixed(highest, 1), course.times[at]});
    }
    if (drawn++ < kMostPlots) plots += html::figure(plot_of(id, course));
  }
  std::string out = html::heading("The course at the points", 2) + html::table(table) + plots;
  for (const io::Drawing& clock : stress_clocks(rows)) out += html::figure(clock);
  return out;
}

std::string limits(const PageRecord& r) {
  std::vector<std::string> lines;
  if (r.option("air-temperature-field").empty())
    lines.emplace_back(
        "One air temperature for the whole map: cool parks and warm squares differ by radiation only.");
  if (r.option("wind-field").empty())
    lines.emplace_back("One wind for the whole map: neither shelter nor gusts between buildings.");
  lines.insert(
      lines.end(),
      {"No evapotranspiration: trees shade, lawns and fountains do not cool the air.",
       "Surface temperatures follow coefficients of the land cover, not the heat stored in each wall.",
       "Nothing is seen beyond the edge of the map: rows near it have too much sky and sun.",
       "People are on the ground; balconies, roofs and passages below buildings are not computed."});
  if (r.file("cdsm").empty()) lines.emplace_back("No trees were given.");
  if (r.file("land-cover").empty())
    lines.emplace_back("No land cover was given: all ground counts as one paved surface.");
  return html::heading("What the model omits", 2) + bullets(lines);
}

/// The command as the shell takes it.
std::string command_of(const PageRecord& r) {
  std::string command = r.text("command");
  if (const json& options = r.member("options"); options.is_object())
    for (const auto& [name, option] : options.items()) {
      if (!option.is_object() || !option.value("given", false)) continue;
      const std::string value = PageRecord::text_of(option, "value");
      if (value == "false") continue;
      command += " --" + name;
      if (value == "true") continue;
      const bool plain =
          !value.empty() &&
          value.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/:,+=") ==
              value.npos;
      std::string quoted;
      for (const char c : value) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
      command += plain ? " " + value : " '" + quoted + "'";
    }
  return command;
}

std::string closing(const PageRecord& r, const std::string& folder) {
  const json& program = r.member("program");
  const std::string version = PageRecord::text_of(program, "version");
  std::string out = html::heading("How to cite", 2);
  out += paragraph(fmt::format(
      "Computed with Lockstep {} (The Lockstep maintainers), after F. Lindberg, B. Holmer, S. Thorsson: "
      "SOLWEIG 1.0, Int. J. Biometeorol. 52 (2008) 697; UTCI after P. Bröde et al., Int. J. "
      "Biometeorol. 56 (2012) 481; PET after P. Höppe, Int. J. Biometeorol. 43 (1999) 71.",
      version));
  out += html::heading("How to reproduce", 2);
  if (r.text("identity").empty())
    return out +
           paragraph("The run kept no record of its options; it cannot be reproduced from this folder.");
  out += paragraph(
      "The folder's run.json holds options, inputs by their content, versions and results. This command runs "
      "it "
      "again and compares the files:");
  out += "<pre>lockstep reproduce " + io::xml_escaped(folder) + "</pre>\n";
  out += paragraph("The run itself was:") + "<pre>" + io::xml_escaped(command_of(r)) + "</pre>\n";
  return out + html::facts({{"identity", r.text("identity")},
                            {"program",
                             fmt::format("{}, commit {}", version, PageRecord::text_of(program, "commit"))}});
}

}  // namespace

std::optional<RunPage> run_page(const RunPageFiles& files) {
  json document;
  try {
    document = io::parse_json(files.record, "run.json");
  } catch (const InputError&) { return {}; }
  if (!document.is_object()) return {};
  const PageRecord r(std::move(document));
  const std::string command = r.text("command");
  if ((!command.empty() && command != "lockstep urban run") || !r.member("place").is_object() ||
      !std::isfinite(r.number("day_steps")))
    return {};
  size_t number = 0;
  std::string body = opening(r);
  std::vector<std::string> warnings;
  if (const json& list = r.member("warnings"); list.is_array())
    for (const json& warning : list)
      if (warning.is_string()) warnings.push_back(warning);
  if (!warnings.empty()) body += html::heading("Doubts about the inputs", 2) + bullets(warnings);
  body += html::heading("Method", 2) + method(r);
  body += maps(chosen_maps(r, files.summaries), "Maps of the period", MapSize::large, number);
  body += summary_tables(r) + point_sections(files.points);
  body += tables(files.change_tables, "Before and after") +
          maps(chosen_maps(r, files.changes), "Maps of the change", MapSize::large, number) +
          tables(files.areas, "Areas");
  body += maps(files.steps, "Hour by hour", MapSize::small, number);
  body += limits(r) + closing(r, files.folder);
  return RunPage{title_of(r, files.folder), body};
}

}  // namespace lockstep::urban
