#include "io/plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "io/colormap.hpp"
#include "io/map_picture.hpp"
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

}  // namespace

Image draw_plot(std::span<const PlotSeries> series, const PlotOptions& options) {
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
  const int left = kMargin + label_room + 8, top = kMargin + (options.title.empty() ? 0 : kText + 12) +
                                                   (options.y_label.empty() ? 0 : kText + 8);
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
  int legend_y = top + 10;
  for (size_t k = 0; k < series.size(); ++k) {
    if (series[k].name.empty()) continue;
    const int name = text_width(series[k].name, kScale), x = right - 12 - name;
    fill(image, x - 38, legend_y - 4, name + 44, kText + 8, {255, 255, 255});
    const double middle = legend_y + kText / 2.0;
    if (series[k].line) stroke(image, x - 32, middle, x - 10, middle, 3, series_color(k));
    if (!series[k].line) stroke(image, x - 21, middle, x - 21, middle, 6, series_color(k));
    draw_text(image, x, legend_y, series[k].name, kInk, kScale);
    legend_y += kText + 8;
  }
  return image;
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
