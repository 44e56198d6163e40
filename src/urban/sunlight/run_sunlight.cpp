// A whole run: hours of sun of days without weather, on the ground and on facades, and the grades of a rule.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/record/journal.hpp"
#include "core/record/stamp.hpp"
#include "core/reports/host_stage.hpp"
#include "core/reports/json_text.hpp"
#include "lockstep/error.hpp"
#include "lockstep/urban/documents.hpp"
#include "lockstep/urban/report.hpp"
#include "urban/pictures/looks.hpp"
#include "urban/pictures/map_base.hpp"
#include "urban/run/files/city_files.hpp"
#include "urban/run/files/outputs.hpp"
#include "urban/run/files/place.hpp"
#include "urban/sunlight/sun_plan.hpp"
#include "urban/sunlight/sun_tiles.hpp"

namespace lockstep::urban {
namespace {

constexpr const char* kGradeNames[] = {"sun_grade", "sun_grade_buildings"};

/// Place and clock, which all days get.
void find_place(const SunlightOptions& o, const LoadedCity& city, std::vector<SunDays>& all) {
  if (o.latitude_deg.has_value() != o.longitude_deg.has_value())
    throw sunlight_error(OptionError::Kind::missing, "latitude", "only one of latitude and longitude",
                         "{latitude} and {longitude}");
  const io::LonLat place = place_of(o, city);
  for (SunDays& days : all) {
    days.latitude_deg = place.lat;
    days.longitude_deg = place.lon;
    days.convergence_deg = city.north.convergence_deg;
    days.utc_offset_h = o.utc_offset_h.value_or(std::round(days.longitude_deg / 15));
  }
  if (!o.utc_offset_h) journal::found("utc_offset", fmt::format("{}", all.front().utc_offset_h));
}

std::string date_text(io::CivilMinutes day) { return io::civil_text(day).substr(0, 10); }

/// The days and their suns, before anything is cast.
void take_days(const SunlightOptions& options, const std::vector<SunDays>& days, const SunJob& task,
               SunlightResult& result) {
  result.from = date_text(days.front().first);
  result.to = date_text(days.back().first + (days.back().days - 1) * io::kMinutesPerDay);
  for (const SunDays& some : days) result.days += some.days;
  result.positions = static_cast<int64_t>(task.positions());
  result.possible_h = static_cast<double>(task.least_positions()) * task.hours_of_one();
  result.latitude_deg = days.front().latitude_deg;
  result.longitude_deg = days.front().longitude_deg;
  result.utc_offset_h = days.front().utc_offset_h;
  if (!task.rule) return;
  result.rule.emplace();
  result.rule->name = name_among(choices(options.rule), options.rule);
  result.rule->source = task.rule->source;
  result.rule->least_altitude_deg = days.front().least_altitude_deg;
  for (const SunDays& day : days) result.rule->days.push_back(date_text(day.first));
  const std::vector<std::string> labels = task.rule->labels();
  for (size_t k = 0; k < labels.size(); ++k)
    result.rule->grades.push_back(
        {.label = labels[k], .hours = k == 0 ? 0 : task.rule->levels[k - 1].minutes / 60.0});
}

std::vector<NamedLook> sunlight_looks(const SunlightResult& result) {
  std::string when = result.days == 1 ? result.from : result.from + " to " + result.to;
  if (result.rule && result.days > 1) when = "the day with the fewest";
  const double most = std::max(result.possible_h, 1.0);
  std::vector<NamedLook> looks = {
      {"sun_hours", {"Hours of sun, " + when, "h", io::ColorMap::sky, 0.0, most}},
      {"sun_hours_buildings", {"Hours of sun without plants, " + when, "h", io::ColorMap::sky, 0.0, most}}};
  if (!result.rule) return looks;
  std::vector<io::MapClass> classes;
  const auto& grades = result.rule->grades;
  for (size_t k = grades.size(); k-- > 0;)
    classes.push_back({static_cast<float>(k), grades[k].label,
                       io::color(io::ColorMap::light, 0.12 + 0.88 * static_cast<double>(k) /
                                                                 static_cast<double>(grades.size() - 1))});
  for (const char* name : kGradeNames) {
    const bool without = name == kGradeNames[1];
    looks.push_back(
        {name,
         {result.rule->source + (without ? ", without plants" : std::string()), "", io::ColorMap::light, 0.0,
          static_cast<double>(grades.size() - 1), false, classes, true}});
  }
  return looks;
}

/// Counts grades of pixels that are ground where there is a DEM, which shows roofs.
void count_grades(const TileResult& grids, int64_t first, int64_t last, std::span<const uint8_t> ground,
                  RuleResult& rule, int64_t& pixels) {
  for (int64_t p = first; p < last; ++p) {
    const float plants = grids.plane(2)[p];
    if (std::isnan(plants) || (!ground.empty() && !ground[static_cast<size_t>(p - first)])) continue;
    ++pixels;
    rule.grades[static_cast<size_t>(plants)].ground_percent += 1;
    rule.grades[static_cast<size_t>(grids.plane(3)[p])].ground_percent_buildings += 1;
  }
}

/// Puts tiles into the outputs: statistics and grades are of the ground where it is known. The mask of the ground is the grid
/// behind the planes of the tiles.
class SunSink {
 public:
  SunSink(const City& city, bool masked, Outputs& outputs, RuleResult* rule)
      : city_(city), masked_(masked), outputs_(outputs), rule_(rule) {}

