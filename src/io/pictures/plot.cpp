#include "io/pictures/plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "lockstep/error.hpp"

namespace lockstep::io {
namespace {

constexpr double kPlotTitleSize = 17, kLabelSize = 14, kTickSize = 13, kPlotMargin = 20;
constexpr double kLegendRow = 22, kLegendLine = 38, kMarker = 3.2, kTickGap = 10;

struct Tick {
  double at;  // 0 … 1
  std::string label;
};

std::string power_of_ten(double exponent) {
  constexpr const char* kDigits[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string text = "10";
  for (const char c : fmt::format("{:.0f}", exponent + 0.0)) text += c == '-' ? "⁻" : kDigits[c - '0'];
  return text;
}

// One axis: maps values to 0 … 1 and knows its ticks.
class Axis {
 public:
  Axis(bool logarithmic, bool whole) : log_(logarithmic), whole_(whole) {}

  /// Larger numbers have no place on a linear axis: the span of the largest is no number.
  bool holds(double v) const { return log_ ? v > 0 && std::isfinite(v) : std::abs(v) <= 1e300; }
  void include(double v) {
    if (!holds(v)) return;
    low_ = std::min(low_, scaled(v));
    high_ = std::max(high_, scaled(v));
  }
  void close() {
    if (low_ > high_) low_ = high_ = 0;
    // A flat line is drawn in the middle, even if it varies in its last digits, which ticks could not resolve.
    // Other curves keep a margin to the frame.
    const double span = high_ - low_, largest = std::max(std::abs(low_), std::abs(high_));
    const double room = span > 1e-12 * largest ? 0.03 * span : std::max(0.5, 0.05 * largest);
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
        ticks.push_back({(k - low_) / span, power_of_ten(k)});
      return ticks;
    }
    // Below some decades a logarithmic axis has ticks like a linear one, at their places.
    const double low = log_ ? std::pow(10, low_) : low_, high = log_ ? std::pow(10, high_) : high_;
    double step = nice_step((high - low) / wanted);
    if (whole_) step = std::max(1.0, std::round(step));
    for (double k = std::ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; ++k)
      if (holds(k * step)) ticks.push_back({place(k * step), fmt::format("{:.6g}", k * step + 0.0)});
    return ticks;
  }
  std::vector<Tick> ticks_at(const std::vector<double>& values) const {
    std::vector<Tick> ticks;
    for (const double v : values)
      if (holds(v) && place(v) >= 0 && place(v) <= 1) ticks.push_back({place(v), fmt::format("{:.6g}", v)});
    return ticks;
  }

 private:
  double scaled(double v) const { return log_ ? std::log10(v) : v; }
  const bool log_, whole_;
  double low_ = std::numeric_limits<double>::infinity(), high_ = -low_;
};

// Leaves out ticks whose labels would touch the one before.
std::vector<Tick> with_room(std::vector<Tick> ticks, double length) {
  constexpr double kGap = 10;
  std::vector<Tick> kept;
  double end = -std::numeric_limits<double>::infinity();
  std::stable_sort(ticks.begin(), ticks.end(), [](const Tick& a, const Tick& b) { return a.at < b.at; });
  for (Tick& t : ticks) {
    const double half = 0.5 * text_width(t.label, kTickSize);
    if (t.at * length - half < end + kGap) continue;
    end = t.at * length + half;
    kept.push_back(std::move(t));
  }
  return kept;
}

// Ticks of x: fewer and fewer until all labels have room.
std::vector<Tick> x_ticks_of(const Axis& axis, const PlotOptions& options, double length) {
  if (!options.x_ticks.empty()) return with_room(axis.ticks_at(options.x_ticks), length);
  for (int wanted = std::max(2, static_cast<int>(length / 90)); wanted > 2; --wanted) {
    std::vector<Tick> ticks = axis.ticks(wanted);
    if (with_room(ticks, length).size() == ticks.size()) return ticks;
  }
  return with_room(axis.ticks(2), length);
}

// Names of the series next to their strokes.
class PlotLegend {
 public:
  explicit PlotLegend(std::span<const PlotSeries> series) : series_(series) {
    for (const PlotSeries& s : series) {
      if (s.name.empty()) continue;
      width = std::max(width, text_width(s.name, kTickSize) + kLegendLine + 8);
      height += kLegendRow;
    }
  }
  void draw(Drawing& drawing, double left, double top) const {
    drawing.rectangle({left, top, left + width, top + height}, kPaper);
    for (size_t k = 0; k < series_.size(); ++k) {
      const PlotSeries& s = series_[k];
      if (s.name.empty()) continue;
      const double middle = top + 0.5 * kLegendRow;
      const Rgb ink = s.ink.value_or(series_ink(k));
      if (s.line) drawing.line({left + 6, middle}, {left + 30, middle}, pen_of(s, ink));
      if (!s.line || (s.marker && !s.dashed)) drawing.circle({left + 18, middle}, kMarker, ink);
      drawing.text({left + kLegendLine, middle + 0.5 * cap_height(kTickSize)}, s.name, {.size = kTickSize});
      top += kLegendRow;
    }
  }
  static Pen pen_of(const PlotSeries& s, const Rgb& ink) {
    return {ink, 2.2, s.dashed ? std::vector<double>{7, 5} : std::vector<double>{}};
  }
  double width = 0, height = 0;

