#include "io/pictures/map_picture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

#include "io/pictures/drawing.hpp"
#include "io/pictures/plot.hpp"
#include "lockstep/error.hpp"

namespace lockstep::io {
namespace {

constexpr Rgb kMissing = {222, 224, 228}, kHidden = {236, 236, 232}, kSunInk = {240, 168, 30};
constexpr double kMapMargin = 24, kMapTitleSize = 22, kFactSize = 14, kLegendSize = 14, kLegendGap = 22;
constexpr double kBarWidth = 20, kSwatch = 18, kSwatchRow = 28, kDial = 34;
constexpr int64_t kLargestSide = 4096;

// Calls `each(value)` for the cells of each block of factor × factor that are not missing, then `end()`, block by block.
template <class Each, class End>
void for_blocks(const std::vector<float>& values, int64_t rows, int64_t cols, int64_t factor, Each each,
                End end) {
  for (int64_t top = 0; top < rows; top += factor)
    for (int64_t left = 0; left < cols; left += factor) {
      for (int64_t y = top; y < std::min(rows, top + factor); ++y)
        for (int64_t x = left; x < std::min(cols, left + factor); ++x)
          if (const float v = values[static_cast<size_t>(y * cols + x)]; !std::isnan(v)) each(v);
      end();
    }
}

// Means of the blocks.
std::vector<float> shrink(const std::vector<float>& values, int64_t rows, int64_t cols, int64_t factor) {
  std::vector<float> out;
  double sum = 0;
  int count = 0;
  for_blocks(
      values, rows, cols, factor, [&](float v) { sum += v, ++count; },
      [&] {
        out.push_back(count ? static_cast<float>(sum / count) : std::numeric_limits<float>::quiet_NaN());
        sum = count = 0;
      });
  return out;
}

const MapClass& nearest(const std::vector<MapClass>& classes, float value) {
  return *std::min_element(classes.begin(), classes.end(), [value](const MapClass& a, const MapClass& b) {
    return std::abs(a.value - value) < std::abs(b.value - value);
  });
}

// The relief darkens and brightens the colour around its own light on flat ground.
Rgb shaded_by(const Rgb& base, float light, double flat, double strength) {
  if (std::isnan(light)) return base;
  const double factor = 1 + strength * (light - flat);
  Rgb out{};
  for (size_t c = 0; c < 3; ++c)
    out[c] = static_cast<uint8_t>(std::clamp(std::lround(base[c] * factor), 0l, 255l));
  return out;
}

// The relief's lamp: a sun near the horizon or the zenith would leave slopes black or flat.
MapSun lamp_of(const MapFacts& facts) {
  const MapSun sun = facts.sun.value_or(MapSun{315, 45});
  return {sun.azimuth_deg, std::clamp(sun.altitude_deg, 30.0, 55.0)};
}

// Colours of the grid, one picture element a cell or block of cells.
struct Cells {
  int64_t rows, cols;
  std::vector<Rgb> inks;
  bool any_missing = false, any_hidden = false;
};

Cells color_classes(const std::vector<float>& values, int64_t rows, int64_t cols, int64_t factor,
                    const std::vector<MapClass>& classes) {
  Cells out{(rows + factor - 1) / factor, (cols + factor - 1) / factor, {}};
  std::array<int64_t, 3> sum{};
  int64_t count = 0;
  for_blocks(
      values, rows, cols, factor,
      [&](float v) {
        const Rgb& ink = nearest(classes, v).ink;
        for (size_t k = 0; k < 3; ++k) sum[k] += ink[k];
        ++count;
      },
      [&] {
        Rgb ink = kMissing;
        for (size_t k = 0; k < 3 && count > 0; ++k) ink[k] = static_cast<uint8_t>(sum[k] / count);
        out.any_missing = out.any_missing || count == 0;
        out.inks.push_back(ink);
        sum = {}, count = 0;
      });
  return out;
}

Cells color_cells(const std::vector<float>& values, int64_t rows, int64_t cols, const ColorRange& range,
                  const MapPictureOptions& options) {
  Cells out{rows, cols, {}};
  out.inks.reserve(values.size());
  for (const float v : values) {
    const bool missing = std::isnan(v), hidden = options.hide_zero && v == 0;
    out.any_missing = out.any_missing || missing;
    out.inks.push_back(missing ? kMissing : hidden ? kHidden : color(options.map, range.share(v)));
  }
  return out;
}

/// The values, missing where they are not shown.
std::vector<float> shown_values(const std::vector<float>& values, const std::vector<uint8_t>& shown) {
  std::vector<float> out = values;
  for (size_t k = 0; k < out.size(); ++k)
    if (shown[k] == 0) out[k] = std::numeric_limits<float>::quiet_NaN();
  return out;
}

/// Blocks without a value that is shown, of which one is not: the relief alone.
void hide_cells(Cells& cells, const std::vector<float>& values, int64_t rows, int64_t cols, int64_t factor,
                const std::vector<uint8_t>& shown) {
  std::vector<uint8_t> hidden(cells.inks.size());
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < cols; ++c)
      if (const auto k = static_cast<size_t>(r * cols + c); shown[k] == 0 && !std::isnan(values[k]))
        hidden[static_cast<size_t>(r / factor * cells.cols + c / factor)] = 1;
  cells.any_missing = false;
  for (size_t k = 0; k < hidden.size(); ++k) {
    if (cells.inks[k] != kMissing) continue;
    if (hidden[k]) cells.inks[k] = kHidden;
    cells.any_hidden = cells.any_hidden || hidden[k];
    cells.any_missing = cells.any_missing || !hidden[k];
  }
}

void shade_cells(Cells& cells, const std::vector<float>& heights, double pixel_size,
                 const MapPictureOptions& options) {
  const MapSun lamp = lamp_of(options.facts);
  const double flat = std::sin(lamp.altitude_deg * std::numbers::pi / 180);
  const std::vector<float> light = hillshade(heights, cells.rows, cells.cols, pixel_size, lamp);
  for (size_t k = 0; k < cells.inks.size(); ++k)
    cells.inks[k] = shaded_by(cells.inks[k], light[k], flat, cells.inks[k] == kHidden ? 0.75 : 0.45);
}

void put_cells(Image& image, const Cells& cells, int left, int top, int zoom) {
  for (int64_t r = 0; r < cells.rows * zoom; ++r) {
    for (int64_t c = 0; c < cells.cols; ++c) {
      const Rgb& ink = cells.inks[static_cast<size_t>(r / zoom * cells.cols + c)];
      uint8_t* at = image.at(left + static_cast<int>(c) * zoom, top + static_cast<int>(r));
      for (int u = 0; u < zoom; ++u) std::copy(ink.begin(), ink.end(), at + 3 * u);
    }
  }
}

// A column beside the map: colours with their meaning, then north and the sun. Each part gives its height.
class MapLegend {
 public:
  MapLegend(const ColorRange& range, const MapPictureOptions& options, const Cells& cells)
      : range_(range), options_(options) {
    if (cells.any_hidden) extra_.emplace_back(kHidden, options.hidden_label);
    if (cells.any_missing) extra_.emplace_back(kMissing, "no data");
  }

