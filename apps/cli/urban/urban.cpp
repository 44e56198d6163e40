// `lockstep urban`: walls and sample. The commands with more options have files of their own.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "commands.hpp"
#include "lockstep/error.hpp"
#include "lockstep/verify.hpp"
#include "series_options.hpp"
#include "shared_options.hpp"
#include "urban/run/report.hpp"

namespace lockstep::cli {

namespace {

struct WallsCommand {
  CityArguments city;
  OutputArguments output;
  TileArguments tiles;
  WallArguments walls;
};

int run_walls(const CommonOptions& common, const WallsCommand& arguments) {
  Session session(common);
  urban::WallRunOptions options;
  options.city = city_files(arguments.city);
  options.output = output_options(arguments.output);
  options.walls = wall_options(arguments.walls);
  options.tiles = tile_options(arguments.tiles);
  const urban::WallRunResult result = urban::run(session.context(), options);
  finish(session, result, urban::to_json(result));
  return 0;
}

struct SampleCommand {
  OutputArguments output;
  std::string size = "512";
  double pixel_size = 1.0;
  int64_t seed = 1, epsg = 3006;
};

int run_sample(const CommonOptions& common, const SampleCommand& arguments) {
  Session session(common);
  std::vector<int64_t> sides;
  try {
    sides = parse_size(arguments.size);
  } catch (const InputError&) {}  // told below, by this option's name
  if (sides.empty() || sides.size() > 2 || sides.front() < 1 || sides.back() < 1 || sides.front() > 32768 ||
      sides.back() > 32768) {
    throw InputError(fmt::format("'{}'", arguments.size), "--size", "N or ROWSxCOLS, each from 1 to 32768");
  }
  urban::SampleRunOptions options;
  options.output = output_options(arguments.output);
  options.rows = sides.front();
  options.cols = sides.back();
  options.pixel_size_m = arguments.pixel_size;
  options.seed = static_cast<uint64_t>(arguments.seed);
  options.epsg = static_cast<int>(arguments.epsg);
  options.on_progress = progress_bar("city");
  const urban::SampleRunResult result = urban::run(options);
  finish(session, result, urban::to_json(result));
  return 0;
}

}  // namespace

void add_urban_walls(CommandList& commands, CLI::App& urban) {
  Command& command = add_command(commands, urban, "walls", "height and direction of walls");
  auto arguments = std::make_shared<WallsCommand>();
  add_city_options(*command.app, arguments->city, false);
  add_wall_options(*command.app, arguments->walls);
  add_output_options(*command.app, arguments->output);
  add_tile_options(*command.app, arguments->tiles);
  add_common(command, "lockstep urban walls --dsm dsm.tif --out out");
  command.run = [&command, arguments] { return run_walls(command.common, *arguments); };
}

void add_urban_sample(CommandList& commands, CLI::App& urban) {
  Command& command = add_command(commands, urban, "sample",
                                 "make a city to try things on: streets, courtyards, a tower, trees");
  auto arguments = std::make_shared<SampleCommand>();
  add_output_options(*command.app, arguments->output);
  add_text(*command.app, "--size", arguments->size, "pixels of both sides, or ROWSxCOLS (default 512)", "N");
  add_number(*command.app, "--pixel-size", arguments->pixel_size, "metres a pixel (default 1)", "M",
             {0.05, 50});
  add_integer(*command.app, "--seed", arguments->seed, "another number, another city", "N", 0, INT64_MAX);
  add_integer(*command.app, "--epsg", arguments->epsg, "CRS of the GeoTIFFs (default 3006)", "CODE", 1024,
              999999);
  add_common(command, "lockstep urban sample --size 1024 --seed 7 --out city");
  command.run = [&command, arguments] { return run_sample(command.common, *arguments); };
}

void add_urban(CommandList& commands, CLI::App& root) {
  Command& urban = add_command(commands, root, "urban", "shadows, walls and sky view factors of a city");
  set_footer(*urban.app, "Example:\n  lockstep urban svf --dsm dsm.tif --cdsm cdsm.tif --out out");
  add_urban_shadows(commands, *urban.app);
  add_urban_walls(commands, *urban.app);
  add_urban_svf(commands, *urban.app);
  add_urban_umep(commands, *urban.app);
  add_urban_sample(commands, *urban.app);
  add_urban_stage(commands, *urban.app);
  add_urban_comfort(commands, *urban.app);
  add_urban_run(commands, *urban.app);
  add_urban_check(commands, *urban.app);
  add_urban_validate(commands, *urban.app);
  add_urban_gates(commands, *urban.app);
}

}  // namespace lockstep::cli
