// Options that several urban commands share, and how their results are printed.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "commands.hpp"
#include "lockstep/urban.hpp"
#include "options.hpp"
#include "session.hpp"

namespace lockstep::cli {

struct CityArguments {
  std::string dsm, dem, cdsm, tdsm, canopy = "above-ground", dsm_heights = "absolute";
  std::optional<double> pixel_size;
  double trunk_ratio = 0.25;
  int64_t band = 0;
};
/// `with_plants` adds the canopy options; `required`: the DSM must be given.
void add_city_options(CLI::App& app, CityArguments& arguments, bool with_plants, bool required = true);
/// Refuses options of plants that are not there.
void check_plants(const CLI::App& app, const CityArguments& arguments);
urban::CityFiles city_files(const CityArguments& arguments);

struct OutputArguments {
  std::string out, format = "tif";
  bool no_pictures = false;
};
void add_output_options(CLI::App& app, OutputArguments& arguments);
urban::OutputOptions output_options(const OutputArguments& arguments);

struct TileArguments {
  int64_t tile = 0, workers = 0;
  std::string memory;
};
void add_tile_options(CLI::App& app, TileArguments& arguments);
urban::TileOptions tile_options(const TileArguments& arguments);
/// A bar on stderr; `title` names the work.
std::function<void(int64_t done, int64_t total)> progress_bar(const std::string& title);

struct WallArguments {
  double limit = 3.0;
  std::string filter = "9m", ties = "middle";
};
void add_wall_options(CLI::App& app, WallArguments& arguments);
urban::WallOptions wall_options(const WallArguments& arguments);

/// Hands the run's stages to the summary; prints the JSON, or one line a grid: name, range, mean.
void finish(Session& session, const urban::RunResult& result, nlohmann::ordered_json document);

void add_urban_umep(CommandList& commands, CLI::App& urban);

}  // namespace lockstep::cli
