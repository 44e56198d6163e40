#include "device/variants/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "core/environment/environment.hpp"
#include "core/files/cache_key.hpp"
#include "core/reports/log.hpp"
#include "lockstep/error.hpp"

namespace lockstep::variants {

namespace {

using nlohmann::ordered_json;

constexpr int kFormat = 1;
constexpr uint64_t kMostBytes = 1 << 20;
constexpr std::string_view kShipped =
#include "device/variants/crossovers.inc"
    ;

/// A member that is a text, or empty where it is missing and need not be there.
std::string text_member(const ordered_json& object, const char* name, bool needed) {
  const auto found = object.find(name);
  if (found == object.end() && !needed) return {};
  if (found == object.end() || !found->is_string())
    throw std::runtime_error(fmt::format("no text '{}'", name));
  return found->get<std::string>();
}

TableStep step_of(const ordered_json& pair) {
  if (!pair.is_array() || pair.size() != 2 || !pair[0].is_number() || !pair[1].is_array() || pair[1].empty())
    throw std::runtime_error("a step that is not a pair of a number and a list of variants");
  TableStep step{pair[0].get<double>(), {}};
  for (const ordered_json& name : pair[1]) {
    if (!name.is_string()) throw std::runtime_error("a variant that is not a text");
    step.ranking.push_back(name.get<std::string>());
  }
  return step;
}

TableRow row_of(const ordered_json& object) {
  if (!object.is_object()) throw std::runtime_error("a row that is not an object");
  TableRow row{text_member(object, "computation", true),
               text_member(object, "device", true),
               text_member(object, "of", false),
               text_member(object, "axis", false),
               text_member(object, "numerics", false),
               {},
               {}};
  if (const auto values = object.find("values"); values != object.end()) {
    if (row.device.empty() || !values->is_array() || values->empty() ||
        !std::ranges::all_of(*values, [](const ordered_json& v) {
          return v.is_number() && std::isfinite(v.get<double>()) && v.get<double>() > 0;
        }))
      throw std::runtime_error(
          fmt::format("a row of {} without device or positive numbers", row.computation));
    row.values = values->get<std::vector<double>>();
    return row;
  }
  const auto steps = object.find("steps");
  if (row.device.empty() || steps == object.end() || !steps->is_array() || steps->empty())
    throw std::runtime_error(fmt::format("a row of {} without device or steps", row.computation));
  if (!row.numerics.empty() && row.numerics != "exact" && row.numerics != "fast")
    throw std::runtime_error(fmt::format("numerics '{}'", row.numerics));
  for (const ordered_json& pair : *steps) {
    row.steps.push_back(step_of(pair));
    const double from = row.steps.back().from;
    const bool first = row.steps.size() == 1;
    if (!std::isfinite(from) || (first ? from != 0 : from <= row.steps[row.steps.size() - 2].from))
      throw std::runtime_error(fmt::format("steps of {} that do not ascend from 0", row.computation));
  }
  if (row.axis.empty() && row.steps.size() > 1)
    throw std::runtime_error(fmt::format("steps of {} without an axis", row.computation));
  return row;
}

std::filesystem::path config_folder() {
  for (const auto& [variable, below] :
       {std::pair{"XDG_CONFIG_HOME", "lockstep"}, {"HOME", ".config/lockstep"}})
    if (const char* text = std::getenv(variable); text && std::filesystem::path(text).is_absolute())
      return std::filesystem::path(text) / below;
  return {};
}

}  // namespace

Table Table::parse(std::string_view text, std::string_view where) {
  try {
    const ordered_json document = ordered_json::parse(text, nullptr, false);
    if (document.is_discarded()) throw std::runtime_error("no JSON");
    if (!document.is_object() || document.value("format", 0) != kFormat || !document.contains("rows") ||
        !document["rows"].is_array())
      throw std::runtime_error("no rows");
    Table table;
    for (const ordered_json& object : document["rows"]) table.rows_.push_back(row_of(object));
    return table;
  } catch (const std::exception& e) {
    throw InputError(e.what(), where, fmt::format("a table of variants, format {}", kFormat));
  }
}

const Table& Table::shipped() {
  static const Table table = parse(kShipped, "crossovers.inc");
  return table;
}

const Table& Table::user() {
  static const Table table = [] {
    try {
      Table found = read_table(user_file());
      if (const char* name = environment::text("LOCKSTEP_VARIANTS"); name && found.rows_.empty())
        throw InputError("no rows, or no such file", name, "the table that LOCKSTEP_VARIANTS names");
      return found;
    } catch (const InputError& e) {
      logging::warning("{}; the shipped table chooses variants", e.what());
      return Table();
    }
  }();
  return table;
}

std::string Table::text() const {
  std::string rows;
  for (const TableRow& row : rows_) {
    ordered_json object = {{"computation", row.computation}, {"device", row.device}};
    for (const auto& [name, value] :
         {std::pair{"of", &row.of}, {"axis", &row.axis}, {"numerics", &row.numerics}})
      if (!value->empty()) object[name] = *value;
    if (!row.values.empty()) object["values"] = row.values;
    if (!row.steps.empty()) object["steps"] = ordered_json::array();
    for (const TableStep& step : row.steps) object["steps"].push_back({step.from, step.ranking});
    rows += fmt::format("{}  {}", rows.empty() ? "" : ",\n", object.dump());
  }
  return fmt::format("{{\"format\": {}, \"rows\": [\n{}\n]}}\n", kFormat, rows);
}

void Table::put(TableRow row) {
  const auto same = [&](const TableRow& other) {
    return other.computation == row.computation && other.device == row.device && other.of == row.of &&
           other.numerics == row.numerics;
  };
  if (const auto found = std::ranges::find_if(rows_, same); found != rows_.end())
    *found = std::move(row);
  else
    rows_.push_back(std::move(row));
}

std::filesystem::path user_file() {
  if (const char* name = environment::text("LOCKSTEP_VARIANTS")) return name;
  const std::filesystem::path folder = config_folder();
  return folder.empty() ? folder : folder / "variants.json";
}

Table read_table(const std::filesystem::path& file) {
  if (file.empty()) return {};
  std::string why;
  const std::optional<std::string> text = read_private_file(file, kMostBytes, why);
  if (!why.empty()) throw InputError(why, file.string(), "a table that only this user can write");
  return text ? Table::parse(*text, file.string()) : Table();
}

void write_table(const std::filesystem::path& file, const Table& table) {
  write_private_file(file, table.text());
}

}  // namespace lockstep::variants