 private:
  std::span<const PlotSeries> series_;
};

// Where data are, in cells of some pixels, for rectangles that must not cover them.
class Occupancy {
 public:
  explicit Occupancy(const Box& frame)
      : frame_(frame),
        cols_(static_cast<int>(frame.width() / kCell) + 2),
        rows_(static_cast<int>(frame.height() / kCell) + 2),
        taken_(static_cast<size_t>(cols_) * static_cast<size_t>(rows_), 0) {}

  void add_segment(Point a, Point b) {
    const int steps = static_cast<int>(std::hypot(b.x - a.x, b.y - a.y) / kCell) + 1;
    for (int k = 0; k <= steps; ++k)
      add(a.x + (b.x - a.x) * k / steps - frame_.left, a.y + (b.y - a.y) * k / steps - frame_.top);
  }

  // The upper left corner of a free rectangle: the upper right of the frame first, then by distance from it.
  std::optional<Point> free_place(double width, double height) const {
    const std::vector<int> sums = totals();
    const int w = static_cast<int>(std::ceil(width / kCell)), h = static_cast<int>(std::ceil(height / kCell));
    std::optional<Point> best;
    double nearest = std::numeric_limits<double>::infinity();
    for (int y = 1; (y + h + 1) * kCell <= frame_.height(); ++y) {
      for (int x = 1; (x + w + 1) * kCell <= frame_.width(); ++x) {
        const double distance = std::hypot(cols_ - x - w, y);
        if (distance >= nearest || count(sums, x, y, x + w, y + h) > 0) continue;
        nearest = distance;
        best = Point{frame_.left + x * kCell, frame_.top + y * kCell};
      }
    }
    return best;
  }

 private:
  static constexpr double kCell = 5, kReach = 6;
  void add(double x, double y) {
    const auto cell = [](double v, int count) {
      return static_cast<size_t>(std::clamp(static_cast<int>(v / kCell), 0, count - 1));
    };
    for (size_t r = cell(y - kReach, rows_); r <= cell(y + kReach, rows_); ++r)
      for (size_t c = cell(x - kReach, cols_); c <= cell(x + kReach, cols_); ++c)
        taken_[r * static_cast<size_t>(cols_) + c] = 1;
  }
  // Sums over the cells above and to the left, with a row and a column of zeros before them.
  std::vector<int> totals() const {
    const auto stride = static_cast<size_t>(cols_) + 1;
    std::vector<int> sums(stride * (static_cast<size_t>(rows_) + 1), 0);
    for (size_t r = 0; r < static_cast<size_t>(rows_); ++r)
      for (size_t c = 0, row = 0; c < static_cast<size_t>(cols_); ++c) {
        row += static_cast<size_t>(taken_[r * static_cast<size_t>(cols_) + c]);
        sums[(r + 1) * stride + c + 1] = sums[r * stride + c + 1] + static_cast<int>(row);
      }
    return sums;
  }
  int count(const std::vector<int>& sums, int left, int top, int right, int bottom) const {
    const auto at = [&](int r, int c) { return sums[static_cast<size_t>(r * (cols_ + 1) + c)]; };
    return at(bottom, right) - at(top, right) - at(bottom, left) + at(top, left);
  }

  const Box frame_;
  const int cols_, rows_;
  std::vector<char> taken_;
};

enum class LegendPlace { inside, right, above };

class Plot {
 public:
  Plot(std::span<const PlotSeries> series, const PlotOptions& options)
      : series_(series),
        options_(options),
        x_(options.log_x, options.whole_x),
        y_(options.log_y, false),
        legend_(series) {
    for (const PlotSeries& s : series) {
      if (s.x.size() != s.y.size())
        throw InternalError(fmt::format("{} x for {} y", s.x.size(), s.y.size()), "draw_plot",
                            "as many of both");
      for (size_t k = 0; k < s.x.size(); ++k) {
        if (!holds(s, k)) continue;
        x_.include(s.x[k]);
        y_.include(s.y[k]);
      }
    }
    x_.close();
    y_.close();
  }

