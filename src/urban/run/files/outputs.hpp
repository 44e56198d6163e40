// The folder of results of a run: grids written tile by tile, described, drawn.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/files/folder_lock.hpp"
#include "io/pictures/map_picture.hpp"
#include "io/rasters/raster_labels.hpp"
#include "lockstep/urban.hpp"
#include "urban/pictures/map_base.hpp"
#include "urban/run/grid_statistics.hpp"
#include "urban/tiles/run_tiles.hpp"

namespace lockstep::urban {

/// How a grid is to be shown.
struct Look {
  std::string title, unit;
  io::ColorMap map = io::ColorMap::sky;
  std::optional<double> minimum, maximum;
  bool hide_zero = false;
  std::vector<io::MapClass> classes = {};  ///< of grids with few states
  bool bytes = false;                      ///< whole numbers, which a GeoTIFF holds as bytes
};

struct NamedLook {
  std::string name;
  Look look;
};

/// A folder of results, held for this process. Grids are files that grow tile by tile and appear with commit().
class Outputs {
 public:
  /// Throws InputError where the folder cannot be made or is held by another process, and UnsupportedError
  /// where the format needs a module that is absent.
  Outputs(const OutputOptions& options, const io::RasterGrid& grid, std::vector<NamedLook> grids);

  const std::filesystem::path& folder() const { return options_.folder; }
  std::filesystem::path file(std::string_view name) const;
  /// Plane k of the result is grid k.
  void take(const Tile& tile, const TileResult& result);
  /// take() in two steps: the statistics are of rows of the tile, without pixels where `counted` is 0.
  void write(const Tile& tile, const TileResult& result);
  void count(const Tile& tile, const TileResult& result, int64_t row, int64_t rows,
             std::span<const uint8_t> counted);
  /// Rows of grid k from a row of the tile on.
  void take(size_t k, const Tile& tile, int64_t row, int64_t rows, std::span<const float> values);
  /// The whole of grid k.
  void take(size_t k, std::span<const float> values);
  /// Parts of pictures besides values, and the line below them.
  void set_map(MapBase base, std::string source);
  /// Time and sun, for pictures and GeoTIFFs; before anything is taken.
  void set_moment(const std::string& date, const io::MapSun& sun);
  /// Puts the grids in place, reports their ranges and draws them over `relief` (m; empty: none).
  std::vector<OutputGrid> commit(const std::vector<float>& relief, double pixel_size_m);
  /// A grid that commit() has put in place.
  std::vector<float> read(std::string_view name) const;
  /// A picture of the folder, named like a grid.
  std::filesystem::path draw(const NamedLook& grid, const std::vector<float>& values,
                             const std::vector<float>& relief, double pixel_size_m) const;
  /// Files with the name of one of `family`, in any format, that this run did not write; reported in one
  /// line.
  std::vector<std::filesystem::path> left_over(const std::vector<std::string>& family,
                                               const std::vector<OutputGrid>& written) const;

  /// Whether grids of this size are drawn.
  static bool drawable(const io::RasterGrid& grid);

 private:
  void open_files();
  OutputGrid describe(size_t k, const std::vector<float>& relief, double pixel_size_m) const;

  const OutputOptions options_;
  const io::RasterGrid grid_;
  const std::vector<NamedLook> grids_;
  io::MapFacts facts_;
  std::optional<MapBase> base_;
  std::string source_;
  const io::Image under_;  // of pictures; empty: none. Read before the folder is made
  FolderLock lock_;
  std::vector<std::unique_ptr<io::RasterWriter>> writers_;
  std::vector<GridStatistics> statistics_;  // of what the writers were given
};

}  // namespace lockstep::urban
