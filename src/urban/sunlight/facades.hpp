// The facades of a city: walls as `urban walls` finds them, in bands of about a floor, and the sun on them.
#pragma once

#include <cstdint>
#include <vector>

#include "io/vectors/geopackage.hpp"
#include "lockstep/device.hpp"
#include "urban/rays/kernels.hpp"
#include "urban/sun/shadows.hpp"
#include "urban/sunlight/sun_rules.hpp"
#include "urban/walls/walls.hpp"

namespace lockstep::urban {

/// A pixel next to a building. Its wall is cut into bands of equal height.
struct FacadeWall {
  int32_t row = 0, col = 0;
  float azimuth_deg = 0, base_m = 0, height_m = 0;  ///< the base in the city's own heights
  int32_t bands = 1;
  int64_t first_band = 0;

  double band_height_m() const { return static_cast<double>(height_m) / bands; }
  /// Of a pixel's length, with which walls of the direction join.
  double length_in_pixels() const;
};

struct Facades {
  std::vector<FacadeWall> walls;  ///< row by row
  /// Positions of the sun that the middle of each band sees, of the day with the fewest.
  std::vector<uint32_t> past_buildings, past_plants;

  int64_t bands() const { return static_cast<int64_t>(past_buildings.size()); }
  /// Host memory that its features take while they are written.
  static uint64_t bytes(int64_t walls, int64_t bands);
};

/// Throws UnsupportedError where the features would take more than `most_bytes`.
Facades find_facades(const City& city, const Walls& walls, double floor_height_m, uint64_t most_bytes);

/// Adds the sun of the ray, whose side it is, to points laid out as kernels::FacadeRows.
void cast_facade_sun(const Device& device, const Stream& stream, const Scene& scene, const Buffer& rays,
                     const Buffer& points, const SunSide& side);

/// Some bands of a tile's walls, on the device.
class FacadePoints {
 public:
  /// Numbers of bands, at most `most` in each part, of the walls in the tile's core; one empty part where there are none.
  static std::vector<std::vector<int64_t>> parts_of(const Facades& facades, const Tile& tile, int64_t most);

  FacadePoints(const Device& device, const Stream& stream, const Facades& facades, const Tile& tile,
               const std::vector<int64_t>& bands);
  void clear_counts() const;
  /// Adds the sun of the ray.
  void shine(const Scene& scene, const Buffer& rays, const SunSide& side) const;
  /// Lowers the counts of the facades to those of the device.
  void lower(Facades& facades) const;

 private:
  const Device& device_;
  const Stream& stream_;
  const std::vector<int64_t>& bands_;
  Buffer points_;
};

/// Bytes of device memory a point.
inline constexpr uint64_t kFacadePointBytes = 4 * kernels::FacadeRows::kCount;

/// Totals, and the shares of a rule's grades.
FacadeResult totals_of(const Facades& facades, double pixel_size_m, double hours_of_one);
void take_facade_shares(const Facades& facades, const SunRuleFacts& rule, int minutes,
                        std::vector<SunGrade>& grades);

/// Lines of walls and of bands. `rule`: null for none.
std::vector<io::FeatureLayer> facade_layers(const Facades& facades, const City& city,
                                            const io::RasterGrid& grid, const SunRuleFacts* rule,
                                            int minutes);

}  // namespace lockstep::urban
