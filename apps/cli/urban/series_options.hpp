// Options of the urban commands that run hour by hour.
#pragma once

#include <optional>
#include <string>

#include "commands.hpp"
#include "lockstep/urban/series.hpp"
#include "shared_options.hpp"

namespace lockstep::cli {

struct SeriesArguments {
  CityArguments city;
  TileArguments tiles;
  WallArguments walls;
  std::string land_cover, wall_height, wall_aspect, svf, parameters, weather, points, from, to, out;
  std::string outputs = "tmrt,utci,shadow", format = "nc", preset = "corrected", sky = "anisotropic",
              body = "cylinder", posture, patches = "153", substeps = "auto";
  std::string interval = "end", direct = "normal", leaf_days;
  std::optional<double> utc_offset, latitude, longitude, elevation, max_reach, wind_height;
  bool evergreen = false, no_pictures = false, no_video = false, no_resume = false;
};

/// The options that must be given: none; DSM and weather; the folder for results too.
enum class SeriesNeeds { nothing, inputs, all };
void add_series_options(CLI::App& app, SeriesArguments& arguments, SeriesNeeds needs);
/// Refuses options that contradict each other or that nothing would use.
void check_series_options(const CLI::App& app, const SeriesArguments& arguments);
urban::SeriesOptions series_options(const SeriesArguments& arguments);

void add_urban_run(CommandList& commands, CLI::App& urban);
void add_urban_validate(CommandList& commands, CLI::App& urban);
void add_urban_gates(CommandList& commands, CLI::App& urban);
void add_urban_check(CommandList& commands, CLI::App& urban);

}  // namespace lockstep::cli
