#include "io/pictures/plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include "io/pictures/colormap.hpp"
#include "io/pictures/map_picture.hpp"
#include "lockstep/error.hpp"

namespace lockstep::io {
namespace {

constexpr Rgb kInk = {38, 42, 52}, kFrame = {120, 126, 138}, kGrid = {228, 230, 234};
constexpr int kScale = 2, kText = 7 * kScale, kMargin = 20;

struct Tick {
  double at;  // 0 … 1
  std::string label;
};

// One axis: maps values to 0 … 1 and knows its ticks.
class Axis {
 public:
  Axis(bool logarithmic, bool whole) : log_(logarithmic), whole_(whole) {}

  bool holds(double v) const { return std::isfinite(v) && (!log_ || v > 0); }
  void include(double v) {
    if (!holds(v)) return;
    low_ = std::min(low_, scaled(v));
    high_ = std::max(high_, scaled(v));
  }
  void close() {
    if (low_ > high_) low_ = high_ = 0;
    // A flat line stands in the middle; other curves keep off the frame.
    const double room = high_ > low_ ? 0.03 * (high_ - low_) : std::max(0.5, 0.05 * std::abs(low_));
    low_ -= room;
    high_ += room;
  }
  double place(double v) const { return (scaled(v) - low_) / (high_ - low_); }

  std::vector<Tick> ticks(int wanted) const {
    std::vector<Tick> ticks;
    const double span = high_ - low_;
    if (log_ && span >= 1.2) {
      const double step = std::max(1.0, std::ceil(span / wanted));
      for (double k = std::ceil(low_ / step) * step; k <= high_; k += step)
        ticks.push_back({(k - low_) / span, fmt::format("1e{:.0f}", k + 0.0)});
      return ticks;
    }
    // Below some decades a logarithmic axis has ticks like a linear one, at their places.
    const double low = log_ ? std::pow(10, low_) : low_, high = log_ ? std::pow(10, high_) : high_;
    double step = nice((high - low) / wanted);
    if (whole_) step = std::max(1.0, std::round(step));
    for (double k = std::ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; ++k)
      if (holds(k * step)) ticks.push_back({place(k * step), fmt::format("{:.6g}", k * step + 0.0)});
    return ticks;
  }

