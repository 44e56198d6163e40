#include "urban/pictures/step_picture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "lockstep/error.hpp"
#include "urban/pictures/looks.hpp"

namespace lockstep::urban {
namespace {

// As maps of the two indices are published: blue for cold, green for comfort, yellow to dark red for heat.
constexpr io::Rgb kUtciInks[] = {{8, 16, 96},     {16, 48, 184}, {40, 104, 232}, {80, 168, 248},
                                 {160, 216, 248}, {88, 176, 88}, {250, 200, 60}, {240, 128, 40},
                                 {216, 48, 32},   {128, 8, 24}};
constexpr io::Rgb kPetInks[] = {{8, 16, 96},     {24, 72, 208}, {64, 144, 240},
                                {152, 212, 248}, {88, 176, 88}, {252, 228, 110},
                                {246, 164, 50},  {224, 72, 36}, {128, 8, 24}};

constexpr const char* kNoGround = "roof or water";

/// U+2212 before a negative number.
std::string degrees(double value) {
  return value < 0 ? fmt::format("−{:g}", -value) : fmt::format("{:g}", value);
}

std::string bounds_of(std::span<const StressClass> classes, size_t k) {
  if (k == 0) return "below " + degrees(classes[0].upper_c);
  const std::string lower = degrees(classes[k - 1].upper_c);
  return k + 1 == classes.size() ? "above " + lower : lower + " to " + degrees(classes[k].upper_c);
}

/// A bar for an amount.
Look amount(const char* title, const char* unit, io::ColorMap map, std::optional<double> minimum = {}) {
  return {title, unit, map, minimum, {}, false};
}

Look comfort_look(const char* title, ComfortIndex index) {
  Look look{title, "°C"};
  look.classes = stress_map_classes(index);
  std::reverse(look.classes.begin(), look.classes.end());  // the hottest on top
  return look;
}

std::vector<float> classed(const std::vector<float>& values, ComfortIndex index) {
  std::vector<float> places(values.size());
  for (size_t k = 0; k < values.size(); ++k) {
    const int place = stress_class(index, static_cast<double>(values[k]));
    places[k] = place < 0 ? std::numeric_limits<float>::quiet_NaN() : static_cast<float>(place);
  }
  return places;
}

/// Plants let a part of the beam through, however much: the part becomes the middle state.
std::vector<float> shade_states(const std::vector<float>& values) {
  std::vector<float> states(values.size());
  for (size_t k = 0; k < values.size(); ++k) {
    const float v = values[k];
    states[k] = std::isnan(v) ? v : v <= 0 ? 0.0f : v >= 1 ? 1.0f : 0.5f;
  }
  return states;
}

}  // namespace

std::vector<io::MapClass> stress_map_classes(ComfortIndex index) {
  const auto classes = stress_classes(index);
  std::vector<io::MapClass> out;
  for (size_t k = 0; k < classes.size(); ++k)
    out.push_back({static_cast<float>(k), fmt::format("{}, {}", bounds_of(classes, k), classes[k].name),
                   index == ComfortIndex::utci ? kUtciInks[k] : kPetInks[k]});
  return out;
}

Look step_look(std::string_view output) {
  using enum io::ColorMap;
  if (output == "utci") return comfort_look("Thermal stress (UTCI)", ComfortIndex::utci);
  if (output == "pet") return comfort_look("Physiologically equivalent temperature (PET)", ComfortIndex::pet);
  if (output == "tmrt") return amount("Mean radiant temperature", "°C", sky);
  if (output == "shadow") {
    Look look = shade_look().look;
    look.title = "Sun and shade";
    return look;
  }
  if (output == "kdown") return amount("Shortwave radiation from above", "W/m²", sky, 0.0);
  if (output == "kup") return amount("Shortwave radiation from the ground", "W/m²", sky, 0.0);
  if (output == "kside") return amount("Shortwave radiation from the sides", "W/m²", sky, 0.0);
  if (output == "ldown") return amount("Longwave radiation from above", "W/m²", sky);
  if (output == "lup") return amount("Longwave radiation from the ground", "W/m²", sky);
  if (output == "lside") return amount("Longwave radiation from the sides", "W/m²", sky);
  if (output == "gvf") return {"Ground view factor", "share of ground", sky, 0.0, 1.0};
  throw InputError(fmt::format("no output '{}'", output), "picture",
                   "tmrt, utci, pet, shadow, kdown, kup, kside, ldown, lup, lside or gvf");
}

io::Image draw_step_picture(const StepPicture& p) {
  const Look look = step_look(p.output);
  io::MapPictureOptions options;
  options.title = p.title.empty() ? look.title : std::string(p.title);
  options.unit = look.unit;
  options.map = look.map;
  options.minimum = p.minimum ? p.minimum : look.minimum;
  options.maximum = p.maximum ? p.maximum : look.maximum;
  options.classes = look.classes;
  options.relief = p.relief;
  options.shown = p.ground;
  options.hidden_label = kNoGround;
  options.pixel_size = p.pixel_size_m;
  options.target_pixels = p.target_pixels;
  options.facts = p.facts;
  const auto draw = [&](const std::vector<float>& values) {
    return io::draw_map(values, p.rows, p.cols, options);
  };
  if (p.output == "utci") return draw(classed(*p.values, ComfortIndex::utci));
  if (p.output == "pet") return draw(classed(*p.values, ComfortIndex::pet));
  if (p.output == "shadow") return draw(shade_states(*p.values));
  return draw(*p.values);
}

}  // namespace lockstep::urban