  // Nothing where the legend finds no place.
  std::optional<Drawing> draw(LegendPlace place) const {
    Drawing out(options_.width, options_.height + (place == LegendPlace::above ? legend_.height : 0));
    const std::vector<Tick> y_ticks = y_.ticks(std::max(2, options_.height / 70));
    const Box frame = frame_of(y_ticks, place, out.height());
    if (place == LegendPlace::right &&
        (frame.width() < 0.5 * options_.width || frame.height() < legend_.height))
      return std::nullopt;
    if (frame.width() < 40 || frame.height() < 40)
      throw InternalError(fmt::format("a plot of {} x {} pixels", options_.width, options_.height),
                          "draw_plot", "room for the frame and its labels");
    draw_axes(out, frame, y_ticks);
    Occupancy occupied(frame);
    draw_data(out, frame, occupied);
    out.outline({frame.left + 0.5, frame.top + 0.5, frame.right + 0.5, frame.bottom + 0.5}, {kFrameInk});
    if (legend_.height == 0) return out;
    if (place == LegendPlace::right) {
      legend_.draw(out, frame.right + 8, frame.top);
    } else if (place == LegendPlace::above) {
      legend_.draw(out, frame.right - legend_.width, frame.top - legend_.height - 6);
    } else if (const auto corner = occupied.free_place(legend_.width, legend_.height)) {
      legend_.draw(out, corner->x, corner->y);
    } else {
      return std::nullopt;
    }
    return out;
  }

 private:
  bool holds(const PlotSeries& s, size_t k) const { return x_.holds(s.x[k]) && y_.holds(s.y[k]); }

  Box frame_of(const std::vector<Tick>& y_ticks, LegendPlace place, double height) const {
    double labels = 0;
    for (const Tick& t : y_ticks) labels = std::max(labels, text_width(t.label, kTickSize));
    Box frame;
    frame.left = std::round(kPlotMargin + labels + 8);
    frame.top = std::round(kPlotMargin + (options_.title.empty() ? 4 : kPlotTitleSize + 10) +
                           (options_.y_label.empty() ? 0 : kLabelSize + 8) +
                           (place == LegendPlace::above ? legend_.height + 6 : 0));
    frame.right =
        std::round(options_.width - kPlotMargin - 12 - (place == LegendPlace::right ? legend_.width + 4 : 0));
    frame.bottom = std::round(height - kPlotMargin - kTickSize - kTickGap -
                              (options_.x_label.empty() ? 0 : kLabelSize + 8));
    return frame;
  }

  void draw_axes(Drawing& out, const Box& frame, const std::vector<Tick>& y_ticks) const {
    const double room = options_.width - 2 * kPlotMargin;
    out.text({kPlotMargin, kPlotMargin + cap_height(kPlotTitleSize)},
             shortened(options_.title, room, kPlotTitleSize, true), {.size = kPlotTitleSize, .bold = true});
    const double y_label_top = kPlotMargin + (options_.title.empty() ? 0 : kPlotTitleSize + 10);
    out.text({kPlotMargin, y_label_top + cap_height(kLabelSize)},
             shortened(options_.y_label, options_.width - 2 * kPlotMargin, kLabelSize),
             {.size = kLabelSize, .ink = kFaintInk});
    out.text({0.5 * (frame.left + frame.right), out.height() - kPlotMargin},
             shortened(options_.x_label, frame.width(), kLabelSize),
             {.size = kLabelSize, .ink = kFaintInk, .align = Align::middle});
    for (const Tick& t : y_ticks) {
      const double y = std::floor(frame.bottom - t.at * frame.height()) + 0.5;
      out.line({frame.left, y}, {frame.right, y}, {kGridInk});
      out.text({frame.left - 8, y + 0.5 * cap_height(kTickSize)}, t.label,
               {.size = kTickSize, .align = Align::right});
    }
    for (const Tick& t : x_ticks_of(x_, options_, frame.width())) {
      const double x = std::floor(frame.left + t.at * frame.width()) + 0.5;
      out.line({x, frame.top}, {x, frame.bottom}, {kGridInk});
      out.text({x, frame.bottom + kTickGap + cap_height(kTickSize)}, t.label,
               {.size = kTickSize, .align = Align::middle});
    }
  }

