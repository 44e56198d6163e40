// A whole run: hours of sun of days without weather.
#include <fmt/format.h>
#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/record/journal.hpp"
#include "core/reports/host_stage.hpp"
#include "core/reports/json_text.hpp"
#include "lockstep/error.hpp"
#include "lockstep/urban/documents.hpp"
#include "lockstep/urban/report.hpp"
#include "lockstep/urban/sunlight.hpp"
#include "urban/pictures/looks.hpp"
#include "urban/rays/kernels.hpp"
#include "urban/run/files/city_files.hpp"
#include "urban/run/files/outputs.hpp"
#include "urban/run/files/place.hpp"
#include "urban/sun/shadows.hpp"
#include "urban/sunlight/sun_positions.hpp"

namespace lockstep::urban {
namespace {

constexpr char kSunlightStage[] = "urban.sun";
constexpr int kSunlightPlanes = 2;  // past plants too, past buildings alone
constexpr int64_t kDayLength = 24 * 60, kMostDays = 3660;

OptionError sunlight_error(OptionError::Kind kind, const char* option, std::string what,
                           std::string expected) {
  return schema_of<SunlightOptions>().error({kind, option, std::move(what), std::move(expected), ""});
}

io::CivilMinutes midnight_of(const std::string& text, const char* option) {
  const auto time = io::parse_iso_time(text + "T00:00");
  if (!time)
    throw sunlight_error(OptionError::Kind::invalid, option, fmt::format("no day '{}'", text),
                         "such as 2026-03-21");
  return time->minutes;
}

void read_days(const SunlightOptions& o, SunDays& days) {
  using enum OptionError::Kind;
  if (o.date.empty() == (o.from.empty() && o.to.empty()))
    throw sunlight_error(o.date.empty() ? missing : conflict, "",
                         o.date.empty() ? "no day" : "a day and a period", "{date}, or {start} and {end}");
  if (o.from.empty() != o.to.empty())
    throw sunlight_error(missing, o.from.empty() ? "start" : "end", "half a period", "{start} and {end}");
  days.first = o.date.empty() ? midnight_of(o.from, "start") : midnight_of(o.date, "date");
  const io::CivilMinutes last = o.date.empty() ? midnight_of(o.to, "end") : days.first;
  days.days = (last - days.first) / kDayLength + 1;
  if (last < days.first || days.days > kMostDays)
    throw sunlight_error(invalid, "end", fmt::format("a period from {} to {}", o.from, o.to),
                         fmt::format("an end after the start, at most {} days later", kMostDays));
  if (kDayLength % o.minutes != 0)
    throw sunlight_error(invalid, "minutes", fmt::format("parts of {} min", o.minutes),
                         "minutes that divide a day");
}

void find_place(const SunlightOptions& o, const LoadedCity& city, SunDays& days) {
  if (o.latitude_deg.has_value() != o.longitude_deg.has_value())
    throw sunlight_error(OptionError::Kind::missing, "latitude", "half a place",
                         "{latitude} and {longitude}");
  const io::LonLat place = place_of(o, city);
  days.latitude_deg = place.lat;
  days.longitude_deg = place.lon;
  days.convergence_deg = city.north.convergence_deg;
  days.utc_offset_h = o.utc_offset_h.value_or(std::round(days.longitude_deg / 15));
  if (!o.utc_offset_h) journal::found("utc_offset", fmt::format("{}", days.utc_offset_h));
}

/// Positions of the sun that a pixel of the tile sees.
void compute_sun_tile(const Device& device, const Stream& stream, const City& city, const Tile& tile,
                      const std::vector<Direction>& suns, const RayOptions& rays, double hours,
                      const TileResult& result, const Advance& advance) {
  const Scene scene = upload_scene(device, stream, city, tile);
  build_maxima(device, stream, scene);
  const auto pixels = static_cast<size_t>(tile.core_pixels());
  std::vector<uint32_t> seen(pixels), seen_past_buildings(pixels);
  std::vector<float> buildings(pixels), plants(pixels, 1.0f);
  for (const Direction& sun : suns) {
    const ShadowBuffers buffers =
        allocate_shadow(device, stream, plan_ray(city, sun, rays), city, scene, false);
    cast_shadow(device, stream, scene, buffers);
    const auto read = [&](int64_t plane, std::vector<float>& to) {
      const Buffer one = buffers.planes.rows(plane, 1);
      device.read(one, to.data(), one.bytes(), stream);
    };
    read(0, buildings);
    if (scene.plants) read(1, plants);
    tbb::parallel_for(tbb::blocked_range<size_t>(0, pixels, size_t{1} << 16), [&](const auto& part) {
      for (size_t p = part.begin(); p < part.end(); ++p) {
        const bool past_buildings = buildings[p] > 0;
        seen_past_buildings[p] += past_buildings;
        seen[p] += past_buildings && plants[p] > 0;
      }
    });
    advance(1);
  }
  for (size_t p = 0; p < pixels; ++p) {
    result.plane(0)[p] = static_cast<float>(seen[p] * hours);
    result.plane(1)[p] = static_cast<float>(seen_past_buildings[p] * hours);
  }
}

TileReport stream_sunlight(Context& context, const City& city, const std::vector<Direction>& suns,
                           double hours, const SunlightOptions& o, const TileSink& sink) {
  TileJob job;
  job.stage = kSunlightStage;
  job.field_prefix = "sun_";
  for (const Direction& sun : suns) job.reach.include(reach_of(plan_ray(city, sun, o.rays).steps));
  job.planes = kSunlightPlanes;
  job.parts = std::max(1, static_cast<int>(suns.size()));
  const kernels::ShadowPlanes planes{city.has_vegetation(), false};
  job.cost.window_bytes = scene_bytes(city.has_vegetation());
  job.cost.core_bytes = 4 * static_cast<uint64_t>(planes.count());
  job.cost.widest_core_bytes = job.cost.core_bytes;
  job.cost.host_core_bytes = 4 * (kSunlightPlanes + 4);
  job.options = fmt::format("{} suns, reach {} m", suns.size(), o.rays.max_reach_m);
  job.compute = [&](const Device& device, const Stream& stream, const City& part, const Tile& tile,
                    const TileResult& result, const Advance& advance) {
    compute_sun_tile(device, stream, part, tile, suns, o.rays, hours, result, advance);
  };
  return run_tiles(context, city, job, o.tiles, sink);
}

std::vector<NamedLook> sunlight_looks(const SunlightResult& result) {
  const std::string when = result.days == 1 ? result.from : result.from + " to " + result.to;
  const double most = std::max(result.possible_h, 1.0);
  return {
      {"sun_hours", {"Hours of sun, " + when, "h", io::ColorMap::sky, 0.0, most}},
      {"sun_hours_buildings", {"Hours of sun without plants, " + when, "h", io::ColorMap::sky, 0.0, most}}};
}

}  // namespace

SunlightResult run(Context& context, const SunlightOptions& options) {
  schema_of<SunlightOptions>().check(&options);
  SunDays days;
  read_days(options, days);
  days.minutes = options.minutes;
  days.least_altitude_deg = options.least_altitude_deg;
  SunlightResult result;
  LoadedCity loaded =
      host_stage(result.host_stages, "read", [&] { return read_city(options.city, options.tiles); });
  begin(result, loaded);
  find_place(options, loaded, days);
  const std::vector<Direction> suns = sun_directions(days);
  const double hours = options.minutes / 60.0;
  result.from = io::civil_text(days.first).substr(0, 10);
  result.to = io::civil_text(days.first + (days.days - 1) * kDayLength).substr(0, 10);
  result.days = days.days;
  result.positions = static_cast<int64_t>(suns.size());
  result.possible_h = static_cast<double>(suns.size()) * hours;
  result.latitude_deg = days.latitude_deg;
  result.longitude_deg = days.longitude_deg;
  result.utc_offset_h = days.utc_offset_h;
  const std::vector<NamedLook> looks = sunlight_looks(result);
  Outputs outputs(pictured(options.output, loaded), loaded.grid, looks);
  const std::vector<float> relief = relief_of(loaded.input.dsm, loaded.grid, options.output);
  {
    const City city = take_city(loaded);
    result.tiles =
        stream_sunlight(context, city, suns, hours, options,
                        [&](const Tile& tile, const TileResult& grids) { outputs.take(tile, grids); });
  }
  host_stage(result.host_stages, "write", [&] { finish(result, outputs, names_of(looks), relief); });
  return result;
}

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
  return document;
}
std::string to_json(const SunlightResult& result) { return json_text(document_of(result)); }

