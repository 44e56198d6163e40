#include "urban/city/random_city.hpp"

#include <algorithm>
#include <limits>

#include "verify/inputs.hpp"

namespace lockstep::urban {
namespace {

Raster mirrored(const Raster& from, int64_t rows, int64_t cols) {
  if (from.empty()) return {};
  Raster to(rows, cols);
  to.nodata = from.nodata;
  const auto source = [](int64_t at, int64_t size) {
    const int64_t place = at % (2 * size);
    return place < size ? place : 2 * size - 1 - place;
  };
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < cols; ++c) to.at(r, c) = from.at(source(r, from.rows()), source(c, from.cols()));
  return to;
}

}  // namespace

CityInput random_city(int64_t rows, int64_t cols, uint64_t seed, const RandomCityOptions& options) {
  cases::Random random(seed);
  const auto height = [&](double low, double high) { return static_cast<float>(random.uniform(low, high)); };
  const auto below = [&](int64_t n) {
    return static_cast<int64_t>(random.bits() % static_cast<uint64_t>(n));
  };
  const auto fill = [&](Raster& grid, int64_t row, int64_t col, int64_t h, int64_t w, float value) {
    const std::span<float> pixels = grid.pixels();
    for (int64_t r = row; r < std::min(rows, row + h); ++r)
      for (int64_t c = col; c < std::min(cols, col + w); ++c)
        pixels[static_cast<size_t>(r * cols + c)] = value;
  };
  CityInput city;
  city.pixel_size_m = options.pixel_size_m;
  city.dsm = Raster(rows, cols);
  for (float& h : city.dsm.pixels()) h = height(5.0, 5.5);
  for (int64_t block = 0; block < 1 + rows * cols / 400; ++block) {
    const int64_t row = below(rows), col = below(cols), h = 2 + below(12), w = 2 + below(12);
    fill(city.dsm, row, col, h, w, height(8, 30));
  }
  if (options.vegetation) {
    city.cdsm = Raster(rows, cols);
    city.tdsm = Raster(rows, cols);
    for (int64_t tree = 0; tree < 1 + rows * cols / 300; ++tree) {
      const int64_t row = below(rows), col = below(cols), size = 1 + below(5);
      const float top = height(2, 15);
      const bool bush = below(4) == 0;
      fill(city.cdsm, row, col, size, size, top);
      fill(city.tdsm, row, col, size, size, bush ? 0.0f : top * 0.25f);
    }
  }
  if (options.missing_share > 0)
    for (float& h : city.dsm.pixels())
      if (random.uniform(0, 1) < options.missing_share) h = std::numeric_limits<float>::quiet_NaN();
  return city;
}

CityInput mirrored_city(const CityInput& city, int64_t rows, int64_t cols) {
  CityInput out = city;
  out.dsm = mirrored(city.dsm, rows, cols);
  out.dem = mirrored(city.dem, rows, cols);
  out.cdsm = mirrored(city.cdsm, rows, cols);
  out.tdsm = mirrored(city.tdsm, rows, cols);
  return out;
}

}  // namespace lockstep::urban
