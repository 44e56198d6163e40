// What the urban commands share: height grids in, result grids and pictures out.
#pragma once

#include <filesystem>
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "io/pictures/colormap.hpp"
#include "io/rasters/raster.hpp"
#include "lockstep/urban.hpp"
#include "options.hpp"
#include "session.hpp"

namespace lockstep::cli {

struct CityOptions {
  std::string dsm, dem, cdsm, tdsm, canopy = "above-ground";
  std::optional<double> pixel_size;
  double trunk_ratio = 0.25;
};
/// `with_plants` adds the canopy options.
void add_city_options(CLI::App& app, CityOptions& options, bool with_plants);

/// A city, and the grid that results take over.
struct City {
  urban::CityInput input;
  io::RasterGrid grid;
};
City read_city(const CityOptions& options);
/// Another raster of the city's grid.
urban::Raster read_layer(const std::string& file, const City& city, const CityOptions& options);

struct OutputOptions {
  std::string out, format = "tif";
  bool no_pictures = false;
};
void add_output_options(CLI::App& app, OutputOptions& options);

struct TileCommandOptions {
  int64_t tile = 0, workers = 0;
};
void add_tile_options(CLI::App& app, TileCommandOptions& options);
urban::TileOptions tile_options(const TileCommandOptions& options);

/// How a grid is to be shown.
struct Look {
  std::string title, unit;
  io::ColorMap map = io::ColorMap::sky;
  std::optional<double> minimum, maximum;
  bool hide_zero = false;
};

/// The folder of results: checked when made, filled grid by grid, described in JSON.
class Outputs {
 public:
  /// Throws InputError where the folder cannot be made or the format needs a module that is absent.
  Outputs(const OutputOptions& options, const City& city);
  std::filesystem::path file(const std::string& name) const;
  const std::filesystem::path& folder() const { return folder_; }
  /// Writes the grid and its picture.
  void add(const std::string& name, const std::vector<float>& values, const Look& look);
  /// A grid that is on disk already.
  void add_written(const std::vector<std::pair<std::string, Look>>& grids);
  nlohmann::ordered_json to_json() const;
  /// One line a grid: name, range, mean.
  std::string text() const;

 private:
  struct Entry {
    std::string name, file, picture;
    double minimum = 0, maximum = 0, mean = 0;
    int64_t missing = 0;
  };
  struct Statistics {
    double sum = 0, minimum = std::numeric_limits<double>::infinity(), maximum = -minimum;
    int64_t count = 0, missing = 0;
    void take(const std::vector<float>& values);
  };
  Entry entry(const std::string& name, const Statistics& statistics) const;
  bool drawable() const;
  /// Gives the picture's file, or nothing where there is none.
  std::string draw(const std::string& name, const std::vector<float>& values, const Look& look) const;
  const OutputOptions options_;
  const City& city_;
  std::filesystem::path folder_;
  std::vector<Entry> entries_;
};

/// Grids above this size get no picture, and are described in parts of at most as many cells.
inline constexpr int64_t kLargestPicture = int64_t{1} << 27;

/// Rows, columns and pixel size for the JSON.
void add_grid(nlohmann::ordered_json& object, const City& city);

}  // namespace lockstep::cli
