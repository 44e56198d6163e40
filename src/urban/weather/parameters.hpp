// Parameter files of the format that UMEP publishes (parametersforsolweig.json), read as they are.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "urban/comfort/comfort.hpp"
#include "urban/radiation/constants.hpp"
#include "urban/radiation/model.hpp"

namespace lockstep::urban {

/// One a row of standard_land_cover().
std::vector<std::string> standard_class_names();

/// Parameters as a file sets them. Without a file: the standard values of docs/urban.md.
struct ModelParameters {
  std::vector<SurfaceRow> land_cover = standard_land_cover();
  std::vector<std::string> class_names = standard_class_names();  ///< one a row of land_cover
  WallSurface wall;
  std::optional<double> absorption_short, absorption_long;
  std::optional<Posture> posture;
  std::optional<double> leaf_on, trunk_ratio;
  std::optional<int> leaf_first_day, leaf_last_day;
  double wind_height_m = 10;
  Person person;

  /// Puts the file's values over those of a preset.
  void apply(RadiationOptions& options) const;
  /// "0 cobble, 1 asphalt, …".
  std::string class_table() const;
  /// "5 grass"; of a code that the table lacks the number.
  std::string class_title(float code) const;
};

/// Throws InputError that names the file and the member for what is no such file.
ModelParameters parse_parameters(std::string_view text, std::string_view where);
ModelParameters read_parameters(const std::filesystem::path& path);

/// Codes of a land-cover grid for the model: walls' materials (from 100 on) count as roofs. Throws InputError
/// with pixel, value and table for a class that the table lacks. Missing pixels, which only where the DSM is
/// missing may be, get the first class.
std::vector<int32_t> land_cover_codes(const Raster& grid, const ModelParameters& parameters, const City& city,
                                      std::string_view where);

}  // namespace lockstep::urban
