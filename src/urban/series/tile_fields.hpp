// Fields of wind and air temperature on a tile's device.
#pragma once

#include <utility>
#include <vector>

#include "lockstep/device.hpp"
#include "urban/comfort/comfort.hpp"
#include "urban/series/inputs/inputs.hpp"

namespace lockstep::urban {

/// The fields under a tile's core at one step, on its device.
class TileFields {
 public:
  TileFields(const Device& device, const Stream& stream, const SeriesInputs& inputs, const Tile& tile)
      : device_(device), stream_(stream), inputs_(inputs), tile_(tile) {}

  void take_step(size_t k);
  const Buffer& offset() const { return offset_; }
  const WindShares& wind() const { return shares_; }
  float offset_at(const SeriesPoint& point) const {
    const AirField& air = inputs_.air_field;
    return air.empty() ? 0 : air.offset(air_, pixel(point.row, point.col), air_c_);
  }
  double factor_at(const SeriesPoint& point) const {
    const auto& factors = inputs_.wind_field.factors;
    const size_t p = pixel(point.row, point.col);
    return static_cast<double>(wind_.at(factors[wind_.first][p], factors[wind_.second][p]));
  }

 private:
  size_t pixel(int64_t row, int64_t col) const { return static_cast<size_t>(row * inputs_.city.cols + col); }
  /// The last few stay on the device: the wind turns slowly.
  Buffer wind_plane(size_t number);

  const Device& device_;
  const Stream& stream_;
  const SeriesInputs& inputs_;
  const Tile& tile_;
  BetweenPlanes wind_, air_;
  double air_c_ = 0;
  WindShares shares_;
  Buffer offset_;
  std::vector<std::pair<size_t, Buffer>> planes_;
};

}  // namespace lockstep::urban
