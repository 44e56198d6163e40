// Possible sites of a tree, and the pixels that it can change.
#pragma once

#include <span>
#include <vector>

#include "urban/plant/species.hpp"
#include "urban/series/inputs/inputs.hpp"

namespace lockstep::urban {

struct PixelRect {
  int64_t row = 0, col = 0, rows = 0, cols = 0;
  bool empty() const { return rows <= 0 || cols <= 0; }
  int64_t pixels() const { return empty() ? 0 : rows * cols; }
};
PixelRect intersection(const PixelRect& a, const PixelRect& b);
/// The smallest that holds both.
PixelRect hull(const PixelRect& a, const PixelRect& b);

struct PlantSite {
  int64_t row = 0, col = 0;  ///< of the trunk
};

/// Positions on a grid of `spacing` pixels whose crown is inside of the raster, on ground (`inputs.ground`) and under no
/// plant. `allowed`: 1 where a trunk may be; empty: everywhere.
std::vector<PlantSite> find_sites(const SeriesInputs& inputs, const std::vector<CrownPixel>& crown,
                                  int64_t spacing, std::span<const uint8_t> allowed, PlantRefusals& refusals);

/// The pixels that a tree can change: those that see it in front of a patch of the sky or the sun, before any building,
/// and those whose view of the ground holds one of them. Other trees do not matter.
struct TreeReach {
  PixelRect box;
  std::vector<uint8_t> changed;  ///< of the box, row by row
};

class TreeReaches {
 public:
  /// Directions below `least_altitude_deg` do not count.
  TreeReaches(const SeriesInputs& inputs, const std::vector<CrownPixel>& crown, CanopyHeights convention,
              double least_altitude_deg);
  TreeReach reach_of(const PlantSite& site) const;

 private:
  struct StepOfRay {
    int64_t row, col;
    float rise, before;
  };
  struct PixelMask;
  void mark(const PlantSite& site, const CrownPixel& pixel, PixelMask& seen) const;

  const City& city_;
  const std::vector<CrownPixel>& crown_;
  const TreeHeights heights_;
  int64_t margin_;
  std::vector<std::vector<StepOfRay>> rays_;
};

/// The smallest rectangle of the pixels that both change.
PixelRect common_box(const TreeReach& a, const TreeReach& b);

}  // namespace lockstep::urban
