// The grids that each run writes and how they are shown, and what all runs begin and end with.
#pragma once

#include <string>
#include <vector>

#include "urban/run/files/city_files.hpp"
#include "urban/run/files/outputs.hpp"

namespace lockstep::urban {

std::vector<NamedLook> wall_looks();
/// Shadows of a sun; with walls their sunlit and shaded heights too.
std::vector<NamedLook> shadow_looks(bool walls);
/// Shade of buildings and of plants in one picture: 1 for sun, 0.5 and 0.
NamedLook shade_look();
std::vector<NamedLook> sky_looks();
std::vector<NamedLook> sample_looks();
/// Of the mask of the ground that people can use.
Look ground_look();
std::vector<std::string> names_of(const std::vector<NamedLook>& looks);

/// Size and place of the city.
void begin(RunResult& result, const LoadedCity& city);
/// The options, without pictures if the city is read tile by tile; a warning reports this.
OutputOptions pictured(OutputOptions options, const LoadedCity& city);
/// The heights that pictures are drawn over; empty where none is drawn.
std::vector<float> relief_of(const Raster& dsm, const io::RasterGrid& grid, const OutputOptions& options);
/// Puts the results in place. `family`: every grid that a run of this kind may write.
void finish(RunResult& result, Outputs& outputs, const std::vector<std::string>& family,
            const std::vector<float>& relief);

}  // namespace lockstep::urban
