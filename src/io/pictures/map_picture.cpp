#include "io/pictures/map_picture.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

#include "io/pictures/color_table.hpp"
#include "io/pictures/drawing.hpp"
#include "io/pictures/plot.hpp"
#include "lockstep/error.hpp"

namespace lockstep::io {
namespace {

constexpr Rgb kMissing = {222, 224, 228}, kHidden = {236, 236, 232}, kSunInk = {240, 168, 30};
constexpr double kMapMargin = 24, kMapTitleSize = 22, kFactSize = 14, kSourceSize = 12, kLegendSize = 14,
                 kLegendGap = 22;
constexpr double kBarWidth = 20, kSwatch = 18, kSwatchRow = 28, kDial = 34;
constexpr int64_t kLargestSide = 4096;
constexpr size_t kClassRows = 12;  // of the legend, for which a picture has room
constexpr auto kNoData = "no data";
constexpr double kUnderShare = 0.3;  // of the colour of a value
constexpr double kDark = 90;         // lightness below which lines are drawn in a pale form of their ink

// Calls `each(index)` for the cells of each block of factor × factor, then `end()`, block by block.
template <class Each, class End>
void for_blocks(int64_t rows, int64_t cols, int64_t factor, Each each, End end) {
  for (int64_t top = 0; top < rows; top += factor)
    for (int64_t left = 0; left < cols; left += factor) {
      for (int64_t y = top; y < std::min(rows, top + factor); ++y)
        for (int64_t x = left; x < std::min(cols, left + factor); ++x)
          each(static_cast<size_t>(y * cols + x));
      end();
    }
}

// Means of the blocks.
std::vector<float> shrink(const std::vector<float>& values, int64_t rows, int64_t cols, int64_t factor) {
  std::vector<float> out;
  double sum = 0;
  int count = 0;
  for_blocks(
      rows, cols, factor,
      [&](size_t k) {
        if (!std::isnan(values[k])) sum += values[k], ++count;
      },
      [&] {
        out.push_back(count ? static_cast<float>(sum / count) : std::numeric_limits<float>::quiet_NaN());
        sum = count = 0;
      });
  return out;
}

size_t nearest(const std::vector<MapClass>& classes, float value) {
  return size_t(std::min_element(classes.begin(), classes.end(),
                                 [value](const MapClass& a, const MapClass& b) {
                                   return std::abs(a.value - value) < std::abs(b.value - value);
                                 }) -
                classes.begin());
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
  std::vector<uint8_t> valued;  // not 0: the colour has a meaning, which light must not change
  bool any_missing = false;
  std::vector<char> classes, covers, outlines;  // not 0: occurs
};

// The most frequent class of each block, of equal ones the first.
void color_classes(const std::vector<float>& values, int64_t rows, int64_t cols, int64_t factor,
                   const std::vector<MapClass>& classes, Cells& out) {
  out.classes.resize(classes.size());
  float last = std::numeric_limits<float>::quiet_NaN();  // neighbours are mostly of one class
  size_t of_last = 0;
  const auto class_of = [&](float value) {
    if (value != last) of_last = nearest(classes, last = value);
    return of_last;
  };
  const auto put = [&](bool any, size_t number) {
    if (any) out.classes[number] = 1;
    out.valued.push_back(any);
    out.inks.push_back(any ? classes[number].ink : kMissing);
  };
  if (factor == 1) {
    for (const float v : values) put(!std::isnan(v), std::isnan(v) ? 0 : class_of(v));
    return;
  }
  std::vector<int64_t> counts(classes.size());
  for_blocks(
      rows, cols, factor,
      [&](size_t k) {
        if (!std::isnan(values[k])) ++counts[class_of(values[k])];
      },
      [&] {
        const auto most = size_t(std::max_element(counts.begin(), counts.end()) - counts.begin());
        put(counts[most] > 0, most);
        std::fill(counts.begin(), counts.end(), 0);
      });
}

void color_cells(const std::vector<float>& values, const ColorRange& range, const MapPictureOptions& options,
                 Cells& out) {
  out.inks.reserve(values.size());
  const ColorTable color(options.map);
  for (const float v : values) {
    const bool missing = std::isnan(v), hidden = options.hide_zero && v == 0;
    out.valued.push_back(!missing && !hidden);
    out.inks.push_back(missing ? kMissing : hidden ? kHidden : color(range.share(v)));
  }
}

/// The values, missing where they are covered.
std::vector<float> uncovered(const std::vector<float>& values, const std::vector<uint8_t>& cover) {
  std::vector<float> out = values;
  for (size_t k = 0; k < out.size(); ++k)
    if (cover[k] != 0) out[k] = std::numeric_limits<float>::quiet_NaN();
  return out;
}

/// Blocks without a value that have a cover take its colour; what is left without a value is missing.
void cover_cells(Cells& cells, const std::vector<float>& values, int64_t rows, int64_t cols, int64_t factor,
                 const MapPictureOptions& options) {
  std::vector<uint8_t> covered(cells.inks.size());
  if (options.cover)
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < cols; ++c)
        if (const auto k = static_cast<size_t>(r * cols + c); !std::isnan(values[k]))
          if (const uint8_t cover = (*options.cover)[k])
            covered[static_cast<size_t>(r / factor * cells.cols + c / factor)] = cover;
  for (size_t k = 0; k < covered.size(); ++k) {
    if (cells.valued[k] || cells.inks[k] != kMissing) continue;
    cells.any_missing = cells.any_missing || !covered[k];
    if (!covered[k]) continue;
    cells.inks[k] = options.covers[covered[k] - 1u].ink;
    cells.covers[covered[k] - 1u] = 1;
    cells.valued[k] = 1;
  }
}

void shade_cells(Cells& cells, const std::vector<float>& heights, double pixel_size,
                 const MapPictureOptions& options) {
  const MapSun lamp = lamp_of(options.facts);
  const double flat = std::sin(lamp.altitude_deg * std::numbers::pi / 180);
  const std::vector<float> light = hillshade(heights, cells.rows, cells.cols, pixel_size, lamp);
  const bool heights_shown = options.map == ColorMap::terrain && options.classes.empty();
  for (size_t k = 0; k < cells.inks.size(); ++k)
    if (!cells.valued[k] || heights_shown)
      cells.inks[k] = shaded_by(cells.inks[k], light[k], flat, cells.inks[k] == kHidden ? 0.75 : 0.45);
}

/// A mask by blocks: inside where at least half of the cells are.
std::vector<uint8_t> mask_of(const std::vector<uint8_t>& cells, int64_t rows, int64_t cols, int64_t factor) {
  if (factor == 1) return cells;
  std::vector<uint8_t> out;
  int64_t inside = 0, all = 0;
  for_blocks(
      rows, cols, factor, [&](size_t k) { inside += cells[k] != 0, ++all; },
      [&] {
        out.push_back(2 * inside >= all);
        inside = all = 0;
      });
  return out;
}

bool any_of(const std::vector<uint8_t>& mask) {
  uint8_t any = 0;  // without a branch, which vectors compute
  for (const uint8_t cell : mask) any |= cell;
  return any != 0;
}

struct Layout {
  int64_t block, rows, cols;
  int zoom;
};
Layout layout_of(int64_t rows, int64_t cols, int target_pixels) {
  const int64_t longer = std::max(rows, cols);
  const int64_t block = std::max<int64_t>(1, (longer + kLargestSide / 2 - 1) / (kLargestSide / 2));
  const int zoom = static_cast<int>(std::max<int64_t>(1, (target_pixels + longer / 2) / longer));
  return {block, (rows + block - 1) / block, (cols + block - 1) / block, zoom};
}

/// Colours of all cells and what of the legend occurs.
Cells cells_of(const std::vector<float>& given, int64_t rows, int64_t cols, const MapPictureOptions& options,
               const Layout& layout, ColorRange& range) {
  std::vector<float> masked;
  if (options.cover) masked = uncovered(given, *options.cover);
  const std::vector<float>& values = options.cover ? masked : given;
  const auto small = [&](const std::vector<float>& grid) { return shrink(grid, rows, cols, layout.block); };
  range = color_range(values, options.map, options.minimum, options.maximum);
  Cells cells{layout.rows, layout.cols, {}, {}, false, {}, {}, {}};
  if (!options.classes.empty())
    color_classes(values, rows, cols, layout.block, options.classes, cells);
  else
    color_cells(layout.block > 1 ? small(values) : values, range, options, cells);
  cells.covers.resize(options.covers.size());
  if (!options.under) cover_cells(cells, given, rows, cols, layout.block, options);
  if (options.relief && !options.under)
    shade_cells(cells, layout.block > 1 ? small(*options.relief) : *options.relief,
                options.pixel_size * static_cast<double>(layout.block), options);
  for (const MapOutline& outline : options.outlines) cells.outlines.push_back(any_of(*outline.cells));
  return cells;
}

double lightness(const uint8_t* ink) { return 0.299 * ink[0] + 0.587 * ink[1] + 0.114 * ink[2]; }

/// Paints the inner border of a mask, where another cell of the map is outside of it.
void draw_outline(Image& image, const std::vector<uint8_t>& mask, const Layout& layout, int left, int top,
                  const MapOutline& outline) {
  const int thick = outline.dotted ? 1 : std::clamp(layout.zoom / 2, 1, 2), zoom = layout.zoom;
  const auto inside = [&](int64_t r, int64_t c) {
    return r < 0 || c < 0 || r >= layout.rows || c >= layout.cols ||
           mask[static_cast<size_t>(r * layout.cols + c)] != 0;
  };
  for (int64_t r = 0; r < layout.rows; ++r)
    for (int64_t c = 0; c < layout.cols; ++c) {
      if (!mask[static_cast<size_t>(r * layout.cols + c)]) continue;
      const bool up = !inside(r - 1, c), down = !inside(r + 1, c), west = !inside(r, c - 1),
                 east = !inside(r, c + 1);
      if (!(up || down || west || east)) continue;
      for (int v = 0; v < zoom; ++v)
        for (int u = 0; u < zoom; ++u) {
          if (!((up && v < thick) || (down && v >= zoom - thick) || (west && u < thick) ||
                (east && u >= zoom - thick)))
            continue;
          const int x = left + static_cast<int>(c) * zoom + u, y = top + static_cast<int>(r) * zoom + v;
          if (outline.dotted && ((x + y) & 2)) continue;
          uint8_t* const at = image.at(x, y);
          const bool dark = lightness(at) < kDark;
          for (size_t k = 0; k < 3; ++k)
            at[k] = dark ? static_cast<uint8_t>((outline.ink[k] + 2 * 255) / 3) : outline.ink[k];
        }
    }
}

/// The colour of a value mixed with the lightness of what is under it, which keeps its hue.
Rgb mixed(const Rgb& ink, const uint8_t* under) {
  Rgb out{};
  for (size_t c = 0; c < 3; ++c)
    out[c] = static_cast<uint8_t>(std::lround((1 - kUnderShare) * ink[c] + kUnderShare * lightness(under)));
  return out;
}

void put_cells(Image& image, const Cells& cells, int left, int top, int zoom, const Image* under) {
  const int64_t height = cells.rows * zoom, width = cells.cols * zoom;
  for (int64_t y = 0; y < height; ++y)
    for (int64_t x = 0; x < width; ++x) {
      const auto cell = static_cast<size_t>(y / zoom * cells.cols + x / zoom);
      Rgb ink = cells.inks[cell];
      if (under) {
        const uint8_t* below =
            &under->pixels[3 * static_cast<size_t>(y * under->height / height * under->width +
                                                   x * under->width / width)];
        if (cells.valued[cell])
          ink = mixed(ink, below);
        else
          std::copy_n(below, 3, ink.begin());
      }
      std::copy(ink.begin(), ink.end(), image.at(left + static_cast<int>(x), top + static_cast<int>(y)));
    }
}

// A column next to the map: colours with their meaning, then north and the sun. Each part gives its height.
class MapLegend {
 public:
  MapLegend(const ColorRange& range, const MapPictureOptions& options, const Cells& cells)
      : range_(range), options_(options) {
    for (size_t k = 0; k < options.classes.size(); ++k)
      if (cells.classes[k])
        entries_.push_back({options.classes[k].ink, options.classes[k].label, Kind::area});
    for (size_t k = 0; k < options.covers.size(); ++k)
      if (cells.covers[k]) extra_.push_back({options.covers[k].ink, options.covers[k].label, Kind::area});
    if (cells.any_missing) extra_.push_back({kMissing, kNoData, Kind::area});
    for (size_t k = 0; k < options.outlines.size(); ++k)
      if (cells.outlines[k])
        extra_.push_back({options.outlines[k].ink, options.outlines[k].label,
                          options.outlines[k].dotted ? Kind::dots : Kind::line});
  }

