#include "urban/pictures/map_style.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/files/atomic_file.hpp"
#include "io/pictures/drawing.hpp"
#include "urban/pictures/step_picture.hpp"

namespace lockstep::urban {
namespace {

constexpr int kStops = 17;

std::string item_of(double value, const std::string& label, const io::Rgb& ink) {
  return fmt::format("<item value=\"{}\" label=\"{}\" color=\"#{:02x}{:02x}{:02x}\" alpha=\"255\"/>\n",
                     std::isinf(value) ? "inf" : fmt::format("{:.9g}", value), io::xml_escaped(label), ink[0],
                     ink[1], ink[2]);
}

/// `discrete`: an item colours all values above the one before and up to its own.
std::string document_of(const std::string& items, bool discrete, double low, double high) {
  return fmt::format(
      "<!DOCTYPE qgis PUBLIC 'http://mrcc.com/qgis.dtd' 'SYSTEM'>\n"
      "<qgis version=\"3.22\" styleCategories=\"Symbology\">\n<pipe>\n"
      "<rasterrenderer type=\"singlebandpseudocolor\" band=\"1\" opacity=\"1\" alphaBand=\"-1\" "
      "classificationMin=\"{:.9g}\" classificationMax=\"{:.9g}\" nodataColor=\"\">\n<rastershader>\n"
      "<colorrampshader colorRampType=\"{}\" classificationMode=\"1\" clip=\"0\" minimumValue=\"{:.9g}\" "
      "maximumValue=\"{:.9g}\">\n{}</colorrampshader>\n</rastershader>\n</rasterrenderer>\n</pipe>\n</"
      "qgis>\n",
      low, high, discrete ? "DISCRETE" : "INTERPOLATED", low, high, items);
}

}  // namespace

std::string style_of(const Look& look, double low, double high) {
  std::string items;
  if (!look.classes.empty()) {
    std::vector<io::MapClass> classes = look.classes;
    std::sort(classes.begin(), classes.end(), [](const auto& a, const auto& b) { return a.value < b.value; });
    for (size_t k = 0; k < classes.size(); ++k) {
      const double upper =
          k + 1 < classes.size() ? (double(classes[k].value) + double(classes[k + 1].value)) / 2 : HUGE_VAL;
      items += item_of(upper, classes[k].label, classes[k].ink);
    }
    return document_of(items, true, double(classes.front().value), double(classes.back().value));
  }
  low = look.minimum.value_or(low);
  high = look.maximum.value_or(high);
  if (!std::isfinite(low) || !std::isfinite(high)) low = 0, high = 1;
  if (look.map == io::ColorMap::balance) high = std::max(std::abs(low), std::abs(high)), low = -high;
  if (!(high > low)) high = low + 1;
  for (int k = 0; k < kStops; ++k) {
    const double share = double(k) / (kStops - 1), value = low + share * (high - low);
    items += item_of(value, fmt::format("{:.4g} {}", value, look.unit), io::color(look.map, share));
  }
  return document_of(items, false, low, high);
}

std::string style_of(std::string_view grid, double low, double high) {
  const Look look = step_look(grid);
  std::string items;
  if (const auto index = index_of(grid); index && grid.find("_hours_") == grid.npos) {
    for (const StressPart& part : stress_parts(*index)) items += item_of(part.upper_c, part.label, part.ink);
    return document_of(items, true, low, high);
  }
  if (grid == "shadow") {  // a share of the sun: shade, what plants let through, sun
    items = item_of(0, look.classes[2].label, look.classes[2].ink) +
            item_of(std::nextafter(1.0f, 0.0f), look.classes[1].label, look.classes[1].ink) +
            item_of(HUGE_VAL, look.classes[0].label, look.classes[0].ink);
    return document_of(items, true, 0, 1);
  }
  return style_of(look, low, high);
}

void write_style(const std::filesystem::path& file, const std::string& style) {
  if (file.extension() != ".tif") return;
  std::filesystem::path name = file;
  write_file(name.replace_extension(".qml"), style);
}

}  // namespace lockstep::urban