  double width() const {
    double width = text_width(options_.unit, kLegendSize);
    for (const auto& [ink, label] : extra_) width = std::max(width, swatch_width(label));
    for (const MapClass& c : options_.classes) width = std::max(width, swatch_width(c.label));
    if (options_.classes.empty()) {
      for (const auto& [value, label] : ticks(400))
        width = std::max(width, kBarWidth + 10 + text_width(label, kLegendSize));
    }
    return has_dial() ? std::max(width, 2 * kDial + 8) : width;
  }
  double least_height() const {
    return (options_.classes.empty() ? 120 : kSwatchRow * static_cast<double>(options_.classes.size())) +
           fixed_height();
  }
  void draw(Drawing& out, double left, double top, double height) const {
    double y = top;
    if (!options_.unit.empty()) {
      out.text({left, y + cap_height(kLegendSize)}, options_.unit, {.size = kLegendSize});
      y += kUnitRow;
    }
    if (options_.classes.empty()) {
      const double bar = height - fixed_height();
      draw_bar(out, left, y, bar);
      y += bar + (extra_.empty() ? 0 : 14);
    } else {
      for (const MapClass& c : options_.classes) y = draw_swatch(out, left, y, c.ink, c.label);
    }
    for (const auto& [ink, label] : extra_) y = draw_swatch(out, left, y, ink, label);
    if (has_dial()) draw_dial(out, {left + kDial + 4, top + height - kDial - 2});
  }

 private:
  static constexpr double kUnitRow = 26;
  static double swatch_width(const std::string& label) {
    return kSwatch + 10 + text_width(label, kLegendSize);
  }
  bool has_dial() const { return options_.facts.north_is_up || options_.facts.sun; }
  double fixed_height() const {
    return (options_.unit.empty() ? 0 : kUnitRow) +
           (extra_.empty() ? 0 : 14 + kSwatchRow * static_cast<double>(extra_.size())) +
           (has_dial() ? 2 * kDial + 44 : 0);
  }
  std::vector<std::pair<double, std::string>> ticks(double height) const {
    const double wanted = std::clamp(std::floor(height / 60), 2.0, 8.0);
    return even_ticks(range_.low, range_.high, nice_step((range_.high - range_.low) / wanted));
  }

