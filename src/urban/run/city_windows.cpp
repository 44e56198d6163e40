#include "urban/run/city_windows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "io/rasters/height_check.hpp"
#include "lockstep/error.hpp"
#include "urban/checks/findings.hpp"
#include "urban/tiles/tile_store.hpp"

namespace lockstep::urban {
namespace {

/// Cells that a reader converts at a time: it holds cells of other types in addition to the result.
constexpr int64_t kCellsAtATime = int64_t{1} << 20;
/// Bands are multiples of the height of most files' tiles, where they are that high at all.
constexpr int64_t kBlockRows = 256;

Raster read_window(io::RasterReader& reader, int64_t row, int64_t col, int64_t rows, int64_t cols) {
  Raster raster(rows, cols);
  const int64_t step = std::clamp<int64_t>(kCellsAtATime / cols, 1, rows);
  for (int64_t r = 0; r < rows; r += step)
    reader.read(row + r, col, std::min(step, rows - r), cols, raster.pixels().data() + r * cols);
  return raster;
}

class FileWindows : public CityWindows {
 public:
  FileWindows(OpenCity city, uint64_t band_bytes) : city_(std::move(city)) {
    for (const OpenLayer* layer : layers())
      if (layer->reader && layer->reader->holds_all())
        throw InputError("a raster that does not fit into memory and cannot be read in parts", layer->where,
                         "a GeoTIFF, or .npy of f32 in C order and native byte order");
    plants_ = city_.cdsm.reader != nullptr;
    // Heights are raised by what the lowest requests, which is known at the end: mostly nothing.
    if (const float lowest = pass(band_bytes, true); lowest < 0) {
      shift_ = -lowest;
      pass(band_bytes, false);
    }
  }

  City read(int64_t row, int64_t col, int64_t rows, int64_t cols) const override {
    City part = prepare_part(read_input(row, col, rows, cols, above_ground()), shift_);
    part.dem = {};
    part.lowest = lowest_;
    part.highest = highest_;
    return part;
  }
  bool has_vegetation() const override { return plants_; }
  bool has_ground() const override { return city_.dem.reader != nullptr; }
  std::vector<uint8_t> ground(int64_t row, int64_t col, int64_t rows, int64_t cols) const override {
    CityInput input = city_.input;
    input.dsm = read_window(*city_.dsm.reader, row, col, rows, cols);
    input.dem = read_window(*city_.dem.reader, row, col, rows, cols);
    return ground_mask(prepare_part(std::move(input), shift_));
  }
  const std::string& hashes() const override { return hashes_; }

  /// The whole, without its grids.
  City whole() const {
    const io::RasterGrid& grid = city_.dsm.reader->grid();
    City city;
    city.rows = grid.rows;
    city.cols = grid.cols;
    city.pixel_size_m = city_.input.pixel_size_m;
    city.lowest = lowest_;
    city.highest = highest_;
    city.shift = shift_;
    city.missing = missing_;
    return city;
  }

 private:
  std::array<const OpenLayer*, 4> layers() const {
    return {&city_.dsm, &city_.dem, &city_.cdsm, &city_.tdsm};
  }

  bool above_ground() const { return city_.input.dsm_heights == DsmHeights::above_ground; }
  CityInput read_input(int64_t row, int64_t col, int64_t rows, int64_t cols, bool dem) const {
    CityInput input = city_.input;
    const auto get = [&](const OpenLayer& layer, Raster& raster) {
      if (layer.reader) raster = read_window(*layer.reader, row, col, rows, cols);
    };
    get(city_.dsm, input.dsm);
    if (dem) get(city_.dem, input.dem);
    if (!plants_) return input;
    get(city_.cdsm, input.cdsm);
    get(city_.tdsm, input.tdsm);
    return input;
  }

  /// One pass over all rows; returns the lowest height in the files.
  float pass(uint64_t band_bytes, bool check) {
    const io::RasterGrid& grid = city_.dsm.reader->grid();
    const int64_t row_bytes = 4 * grid.cols * (plants_ ? 4 : 2);
    int64_t band = std::clamp<int64_t>(static_cast<int64_t>(band_bytes) / row_bytes, 1, grid.rows);
    if (band > kBlockRows) band -= band % kBlockRows;
    std::vector<io::HeightCheck> checks;
    for (const OpenLayer* layer : layers()) checks.emplace_back(layer->kind, grid.cols, layer->where);
    std::array<HashInParts, 3> hashes;
    float lowest = std::numeric_limits<float>::infinity(), highest = kNoHeight, tallest = 0;
    missing_ = 0;
    for (int64_t row = 0; row < grid.rows; row += band) {
      CityInput input = read_input(row, 0, std::min(band, grid.rows - row), grid.cols, true);
      const Raster* const rasters[] = {&input.dsm, &input.dem, &input.cdsm, &input.tdsm};
      for (size_t k = 0; check && k < checks.size(); ++k)
        if (!rasters[k]->empty()) checks[k].take(rasters[k]->pixels());
      const City part = prepare_part(std::move(input), shift_);
      const Array* const grids[] = {&part.dsm, &part.canopy, &part.trunk};
      for (size_t k = 0; k < hashes.size(); ++k) hashes[k].add(grids[k]->raw());
      lowest = std::min(lowest, part.lowest);
      highest = std::max(highest, part.highest);
      for (const float top : part.canopy.as<float>()) tallest = std::max(tallest, top);
      missing_ += part.missing;
    }
    for (size_t k = 0; check && k < checks.size(); ++k)
      if (const std::string doubt = checks[k].finish(); !doubt.empty()) say_doubt(doubt);
    if (!std::isfinite(lowest)) throw InputError("no pixel with a height", "dsm", "at least one");
    lowest_ = lowest;
    highest_ = highest;
    keep(std::move(hashes), tallest > 0, lowest >= 0 || !check);
    return lowest;
  }

  /// Takes over the hashes of a pass with the city's own shift, and whether it met plants; plants that are nowhere are none.
  void keep(std::array<HashInParts, 3> hashes, bool any, bool final) {
    if (!final) return;
    plants_ = any;
    if (!any) hashes[1] = hashes[2] = {};
    hashes_.clear();
    for (HashInParts& hash : hashes) hashes_ += " " + to_hex(hash.finish());
  }

  const OpenCity city_;
  float shift_ = 0, lowest_ = 0, highest_ = 0;
  int64_t missing_ = 0;
  bool plants_ = false;
  std::string hashes_;
};

}  // namespace

uint64_t held_bytes(const OpenCity& city) {
  const io::RasterGrid& grid = city.dsm.reader->grid();
  return 4 * static_cast<uint64_t>(grid.rows) * static_cast<uint64_t>(grid.cols) *
         (1 + (city.dem.reader ? 1 : 0) + (city.cdsm.reader ? 2 : 0));
}

City city_by_windows(OpenCity city, uint64_t band_bytes) {
  const auto windows = std::make_shared<const FileWindows>(std::move(city), band_bytes);
  City whole = windows->whole();
  whole.windows = windows;
  return whole;
}

}  // namespace lockstep::urban
