#include "io/rasters/basemap.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <vector>

#include "io/pictures/colormap.hpp"
#include "io/rasters/crs.hpp"
#include "lockstep/error.hpp"

namespace lockstep::io {
namespace {

constexpr int64_t kLongestSide = 2048;
constexpr int kRed = 0, kAlpha = 3;

struct Extent {
  double west = 0, east = 0, south = 0, north = 0;
};
Extent extent_of(const RasterGrid& g) {
  const auto& t = g.transform;
  return {t[0], t[0] + static_cast<double>(g.cols) * t[1], t[3] + static_cast<double>(g.rows) * t[5], t[3]};
}
std::string text_of(const Extent& e) {
  return fmt::format("x from {} to {}, y from {} to {}", e.west, e.east, e.south, e.north);
}

void require_place(const RasterGrid& map, const RasterGrid& grid, const std::string& where,
                   const std::string& grid_where) {
  if (map.bands != 3 && map.bands != 4)
    throw InputError(fmt::format("{} bands", map.bands), where, "3 (red, green, blue) or 4 (and alpha)")
        .with_hint("gdal_translate -expand rgb turns a palette into bands");
  if (!map.has_transform)
    throw InputError("the picture has no georeference", where,
                     "a GeoTIFF, or a world file next to the picture (.pgw, .wld)");
  const auto& t = map.transform;
  if (!std::all_of(t.begin(), t.end(), [](double v) { return std::isfinite(v); }) || t[2] != 0 || t[4] != 0 ||
      !(t[1] > 0) || !(t[5] < 0))
    throw InputError("the picture is rotated or mirrored", where, "north up")
        .with_hint("gdalwarp makes it north up");
  for (const size_t k : {1u, 5u})
    if (const double cells = t[k] / grid.transform[k]; !(cells > 1e-6 && cells < 1e6))
      throw InputError(fmt::format("its cells are {} by {}", t[1], -t[5]), where,
                       fmt::format("cells of a map of {}", grid_where));
  if (!grid.crs_wkt.empty() && !map.crs_wkt.empty() && grid.crs_wkt != map.crs_wkt &&
      !is_same_crs(grid.crs_wkt, map.crs_wkt))
    throw InputError("another coordinate reference system", where, fmt::format("that of {}", grid_where))
        .with_hint("gdalwarp -t_srs EPSG:<that system> in.tif out.tif");
  const Extent own = extent_of(map), city = extent_of(grid);
  if (own.west >= city.east || own.east <= city.west || own.south >= city.north || own.north <= city.south)
    throw InputError(fmt::format("it covers {}", text_of(own)), where,
                     fmt::format("a part of {}, the extent of {}", text_of(city), grid_where));
}

/// Cells [first, last) of an axis with `cells` cells that a part of the result covers: at least the one at its middle.
struct Span {
  int64_t first = 0, last = 0;
};
Span span_of(double from, double to, int64_t cells) {
  const auto clamped = [&](double v) { return static_cast<int64_t>(std::clamp(v, -1.0, double(cells) + 1)); };
  Span s{clamped(std::ceil(from - 0.5)), clamped(std::ceil(to - 0.5))};
  if (s.first >= s.last) {
    s.first = clamped(std::floor((from + to) / 2));
    s.last = s.first + 1;
  }
  return {std::max<int64_t>(s.first, 0), std::min(s.last, cells)};
}

/// An axis of the result over the picture's: part k is cells spans[k].
std::vector<Span> spans_of(double begin, double length, int parts, int64_t cells) {
  std::vector<Span> spans;
  for (int k = 0; k < parts; ++k)
    spans.push_back(span_of(begin + length * k / parts, begin + length * (k + 1) / parts, cells));
  return spans;
}

class BasemapReader {
 public:
  explicit BasemapReader(const std::filesystem::path& path) : where_(path.string()) {
    bands_.push_back(RasterReader::open(path, {.band = 1}));
  }
  const RasterGrid& grid() const { return bands_[kRed]->grid(); }
  void open_others(const std::filesystem::path& path) {
    for (int band = 2; band <= grid().bands; ++band)
      bands_.push_back(RasterReader::open(path, {.band = band}));
  }
  /// Rows and columns of all bands.
  void read(const Span& rows, const Span& cols) {
    rows_ = rows;
    cols_ = cols;
    const int64_t height = rows.last - rows.first, width = cols.last - cols.first;
    for (size_t b = 0; b < bands_.size(); ++b) {
      values_[b].resize(static_cast<size_t>(height * width));
      bands_[b]->read(rows.first, cols.first, height, width, values_[b].data());
    }
  }
  /// The mean over columns of what was read; white where it has none.
  Rgb mean(const Span& cols) const {
    double sums[3] = {}, cells = 0;
    const int64_t width = cols_.last - cols_.first;
    for (int64_t r = 0; r < rows_.last - rows_.first; ++r)
      for (int64_t c = cols.first - cols_.first; c < cols.last - cols_.first; ++c) {
        const auto at = static_cast<size_t>(r * width + c);
        const double alpha = bands_.size() > kAlpha ? value(kAlpha, at, 0) / 255 : 1;
        for (int k = 0; k < 3; ++k) sums[k] += alpha * value(k, at, 255) + (1 - alpha) * 255;
        cells += 1;
      }
    Rgb ink = {255, 255, 255};
    for (int k = 0; cells > 0 && k < 3; ++k)
      ink[size_t(k)] = static_cast<uint8_t>(std::lround(sums[k] / cells));
    return ink;
  }

