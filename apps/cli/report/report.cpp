// `lockstep report DIR`: one HTML page, with everything inside, of what runs left in a folder.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>

#include "bound_options.hpp"
#include "commands.hpp"
#include "core/files/atomic_file.hpp"
#include "core/reports/json_text.hpp"
#include "core/reports/log.hpp"
#include "core/reports/summary.hpp"
#include "io/pages/html.hpp"
#include "io/pictures/plot.hpp"
#include "io/text/file.hpp"
#include "io/text/json_text.hpp"
#include "lockstep/error.hpp"
#include "report_files.hpp"
#include "session.hpp"
#include "urban/pictures/stress_clock.hpp"
#include "urban/results/run_page.hpp"
#include "version.hpp"

namespace lockstep::cli {
namespace {

namespace fs = std::filesystem;
namespace html = io::html;
using nlohmann::json;

std::string cell_of(const json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_float()) return fmt::format("{:.5g}", value.get<double>());
  if (value.is_null()) return "";
  return value.dump();
}

// Members of files that others wrote: of another type counts as absent.
std::string text_in(const json& row, const char* key) {
  const auto found = row.find(key);
  return found != row.end() && found->is_string() ? found->get<std::string>() : std::string();
}
std::optional<double> number_in(const json& row, const char* key) {
  const auto found = row.find(key);
  return found != row.end() && found->is_number() ? std::optional(found->get<double>()) : std::nullopt;
}

// A list of objects as a table: the members of the first one, scalars only.
html::Table table_of(const json& rows) {
  html::Table table;
  for (const auto& [key, value] : rows.front().items()) {
    if (!value.is_structured()) table.head.push_back(key);
  }
  for (const json& row : rows) {
    std::vector<std::string> cells;
    for (const std::string& key : table.head) cells.push_back(row.contains(key) ? cell_of(row[key]) : "");
    const bool bad = (row.contains("pass") && row["pass"] == false) ||
                     (row.contains("regression") && row["regression"] == true) ||
                     (row.contains("fallbacks") && row["fallbacks"].is_number() && row["fallbacks"] != 0);
    if (bad) table.marked.push_back(table.rows.size());
    table.rows.push_back(cells);
  }
  return table;
}

bool is_table(const json& value) {
  return value.is_array() && !value.empty() &&
         std::all_of(value.begin(), value.end(), [](const json& row) { return row.is_object(); });
}

double problem_size(const std::string& size) {
  double cells = 1;
  std::istringstream parts(size);
  for (std::string part; std::getline(parts, part, 'x');) {
    double number = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), number);
    if (error != std::errc() || end != part.data() + part.size()) return 0;
    cells *= number;
  }
  return cells;
}

std::string bench_plots(const json& results) {
  std::map<std::string, std::vector<std::pair<double, double>>> points;
  std::map<std::string, double> shares;
  for (const json& row : results) {
    const std::string name = text_in(row, "case"), size = text_in(row, "size");
    const auto median = number_in(row, "median_ms");
    if (name.empty() || size.empty() || !median) continue;
    points[name].emplace_back(problem_size(size), *median);
    if (const auto share = number_in(row, "share_of_copy"))
      shares[name] = std::max(shares[name], *share * 100);
  }
  std::vector<io::PlotSeries> series;
  for (auto& [name, list] : points) {
    constexpr size_t kMost = 14;  // colours that the eye can distinguish
    if (list.size() < 2 || series.size() == kMost) continue;
    std::sort(list.begin(), list.end());
    io::PlotSeries& line = series.emplace_back();
    line.name = name;
    for (const auto& [x, y] : list) {
      line.x.push_back(x);
      line.y.push_back(y);
    }
  }
  std::string out;
  if (!series.empty()) {
    io::PlotOptions plot;
    plot.title = "Time over size";
    plot.x_label = "elements";
    plot.y_label = "ms";
    plot.log_x = plot.log_y = true;
    out += html::figure(io::draw_plot(series, plot));
  }
  if (!shares.empty())
    out += html::figure(
        io::draw_bars({shares.begin(), shares.end()}, "Best share of the device's copy bandwidth", "%"));
  return out;
}

