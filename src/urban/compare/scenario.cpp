#include "urban/compare/scenario.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "lockstep/error.hpp"

namespace lockstep::urban {
namespace {

/// Options of the surface: a scenario changes these.
constexpr std::array<std::string_view, 11> kSurface = {
    "dsm",         "dem",         "cdsm", "tdsm",      "trunk-ratio", "land-cover",
    "wall-height", "wall-aspect", "svf",  "leaf-days", "evergreen"};
/// They choose what is written, not its values.
constexpr std::array<std::string_view, 2> kWritten = {"outputs", "poi"};

bool among(std::span<const std::string_view> names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

bool same_value(const RecordedOption& a, const RecordedOption& b) {
  return a.hashes.empty() && b.hashes.empty() ? a.value == b.value : a.hashes == b.hashes;
}

std::string shown_value(const RecordedOption* o) { return o && !o->value.empty() ? o->value : "none"; }

}  // namespace

std::vector<RunDifference> scenario_of(const CompareOptions& options, const RunFolder& before,
                                       const RunFolder& after, std::vector<std::string>& warnings) {
  const RunRecord &a = before.record(), &b = after.record();
  if (a.version != b.version)
    warnings.push_back(fmt::format("the runs are of other versions: {} and {}",
                                   a.version.empty() ? "none named" : a.version,
                                   b.version.empty() ? "none named" : b.version));
  for (const RunFolder* run : {&before, &after})
    if (run->record().options.empty())
      warnings.push_back(fmt::format("{} does not record its options: what the runs differ in is unknown",
                                     run->folder().string()));
  std::vector<RunDifference> found;
  if (a.options.empty() || b.options.empty()) return found;
  for (const std::string& name : options.differing)
    if (!a.find(name) && !b.find(name))
      throw schema_of<CompareOptions>().error(
          {OptionError::Kind::invalid, "differing", fmt::format("no option '{}'", name),
           "names of options in both runs' run.json, such as weather", ""});
  std::set<std::string> names;
  for (const RunRecord* record : {&a, &b})
    for (const RecordedOption& o : record->options)
      if (!o.display && !among(kWritten, o.name)) names.insert(o.name);
  std::string unmeant, list;
  for (const std::string& name : names) {
    const RecordedOption *x = a.find(name), *y = b.find(name);
    if (x && y ? same_value(*x, *y) : shown_value(x) == shown_value(y)) continue;
    found.push_back({name, shown_value(x), shown_value(y)});
    if (among(kSurface, name) || std::ranges::find(options.differing, name) != options.differing.end())
      continue;
    const std::string values = shown_value(x) == shown_value(y) ? shown_value(x) + ", of other content"
                                                                : shown_value(x) + " and " + shown_value(y);
    unmeant += fmt::format("{}{} ({})", unmeant.empty() ? "" : ", ", name, values);
    list += (list.empty() ? "" : ",") + name;
  }
  if (!unmeant.empty())
    throw schema_of<CompareOptions>().error(
        {OptionError::Kind::invalid, "", fmt::format("the runs differ in {}", unmeant),
         fmt::format("runs that differ only in the surface, or {{differing}} {} if that is intended", list),
         "", after.folder().string()});
  return found;
}

std::string scenario_name(const RunFolder& run) {
  const std::string given = run.record().text("scenario");
  return given.empty() ? run.folder().lexically_normal().filename().string() : given;
}

}  // namespace lockstep::urban
