// A series whose tiles other processes compute: each opens the same run and computes tiles by their numbers.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "urban/series/arrays.hpp"
#include "urban/series/outputs/point_table.hpp"
#include "urban/tiles/tiling.hpp"

namespace lockstep::urban {

class TiledSeries {
 public:
  /// Reads and checks all inputs, as `run` does. The side of the tiles is that of the options, the same in all processes.
  TiledSeries(Context& context, const SeriesOptions& options, const SeriesArrays& arrays);
  ~TiledSeries();
  TiledSeries(const TiledSeries&) = delete;
  TiledSeries& operator=(const TiledSeries&) = delete;

  const std::vector<Tile>& tiles() const;
  /// Names all that the bits of a tile depend on but the tile itself.
  const std::string& key() const;
  std::vector<std::string> times() const;
  int64_t rows() const;
  int64_t cols() const;
  const std::vector<SeriesPoint>& points() const;
  /// To be filled with the points of all tiles.
  SeriesPointTable point_table() const;

  /// Of a tile's core, with the bits of the whole run there.
  struct Values {
    std::vector<float> grids;   ///< (steps, outputs, rows, columns)
    std::vector<float> points;  ///< (steps, points in the core in their order, kPointValues)
  };
  Values compute(size_t number) const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace lockstep::urban