  std::vector<std::string> labels() const {
    std::vector<std::string> all;
    for (const auto* list : {&entries_, &extra_})
      for (const Entry& entry : *list) all.push_back(entry.label);
    return all;
  }

  double width() const {
    double width = text_width(options_.unit, kLegendSize);
    width = std::max(width, swatch_width(kNoData));
    for (const MapCover& c : options_.covers) width = std::max(width, swatch_width(c.label));
    for (const MapOutline& o : options_.outlines) width = std::max(width, swatch_width(o.label));
    for (const MapClass& c : options_.classes) width = std::max(width, swatch_width(c.label));
    if (options_.classes.empty()) {
      for (const auto& [value, label] : ticks(400))
        width = std::max(width, kBarWidth + 10 + text_width(label, kLegendSize));
    }
    return has_dial() ? std::max(width, 2 * kDial + 8) : width;
  }
  /// Of the classes that may occur, at most kClassRows.
  double least_height() const {
    const size_t rows = std::min(options_.classes.size(), kClassRows);
    return (rows == 0 ? 120 : kSwatchRow * static_cast<double>(std::max(rows, entries_.size()))) +
           fixed_height(1 + options_.covers.size() + options_.outlines.size());
  }
  void draw(Drawing& out, double left, double top, double height) const {
    double y = top;
    if (!options_.unit.empty()) {
      out.text({left, y + cap_height(kLegendSize)}, options_.unit, {.size = kLegendSize});
      y += kUnitRow;
    }
    if (options_.classes.empty()) {
      const double bar = height - fixed_height(extra_.size());
      draw_bar(out, left, y, bar);
      y += bar + (extra_.empty() ? 0 : 14);
    }
    for (const Entry& entry : entries_) y = draw_swatch(out, left, y, entry);
    if (!entries_.empty() && !extra_.empty()) y += 8;
    for (const Entry& entry : extra_) y = draw_swatch(out, left, y, entry);
    if (has_dial()) draw_dial(out, {left + kDial + 4, top + height - kDial - 2});
  }

