// Pictures of the outputs of `urban run`: one step of one output, or a summary of all steps.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "io/pictures/map_picture.hpp"
#include "urban/comfort/comfort.hpp"
#include "urban/run/files/outputs.hpp"

namespace lockstep::urban {

/// How an output looks: tmrt, utci, pet, shadow, kdown, kup, kside, ldown, lup, lside or gvf. Throws InputError for
/// another name.
Look step_look(std::string_view output);

struct StepPicture {
  std::string_view output;  ///< as step_look() knows it
  const std::vector<float>* values = nullptr;
  int64_t rows = 0, cols = 0;
  double pixel_size_m = 1;
  io::MapFacts facts;                          ///< date, sun, CRS, north
  const std::vector<float>* relief = nullptr;  ///< heights (m) of the grid; none: flat
  const std::vector<uint8_t>* ground =
      nullptr;  ///< 1 where people stand; the rest shows the relief; none: all is shown
  std::optional<double> minimum,
      maximum;             ///< of the colours; give those of all steps to the frames of a film
  std::string_view title;  ///< instead of the output's own, "Mean of …" of a summary
  int target_pixels = 960;
};

/// UTCI and PET in their classes of stress; shadow as sun, shade of plants and shade; all else by a bar. Missing
/// pixels (NaN) are grey.
io::Image draw_step_picture(const StepPicture& picture);

/// Name, bounds and colour of a class of stress, coldest first; `value` is its place.
std::vector<io::MapClass> stress_map_classes(ComfortIndex index);

}  // namespace lockstep::urban
