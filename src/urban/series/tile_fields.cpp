#include "urban/series/tile_fields.hpp"

#include <tbb/parallel_for.h>

#include "urban/city/scene.hpp"

namespace lockstep::urban {

void TileFields::take_step(size_t k) {
  const io::WeatherRow& row = inputs_.weather.rows[k];
  if (!inputs_.wind_field.empty()) {
    wind_ = inputs_.wind_field.at(row[io::Weather::wind_direction]);
    shares_ = {wind_plane(wind_.first), wind_plane(wind_.second), wind_.share};
  }
  const AirField& air = inputs_.air_field;
  if (air.empty()) return;
  air_ = air.at(row.time);
  air_c_ = row[io::Weather::air_temperature];
  if (offset_ && air.planes.size() == 1 && !air.absolute) return;
  std::vector<float> core(static_cast<size_t>(tile_.core_pixels()));
  tbb::parallel_for(int64_t{0}, tile_.rows, [&](int64_t r) {
    for (int64_t c = 0; c < tile_.cols; ++c)
      core[static_cast<size_t>(r * tile_.cols + c)] =
          air.offset(air_, pixel(tile_.row + r, tile_.col + c), air_c_);
  });
  if (!offset_) offset_ = device_.allocate<f32>({tile_.core_pixels()});
  device_.write(offset_, core.data(), offset_.bytes(), stream_);
}

Buffer TileFields::wind_plane(size_t number) {
  constexpr size_t kKept = 4;
  for (const auto& [kept, buffer] : planes_)
    if (kept == number) return buffer;
  if (planes_.size() == kKept) planes_.erase(planes_.begin());
  planes_.emplace_back(
      number,
      upload_on(device_, stream_, under_core(inputs_.wind_field.factors[number], tile_, inputs_.city.cols)));
  return planes_.back().second;
}

}  // namespace lockstep::urban
