#include "shared_options.hpp"

#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>

#include "core/reports/progress.hpp"
#include "lockstep/error.hpp"

namespace lockstep::cli {
void add_city_options(CLI::App& app, CityArguments& arguments, bool with_plants, bool required) {
  add_file(app, "--dsm", arguments.dsm,
           "ground and buildings, heights (m): GeoTIFF, any GDAL raster, or .npy");
  if (required) require(app, "--dsm");
  add_number(app, "--pixel-size", arguments.pixel_size,
             "metres a pixel, for rasters without georeference (.npy)", "M", {0, 1e6, true});
  add_integer(app, "--band", arguments.band, "of the DSM's file (default: the first)", "N", 1, 65535);
  add_choice(app, "--dsm-heights", arguments.dsm_heights, "what the DSM's heights are measured from",
             {"absolute", "above-ground"});
  add_file(app, "--dem", arguments.dem,
           "ground alone, absolute heights (m); tells ground from buildings, and what a DSM above ground "
           "stands on");
  if (!with_plants) return;
  add_file(app, "--cdsm", arguments.cdsm, "top of the canopy (m); 0 = no plant");
  add_file(app, "--tdsm", arguments.tdsm,
           "height below which plants are trunk only (m); default: --trunk-ratio of the canopy");
  add_number(app, "--trunk-ratio", arguments.trunk_ratio,
             "trunk zone as a share of the canopy's height (default 0.25)", "R", {0, 1});
  add_choice(app, "--canopy", arguments.canopy, "what canopy heights are measured from",
             {"above-ground", "absolute"});
}

void check_plants(const CLI::App& app, const CityArguments& arguments) {
  for (const char* option : {"--trunk-ratio", "--canopy"}) expect_beside(app, option, "--cdsm");
  if (!arguments.tdsm.empty() && given(app, "--trunk-ratio"))
    throw InputError("trunk heights twice", "--trunk-ratio", "no --tdsm beside it");
}

urban::CityFiles city_files(const CityArguments& arguments) {
  urban::CityFiles files;
  files.dsm = arguments.dsm;
  files.dem = arguments.dem;
  files.cdsm = arguments.cdsm;
  files.tdsm = arguments.tdsm;
  files.pixel_size_m = arguments.pixel_size;
  if (arguments.band > 0) files.band = static_cast<int>(arguments.band);
  files.trunk_ratio = arguments.trunk_ratio;
  if (arguments.dsm_heights == "above-ground") files.dsm_heights = urban::DsmHeights::above_ground;
  if (arguments.canopy == "absolute") files.canopy_heights = urban::CanopyHeights::absolute;
  return files;
}

void add_output_options(CLI::App& app, OutputArguments& arguments) {
  add_output_folder(app, "--out", arguments.out, "folder for the results; it is made if missing");
  require(app, "--out");
  add_choice(app, "--format", arguments.format, "format of the grids", {"tif", "npy"});
  add_flag(app, "--no-pictures", arguments.no_pictures, "no PNG beside each grid");
}

urban::OutputOptions output_options(const OutputArguments& arguments) {
  return {arguments.out, arguments.format == "npy" ? urban::GridFormat::npy : urban::GridFormat::tif,
          !arguments.no_pictures};
}

void add_tile_options(CLI::App& app, TileArguments& arguments) {
  add_integer(app, "--tile", arguments.tile,
              "side of a tile in pixels (default: from the device's limits and free memory)", "N", 1,
              1 << 20);
  add_integer(app, "--tile-workers", arguments.workers, "tiles in flight (default: 2 on a GPU, 1 on the CPU)",
              "N", 1, 64);
  add_text(app, "--memory", arguments.memory,
           "host memory that the program may come to use, such as 8G (default: 0.8 of what is free)", "SIZE");
}

urban::TileOptions tile_options(const TileArguments& arguments) {
  urban::TileOptions tiles;
  tiles.side = arguments.tile;
  tiles.workers = static_cast<int>(arguments.workers);
  if (!arguments.memory.empty()) tiles.memory_bytes = parse_bytes(arguments.memory, "--memory");
  tiles.on_progress = progress_bar("rays");
  return tiles;
}

std::function<void(int64_t, int64_t)> progress_bar(const std::string& title) {
  // The bar is made when the number of parts is known, and again if it changes with a fallback.
  struct Bar {
    std::mutex mutex;
    std::unique_ptr<Progress> progress;
  };
  return [title, bar = std::make_shared<Bar>()](int64_t done, int64_t total) {
    std::lock_guard lock(bar->mutex);
    if (!bar->progress || bar->progress->total() != total)
      bar->progress = std::make_unique<Progress>(title, total);
    bar->progress->set(done);
    if (done >= total) bar->progress.reset();
  };
}

void add_wall_options(CLI::App& app, WallArguments& arguments) {
  add_number(app, "--wall-limit", arguments.limit, "lower steps are no walls (m; default 3)", "M", {0, 1e4});
  add_choice(app, "--wall-filter", arguments.filter,
             "length of the lines that find a wall's direction: nine metres or nine pixels", {"9m", "9px"});
  add_choice(app, "--wall-ties", arguments.ties,
             "of equally good directions the middle one, or the first, as published", {"middle", "first"});
}

urban::WallOptions wall_options(const WallArguments& arguments) {
  urban::WallOptions walls;
  walls.minimum_height_m = arguments.limit;
  if (arguments.filter == "9px") walls.filter = urban::WallFilter::pixels;
  if (arguments.ties == "first") walls.ties = urban::WallTies::first;
  return walls;
}

void finish(Session& session, const urban::RunResult& result, nlohmann::ordered_json document) {
  for (const StageRecord& stage : result.host_stages) session.note(stage);
  std::string text;
  for (const urban::OutputGrid& grid : result.outputs)
    text += fmt::format("{:<34} {:>10.4g} to {:<10.4g} mean {:<10.5g} {}\n", grid.name, grid.minimum,
                        grid.maximum, grid.mean, grid.file.string());
  session.finish(std::move(document), text);
}

}  // namespace lockstep::cli