std::string stage_plot(const json& stages) {
  std::vector<std::pair<std::string, double>> bars;
  for (const json& s : stages) {
    const std::string stage = text_in(s, "stage");
    if (const auto seconds = number_in(s, "seconds"); seconds && !stage.empty())
      bars.emplace_back(stage + " on " + text_in(s, "device"), *seconds);
  }
  return bars.empty() ? std::string() : html::figure(io::draw_bars(bars, "Time by stage", "s"));
}

using Facts = std::vector<std::pair<std::string, std::string>>;

// Scalars, lists of scalars, and those of inner objects by their path.
void collect(const json& object, const std::string& before, Facts& facts) {
  for (const auto& [key, value] : object.items()) {
    const std::string name = before + key;
    if (value.is_object() && value.contains("given") && value.contains("value")) {  // an option of a record
      const bool given = value["given"] == true;
      if (const std::string text = cell_of(value["value"]); !text.empty())
        facts.emplace_back(name, text + (given ? "" : " (default)"));
    } else if (value.is_object()) {
      collect(value, name + " ", facts);
    } else if (!value.is_array()) {
      facts.emplace_back(name, cell_of(value));
    } else if (!is_table(value)) {
      std::vector<std::string> items;
      for (const json& item : value) items.push_back(cell_of(item));
      facts.emplace_back(name, fmt::format("{}", fmt::join(items, ", ")));
    }
  }
}

// The facts of a document, those that identify the run first: program, date, device, inputs, options, place, sun.
Facts facts_of(const json& document) {
  constexpr std::string_view kFirst[] = {"version", "date",    "device", "numerics",
                                         "inputs",  "options", "place",  "sun"};
  Facts all;
  collect(document, "", all);
  const auto rank = [&](const std::string& name) {
    size_t k = 0;
    while (k < std::size(kFirst) && name != kFirst[k] && !name.starts_with(std::string(kFirst[k]) + " ")) ++k;
    return k;
  };
  std::stable_sort(all.begin(), all.end(),
                   [&](const auto& a, const auto& b) { return rank(a.first) < rank(b.first); });
  return all;
}

/// None for a text that cannot be read: the page is made of what can.
std::optional<json> document_of(std::string_view text, const ReportFile& file) {
  try {
    return io::parse_json(text, file.path.string());
  } catch (const InputError&) { return std::nullopt; }
}

std::string json_section(const ReportFile& file) {
  const std::optional<json> whole = document_of(file.bytes, file);
  if (!whole) return "<p>not a whole JSON document</p>\n";
  const json& document = *whole;
  std::string body;
  if (!document.is_object()) return is_table(document) ? html::table(table_of(document)) : std::string();
  if (const Facts facts = facts_of(document); !facts.empty()) body += html::facts(facts);
  for (const auto& [key, value] : document.items()) {
    if (!is_table(value)) continue;
    body += html::heading(key, 3);
    if (key == "results") body += bench_plots(value);
    if (key == "stages") body += stage_plot(value);
    body += html::table(table_of(value));
  }
  return body;
}

std::string lines_section(const ReportFile& file) {
  json stages = json::array(), others = json::array();
  std::istringstream lines(file.bytes);
  for (std::string line; std::getline(lines, line);) {
    const std::optional<json> object = document_of(line, file);
    if (object && object->is_object()) (object->contains("stage") ? stages : others).push_back(*object);
  }
  std::string body;
  if (!stages.empty()) body += html::table(table_of(stages));
  for (const json& event : others) body += html::table(table_of(json::array({event})));
  return body;
}

// Rows of a CSV file: fields with commas, quotes ("") or line ends are enclosed in double quotes (RFC 4180).
std::vector<std::vector<std::string>> csv_rows(std::string_view text) {
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> row;
  std::string field;
  bool quoted = false, any = false;
  const auto end_field = [&] { row.push_back(std::exchange(field, {})); };
  const auto end_row = [&] {
    if (!any) return;
    end_field();
    rows.push_back(std::exchange(row, {}));
    any = false;
  };
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (quoted) {
      if (c == '"' && at + 1 < text.size() && text[at + 1] == '"') {
        field += text[++at];
      } else if (c == '"') {
        quoted = false;
      } else {
        field += c;
      }
    } else if (c == '\n' || c == '\r') {
      end_row();
    } else {
      any = true;
      if (c == '"' && field.empty()) {
        quoted = true;
      } else if (c == ',') {
        end_field();
      } else {
        field += c;
      }
    }
  }
  end_row();
  return rows;
}

