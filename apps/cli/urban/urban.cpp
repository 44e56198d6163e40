// `lockstep urban`: walls and sample. The commands with more options have files of their own.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "commands.hpp"
#include "lockstep/verify.hpp"
#include "urban/city/sample_city.hpp"
#include "urban_files.hpp"

namespace lockstep::cli {
namespace {

using nlohmann::ordered_json;

struct WallsCommand {
  CityOptions city;
  OutputOptions output;
  TileCommandOptions tiles;
  double limit = 3.0;
};

int run_walls(const CommonOptions& common, const WallsCommand& options) {
  Session session(common);
  const City city = session.host_stage("read", [&] { return read_city(options.city); });
  Outputs outputs(options.output, city);
  urban::WallOptions walls;
  walls.minimum_height_m = options.limit;
  const urban::Walls result =
      urban::compute_walls(session.context(), city.input, walls, tile_options(options.tiles));
  session.host_stage("write", [&] {
    outputs.add("wall_height", result.height.values, {"Wall height", "m", io::ColorMap::heat, 0.0, {}, true});
    outputs.add("wall_aspect", result.aspect.values,
                {"Direction that walls face", "° from north", io::ColorMap::cycle, 0.0, 360.0, true});
  });
  ordered_json document;
  add_grid(document, city);
  document["outputs"] = outputs.to_json();
  session.finish(document, outputs.text());
  return 0;
}

struct SampleCommand {
  OutputOptions output;
  std::string size = "512";
  double pixel_size = 1.0;
  int64_t seed = 1, epsg = 3006;
};

int run_sample(const CommonOptions& common, const SampleCommand& options) {
  Session session(common);
  urban::SampleCityOptions sample;
  const std::vector<int64_t> sides = parse_size(options.size);
  if (sides.empty() || sides.size() > 2 || sides.front() < 1 || sides.back() < 1 || sides.front() > 32768 ||
      sides.back() > 32768) {
    throw InputError(fmt::format("'{}'", options.size), "--size", "N or ROWSxCOLS, each from 1 to 32768");
  }
  sample.rows = sides.front();
  sample.cols = sides.back();
  sample.pixel_size_m = options.pixel_size;
  sample.seed = static_cast<uint64_t>(options.seed);
  City city;
  city.input = session.host_stage("sample", [&] { return urban::make_sample_city(sample); });
  city.grid.rows = sample.rows;
  city.grid.cols = sample.cols;
  city.grid.has_transform = true;
  // A place on the plain of Uppland, so that the sun stands as it does over a northern city.
  city.grid.transform = {674000, options.pixel_size, 0, 6580000, 0, -options.pixel_size};
  Outputs outputs(options.output, city);
  if (options.output.format != "npy") city.grid.crs_wkt = io::crs_from_epsg(static_cast<int>(options.epsg));
  session.host_stage("write", [&] {
    outputs.add("dsm", city.input.dsm.values,
                {"Ground and buildings", "m", io::ColorMap::terrain, {}, {}, false});
    outputs.add("dem", city.input.dem.values, {"Ground", "m", io::ColorMap::terrain, {}, {}, false});
    outputs.add("cdsm", city.input.cdsm.values,
                {"Canopy above ground", "m", io::ColorMap::canopy, 0.0, {}, true});
    outputs.add("tdsm", city.input.tdsm.values,
                {"Trunk zone above ground", "m", io::ColorMap::canopy, 0.0, {}, true});
  });
  ordered_json document;
  add_grid(document, city);
  document["seed"] = options.seed;
  document["outputs"] = outputs.to_json();
  session.finish(document, outputs.text());
  return 0;
}

}  // namespace

void add_urban_walls(CommandList& commands, CLI::App& urban) {
  Command& command = add_command(commands, urban, "walls", "height and direction of walls");
  auto options = std::make_shared<WallsCommand>();
  add_city_options(*command.app, options->city, false);
  add_number(*command.app, "--wall-limit", options->limit, "lower steps are no walls (m; default 3)", "M",
             {0, 1e4});
  add_output_options(*command.app, options->output);
  add_tile_options(*command.app, options->tiles);
  add_common(command, "lockstep urban walls --dsm dsm.tif --out out");
  command.run = [&command, options] { return run_walls(command.common, *options); };
}

void add_urban_sample(CommandList& commands, CLI::App& urban) {
  Command& command = add_command(commands, urban, "sample",
                                 "make a city to try things on: streets, courtyards, a tower, trees");
  auto options = std::make_shared<SampleCommand>();
  add_output_options(*command.app, options->output);
  add_text(*command.app, "--size", options->size, "pixels of both sides, or ROWSxCOLS (default 512)", "N");
  add_number(*command.app, "--pixel-size", options->pixel_size, "metres a pixel (default 1)", "M",
             {0.05, 50});
  add_integer(*command.app, "--seed", options->seed, "another number, another city", "N", 0, INT64_MAX);
  add_integer(*command.app, "--epsg", options->epsg, "CRS of the GeoTIFFs (default 3006)", "CODE", 1024,
              999999);
  add_common(command, "lockstep urban sample --size 1024 --seed 7 --out city");
  command.run = [&command, options] { return run_sample(command.common, *options); };
}

void add_urban(CommandList& commands, CLI::App& root) {
  Command& urban = add_command(commands, root, "urban", "shadows, walls and sky view factors of a city");
  set_footer(*urban.app, "Example:\n  lockstep urban svf --dsm dsm.tif --cdsm cdsm.tif --out out");
  add_urban_shadows(commands, *urban.app);
  add_urban_walls(commands, *urban.app);
  add_urban_svf(commands, *urban.app);
  add_urban_sample(commands, *urban.app);
}

}  // namespace lockstep::cli