  void take(const Tile& tile, const TileResult& grids) {
    outputs_.write(tile, grids);
    const int64_t band = std::max<int64_t>(1, kPixelsAtATime / tile.cols);
    for (int64_t row = 0; row < tile.rows; row += band)
      take_rows(tile, grids, row, std::min(band, tile.rows - row));
  }
  void finish() {
    if (!rule_) return;
    for (SunGrade& grade : rule_->grades)
      for (double* share : {&grade.ground_percent, &grade.ground_percent_buildings})
        *share *= 100 / static_cast<double>(pixels_);
  }

 private:
  static constexpr int64_t kPixelsAtATime = int64_t{1} << 20;
  void take_rows(const Tile& tile, const TileResult& grids, int64_t row, int64_t rows) {
    std::vector<uint8_t> ground;
    const int64_t first = row * tile.cols, last = first + rows * tile.cols;
    if (masked_) {
      ground = ground_mask(city_, tile.row + row, tile.col, rows, tile.cols);
      std::vector<float> mask(ground.begin(), ground.end());
      for (int64_t p = first; p < last; ++p)
        if (const float hours = grids.plane(0)[p]; std::isnan(hours))
          mask[static_cast<size_t>(p - first)] = hours;
      outputs_.take(grids.planes(), tile, row, rows, mask);
    }
    outputs_.count(tile, grids, row, rows, ground);
    if (rule_) count_grades(grids, first, last, ground, *rule_, pixels_);
  }