std::string csv_section(const ReportFile& file) {
  std::vector<std::vector<std::string>> rows = csv_rows(file.bytes);
  if (rows.empty()) return {};
  html::Table table;
  table.head = rows.front();
  table.rows.assign(rows.begin() + 1, rows.end());
  std::string body;
  for (const io::Drawing& clock : urban::stress_clocks(rows)) body += html::figure(clock);
  return body + html::table(table);
}

std::string pictures_section(const std::vector<ReportEntry>& files) {
  if (files.empty()) return {};
  // A year of hours would make a page that no reader opens: pictures at even distances stand for all.
  constexpr size_t kMost = 96;
  const size_t shown = std::min(files.size(), kMost);
  std::string body = "<h2>Pictures</h2>\n";
  if (shown < files.size()) body += fmt::format("<p>{} of {}, evenly chosen</p>\n", shown, files.size());
  body += "<div class=\"maps\">\n";
  for (size_t k = 0; k < shown; ++k) {
    const ReportEntry& file = files[k * files.size() / shown];
    body += html::picture(read_report_file(file).bytes, file.name.stem().string(), k + 1);
  }
  return body + "</div>\n";
}

std::string films_section(const std::vector<ReportEntry>& files) {
  constexpr uintmax_t kLargest = uintmax_t{64} << 20;  // bytes inside of a page
  std::string body;
  for (const ReportEntry& file : files)
    body += html::heading(file.name.string(), 2) + (file.bytes <= kLargest
                                                        ? html::film(read_report_file(file).bytes)
                                                        : "<p>too large for this page</p>\n");
  return body;
}

struct ReportOptions {
  std::string folder, out;
  std::string compared;            // folder of `urban compare`
  std::vector<std::string> areas;  // tables of `urban stats`
};
void describe(Schema<ReportOptions>& s) {
  s.of("cli::ReportOptions");
  s.option("folder", &ReportOptions::folder, "folder with pictures, JSON, telemetry and CSV files")
      .flag("DIR")
      .file(Option::Use::input)
      .positional()
      .required();
  s.option("compared", &ReportOptions::compared,
           "folder of 'urban compare', whose tables and maps the page of an urban run shows")
      .shown("DIR");
  s.option("areas", &ReportOptions::areas,
           "tables of 'urban stats' (CSV) that the page of an urban run shows")
      .shown("FILE,…");
  s.option("out", &ReportOptions::out, "the page")
      .file(Option::Use::output_file, {".html", ".htm"})
      .shown("FILE")
      .or_else("DIR/report.html");
}

/// Tables and pictures of a comparison.
void add_changes(const std::string& folder, urban::RunPageFiles& page) {
  constexpr std::pair<const char*, const char*> kTables[] = {
      {"classes.csv", "Area by class of thermal stress"},
      {"summaries.csv", "Summaries"},
      {"largest_changes.csv", "Largest changes"}};
  std::error_code error;
  if (!fs::is_directory(folder, error))
    throw InputError("no such folder", folder, "the folder of 'urban compare'");
  ReportEntries files = report_entries(folder);
  for (const auto& [name, title] : kTables)
    for (const ReportEntry& file : files[".csv"])
      if (file.name == name) page.change_tables.push_back({title, csv_rows(read_report_file(file).bytes)});
  if (page.change_tables.empty())
    throw InputError("no summaries.csv", folder, "the folder of 'urban compare'");
  for (const ReportEntry& picture : files[".png"])
    page.changes.emplace_back(picture.name.stem().string(), read_report_file(picture).bytes);
}

