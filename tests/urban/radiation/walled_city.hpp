// A city with walls, for tests of radiation.
#pragma once

#include <vector>

#include "lockstep/context.hpp"
#include "urban/city/scene.hpp"
#include "urban/radiation/model.hpp"
#include "urban/rasters.hpp"
#include "urban/scenes.hpp"

namespace lockstep::urban {

inline const Device& cpu() {
  static const Device device = Device::open("cpu,interp");
  return device;
}

/// A city with its walls, for the radiation of one step.
struct WalledCity {
  City city;
  Walls walls;
  std::vector<int32_t> codes;

  explicit WalledCity(CityInput input) : city(prepare_city(std::move(input))) {
    if (city.dem.empty()) city.dem = Raster(city.rows, city.cols, city.lowest).values;
    const std::vector<float> heights = reference::wall_height<float>(city, 1.0);
    walls = {raster_of(city.rows, city.cols, heights),
             raster_of(city.rows, city.cols, reference::wall_aspect<float>(city, heights))};
  }
  void cover() {
    const auto table = standard_land_cover();
    for (size_t p = 0; p < static_cast<size_t>(city.pixels()); ++p)
      codes.push_back(table[p / 3 % table.size()].code);
  }
  RadiationScene scene() const { return scene(whole_tile(city)); }
  RadiationScene scene(const Tile& tile) const {
    RadiationScene s;
    s.city = &city;
    s.walls = &walls;
    s.land_cover = &codes;
    s.tile = tile;
    return s;
  }
};

}  // namespace lockstep::urban
