#include "io/pictures/map_picture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "lockstep/error.hpp"

namespace lockstep::io {
namespace {

constexpr Rgb kPaper = {255, 255, 255}, kInk = {38, 42, 52}, kMissing = {222, 224, 228},
              kFrame = {120, 126, 138};
constexpr int kMargin = 24, kBarWidth = 22, kScale = 2, kLine = 7 * kScale;
constexpr int64_t kLargestSide = 4096;

// Averages blocks of factor × factor cells, leaving missing ones out.
std::vector<float> shrink(const std::vector<float>& values, int64_t rows, int64_t cols, int64_t factor) {
  const int64_t out_rows = (rows + factor - 1) / factor, out_cols = (cols + factor - 1) / factor;
  std::vector<float> out(static_cast<size_t>(out_rows * out_cols));
  for (int64_t r = 0; r < out_rows; ++r) {
    for (int64_t c = 0; c < out_cols; ++c) {
      double sum = 0;
      int count = 0;
      for (int64_t y = r * factor; y < std::min(rows, (r + 1) * factor); ++y) {
        for (int64_t x = c * factor; x < std::min(cols, (c + 1) * factor); ++x) {
          const float v = values[static_cast<size_t>(y * cols + x)];
          if (std::isnan(v)) continue;
          sum += v;
          ++count;
        }
      }
      out[static_cast<size_t>(r * out_cols + c)] =
          count ? static_cast<float>(sum / count) : std::numeric_limits<float>::quiet_NaN();
    }
  }
  return out;
}

struct Range {
  double low, high;
  double share(double v) const { return high > low ? (v - low) / (high - low) : 0.5; }
};

Range range_of(const std::vector<float>& values, const MapPictureOptions& options) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const float v : values) {
    if (!std::isfinite(v)) continue;
    low = std::min<double>(low, v);
    high = std::max<double>(high, v);
  }
  if (low > high) low = high = 0;
  Range range{options.minimum.value_or(low), options.maximum.value_or(high)};
  if (!(range.high > range.low)) range.high = range.low + 1;
  return range;
}

// 1, 2 or 5 times a power of ten, at least `value`.
double nice_step(double value) {
  const double power = std::pow(10, std::floor(std::log10(value)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= value * (1 - 1e-12)) return factor * power;
  }
  return 10 * power;
}

void fill(Image& image, int x, int y, int width, int height, const Rgb& ink) {
  for (int v = std::max(y, 0); v < std::min(y + height, image.height); ++v) {
    for (int u = std::max(x, 0); u < std::min(x + width, image.width); ++u)
      std::copy(ink.begin(), ink.end(), image.at(u, v));
  }
}

void frame(Image& image, int x, int y, int width, int height, const Rgb& ink) {
  fill(image, x, y, width, 1, ink);
  fill(image, x, y + height - 1, width, 1, ink);
  fill(image, x, y, 1, height, ink);
  fill(image, x + width - 1, y, 1, height, ink);
}

void draw_color_bar(Image& image, int x, int y, int height, const Range& range,
                    const MapPictureOptions& options) {
  for (int v = 0; v < height; ++v) {
    fill(image, x, y + v, kBarWidth, 1, color(options.map, 1 - (v + 0.5) / height));
  }
  frame(image, x, y, kBarWidth, height, kFrame);
  const double step = nice_step((range.high - range.low) / std::clamp(height / 60, 2, 8));
  const int digits = std::max(0, -static_cast<int>(std::floor(std::log10(step) + 1e-9)));
  for (double k = std::ceil(range.low / step - 1e-9); k * step <= range.high + 1e-9 * step; ++k) {
    const int at = y + static_cast<int>(std::lround((1 - range.share(k * step)) * (height - 1)));
    fill(image, x + kBarWidth, at, 5, 1, kInk);
    draw_text(image, x + kBarWidth + 9, at - kLine / 2, fmt::format("{:.{}f}", k * step + 0.0, digits), kInk,
              kScale);
  }
  if (!options.unit.empty()) draw_text(image, x, y - kLine - 10, options.unit, kInk, kScale);
}

void draw_scale_bar(Image& image, int x, int y, double metres_per_pixel, int room) {
  double length = nice_step(metres_per_pixel * room / 4);
  int pixels = static_cast<int>(std::lround(length / metres_per_pixel));
  if (pixels > room || pixels < 2) return;
  fill(image, x, y + 4, pixels, 3, kInk);
  fill(image, x, y, 2, 11, kInk);
  fill(image, x + pixels - 2, y, 2, 11, kInk);
  const std::string text =
      length >= 1000 ? fmt::format("{:g} km", length / 1000) : fmt::format("{:g} m", length);
  draw_text(image, x + pixels + 10, y - 2, text, kInk, kScale);
}

// The relief darkens and brightens the colour around its own light on flat ground.
Rgb shaded(const Rgb& base, float light, double strength) {
  if (std::isnan(light)) return base;
  const double factor = 1 + strength * (light - std::numbers::sqrt2 / 2);
  Rgb out{};
  for (size_t c = 0; c < 3; ++c)
    out[c] = static_cast<uint8_t>(std::clamp(std::lround(base[c] * factor), 0l, 255l));
  return out;
}

}  // namespace