  void draw_data(Drawing& out, const Box& frame, Occupancy& occupied) const {
    for (size_t k = 0; k < series_.size(); ++k) {
      const PlotSeries& s = series_[k];
      const Rgb ink = s.ink.value_or(series_ink(k));
      // Markers that would touch each other say nothing.
      const bool marked = s.marker && (!s.line || static_cast<double>(s.x.size()) < frame.width() / 8);
      std::vector<Point> run;
      const auto finish = [&] {
        if (s.line && !run.empty()) out.polyline(std::move(run), PlotLegend::pen_of(s, ink));
        run.clear();
      };
      for (size_t n = 0; n < s.x.size(); ++n) {
        if (!holds(s, n)) {
          finish();
          continue;
        }
        const Point p{frame.left + x_.place(s.x[n]) * frame.width(),
                      frame.bottom - y_.place(s.y[n]) * frame.height()};
        occupied.add_segment(s.line && !run.empty() ? run.back() : p, p);
        if (s.line) run.push_back(p);
        if (marked) out.circle(p, kMarker, ink);
      }
      finish();
    }
  }

  const std::span<const PlotSeries> series_;
  const PlotOptions& options_;
  Axis x_, y_;
  const PlotLegend legend_;
};

}  // namespace

double nice_step(double value) {
  const double power = std::pow(10, std::floor(std::log10(value)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= value * (1 - 1e-12)) return factor * power;
  return 10 * power;
}

std::vector<std::pair<double, std::string>> even_ticks(double low, double high, double step) {
  const int digits = std::max(0, -static_cast<int>(std::floor(std::log10(step) + 1e-9)));
  std::vector<std::pair<double, std::string>> ticks;
  for (double k = std::ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; ++k) {
    std::string label = fmt::format("{:.{}f}", k * step + 0.0, digits);
    // The sign of typography is as wide as a digit.
    if (label.starts_with('-')) label.replace(0, 1, "−");
    ticks.emplace_back(k * step, std::move(label));
  }
  return ticks;
}

Rgb series_ink(size_t k) {
  constexpr std::array<double, 7> kHues = {255, 35, 150, 320, 85, 200, 290};
  // A second round is darker.
  return from_oklch(k / kHues.size() % 2 == 0 ? 0.57 : 0.42, 0.14, kHues[k % kHues.size()]);
}

Drawing draw_plot(std::span<const PlotSeries> series, const PlotOptions& options) {
  const Plot plot(series, options);
  std::optional<Drawing> drawing = plot.draw(LegendPlace::inside);
  if (!drawing) drawing = plot.draw(LegendPlace::right);
  if (!drawing) drawing = plot.draw(LegendPlace::above);
  drawing->set_label("Title",
                     options.title.empty() ? options.y_label + " over " + options.x_label : options.title);
  return *std::move(drawing);
}

Drawing draw_bars(const std::vector<std::pair<std::string, double>>& bars, const std::string& title,
                  const std::string& unit) {
  constexpr double kRow = 24, kBar = 420;
  double names = 0, values = 0, largest = 0;
  std::vector<std::string> texts;
  for (const auto& [name, value] : bars) {
    texts.push_back(fmt::format("{:.4g} {}", value, unit));
    names = std::max(names, text_width(name, kTickSize));
    values = std::max(values, text_width(texts.back(), kTickSize));
    if (std::isfinite(value)) largest = std::max(largest, value);
  }
  const double left = std::ceil(kPlotMargin + names + 10), top = kPlotMargin + kPlotTitleSize + 12;
  const double width =
      std::max(left + kBar + 8 + values, kPlotMargin + text_width(title, kPlotTitleSize, true));
  Drawing out(std::ceil(width + kPlotMargin), top + kRow * static_cast<double>(bars.size()) + kPlotMargin);
  out.text({kPlotMargin, kPlotMargin + cap_height(kPlotTitleSize)}, title,
           {.size = kPlotTitleSize, .bold = true});
  for (size_t k = 0; k < bars.size(); ++k) {
    const double y = top + kRow * static_cast<double>(k), base = y + 0.5 * (kRow - 6 + cap_height(kTickSize));
    const double share = largest > 0 && bars[k].second > 0 ? std::min(bars[k].second / largest, 1.0) : 0;
    const double length = std::max(1.0, share * kBar);
    out.text({left - 10, base}, bars[k].first, {.size = kTickSize, .align = Align::right});
    out.rectangle({left, y, left + length, y + kRow - 6}, series_ink(0));
    out.text({left + length + 8, base}, texts[k], {.size = kTickSize, .ink = kFaintInk});
  }
  return out;
}

Drawing stack(std::span<const Drawing> parts) {
  Drawing whole(0, 0);
  for (const Drawing& part : parts) {
    if (&part == &parts.front()) whole.take_labels(part);
    whole.append(part, {0, whole.height()});
    whole.set_size(std::max(whole.width(), part.width()), whole.height() + part.height());
  }
  return whole;
}

}  // namespace lockstep::io
