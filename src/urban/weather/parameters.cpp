#include "urban/weather/parameters.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "core/reports/log.hpp"
#include "io/text/json_text.hpp"
#include "io/text/parse_file.hpp"
#include "lockstep/error.hpp"
#include "urban/options/errors.hpp"

namespace lockstep::urban {
namespace {

using nlohmann::json;

constexpr int kWallCode = 99, kFirstMaterial = 100, kMissingByte = 255;
constexpr double kAbsent = -900;  // lower values stand for none

/// A member by its path, with errors that name file and path.
class File {
 public:
  File(json document, std::string where) : document_(std::move(document)), where_(std::move(where)) {}

  const json* find(std::initializer_list<std::string_view> path) const {
    const json* at = &document_;
    for (const std::string_view key : path) {
      if (!at->is_object()) return nullptr;
      const auto found = at->find(std::string(key));
      if (found == at->end()) return nullptr;
      at = &*found;
    }
    return at;
  }
  std::optional<double> number(std::initializer_list<std::string_view> path, double low, double high) const {
    const json* const at = find(path);
    if (!at) return {};
    const std::string name = fmt::format("{}", fmt::join(path.begin(), path.end(), "."));
    if (!at->is_number()) fail(name, at->dump(), "a number");
    const double value = at->get<double>();
    if (value <= kAbsent) return {};
    if (!(value >= low && value <= high))
      fail(name, fmt::format("{:g}", value), fmt::format("{:g} to {:g}", low, high));
    return value;
  }
  [[noreturn]] void fail(const std::string& name, const std::string& found,
                         const std::string& expected) const {
    throw InputError(fmt::format("{} is {}", name, found), where_, expected);
  }
  const std::string& where() const { return where_; }
  const json& document() const { return document_; }

