// Pictures of the outputs of `urban run`: one step of one output, or a summary of all steps.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "io/pictures/map_picture.hpp"
#include "urban/comfort/comfort.hpp"
#include "urban/pictures/map_base.hpp"
#include "urban/run/files/outputs.hpp"

namespace lockstep::urban {

/// How a grid of `urban run` looks: an output (tmrt, utci, pet, shadow, kdown … lside_north, gvf) or a summary of it
/// (utci_mean, tmrt_max, utci_hours_above_32, sun_hours). Throws InputError for another name.
Look step_look(std::string_view grid);
/// The index whose classes a grid is shown in; none for all others.
std::optional<ComfortIndex> index_of(std::string_view grid);

struct StepPicture {
  std::string_view output;  ///< as step_look() has it
  const std::vector<float>* values = nullptr;
  int64_t rows = 0, cols = 0;
  double pixel_size_m = 1;
  io::MapFacts facts;             ///< date, sun, CRS, north
  const MapBase* base = nullptr;  ///< roofs, water and outlines; none: values alone
  bool covered = true;            ///< values of roofs and water are hidden
  std::optional<double> minimum,
      maximum;             ///< of the colours; give those of all steps to the frames of a film
  std::string_view title;  ///< instead of the output's own, "Mean of …" of a summary
  std::string source;      ///< below the map
  int target_pixels = 960;
};

/// UTCI and PET in parts of their classes of stress; shadow as sun, shade of plants and shade; all else by a bar. Missing
/// pixels (NaN) are grey.
io::Image draw_step_picture(const StepPicture& picture);
/// The labels of that picture's legend.
std::vector<std::string> legend_of(const StepPicture& picture);

/// Name, bounds and colour of a class of stress, coldest first; `value` is its place.
std::vector<io::MapClass> stress_map_classes(ComfortIndex index);

/// A part of a class of stress, about 3 °C wide, above the one before it and up to `upper_c`. The colour of a value is the
/// same in all maps.
struct StressPart {
  double upper_c;
  size_t of_class;
  std::string label;
  io::Rgb ink;
};
const std::vector<StressPart>& stress_parts(ComfortIndex index);

}  // namespace lockstep::urban