  static double draw_swatch(Drawing& out, double left, double y, const Rgb& ink, const std::string& label) {
    const Box box{left + 0.5, y + 0.5, left + kSwatch + 0.5, y + kSwatch + 0.5};
    out.rectangle(box, ink);
    out.outline(box, {kFrameInk});
    out.text({left + kSwatch + 10, y + 0.5 * (kSwatch + 1 + cap_height(kLegendSize))}, label,
             {.size = kLegendSize});
    return y + kSwatchRow;
  }

  void draw_bar(Drawing& out, double left, double top, double height) const {
    for (int v = 0; v < static_cast<int>(height); ++v)
      out.rectangle({left, top + v, left + kBarWidth, top + v + 1},
                    color(options_.map, 1 - (v + 0.5) / height));
    out.outline({left + 0.5, top + 0.5, left + kBarWidth - 0.5, top + std::floor(height) - 0.5}, {kFrameInk});
    for (const auto& [value, label] : ticks(height)) {
      const double y = std::floor(top + (1 - range_.share(value)) * (height - 1)) + 0.5;
      out.line({left + kBarWidth, y}, {left + kBarWidth + 5, y});
      out.text({left + kBarWidth + 10, y + 0.5 * cap_height(kLegendSize)}, label, {.size = kLegendSize});
    }
  }

  // North as an arrow; the sun on the dome of the sky, whose rim is the horizon.
  void draw_dial(Drawing& out, Point center) const {
    const MapFacts& facts = options_.facts;
    if (facts.sun) out.circle(center, kDial, std::nullopt, Pen{{196, 200, 208}, 1.5});
    if (facts.north_is_up) {
      const double tip = facts.sun ? kDial - 4 : kDial - 8, tail = 0.55 * tip;
      out.area(
          {{center.x, center.y - tip}, {center.x + 9, center.y + tail}, {center.x, center.y + 0.3 * tail}},
          kInk);
      out.area(
          {{center.x, center.y - tip}, {center.x - 9, center.y + tail}, {center.x, center.y + 0.3 * tail}},
          kFrameInk);
      out.text({center.x, center.y - kDial - 8}, "N", {.size = 15, .align = Align::middle, .bold = true});
    }
    if (!facts.sun) return;
    const double azimuth = facts.sun->azimuth_deg * std::numbers::pi / 180;
    const double radius = kDial * std::clamp((90 - facts.sun->altitude_deg) / 90, 0.0, 1.0);
    const Point sun{center.x + radius * std::sin(azimuth), center.y - radius * std::cos(azimuth)};
    out.circle(sun, 6.5, kSunInk, Pen{kPaper, 2});
  }

  const ColorRange& range_;
  const MapPictureOptions& options_;
  std::vector<std::pair<Rgb, std::string>> extra_;  // swatches of what has no value
};

// Two halves, black and white, with 0, the middle and the end.
void draw_scale_bar(Drawing& out, double left, double top, double metres_per_pixel, double room) {
  const double length = nice_step(metres_per_pixel * room / 4);
  const double pixels = length / metres_per_pixel;
  if (pixels > room || pixels < 60) return;
  const double x = std::round(left), middle = std::round(left + 0.5 * pixels),
               end = std::round(left + pixels);
  out.rectangle({x, top, middle, top + 6}, kInk);
  out.outline({x + 0.5, top + 0.5, end - 0.5, top + 5.5});
  const bool kilometres = length >= 1000;
  const double unit = kilometres ? 1000 : 1;
  const double base = top + 14 + cap_height(kLegendSize);
  out.text({x, base}, "0", {.size = kLegendSize});
  if (pixels >= 140)
    out.text({middle, base}, fmt::format("{:g}", 0.5 * length / unit),
             {.size = kLegendSize, .align = Align::middle});
  out.text({end, base}, fmt::format("{:g} {}", length / unit, kilometres ? "km" : "m"),
           {.size = kLegendSize, .align = Align::middle});
}

std::string facts_line(const MapFacts& facts) {
  std::vector<std::string> parts;
  if (!facts.date.empty()) parts.push_back(facts.date);
  if (facts.sun)
    parts.push_back(
        fmt::format("sun {:.1f}° from north, {:.1f}° high", facts.sun->azimuth_deg, facts.sun->altitude_deg));
  if (!facts.crs.empty()) parts.push_back(facts.crs);
  return fmt::format("{}", fmt::join(parts, "  ·  "));
}

}  // namespace

std::vector<float> hillshade(const std::vector<float>& heights, int64_t rows, int64_t cols, double pixel_size,
                             const MapSun& sun) {
  std::vector<float> light(heights.size());
  const double azimuth = sun.azimuth_deg * std::numbers::pi / 180,
               altitude = sun.altitude_deg * std::numbers::pi / 180;
  const double to_east = std::sin(azimuth) * std::cos(altitude),
               to_north = std::cos(azimuth) * std::cos(altitude), upwards = std::sin(altitude);
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
      // The surface's normal is (-slope_x, -slope_y, 1).
      const double cosine = (upwards - slope_x * to_east - slope_y * to_north) /
                            std::sqrt(1 + slope_x * slope_x + slope_y * slope_y);
      light[static_cast<size_t>(r * cols + c)] = static_cast<float>(cosine > 0           ? cosine
                                                                    : std::isnan(cosine) ? cosine
                                                                                         : 0.0);
    }
  }
  return light;
}