  const City& city_;
  const bool masked_;
  Outputs& outputs_;
  RuleResult* const rule_;
  int64_t pixels_ = 0;
};

/// Roofs, outlines of buildings and crowns, and the line below pictures.
void set_map(const SunlightOptions& options, const City& city, bool masked, Outputs& outputs) {
  std::string source =
      record::stamp().program + ", urban sun; heights " + options.city.dsm.filename().string();
  if (!options.city.cdsm.empty()) source += "; plants " + options.city.cdsm.filename().string();
  MapBase base;
  if (options.output.pictures && !city.windows)
    base = map_base(city, {}, masked ? ground_mask(city) : std::vector<uint8_t>(size_t(city.pixels()), 1));
  outputs.set_map(std::move(base), std::move(source));
}

Facades walls_of(Context& context, const City& city, const SunlightOptions& options) {
  const Walls walls = walls_for(context, city, options.walls, options.tiles);
  return find_facades(city, walls, options.floor_height_m, free_host_bytes(options.tiles) / 2);
}

/// Before anything is computed.
void check_facades(const SunlightOptions& options, const LoadedCity& loaded) {
  if (!options.facades) return;
  if (loaded.by_windows)
    throw sunlight_error(OptionError::Kind::invalid, "facades", "a city that exceeds the memory",
                         "a larger {memory}, a smaller raster, or hours of the ground only");
  if (const std::string reason = io::gdal_unavailable_reason(); !reason.empty())
    throw UnsupportedError(fmt::format("a GeoPackage needs GDAL ({})", reason), "facades",
                           "GDAL (Debian 12: apt install libgdal32)");
}

void write_facades(const SunlightOptions& options, const City& city, const io::RasterGrid& grid,
                   const SunJob& task, SunlightResult& result) {
  result.facades = totals_of(*task.facades, city.pixel_size_m, task.hours_of_one());
  if (task.rule) take_facade_shares(*task.facades, *task.rule, task.minutes, result.rule->grades);
  result.facades->file = options.output.folder / "facades.gpkg";
  io::write_geopackage(result.facades->file, grid.crs_wkt,
                       facade_layers(*task.facades, city, grid, task.rule, task.minutes));
}

/// Names of all grids that a run may write, and the file of facades where this one writes none.
std::vector<std::string> family_of(bool facades) {
  std::vector<std::string> names = {"sun_hours", "sun_hours_buildings", kGradeNames[0], kGradeNames[1],
                                    "ground"};
  if (!facades) names.emplace_back("facades");
  return names;
}

}  // namespace

SunlightResult run(Context& context, const SunlightOptions& options) {
  schema_of<SunlightOptions>().check(&options);
  std::vector<SunDays> days = days_of(options);
  SunlightResult result;
  const bool masked = !options.include_roofs && !options.city.dem.empty();
  const GroundUse ground = masked ? GroundUse::counted : GroundUse::none;
  LoadedCity loaded =
      host_stage(result.host_stages, "read", [&] { return read_city(options.city, options.tiles, ground); });
  begin(result, loaded);
  check_facades(options, loaded);
  find_place(options, loaded, days);
  SunJob task{.rays = options.rays, .minutes = options.minutes};
  for (const SunDays& some : days) task.sums.push_back(sun_directions(some));
  if (options.rule != SunRule::none) task.rule = &facts_of(options.rule);
  take_days(options, days, task, result);
  std::vector<NamedLook> looks = sunlight_looks(result);
  if (masked) looks.push_back({"ground", ground_look()});
  Outputs outputs(pictured(options.output, loaded), loaded.grid, looks);
  const std::vector<float> relief = relief_of(loaded.input.dsm, loaded.grid, options.output);
  const City city = take_city(loaded);
  Facades facades;
  if (options.facades) {
    facades = walls_of(context, city, options);
    task.facades = &facades;
  }
  set_map(options, city, masked, outputs);
  SunSink sink(city, masked, outputs, result.rule ? &*result.rule : nullptr);
  result.tiles = stream_sunlight(context, city, task, options.tiles,
                                 [&](const Tile& tile, const TileResult& grids) { sink.take(tile, grids); });
  sink.finish();
  host_stage(result.host_stages, "write", [&] {
    if (task.facades) write_facades(options, city, loaded.grid, task, result);
    finish(result, outputs, family_of(options.facades), relief);
  });
  return result;
}

namespace {

nlohmann::ordered_json percent(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json();
}

nlohmann::ordered_json rule_document(const SunlightResult& result) {
  nlohmann::ordered_json grades = nlohmann::ordered_json::array();
  for (const SunGrade& grade : result.rule->grades) {
    grades.push_back({{"label", grade.label},
                      {"hours", grade.hours},
                      {"ground_percent", percent(grade.ground_percent)},
                      {"ground_percent_buildings", percent(grade.ground_percent_buildings)}});
    if (!result.facades) continue;
    grades.back()["facade_percent"] = percent(grade.facade_percent);
    grades.back()["facade_percent_buildings"] = percent(grade.facade_percent_buildings);
  }
  return {{"name", result.rule->name},
          {"source", result.rule->source},
          {"days", result.rule->days},
          {"least_altitude", result.rule->least_altitude_deg},
          {"grades", grades}};
}

}  // namespace

nlohmann::ordered_json document_of(const SunlightResult& result) {
  nlohmann::ordered_json document = document_of(static_cast<const RunResult&>(result));
  document["place"] = {{"latitude", result.latitude_deg},
                       {"longitude", result.longitude_deg},
                       {"utc_offset", result.utc_offset_h}};
  document["from"] = result.from;
  document["to"] = result.to;
  document["days"] = result.days;
  document["positions"] = result.positions;
  document["possible_hours"] = result.possible_h;
  if (const auto& facades = result.facades)
    document["facades"] = {{"file", facades->file.string()}, {"walls", facades->walls},
                           {"bands", facades->bands},        {"area_m2", facades->area_m2},
                           {"hours", facades->hours},        {"hours_buildings", facades->hours_buildings}};
  if (result.rule) document["rule"] = rule_document(result);
  return document;
}
std::string to_json(const SunlightResult& result) { return json_text(document_of(result)); }

}  // namespace lockstep::urban
