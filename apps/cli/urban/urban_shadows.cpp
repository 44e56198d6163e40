// `lockstep urban shadows`: shadows of one position of the sun, on the ground and on walls.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "commands.hpp"
#include "lockstep/error.hpp"
#include "urban_files.hpp"

namespace lockstep::cli {
namespace {

using nlohmann::ordered_json;

struct ShadowsCommand {
  CityOptions city;
  OutputOptions output;
  TileCommandOptions tiles;
  std::optional<double> azimuth, altitude, utc_offset, latitude, longitude, max_reach;
  std::string at, wall_height, wall_aspect;
  bool walls = false;
  double limit = 3.0;
};

void check(const ShadowsCommand& options) {
  const bool angles = options.azimuth || options.altitude;
  if (angles && !options.at.empty())
    throw InputError("both angles and a time", "--at", "--azimuth and --altitude, or --at");
  if (!angles && options.at.empty())
    throw InputError("no position of the sun", "urban shadows",
                     "--azimuth and --altitude, or --at and --utc-offset");
  if (angles && !(options.azimuth && options.altitude)) {
    throw InputError("one angle alone", options.azimuth ? "--azimuth" : "--altitude",
                     "--azimuth and --altitude");
  }
  if (!options.at.empty() && !options.utc_offset)
    throw InputError("a local time without its offset", "--at", "--utc-offset H too");
  if (options.at.empty() && options.utc_offset)
    throw InputError("an offset without a time", "--utc-offset", "--at too");
  if (options.latitude.has_value() != options.longitude.has_value())
    throw InputError("half a place", "--latitude", "--latitude and --longitude");
  const bool files = !options.wall_height.empty() || !options.wall_aspect.empty();
  if (files && (options.wall_height.empty() || options.wall_aspect.empty())) {
    throw InputError("one wall grid alone", options.wall_height.empty() ? "--wall-aspect" : "--wall-height",
                     "--wall-height and --wall-aspect");
  }
  if (files && options.walls)
    throw InputError("walls twice", "--walls", "--walls, or --wall-height and --wall-aspect");
}

urban::Direction sun_of(const ShadowsCommand& options, const City& city, ordered_json& document) {
  urban::Direction sun;
  if (options.at.empty()) {
    sun = {*options.azimuth, *options.altitude};
  } else {
    io::LonLat place;
    if (options.latitude) {
      place = {*options.longitude, *options.latitude};
    } else if (city.grid.crs_wkt.empty()) {
      throw InputError("the raster does not tell its place on Earth", options.city.dsm,
                       "a CRS, or --latitude and --longitude");
    } else {
      place = io::centre_lon_lat(city.grid);
    }
    urban::Observer observer;
    observer.latitude_deg = place.lat;
    observer.longitude_deg = place.lon;
    const urban::SunPosition position =
        urban::sun_position(urban::parse_local_time(options.at, *options.utc_offset), observer);
    if (position.altitude_deg <= 0) {
      throw InputError(fmt::format("the sun stands {:.2f}° below the horizon", -position.altitude_deg),
                       fmt::format("--at {} at {:.4f}° N {:.4f}° E", options.at, place.lat, place.lon),
                       "a time of day")
          .with_hint("is --utc-offset right?");
    }
    sun = {position.azimuth_deg, position.altitude_deg};
    document["place"] = {{"latitude", place.lat}, {"longitude", place.lon}};
  }
  document["sun"] = {{"azimuth", sun.azimuth_deg}, {"altitude", sun.altitude_deg}};
  return sun;
}

int run(const CommonOptions& common, const ShadowsCommand& options) {
  check(options);
  Session session(common);
  const City city = session.host_stage("read", [&] { return read_city(options.city); });
  Outputs outputs(options.output, city);
  ordered_json document;
  add_grid(document, city);
  const urban::Direction sun = sun_of(options, city, document);
  urban::RayOptions rays;
  if (options.max_reach) rays.max_reach_m = *options.max_reach;
  const urban::TileOptions tiles = tile_options(options.tiles);

  urban::ShadowsWithWalls result;
  std::optional<urban::Walls> walls;
  if (options.walls) {
    urban::WallOptions wall_options;
    wall_options.minimum_height_m = options.limit;
    walls = urban::compute_walls(session.context(), city.input, wall_options, tiles);
  } else if (!options.wall_height.empty()) {
    walls = {read_layer(options.wall_height, city, options.city),
             read_layer(options.wall_aspect, city, options.city)};
  }
  if (walls) {
    result = urban::compute_wall_shadows(session.context(), city.input, *walls, sun, rays, tiles);
  } else {
    result.shadows = urban::compute_shadows(session.context(), city.input, sun, rays, tiles);
  }
  session.host_stage("write", [&] {
    const std::string where =
        fmt::format("sun {:.1f}° from north, {:.1f}° high", sun.azimuth_deg, sun.altitude_deg);
    const auto look = [&](const std::string& title) {
      return Look{fmt::format("{}: {}", title, where), "1 = sun", io::ColorMap::light, 0.0, 1.0, false};
    };
    outputs.add("shadow_buildings", result.shadows.buildings.values, look("Shadows of buildings"));
    outputs.add("shadow_vegetation", result.shadows.vegetation.values, look("Shadows of plants"));
    outputs.add("shadow_vegetation_before_buildings", result.shadows.vegetation_before_buildings.values,
                look("Plants before buildings"));
    if (walls) {
      outputs.add("wall_sun", result.walls.sun.values,
                  {"Sunlit part of walls", "m", io::ColorMap::heat, 0.0, {}, true});
      outputs.add("wall_shadow", result.walls.shadow.values,
                  {"Shaded part of walls", "m", io::ColorMap::heat, 0.0, {}, true});
    }
  });
  document["outputs"] = outputs.to_json();
  session.finish(document, outputs.text());
  return 0;
}

}  // namespace

void add_urban_shadows(CommandList& commands, CLI::App& urban) {
  Command& command = add_command(commands, urban, "shadows", "shadows of one position of the sun");
  auto options = std::make_shared<ShadowsCommand>();
  CLI::App& app = *command.app;
  add_city_options(app, options->city, true);
  add_number(app, "--azimuth", options->azimuth, "of the sun, clockwise from north", "DEG", {-360, 720});
  add_number(app, "--altitude", options->altitude, "of the sun above the horizon", "DEG", {0, 90, true});
  add_text(app, "--at", options->at, "local time instead of angles; the place is the raster's",
           "YYYY-MM-DDTHH:MM");
  add_number(app, "--utc-offset", options->utc_offset, "hours that local time is ahead of universal time",
             "H", {-14, 14});
  add_number(app, "--latitude", options->latitude, "place for --at where the raster tells none", "DEG",
             {-90, 90});
  add_number(app, "--longitude", options->longitude, "east positive", "DEG", {-180, 180});
  add_flag(app, "--walls", options->walls, "find the walls and their sunlit and shaded heights too");
  add_number(app, "--wall-limit", options->limit, "lower steps are no walls (m; default 3)", "M", {0, 1e4});
  add_file(app, "--wall-height", options->wall_height, "wall heights (m) from a file");
  add_file(app, "--wall-aspect", options->wall_aspect, "directions that walls face (degrees) from a file");
  add_number(app, "--max-reach", options->max_reach, "longest horizontal reach of a ray (default: no limit)",
             "M", {0, 1e7, true});
  add_output_options(app, options->output);
  add_tile_options(app, options->tiles);
  add_common(
      command,
      "lockstep urban shadows --dsm dsm.tif --cdsm cdsm.tif --at 2015-06-21T12:00 --utc-offset 2 --out out");
  command.run = [&command, options] { return run(command.common, *options); };
}

}  // namespace lockstep::cli