Image draw_map(const std::vector<float>& given, int64_t rows, int64_t cols,
               const MapPictureOptions& options) {
  if (rows < 1 || cols < 1 || static_cast<int64_t>(given.size()) != rows * cols ||
      (options.relief && options.relief->size() != given.size()) ||
      (options.shown && options.shown->size() != given.size())) {
    throw InternalError(fmt::format("{} values for {} x {} cells", given.size(), rows, cols), "draw_map",
                        "a full grid");
  }
  std::vector<float> masked;
  if (options.shown) masked = shown_values(given, *options.shown);
  const std::vector<float>& values = options.shown ? masked : given;
  const int64_t longer = std::max(rows, cols);
  const int64_t block = std::max<int64_t>(1, (longer + kLargestSide / 2 - 1) / (kLargestSide / 2));
  const int zoom = static_cast<int>(std::max<int64_t>(1, (options.target_pixels + longer / 2) / longer));
  const int64_t map_rows = (rows + block - 1) / block, map_cols = (cols + block - 1) / block;
  const auto small = [&](const std::vector<float>& grid) { return shrink(grid, rows, cols, block); };
  const ColorRange range = color_range(values, options.map, options.minimum, options.maximum);
  Cells cells = !options.classes.empty() ? color_classes(values, rows, cols, block, options.classes)
                : block > 1              ? color_cells(small(values), map_rows, map_cols, range, options)
                                         : color_cells(values, rows, cols, range, options);
  if (options.shown) hide_cells(cells, given, rows, cols, block, *options.shown);
  if (options.relief)
    shade_cells(cells, block > 1 ? small(*options.relief) : *options.relief,
                options.pixel_size * static_cast<double>(block), options);

  const double map_width = static_cast<double>(map_cols) * zoom,
               map_height = static_cast<double>(map_rows) * zoom;
  const MapLegend legend(range, options, cells);
  const double content = std::max(map_width + kLegendGap + std::ceil(legend.width()), 420.0);
  Drawing drawing(0, 0);
  double top = kMapMargin;
  const auto write_lines = [&](const std::string& text, const Lettering& lettering, double row) {
    for (const std::string& line : wrapped(text, content, lettering.size, lettering.bold)) {
      drawing.text({kMapMargin, top + cap_height(lettering.size)}, line, lettering);
      top += row;
    }
  };
  write_lines(options.title, {.size = kMapTitleSize, .bold = true}, 31);
  write_lines(facts_line(options.facts), {.size = kFactSize, .ink = kFaintInk}, 22);
  top = std::round(top + (top > kMapMargin ? 6 : 0));
  const double body = std::max(map_height, legend.least_height());
  legend.draw(drawing, kMapMargin + map_width + kLegendGap, top, body);
  drawing.outline({kMapMargin - 0.5, top - 0.5, kMapMargin + map_width + 0.5, top + map_height + 0.5},
                  {kFrameInk});
  double bottom = top + body;
  if (options.pixel_size > 0) {
    draw_scale_bar(drawing, kMapMargin, top + map_height + 14,
                   options.pixel_size * static_cast<double>(block) / zoom, map_width);
    bottom = std::max(bottom, top + map_height + 44);
  }
  Image image(static_cast<int>(std::ceil(content + 2 * kMapMargin)),
              static_cast<int>(std::ceil(bottom + kMapMargin)), 3, 255);
  put_cells(image, cells, static_cast<int>(kMapMargin), static_cast<int>(top), zoom);
  drawing.paint(image);
  for (const auto& [keyword, text] :
       {std::pair{"Title", options.title}, {"Unit", options.unit}, {"Time", options.facts.date}})
    if (!text.empty()) image.texts.emplace_back(keyword, text);
  return image;
}

std::string crs_title(std::string_view wkt) {
  const size_t open = wkt.find('"');
  if (open == std::string_view::npos) return {};
  const std::string name(wkt.substr(open + 1, wkt.find('"', open + 1) - open - 1));
  // The last identifier of the text is that of the whole: AUTHORITY["EPSG","3006"] or ID["EPSG",3006].
  const size_t id = wkt.rfind("[\"EPSG\",");
  if (id == std::string_view::npos) return name;
  std::string code;
  for (const char c : wkt.substr(id + 8)) {
    if (c >= '0' && c <= '9') code += c;
    if (c == ']') break;
  }
  return fmt::format("{} (EPSG:{})", name, code);
}

}  // namespace lockstep::io