 private:
  double value(int band, size_t at, double missing) const {
    const float v = values_[size_t(band)][at];
    if (std::isnan(v)) return missing;
    if (!(v >= 0 && v <= 255))
      throw InputError(fmt::format("a colour of {}", v), where_, "bands of bytes, 0 to 255")
          .with_hint("gdal_translate -ot Byte -scale");
    return static_cast<double>(v);
  }

  const std::string where_;
  std::vector<std::unique_ptr<RasterReader>> bands_;
  std::array<std::vector<float>, 4> values_;
  Span rows_, cols_;
};

}  // namespace

Image read_basemap(const std::filesystem::path& path, const RasterGrid& grid, const std::string& grid_where) {
  BasemapReader map(path);
  require_place(map.grid(), grid, path.string(), grid_where);
  map.open_others(path);
  const Extent own = extent_of(map.grid()), city = extent_of(grid);
  const auto& t = map.grid().transform;
  const double width = (city.east - city.west) / t[1], height = (city.north - city.south) / -t[5];
  const double shrink = std::min(1.0, static_cast<double>(kLongestSide) / std::max(width, height));
  const auto side = [&](double cells) { return std::max(1, static_cast<int>(std::lround(cells * shrink))); };
  Image image(side(width), side(height), 3, 255);
  const std::vector<Span> cols = spans_of((city.west - own.west) / t[1], width, image.width, map.grid().cols),
                          rows = spans_of((own.north - city.north) / -t[5], height, image.height,
                                          map.grid().rows);
  Span all{map.grid().cols, 0};
  for (const Span& s : cols)
    if (s.first < s.last) all = {std::min(all.first, s.first), std::max(all.last, s.last)};
  if (all.first >= all.last) return image;
  for (int y = 0; y < image.height; ++y) {
    const Span& part = rows[size_t(y)];
    if (part.first >= part.last) continue;
    map.read(part, all);
    for (int x = 0; x < image.width; ++x) {
      if (cols[size_t(x)].first >= cols[size_t(x)].last) continue;
      const Rgb ink = map.mean(cols[size_t(x)]);
      std::copy(ink.begin(), ink.end(), image.at(x, y));
    }
  }
  return image;
}

}  // namespace lockstep::io
