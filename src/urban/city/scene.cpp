#include "urban/city/scene.hpp"

#include <algorithm>

#include "urban/rays/kernels.hpp"

namespace lockstep::urban {

Tile whole_tile(const City& city) { return {0, 0, city.rows, city.cols, 0, 0, city.rows, city.cols}; }

Buffer allocate_window(const Device& device, const Tile& tile) {
  return allocate_in_room<float>(device, {PaddedShape(tile.window_rows, tile.window_cols).elements()},
                                 PaddedShape(tile.room_window_rows, tile.room_window_cols).elements());
}

Buffer upload_window(const Device& device, const Stream& stream, const City& city, const Array& grid,
                     const Tile& tile, const PaddedShape& shape) {
  std::vector<float> padded(static_cast<size_t>(shape.elements()), kNoHeight);
  for (int64_t row = 0; row < shape.rows; ++row) {
    const float* const from = grid.as<float>().data() + (tile.window_row + row) * city.cols + tile.window_col;
    std::copy(from, from + shape.cols, &padded[static_cast<size_t>(shape.index(row, 0))]);
  }
  const Buffer buffer = allocate_window(device, tile);
  device.write(buffer, padded.data(), buffer.bytes(), stream);
  return buffer;
}

Scene upload_scene(const Device& device, const Stream& stream, const City& city, const Tile& tile) {
  Scene scene;
  scene.tile = tile;
  scene.shape = PaddedShape(tile.window_rows, tile.window_cols);
  scene.plants = city.has_vegetation();
  scene.highest = city.highest;
  scene.dsm = upload_window(device, stream, city, city.dsm, tile, scene.shape);
  scene.near_dsm = allocate_window(device, tile);
  scene.far = allocate_window(device, tile);
  scene.scratch = allocate_window(device, tile);
  if (scene.plants) {
    scene.canopy = upload_window(device, stream, city, city.canopy, tile, scene.shape);
    scene.trunk = upload_window(device, stream, city, city.trunk, tile, scene.shape);
    scene.near_canopy = allocate_window(device, tile);
  }
  return scene;
}

void build_maxima(const Device& device, const Stream& stream, const Scene& scene) {
  const Shape plane{scene.shape.padded_rows(), scene.shape.pitch};
  const auto grid = [&](const Buffer& buffer) { return buffer.reshape(plane); };
  const Buffer scratch = grid(scene.scratch);
  const auto near_max = [&](const Buffer& from, const Buffer& to) {
    device.launch_on(stream, kernels::max_along_rows(), plane, grid(from), scratch);
    device.launch_on(stream, kernels::max_along_cols(), plane, scratch, grid(to));
  };
  near_max(scene.dsm, scene.near_dsm);
  if (scene.plants) near_max(scene.canopy, scene.near_canopy);
  const Buffer& other = scene.plants ? scene.near_canopy : scene.near_dsm;
  device.launch_on(stream, kernels::far_max_along_rows(), plane, grid(scene.near_dsm), grid(other), scratch);
  device.launch_on(stream, kernels::far_max_along_cols(), plane, scratch, grid(scene.far));
}

}  // namespace lockstep::urban