 private:
  enum class Kind { area, line, dots };
  struct Entry {
    Rgb ink;
    std::string label;
    Kind kind;
  };
  static constexpr double kUnitRow = 26;
  static double swatch_width(const std::string& label) {
    return kSwatch + 10 + text_width(label, kLegendSize);
  }
  bool has_dial() const { return options_.facts.north_is_up || options_.facts.sun; }
  double fixed_height(size_t extra) const {
    return (options_.unit.empty() ? 0 : kUnitRow) +
           (extra == 0 ? 0 : 14 + kSwatchRow * static_cast<double>(extra)) +
           (has_dial() ? 2 * kDial + 44 : 0);
  }
  std::vector<std::pair<double, std::string>> ticks(double height) const {
    const double wanted = std::clamp(std::floor(height / 60), 2.0, 8.0);
    return even_ticks(range_.low, range_.high, nice_step((range_.high - range_.low) / wanted));
  }

  static double draw_swatch(Drawing& out, double left, double y, const Entry& entry) {
    const Box box{left + 0.5, y + 0.5, left + kSwatch + 0.5, y + kSwatch + 0.5};
    if (entry.kind == Kind::area) {
      out.rectangle(box, entry.ink);
      out.outline(box, {kFrameInk});
    } else {
      Pen pen{entry.ink, 2};
      if (entry.kind == Kind::dots) pen.dashes = {2, 2};
      out.outline(box.grown(-1), pen);
    }
    out.text({left + kSwatch + 10, y + 0.5 * (kSwatch + 1 + cap_height(kLegendSize))}, entry.label,
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
  std::vector<Entry> entries_;  // classes that occur
  std::vector<Entry> extra_;    // what has no value, and lines
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
  if (!facts.scenario.empty()) parts.push_back(facts.scenario);
  if (!facts.place.empty()) parts.push_back(facts.place);
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

namespace {
void require_full(const std::vector<float>& values, int64_t rows, int64_t cols,
                  const MapPictureOptions& options) {
  bool full = rows >= 1 && cols >= 1 && static_cast<int64_t>(values.size()) == rows * cols &&
              (!options.relief || options.relief->size() == values.size()) &&
              (!options.cover || options.cover->size() == values.size());
  for (const MapOutline& outline : options.outlines) full = full && outline.cells->size() == values.size();
  if (!full)
    throw InternalError(fmt::format("{} values for {} x {} cells", values.size(), rows, cols), "draw_map",
                        "a full grid");
}
}  // namespace

std::vector<std::string> shown_labels(const std::vector<float>& values, int64_t rows, int64_t cols,
                                      const MapPictureOptions& options) {
  require_full(values, rows, cols, options);
  ColorRange range;
  const Cells cells =
      cells_of(values, rows, cols, options, layout_of(rows, cols, options.target_pixels), range);
  return MapLegend(range, options, cells).labels();
}

Image draw_map(const std::vector<float>& values, int64_t rows, int64_t cols,
               const MapPictureOptions& options) {
  require_full(values, rows, cols, options);
  const Layout layout = layout_of(rows, cols, options.target_pixels);
  ColorRange range;
  const Cells cells = cells_of(values, rows, cols, options, layout, range);
  const auto [block, map_rows, map_cols, zoom] = layout;

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
  const double map_top = std::exchange(top, bottom + 14);
  write_lines(options.source, {.size = kSourceSize, .ink = kFaintInk}, 17);
  if (!options.source.empty()) bottom = top;
  Image image(static_cast<int>(std::ceil(content + 2 * kMapMargin)),
              static_cast<int>(std::ceil(bottom + kMapMargin)), 3, 255);
  const int left = static_cast<int>(kMapMargin), first = static_cast<int>(map_top);
  put_cells(image, cells, left, first, zoom, options.under);
  for (const MapOutline& outline : options.outlines)
    draw_outline(image, mask_of(*outline.cells, rows, cols, block), layout, left, first, outline);
  drawing.paint(image);
  for (const auto& [keyword, text] : {std::pair{"Title", options.title},
                                      {"Unit", options.unit},
                                      {"Time", options.facts.date},
                                      {"Place", options.facts.place},
                                      {"Scenario", options.facts.scenario}})
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