 private:
  const json document_;
  const std::string where_;
};

struct NamedClass {
  int code;
  std::string name;
};

std::vector<NamedClass> classes_of(const File& file) {
  const json* const codes = file.find({"Code", "Value"});
  if (!codes || !codes->is_object())
    throw InputError("no member Code.Value", file.where(),
                     "land-cover classes with their codes, as parametersforsolweig.json has them");
  std::vector<NamedClass> classes;
  for (const auto& [name, value] : codes->items()) {
    if (!value.is_number_integer()) file.fail("Code.Value." + name, value.dump(), "a whole number");
    const int64_t code = value.get<int64_t>();
    if (code < 0 || code > 100000) file.fail("Code.Value." + name, value.dump(), "0 to 100000");
    classes.push_back({static_cast<int>(code), name});
  }
  std::stable_sort(classes.begin(), classes.end(),
                   [](const NamedClass& a, const NamedClass& b) { return a.code < b.code; });
  for (size_t k = 1; k < classes.size(); ++k)
    if (classes[k].code == classes[k - 1].code)
      file.fail("Code.Value." + classes[k].name, fmt::format("{} is repeated", classes[k].code),
                "a unique code");
  return classes;
}

double required(std::optional<double> value, const File& file, const std::string& name) {
  if (!value)
    throw InputError(fmt::format("no member {}", name), file.where(), "a value for each class of Code.Value");
  return *value;
}

/// Albedo, emissivity and the daily course of a class.
SurfaceRow surface_of(const File& file, const NamedClass& kind) {
  SurfaceRow row;
  row.code = kind.code;
  std::optional<double> albedo = file.number({"Albedo", "Effective", "Value", kind.name}, 0, 1);
  if (!albedo) albedo = file.number({"Albedo", "Value", kind.name}, 0, 1);
  row.albedo = required(albedo, file, "Albedo.Effective.Value." + kind.name);
  const auto of = [&](std::string_view member, double low, double high) {
    return required(file.number({member, "Value", kind.name}, low, high), file,
                    fmt::format("{}.Value.{}", member, kind.name));
  };
  row.emissivity = of("Emissivity", 0, 1);
  row.tgk = of("Ts_deg", -10, 10);
  row.tstart_k = of("Tstart", -100, 100);
  row.tmax_h = of("TmaxLST", 0, 24);
  return row;
}

void read_body(const File& file, ModelParameters& out) {
  out.absorption_short = file.number({"Tmrt_params", "Value", "absK"}, 0, 1);
  out.absorption_long = file.number({"Tmrt_params", "Value", "absL"}, 0.01, 1);
  if (const json* const posture = file.find({"Tmrt_params", "Value", "posture"})) {
    const std::string text = posture->is_string() ? posture->get<std::string>() : posture->dump();
    if (text != "Standing" && text != "Sitting")
      file.fail("Tmrt_params.Value.posture", "'" + text + "'", "Standing or Sitting");
    out.posture = text == "Sitting" ? Posture::sitting : Posture::standing;
  }
  const auto keep = [&](std::string_view member, double& value, double low, double high, double factor = 1) {
    if (const auto found = file.number({"PET_settings", "Value", member}, low, high)) value = *found * factor;
  };
  keep("Age", out.person.age_years, 1, 120);
  keep("Weight", out.person.mass_kg, 10, 300);
  keep("Height", out.person.height_m, 50, 250, 0.01);
  keep("Activity", out.person.activity_w, 0, 2000);
  keep("clo", out.person.clothing_clo, 0.1, 4);
  if (const json* const sex = file.find({"PET_settings", "Value", "Sex"})) {
    const std::string text = sex->is_string() ? sex->get<std::string>() : sex->dump();
    if (text != "Male" && text != "Female")
      file.fail("PET_settings.Value.Sex", "'" + text + "'", "Male or Female");
    out.person.sex = text == "Female" ? Sex::female : Sex::male;
  }
  if (const auto height = file.number({"Wind_Height", "Value", "magl"}, 0.1, 500))
    out.wind_height_m = *height;
  const auto warn_other = [&](const char* name, Posture posture) {
    const BodyFactors ours = body_factors(posture, constants_of(Preset::umep));
    const auto same = [&](const char* member, double value) {
      const auto found = file.number({"Posture", name, "Value", member}, 0, 10);
      return !found || std::abs(*found - value) < 1e-4;
    };
    if (!same("Fside", ours.side) || !same("Fup", ours.up) || !same("Fcyl", ours.curved))
      logging::warning("{}: the shares of Posture.{} are not the standard ones and are not taken",
                       file.where(), name);
  };
  warn_other("Standing", Posture::standing);
  warn_other("Sitting", Posture::sitting);
}

void read_trees(const File& file, ModelParameters& out) {
  out.leaf_on = file.number({"Tree_settings", "Value", "Transmissivity"}, 0, 1);
  out.trunk_ratio = file.number({"Tree_settings", "Value", "Trunk_ratio"}, 0, 1);
  const auto day = [&](std::string_view member) -> std::optional<int> {
    const auto found = file.number({"Tree_settings", "Value", member}, 1, 366);
    return found ? std::optional<int>(static_cast<int>(*found)) : std::nullopt;
  };
  out.leaf_first_day = day("First_day_leaf");
  out.leaf_last_day = day("Last_day_leaf");
}

}  // namespace

void ModelParameters::apply(RadiationOptions& options) const {
  options.land_cover = land_cover;
  options.wall = wall;
  Constants& c = options.constants;
  c.absorption_short = absorption_short.value_or(c.absorption_short);
  c.absorption_long = absorption_long.value_or(c.absorption_long);
  c.leaf_on = leaf_on.value_or(c.leaf_on);
  c.leaf_first_day = leaf_first_day.value_or(c.leaf_first_day);
  c.leaf_last_day = leaf_last_day.value_or(c.leaf_last_day);
  options.posture = posture.value_or(options.posture);
}

std::vector<std::string> standard_class_names() {
  const std::map<int, const char*> by_code = {{0, "cobble"}, {1, "asphalt"}, {kBuildingCode, "roofs"},
                                              {5, "grass"},  {6, "soil"},    {kWaterCode, "water"}};
  std::vector<std::string> names;
  for (const SurfaceRow& row : standard_land_cover()) names.emplace_back(by_code.at(row.code));
  return names;
}

std::string ModelParameters::class_table() const {
  std::string text;
  for (const SurfaceRow& row : land_cover)
    text += (text.empty() ? "" : ", ") + class_title(static_cast<float>(row.code));
  return text;
}

std::string ModelParameters::class_title(float code) const {
  for (size_t k = 0; k < land_cover.size(); ++k)
    if (static_cast<float>(land_cover[k].code) == code)
      return fmt::format("{} {}", land_cover[k].code, class_names[k]);
  return fmt::format("{:g}", code);
}

ModelParameters parse_parameters(std::string_view text, std::string_view where) {
  json document = io::parse_json(text, where);
  if (!document.is_object())
    throw InputError("no JSON object", where, "a parameter file such as parametersforsolweig.json");
  const File file(std::move(document), std::string(where));
  ModelParameters out;
  out.land_cover.clear();
  out.class_names.clear();
  for (const NamedClass& kind : classes_of(file)) {
    if (kind.code > kWallCode) continue;  // materials of a wall scheme of its own
    const SurfaceRow row = surface_of(file, kind);
    if (kind.code == kWallCode) {
      out.wall = {row.albedo, row.emissivity, row.tgk, row.tstart_k, row.tmax_h};
    } else {
      out.land_cover.push_back(row);
      out.class_names.push_back(kind.name);
    }
  }
  if (out.land_cover.empty()) file.fail("Code.Value", "without ground", "at least one class below 99");
  read_body(file, out);
  read_trees(file, out);
  return out;
}

ModelParameters read_parameters(const std::filesystem::path& path) {
  return io::parse_text_file(path, "a parameter file (JSON)", &parse_parameters);
}

std::vector<int32_t> land_cover_codes(const Raster& grid, const ModelParameters& parameters, const City& city,
                                      std::string_view where) {
  std::vector<int32_t> codes(grid.pixels().size());
  for (size_t k = 0; k < codes.size(); ++k) {
    const float value = grid.pixels()[k];
    const int64_t row = static_cast<int64_t>(k) / city.cols, col = static_cast<int64_t>(k) % city.cols;
    if (std::isnan(value) && city.is_missing(static_cast<int64_t>(k))) {
      codes[k] = parameters.land_cover.front().code;
      continue;
    }
    const bool whole = std::isfinite(value) && value == std::floor(value) && value >= 0 && value < 1e6f;
    codes[k] = whole ? static_cast<int32_t>(value) : -1;
    // The usual mark of missing pixels in bytes is no material of walls.
    if (codes[k] >= kFirstMaterial && codes[k] != kMissingByte) codes[k] = kBuildingCode;
    const bool known = std::any_of(parameters.land_cover.begin(), parameters.land_cover.end(),
                                   [&](const SurfaceRow& r) { return r.code == codes[k]; });
    if (!known)
      throw file_error(
          fmt::format("land cover {:g} at row {}, column {}", value, row, col), std::string(where),
          fmt::format("one of {}", parameters.class_table()),
          codes[k] == kMissingByte
              ? "if 255 marks missing cells, the file must say so: gdal_edit.py -a_nodata 255 FILE"
              : "{parameters} gives another table of classes");
  }
  return codes;
}

}  // namespace lockstep::urban