 private:
  double scaled(double v) const { return log_ ? std::log10(v) : v; }
  // 1, 2 or 5 times a power of ten, at least `value`.
  static double nice(double value) {
    const double power = std::pow(10, std::floor(std::log10(value)));
    for (const double factor : {1.0, 2.0, 5.0})
      if (factor * power >= value * (1 - 1e-12)) return factor * power;
    return 10 * power;
  }
  const bool log_, whole_;
  double low_ = std::numeric_limits<double>::infinity(), high_ = -low_;
};

void blend(Image& image, int x, int y, const Rgb& ink, double share) {
  if (x < 0 || y < 0 || x >= image.width || y >= image.height || share <= 0) return;
  uint8_t* pixel = image.at(x, y);
  for (size_t c = 0; c < 3; ++c)
    pixel[c] = uint8_t(std::lround(pixel[c] + (ink[c] - pixel[c]) * std::min(share, 1.0)));
}

void fill(Image& image, int x, int y, int width, int height, const Rgb& ink) {
  for (int v = y; v < y + height; ++v)
    for (int u = x; u < x + width; ++u) blend(image, u, v, ink, 1);
}

// A stroke of `width` with round ends; pixels are covered by their distance from its middle.
void stroke(Image& image, double x0, double y0, double x1, double y1, double width, const Rgb& ink) {
  const double reach = width / 2 + 1, dx = x1 - x0, dy = y1 - y0, length2 = dx * dx + dy * dy;
  for (int y = int(std::floor(std::min(y0, y1) - reach)); y <= int(std::ceil(std::max(y0, y1) + reach));
       ++y) {
    for (int x = int(std::floor(std::min(x0, x1) - reach)); x <= int(std::ceil(std::max(x0, x1) + reach));
         ++x) {
      const double t = length2 > 0 ? std::clamp(((x - x0) * dx + (y - y0) * dy) / length2, 0.0, 1.0) : 0.0;
      blend(image, x, y, ink, width / 2 + 0.5 - std::hypot(x - x0 - t * dx, y - y0 - t * dy));
    }
  }
}

Rgb series_color(size_t k) {
  constexpr std::array<double, 6> kHues = {255, 30, 150, 320, 85, 200};
  return from_oklch(0.55, 0.15, kHues[k % kHues.size()]);
}

constexpr int kLegendRow = kText + 8, kLegendLine = 38;

/// Names of the series beside their strokes.
struct Legend {
  explicit Legend(std::span<const PlotSeries> series) {
    for (const PlotSeries& s : series) {
      if (s.name.empty()) continue;
      width = std::max(width, text_width(s.name, kScale) + kLegendLine + 6);
      height += kLegendRow;
    }
  }
  void draw(Image& image, std::span<const PlotSeries> series, int left, int top) const {
    fill(image, left, top, width, height, {255, 255, 255});
    for (size_t k = 0; k < series.size(); ++k) {
      if (series[k].name.empty()) continue;
      const double middle = top + 4 + kText / 2.0;
      if (series[k].line) stroke(image, left + 6, middle, left + 28, middle, 3, series_color(k));
      if (!series[k].line) stroke(image, left + 17, middle, left + 17, middle, 6, series_color(k));
      draw_text(image, left + kLegendLine, top + 4, series[k].name, kInk, kScale);
      top += kLegendRow;
    }
  }
  int width = 0, height = 0;
};

/// Where in the frame a legend covers none of the pixels in which `drawn` differs from `empty`: the upper
/// right corner first, then by distance from it. Nothing where the data are everywhere.
std::optional<std::array<int, 2>> free_place(const Image& empty, const Image& drawn, const Legend& legend,
                                             int left, int top, int right, int bottom) {
  const int width = right - left, height = bottom - top, stride = width + 1;
  std::vector<int> sums(size_t(stride) * size_t(height + 1), 0);  // of differing pixels above and to the left
  for (int y = 0; y < height; ++y)
    for (int x = 0, row = 0; x < width; ++x) {
      const size_t pixel = 3 * (size_t(top + y) * size_t(drawn.width) + size_t(left + x));
      row += !std::equal(empty.pixels.begin() + int64_t(pixel), empty.pixels.begin() + int64_t(pixel) + 3,
                         drawn.pixels.begin() + int64_t(pixel));
      sums[size_t((y + 1) * stride + x + 1)] = sums[size_t(y * stride + x + 1)] + row;
    }
  constexpr int kStep = 6, kGap = 6;
  std::optional<std::array<int, 2>> best;
  double nearest = std::numeric_limits<double>::infinity();
  for (int y = kGap; y + legend.height + kGap <= height; y += kStep)
    for (int x = width - kGap - legend.width; x >= kGap; x -= kStep) {
      const int covered = sums[size_t((y + legend.height) * stride + x + legend.width)] -
                          sums[size_t(y * stride + x + legend.width)] -
                          sums[size_t((y + legend.height) * stride + x)] + sums[size_t(y * stride + x)];
      const double distance = std::hypot(width - x - legend.width, y);
      if (covered == 0 && distance < nearest) nearest = distance, best = {left + x, top + y};
    }
  return best;
}

/// Nothing where the legend finds no place in the frame.
std::optional<Image> drawn(std::span<const PlotSeries> series, const PlotOptions& options,
                           bool legend_above) {
  Axis x_axis(options.log_x, options.whole_x), y_axis(options.log_y, false);
  for (const PlotSeries& s : series) {
    if (s.x.size() != s.y.size())
      throw InternalError(fmt::format("{} x for {} y", s.x.size(), s.y.size()), "draw_plot",
                          "as many of both");
    for (size_t k = 0; k < s.x.size(); ++k) {
      if (!x_axis.holds(s.x[k]) || !y_axis.holds(s.y[k])) continue;
      x_axis.include(s.x[k]);
      y_axis.include(s.y[k]);
    }
  }
  x_axis.close();
  y_axis.close();

  Image image(options.width, options.height, 3, 255);
  const std::vector<Tick> y_ticks = y_axis.ticks(std::max(2, options.height / 70));
  int label_room = 0;
  for (const Tick& t : y_ticks) label_room = std::max(label_room, text_width(t.label, kScale));
  const Legend legend(series);
  const int left = kMargin + label_room + 8;
  const int top = kMargin + (options.title.empty() ? 0 : kText + 12) +
                  (options.y_label.empty() ? 0 : kText + 8) + (legend_above ? legend.height : 0);
  const int right = options.width - kMargin,
            bottom = options.height - kMargin - kText - 8 - (options.x_label.empty() ? 0 : kText + 8);
  const int width = right - left, height = bottom - top;
  if (width < 40 || height < 40)
    throw InternalError(fmt::format("a plot of {} x {} pixels", options.width, options.height), "draw_plot",
                        "room for the frame and its labels");
  draw_text(image, left, kMargin, options.title, kInk, kScale);
  draw_text(image, kMargin, top - kText - 8, options.y_label, kInk, kScale);
  draw_text(image, left + (width - text_width(options.x_label, kScale)) / 2, options.height - kMargin - kText,
            options.x_label, kInk, kScale);

  for (const Tick& t : y_ticks) {
    const int y = bottom - int(std::lround(t.at * height));
    fill(image, left, y, width, 1, kGrid);
    draw_text(image, left - 8 - text_width(t.label, kScale), y - kText / 2, t.label, kInk, kScale);
  }
  for (const Tick& t : x_axis.ticks(std::max(2, width / 110))) {
    const int x = left + int(std::lround(t.at * width));
    fill(image, x, top, 1, height, kGrid);
    draw_text(image, x - text_width(t.label, kScale) / 2, bottom + 8, t.label, kInk, kScale);
  }
  const Image empty = image;
  fill(image, left, top, width, 1, kFrame);
  fill(image, left, bottom, width + 1, 1, kFrame);
  fill(image, left, top, 1, height, kFrame);
  fill(image, right, top, 1, height, kFrame);

  for (size_t k = 0; k < series.size(); ++k) {
    const PlotSeries& s = series[k];
    const Rgb ink = series_color(k);
    bool drawing = false;
    double last_x = 0, last_y = 0;
    for (size_t n = 0; n < s.x.size(); ++n) {
      if (!x_axis.holds(s.x[n]) || !y_axis.holds(s.y[n])) {
        drawing = false;
        continue;
      }
      const double x = left + x_axis.place(s.x[n]) * width, y = bottom - y_axis.place(s.y[n]) * height;
      if (drawing && s.line) stroke(image, last_x, last_y, x, y, 2, ink);
      // Markers that would touch each other say nothing.
      if (s.marker && (!s.line || s.x.size() < size_t(width) / 8)) stroke(image, x, y, x, y, 6, ink);
      last_x = x;
      last_y = y;
      drawing = true;
    }
  }
  if (legend.height == 0) return image;
  if (legend_above) {
    legend.draw(image, series, right - legend.width, top - legend.height - 4);
  } else if (const auto place = free_place(empty, image, legend, left + 1, top + 1, right, bottom)) {
    legend.draw(image, series, (*place)[0], (*place)[1]);
  } else {
    return std::nullopt;
  }
  return image;
}

}  // namespace

Image draw_plot(std::span<const PlotSeries> series, const PlotOptions& options) {
  if (auto image = drawn(series, options, false)) return *std::move(image);
  return *drawn(series, options, true);
}

Image stack_images(std::span<const Image> images) {
  int width = 0, height = 0;
  for (const Image& part : images) {
    width = std::max(width, part.width);
    height += part.height;
  }
  Image whole(width, height, images.empty() ? 3 : images.front().channels, 255);
  int y = 0;
  for (const Image& part : images) {
    if (part.channels != whole.channels)
      throw InternalError("pictures of several numbers of channels", "stack_images", "one");
    const size_t row = size_t(part.width) * size_t(part.channels);
    for (int r = 0; r < part.height; ++r)
      std::copy_n(part.pixels.data() + size_t(r) * row, row, whole.at(0, y + r));
    y += part.height;
  }
  return whole;
}

}  // namespace lockstep::io
