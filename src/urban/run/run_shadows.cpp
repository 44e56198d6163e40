// A whole run: shadows of one position of the sun, on the ground and on walls.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "core/reports/host_stage.hpp"
#include "core/reports/log.hpp"
#include "lockstep/error.hpp"
#include "urban/pictures/looks.hpp"
#include "urban/run/files/city_files.hpp"
#include "urban/run/files/outputs.hpp"
#include "urban/run/files/place.hpp"
#include "urban/run/opening.hpp"
#include "urban/sun/shadows.hpp"
#include "urban/walls/walls.hpp"

namespace lockstep::urban {
namespace {

using Fault = OptionError::Kind;

void check(const ShadowRunOptions& o) {
  const Schema<ShadowRunOptions>& schema = schema_of<ShadowRunOptions>();
  schema.check(&o);
  const bool timed = !o.time.empty(), angles = o.azimuth_deg || o.altitude_deg;
  const auto refuse = [&](bool broken, Fault kind, const char* where, const char* what,
                          const char* expected) {
    if (broken) throw schema.error({kind, where, what, expected, ""});
  };
  refuse(o.azimuth_deg.has_value() != o.altitude_deg.has_value(), Fault::missing,
         o.azimuth_deg ? "azimuth" : "altitude", "only one angle", "{azimuth} and {altitude}");
  refuse(timed && angles, Fault::conflict, "at", "both angles and a time",
         "{azimuth} and {altitude}, or {at}");
  refuse(!timed && !angles, Fault::missing, "", "no position of the sun",
         "{azimuth} and {altitude}, or {at}");
  refuse(!timed && o.utc_offset_h, Fault::useless, "utc_offset", "an offset without a time", "{at} too");
  refuse(!timed && o.latitude_deg, Fault::useless, "latitude", "a location without a time", "{at} too");
  refuse(o.latitude_deg.has_value() != o.longitude_deg.has_value(), Fault::missing, "latitude",
         "only one of latitude and longitude", "{latitude} and {longitude}");
  refuse(o.wall_height.empty() != o.wall_aspect.empty(), Fault::missing,
         o.wall_height.empty() ? "wall_aspect" : "wall_height", "only one wall grid",
         "{wall_height} and {wall_aspect}");
  refuse(!o.wall_height.empty() && o.find_walls, Fault::conflict, "walls", "walls twice",
         "{walls}, or {wall_height} and {wall_aspect}");
}

/// The sun's direction in the grid; its place by time, if that was requested.
void find_sun(const ShadowRunOptions& options, const LoadedCity& city, ShadowRunResult& result) {
  if (options.azimuth_deg) {
    result.sun = {*options.azimuth_deg, *options.altitude_deg};
    return;
  }
  SunAtTime sun;
  const io::LonLat place = place_of(options, city);
  sun.latitude_deg = place.lat;
  sun.longitude_deg = place.lon;
  Observer observer;
  observer.latitude_deg = sun.latitude_deg;
  observer.longitude_deg = sun.longitude_deg;
  const SunPosition position = sun_position(parse_local_time(options.time, options.utc_offset_h), observer);
  sun.azimuth_deg = position.azimuth_deg;
  sun.convergence_deg = city.north.convergence_deg;
  double azimuth = std::fmod(sun.azimuth_deg - sun.convergence_deg, 360.0);
  if (azimuth < 0) azimuth += 360;
  result.sun = {azimuth, position.altitude_deg};
  result.place = sun;
  logging::info("sun: {:.2f}° from true north, {:.2f}° from the grid's north, {:.2f}° high", sun.azimuth_deg,
                azimuth, position.altitude_deg);
}

/// Shadows while the sun is down: the Earth blocks it as a building does.
void shade_all(const City& city, const Walls* walls, Outputs& outputs) {
  constexpr float missing = std::numeric_limits<float>::quiet_NaN();
  const int64_t step = std::clamp<int64_t>((int64_t{1} << 22) / city.cols, 1, city.rows);
  for (int64_t row = 0; row < city.rows; row += step) {
    Tile tile;
    tile.row = row;
    tile.rows = std::min(step, city.rows - row);
    tile.cols = city.cols;
    const TileResult result(tile, walls ? 5 : 3, 0);
    std::optional<City> read;
    if (city.windows) read = city.windows->read(row, 0, tile.rows, tile.cols);
    const City& part = read ? *read : city;
    const int64_t first = read ? 0 : row * city.cols;
    for (int64_t k = 0; k < tile.core_pixels(); ++k) {
      const bool hole = part.is_missing(first + k);
      const float wall = walls ? walls->height.pixels()[static_cast<size_t>(first + k)] : 0.0f;
      const float values[] = {0, 1, 1, 0, std::isfinite(wall) ? wall : 0.0f};
      for (size_t plane = 0; plane < result.planes(); ++plane)
        result.plane(plane)[k] = hole ? missing : values[plane];
    }
    outputs.take(tile, result);
  }
}

/// Walls from their files, or found here.
std::optional<Walls> find_walls(Context& context, const ShadowRunOptions& options, LoadedCity& loaded,
                                const City& city) {
  if (!options.wall_height.empty())
    return Walls{read_layer(options.wall_height, options.city, loaded, LayerValues::heights),
                 read_layer(options.wall_aspect, options.city, loaded, LayerValues::numbers)};
  if (!options.find_walls) return {};
  return collect_walls(context, city, options.walls, options.tiles);
}

/// "2015-06-21 15:00 (UTC+2)", with the offset as it was given; nothing where angles were.
std::string moment_of(const ShadowRunOptions& options) {
  std::string text = options.time;
  std::replace(text.begin(), text.end(), 'T', ' ');
  if (options.utc_offset_h) text += fmt::format(" (UTC{:+g})", *options.utc_offset_h);
  return text;
}

/// One picture of what buildings and what plants shade.
void draw_shade(const Outputs& outputs, const std::vector<float>& relief, double pixel_size_m) {
  std::vector<float> states = outputs.read("shadow_buildings");
  const std::vector<float> plants = outputs.read("shadow_vegetation");
  for (size_t k = 0; k < states.size(); ++k)
    if (states[k] == 1 && plants[k] == 0) states[k] = 0.5f;
  outputs.draw(shade_look(), states, relief, pixel_size_m);
}

ShadowRunResult run_opening(OpeningContext opening, const ShadowRunOptions& options) {
  ShadowRunResult result;
  LoadedCity loaded =
      host_stage(result.host_stages, "read", [&] { return read_city(options.city, options.tiles); });
  begin(result, loaded);
  find_sun(options, loaded, result);
  const bool with_walls = options.find_walls || !options.wall_height.empty();
  if (with_walls && loaded.by_windows)
    throw schema_of<ShadowRunOptions>().error(
        {Fault::invalid, options.find_walls ? "walls" : "wall_height", "a city that exceeds the memory",
         "a larger {memory}, a smaller raster, or shadows on the ground only", ""});
  Outputs outputs(pictured(options.output, loaded), loaded.grid, shadow_looks(with_walls));
  outputs.set_moment(moment_of(options), {result.sun.azimuth_deg, result.sun.altitude_deg});
  const std::vector<float> relief = relief_of(loaded.input.dsm, loaded.grid, options.output);
  {
    const City city = take_city(loaded);
    Context& context = opening.wait();
    const std::optional<Walls> walls = find_walls(context, options, loaded, city);
    const Walls* const given = walls ? &*walls : nullptr;
    if (result.sun.altitude_deg > 0)
      result.tiles =
          stream_shadows(context, city, given, result.sun, options.rays, options.tiles,
                         [&](const Tile& tile, const TileResult& grids) { outputs.take(tile, grids); });
    else
      shade_all(city, given, outputs);
  }
  host_stage(result.host_stages, "write", [&] {
    const bool both = !options.city.cdsm.empty() && !relief.empty();
    std::vector<std::string> family = names_of(shadow_looks(true));
    if (!both) family.push_back(shade_look().name);
    finish(result, outputs, family, relief);
    if (both) draw_shade(outputs, relief, result.ground_pixel_m());
  });
  return result;
}

}  // namespace

ShadowRunResult run(Context& context, const ShadowRunOptions& options) {
  check(options);
  return run_opening(OpeningContext(context), options);
}
ShadowRunResult run(const OpenContext& open, const ShadowRunOptions& options) {
  check(options);
  return run_opening(OpeningContext(open), options);
}

}  // namespace lockstep::urban