void add_areas(const std::vector<std::string>& tables, urban::RunPageFiles& page) {
  for (const std::string& file : tables) {
    std::vector<std::vector<std::string>> rows =
        csv_rows(io::read_text_file(file, "a table of 'urban stats'"));
    if (rows.size() < 2 || rows[0].empty() || rows[0][0] != "area")
      throw InputError("no column 'area'", file, "a table of 'urban stats' in CSV");
    page.areas.push_back({fs::path(file).filename().string(), std::move(rows)});
  }
}

/// The planner's page on a run of a city, where the folder holds one; its raw table of points is left out of `files`.
std::optional<urban::RunPage> city_page(const ReportOptions& options, ReportEntries& files) {
  const fs::path folder = options.folder;
  const auto named = [&](const char* suffix, const char* name) {
    auto& list = files[suffix];
    return std::find_if(list.begin(), list.end(),
                        [&](const ReportEntry& e) { return e.name == name && e.folder.path() == folder; });
  };
  const auto record = named(".json", "run.json");
  if (record == files[".json"].end()) return {};
  const ReportFile text = read_report_file(*record);
  urban::RunPageFiles page;
  page.folder = fs::weakly_canonical(folder).filename().string();
  page.record = text.bytes;
  const auto points = named(".csv", "poi.csv");
  const bool any_points = points != files[".csv"].end();
  if (any_points) page.points = csv_rows(read_report_file(*points).bytes);
  for (const ReportEntry& picture : files[".png"]) {
    const bool summary = picture.folder.path().filename() == "summary";
    (summary ? page.summaries : page.steps)
        .emplace_back(picture.name.stem().string(), read_report_file(picture).bytes);
  }
  if (!options.compared.empty()) add_changes(options.compared, page);
  add_areas(options.areas, page);
  std::optional<urban::RunPage> found = urban::run_page(page);
  if (found && any_points) files[".csv"].erase(points);
  return found;
}

int run(const CommonOptions& common, const ReportOptions& options) {
  const std::string& folder = options.folder;
  std::error_code error;
  if (!fs::is_directory(folder, error))
    throw InputError("no such folder", folder, "a folder that a run wrote to");
  Session session(common);
  const fs::path out = options.out.empty() ? fs::path(folder) / "report.html" : fs::path(options.out);
  ReportEntries files = report_entries(folder);
  int64_t sections = static_cast<int64_t>(files[".png"].size() + files[".mp4"].size());
  const std::optional<urban::RunPage> city = city_page(options, files);
  if (!city && (!options.compared.empty() || !options.areas.empty()))
    throw InputError("no run.json of 'lockstep urban run'", folder,
                     "the folder of such a run, whose page shows comparisons and areas");
  std::string body = films_section(files[".mp4"]);
  body += city ? html::heading("Appendix: tables and measurements of the program", 2)
               : pictures_section(files[".png"]);
  const std::pair<const char*, std::string (*)(const ReportFile&)> kinds[] = {
      {".json", json_section}, {".jsonl", lines_section}, {".csv", csv_section}};
  for (const auto& [suffix, section] : kinds) {
    for (const ReportEntry& file : files[suffix]) {
      const std::string text = section(read_report_file(file));
      if (text.empty()) continue;
      body += html::heading(file.name.string(), 2) + text;
      ++sections;
    }
  }
  if (sections == 0) {
    throw InputError("nothing to report", folder,
                     "pictures (.png), films (.mp4), JSON (.json), telemetry (.jsonl) or tables (.csv)");
  }
  body += fmt::format("<p>lockstep {}</p>\n", kVersion);
  if (city) body = city->body + html::on_screen(body);
  write_file(
      out, std::string_view(html::page(
               city ? city->title : "Lockstep: " + fs::weakly_canonical(folder).filename().string(), body)));
  if (common.json) {
    print_result(
        json_text({{"file", out.string()}, {"sections", sections}, {"bytes", fs::file_size(out)}}, 2));
  } else {
    print_result(out.string());
  }
  return 0;
}

}  // namespace

void add_report(CommandList& commands, CLI::App& root) {
  Command& command =
      add_command(commands, root, "report", "write a self-contained HTML page about the results in a folder");
  const ReportOptions& options = add_options<ReportOptions>(command);
  add_common(command, "lockstep report out/goteborg");
  command.run = [&command, &options] { return run(command.common, options); };
}

}  // namespace lockstep::cli