void describe(Schema<SunlightOptions>& s) {
  using O = SunlightOptions;
  s.of("urban::SunlightOptions");
  s.include(&O::city);
  s.option("date", &O::date, "day").shown("YYYY-MM-DD");
  s.option("start", &O::from, "first day of a period").member("from").flag("from").shown("YYYY-MM-DD");
  s.option("end", &O::to, "last day").member("to").flag("to").shown("YYYY-MM-DD");
  s.option("latitude", &O::latitude_deg, "place")
      .member("latitude_deg")
      .also("lat")
      .at_least(-90)
      .at_most(90)
      .shown("DEG")
      .or_else("the raster's centre");
  s.option("longitude", &O::longitude_deg, "east positive")
      .member("longitude_deg")
      .also("lon")
      .at_least(-180)
      .at_most(180)
      .shown("DEG");
  s.option("utc_offset", &O::utc_offset_h, "hours that the days are ahead of universal time")
      .member("utc_offset_h")
      .at_least(-14)
      .at_most(14)
      .shown("H")
      .or_else("the whole hours of the longitude");
  s.option("minutes", &O::minutes, "between two positions of the sun, a divisor of 1440")
      .at_least(1)
      .at_most(60);
  s.option("least_altitude", &O::least_altitude_deg, "of the sun; a lower one does not count")
      .member("least_altitude_deg")
      .at_least(0)
      .below(90)
      .shown("DEG");
  s.include(&O::rays);
  s.include(&O::output);
  s.include(&O::tiles);
}

}  // namespace lockstep::urban
