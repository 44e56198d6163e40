// `lockstep urban shadows`: shadows of one position of the sun, on the ground and on walls.
#include <nlohmann/json.hpp>

#include "commands.hpp"
#include "lockstep/error.hpp"
#include "shared_options.hpp"
#include "urban/run/opening.hpp"
#include "urban/run/report.hpp"

namespace lockstep::cli {
namespace {

struct ShadowsCommand {
  CityArguments city;
  OutputArguments output;
  TileArguments tiles;
  WallArguments walls;
  std::optional<double> azimuth, altitude, utc_offset, latitude, longitude, max_reach;
  std::string at, wall_height, wall_aspect;
  bool find_walls = false;
};

int run(const CommonOptions& common, const ShadowsCommand& arguments) {
  if (arguments.azimuth.has_value() != arguments.altitude.has_value())
    throw InputError("one angle alone", arguments.azimuth ? "--azimuth" : "--altitude",
                     "--azimuth and --altitude");
  urban::ShadowRunOptions options;
  options.city = city_files(arguments.city);
  options.output = output_options(arguments.output);
  options.tiles = tile_options(arguments.tiles);
  options.walls = wall_options(arguments.walls);
  if (arguments.azimuth) options.sun = urban::Direction{*arguments.azimuth, *arguments.altitude};
  options.time = arguments.at;
  options.utc_offset_h = arguments.utc_offset;
  options.latitude_deg = arguments.latitude;
  options.longitude_deg = arguments.longitude;
  options.find_walls = arguments.find_walls;
  options.wall_height = arguments.wall_height;
  options.wall_aspect = arguments.wall_aspect;
  if (arguments.max_reach) options.rays.max_reach_m = *arguments.max_reach;
  expect_few_streams();
  Session session(common);
  const urban::ShadowRunResult result = urban::run([&]() -> Context& { return session.context(); }, options);
  finish(session, result, urban::to_json(result));
  return 0;
}

}  // namespace

void add_urban_shadows(CommandList& commands, CLI::App& urban) {
  Command& command = add_command(commands, urban, "shadows", "shadows of one position of the sun");
  auto arguments = std::make_shared<ShadowsCommand>();
  CLI::App& app = *command.app;
  add_city_options(app, arguments->city, true);
  add_number(app, "--azimuth", arguments->azimuth, "of the sun, clockwise from the grid's north", "DEG",
             {-360, 720});
  add_number(app, "--altitude", arguments->altitude, "of the sun above the horizon", "DEG", {0, 90, true});
  add_text(app, "--at", arguments->at,
           "local time instead of angles, with or without its offset (Z, +02:00); the place is the raster's",
           "YYYY-MM-DDTHH:MM");
  add_number(app, "--utc-offset", arguments->utc_offset, "hours that local time is ahead of universal time",
             "H", {-14, 14});
  add_number(app, "--latitude", arguments->latitude, "place for --at where the raster tells none", "DEG",
             {-90, 90});
  add_number(app, "--longitude", arguments->longitude, "east positive", "DEG", {-180, 180});
  add_flag(app, "--walls", arguments->find_walls, "find the walls and their sunlit and shaded heights too");
  add_wall_options(app, arguments->walls);
  add_file(app, "--wall-height", arguments->wall_height, "wall heights (m) from a file");
  add_file(app, "--wall-aspect", arguments->wall_aspect, "directions that walls face (degrees) from a file");
  add_number(app, "--max-reach", arguments->max_reach,
             "longest horizontal reach of a ray (default: no limit)", "M", {0, 1e7, true});
  add_output_options(app, arguments->output);
  add_tile_options(app, arguments->tiles);
  add_common(command,
             "lockstep urban shadows --dsm dsm.tif --cdsm cdsm.tif --at 2015-06-21T12:00+02:00 --out out");
  command.run = [&command, arguments] {
    check_plants(*command.app, arguments->city);
    for (const char* option : {"--wall-limit", "--wall-filter", "--wall-ties"})
      expect_beside(*command.app, option, "--walls");
    return run(command.common, *arguments);
  };
}

}  // namespace lockstep::cli
