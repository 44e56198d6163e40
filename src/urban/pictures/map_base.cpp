#include "urban/pictures/map_base.hpp"

#include <algorithm>

#include "io/rasters/basemap.hpp"
#include "urban/radiation/constants.hpp"
#include "urban/run/files/outputs.hpp"

namespace lockstep::urban {
namespace {

constexpr io::Rgb kRoofInk = {228, 226, 222}, kWaterInk = {178, 186, 198}, kBuildingLine = {72, 76, 86},
                  kCrownLine = {20, 84, 40};
constexpr uint8_t kRoofCover = 1, kWaterCover = 2;

}  // namespace

void MapBase::put_into(io::MapPictureOptions& options, bool covered) const {
  if (!under.pixels.empty()) options.under = &under;
  if (covered && !cover.empty()) {
    options.cover = &cover;
    options.covers = {{"roof", kRoofInk}, {"water", kWaterInk}, {"roof or water", kRoofInk}};
  }
  if (!crowns.empty()) options.outlines.push_back({&crowns, "tree crown", kCrownLine, true});
  if (!buildings.empty()) options.outlines.push_back({&buildings, "building", kBuildingLine, false});
}

io::Image read_map_under(const MapOptions& options, const io::RasterGrid& grid) {
  if (options.basemap.empty() || !Outputs::drawable(grid)) return {};
  return io::read_basemap(options.basemap, grid, "the city's rasters");
}

MapBase map_base(const City& city, std::span<const int32_t> land_cover, std::span<const uint8_t> ground) {
  MapBase base;
  const auto pixels = static_cast<size_t>(city.pixels());
  base.cover.resize(pixels);
  base.buildings.resize(pixels);
  const std::vector<uint8_t> low = city.dem.empty() ? std::vector<uint8_t>() : ground_mask(city);
  for (size_t p = 0; p < pixels; ++p) {
    if (city.is_missing(static_cast<int64_t>(p))) continue;
    const int32_t code = land_cover.empty() ? 0 : land_cover[p];
    base.buildings[p] = code == kBuildingCode || (!low.empty() && !low[p]);
    if (!ground[p]) base.cover[p] = code == kWaterCode && !base.buildings[p] ? kWaterCover : kRoofCover;
  }
  if (!city.has_vegetation()) return base;
  const std::span<const float> top = city.canopy.as<float>();
  base.crowns.resize(pixels);
  for (size_t p = 0; p < pixels; ++p) base.crowns[p] = top[p] != 0;
  return base;
}

}  // namespace lockstep::urban