std::vector<float> hillshade(const std::vector<float>& heights, int64_t rows, int64_t cols,
                             double pixel_size) {
  std::vector<float> light(heights.size());
  const auto at = [&](int64_t r, int64_t c) {
    return static_cast<double>(heights[static_cast<size_t>(std::clamp<int64_t>(r, 0, rows - 1) * cols +
                                                           std::clamp<int64_t>(c, 0, cols - 1))]);
  };
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < cols; ++c) {
      const double east = at(r - 1, c + 1) + 2 * at(r, c + 1) + at(r + 1, c + 1);
      const double west = at(r - 1, c - 1) + 2 * at(r, c - 1) + at(r + 1, c - 1);
      const double south = at(r + 1, c - 1) + 2 * at(r + 1, c) + at(r + 1, c + 1);
      const double north = at(r - 1, c - 1) + 2 * at(r - 1, c) + at(r - 1, c + 1);
      const double slope_x = (east - west) / (8 * pixel_size), slope_y = (north - south) / (8 * pixel_size);
      // The light comes from (-1, 1, √2)/2; the surface's normal is (-slope_x, -slope_y, 1).
      const double cosine = (slope_x - slope_y + std::numbers::sqrt2) /
                            (2 * std::sqrt(1 + slope_x * slope_x + slope_y * slope_y));
      light[static_cast<size_t>(r * cols + c)] = static_cast<float>(cosine > 0           ? cosine
                                                                    : std::isnan(cosine) ? cosine
                                                                                         : 0.0);
    }
  }
  return light;
}

Image draw_map(const std::vector<float>& values, int64_t rows, int64_t cols,
               const MapPictureOptions& options) {
  if (rows < 1 || cols < 1 || static_cast<int64_t>(values.size()) != rows * cols ||
      (options.relief && options.relief->size() != values.size())) {
    throw InternalError(fmt::format("{} values for {} x {} cells", values.size(), rows, cols), "draw_map",
                        "a full grid");
  }
  const int64_t longer = std::max(rows, cols);
  const int64_t shrink_by = std::max<int64_t>(1, (longer + kLargestSide / 2 - 1) / (kLargestSide / 2));
  const int zoom = static_cast<int>(std::max<int64_t>(1, (options.target_pixels + longer / 2) / longer));
  const bool smaller = shrink_by > 1;
  const std::vector<float> small = smaller ? shrink(values, rows, cols, shrink_by) : std::vector<float>{};
  const std::vector<float>& cells = smaller ? small : values;
  std::vector<float> light;
  const int64_t map_rows = (rows + shrink_by - 1) / shrink_by, map_cols = (cols + shrink_by - 1) / shrink_by;
  if (options.relief) {
    const double size = options.pixel_size * static_cast<double>(shrink_by);
    light = smaller ? hillshade(shrink(*options.relief, rows, cols, shrink_by), map_rows, map_cols, size)
                    : hillshade(*options.relief, rows, cols, size);
  }
  const Range range = range_of(values, options);

  const int map_width = static_cast<int>(map_cols) * zoom, map_height = static_cast<int>(map_rows) * zoom;
  const int bar_height = std::max(map_height, 120);
  const int title_scale = kScale + 1, left = kMargin;
  const int unit_top = kMargin + 7 * title_scale + 10, top = unit_top + kLine + 10;
  const int label_room =
      9 + text_width(fmt::format("{:.0f}.000", std::max(std::abs(range.low), std::abs(range.high))), kScale);
  const int unit_room = std::max(kBarWidth + label_room, text_width(options.unit, kScale));
  Image image(
      std::max(left + map_width + 20 + unit_room, left + text_width(options.title, title_scale)) + kMargin,
      top + bar_height + 14 + kLine + kMargin, 3, 255);
  fill(image, 0, 0, image.width, image.height, kPaper);
  for (int64_t r = 0; r < map_rows; ++r) {
    for (int64_t c = 0; c < map_cols; ++c) {
      const auto k = static_cast<size_t>(r * map_cols + c);
      const bool hidden = options.hide_zero && cells[k] == 0;
      Rgb ink = std::isnan(cells[k]) ? kMissing
                : hidden             ? Rgb{236, 236, 232}
                                     : color(options.map, range.share(cells[k]));
      if (!light.empty()) ink = shaded(ink, light[k], hidden ? 0.75 : 0.45);
      fill(image, left + static_cast<int>(c) * zoom, top + static_cast<int>(r) * zoom, zoom, zoom, ink);
    }
  }
  frame(image, left - 1, top - 1, map_width + 2, map_height + 2, kFrame);
  draw_text(image, left, kMargin, options.title, kInk, title_scale);
  draw_color_bar(image, left + map_width + 20, top, bar_height, range, options);
  if (options.pixel_size > 0)
    draw_scale_bar(image, left, top + map_height + 14,
                   options.pixel_size * static_cast<double>(shrink_by) / zoom, map_width / 2);
  return image;
}

}  // namespace lockstep::io
