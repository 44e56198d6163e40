// A window of a city on a device, ready for the ray kernels.
#pragma once

#include <vector>

#include "lockstep/device.hpp"
#include "urban/city/prepare.hpp"
#include "urban/rays/ray_table.hpp"
#include "urban/tiles/tiling.hpp"

namespace lockstep::urban {

struct Scene {
  Tile tile;
  PaddedShape shape;
  bool plants = false;
  float highest = 0;
  // Padded, flat. The maxima belong to the boxes that begin at a pixel.
  Buffer dsm, near_dsm, far;          ///< far: of buildings and plants, 32 × 32
  Buffer canopy, trunk, near_canopy;  ///< empty without plants
  Buffer scratch;

  int64_t row_offset() const { return tile.row - tile.window_row; }
  int64_t col_offset() const { return tile.col - tile.window_col; }
  Shape core() const { return {tile.rows, tile.cols}; }
};

/// Bytes of device memory a padded pixel, with everything a scene holds.
constexpr uint64_t scene_bytes(bool plants) { return plants ? 28 : 16; }

/// A buffer of `shape` in memory for at least `room` elements.
template <class E>
Buffer allocate_in_room(const Device& device, const Shape& shape, int64_t room) {
  const int64_t elements = shape.elements();
  if (room <= elements) return device.allocate<E>(shape);
  return device.allocate<E>({room}).rows(0, elements).reshape(shape);
}
/// The same for `planes` core grids of a tile.
template <class E>
Buffer allocate_core(const Device& device, int64_t planes, const Tile& tile) {
  return allocate_in_room<E>(device, {planes, tile.rows, tile.cols},
                             planes * tile.room_rows * tile.room_cols);
}
/// A padded window of a tile.
Buffer allocate_window(const Device& device, const Tile& tile);

/// Allocates and copies in the order of a stream.
template <class E>
Buffer upload_on(const Device& device, const Stream& stream, const std::vector<E>& data) {
  const Buffer buffer = device.allocate<E>({static_cast<int64_t>(data.size())});
  device.write(buffer, data.data(), buffer.bytes(), stream);
  return buffer;
}

/// Copies the window with its pads to the device; pads hold kNoHeight.
Buffer upload_window(const Device& device, const Stream& stream, const City& city, const Array& grid,
                     const Tile& tile, const PaddedShape& shape);

/// Uploads what rays need. `build_maxima` must run before the first ray.
Scene upload_scene(const Device& device, const Stream& stream, const City& city, const Tile& tile);
void build_maxima(const Device& device, const Stream& stream, const Scene& scene);

/// A tile that is the whole raster.
Tile whole_tile(const City& city);

}  // namespace lockstep::urban
