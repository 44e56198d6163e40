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

constexpr double kPartWidth = 3;   // °C
constexpr size_t kMostParts = 11;  // of a legend; more are shown as whole classes

/// U+2212 before a negative number.
std::string degrees(double value) {
  return value < 0 ? fmt::format("−{:g}", -value) : fmt::format("{:g}", value);
}

std::string bounds_text(double lower, double upper) {
  if (std::isinf(lower)) return "below " + degrees(upper);
  return std::isinf(upper) ? "above " + degrees(lower) : degrees(lower) + " to " + degrees(upper);
}

double lower_bound_of(std::span<const StressClass> classes, size_t k) {
  return k == 0 ? -std::numeric_limits<double>::infinity() : classes[k - 1].upper_c;
}

const io::Rgb& ink_of(ComfortIndex index, size_t k) {
  return index == ComfortIndex::utci ? kUtciInks[k] : kPetInks[k];
}

io::Rgb between(const io::Rgb& from, const io::Rgb& to, double share) {
  io::Rgb out{};
  for (size_t c = 0; c < 3; ++c)
    out[c] = static_cast<uint8_t>(std::lround(from[c] + share * (double(to[c]) - double(from[c]))));
  return out;
}

/// The colour of a part, `share` of the class towards its severe end (0 … 1; of comfort towards the warm one), from the milder
/// class on, next to comfort and in it from a pale form.
io::Rgb part_ink(ComfortIndex index, size_t k, size_t comfort, double share) {
  const io::Rgb &own = ink_of(index, k), pale = between({255, 255, 255}, own, 0.3);
  if (k + 1 >= comfort && k <= comfort + 1) return between(pale, own, share);
  return between(ink_of(index, k < comfort ? k + 1 : k - 1), own, share);
}

/// Bounds every kPartWidth down from the class's upper one; a rest narrower than half of that joins the part above it.
std::vector<double> cuts_of(double lower, double upper) {
  std::vector<double> cuts = {upper};
  if (std::isinf(lower) || std::isinf(upper)) return cuts;
  while (cuts.back() - kPartWidth >= lower + 0.5 * kPartWidth) cuts.push_back(cuts.back() - kPartWidth);
  std::reverse(cuts.begin(), cuts.end());
  return cuts;
}

std::vector<StressPart> make_parts(ComfortIndex index) {
  const auto classes = stress_classes(index);
  const auto comfort = static_cast<size_t>(stress_class(index, 20));
  std::vector<StressPart> parts;
  for (size_t k = 0; k < classes.size(); ++k) {
    double lower = lower_bound_of(classes, k);
    const std::vector<double> cuts = cuts_of(lower, classes[k].upper_c);
    for (size_t n = 0; n < cuts.size(); ++n) {
      const size_t severe = k < comfort ? cuts.size() - n : n + 1;
      const double share = double(severe) / double(cuts.size());
      parts.push_back({cuts[n], k, fmt::format("{}, {}", bounds_text(lower, cuts[n]), classes[k].name),
                       part_ink(index, k, comfort, share)});
      lower = cuts[n];
    }
  }
  return parts;
}

/// The output of a mean or a maximum.
std::string_view output_of(std::string_view grid) {
  for (const std::string_view suffix : {"_mean", "_max"})
    if (grid.ends_with(suffix)) return grid.substr(0, grid.size() - suffix.size());
  return grid;
}

/// A bar for an amount.
Look amount(const char* title, const char* unit, io::ColorMap map, std::optional<double> minimum = {}) {
  return {title, unit, map, minimum, {}, false};
}

size_t part_of(const std::vector<StressPart>& parts, double value) {
  size_t k = 0;
  while (value > parts[k].upper_c) ++k;
  return k;
}

struct Classed {
  std::vector<float> values;
  std::vector<io::MapClass> classes;  ///< the hottest on top
};

/// In parts of the classes, or in whole ones where these are more parts than a legend holds.
Classed classed(const std::vector<float>& values, ComfortIndex index, const std::vector<uint8_t>* cover) {
  const std::vector<StressPart>& parts = stress_parts(index);
  Classed out{values, {}};
  std::vector<char> occurs(parts.size());
  for (size_t k = 0; k < values.size(); ++k) {
    if (std::isnan(values[k])) continue;
    const size_t part = part_of(parts, static_cast<double>(values[k]));
    if (!cover || (*cover)[k] == 0) occurs[part] = 1;
    out.values[k] = static_cast<float>(part);
  }
  if (static_cast<size_t>(std::count(occurs.begin(), occurs.end(), 1)) <= kMostParts) {
    for (size_t k = 0; k < parts.size(); ++k)
      out.classes.push_back({static_cast<float>(k), parts[k].label, parts[k].ink});
  } else {
    for (float& part : out.values)
      if (!std::isnan(part)) part = static_cast<float>(parts[static_cast<size_t>(part)].of_class);
    out.classes = stress_map_classes(index);
  }
  std::reverse(out.classes.begin(), out.classes.end());
  return out;
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
    out.push_back(
        {static_cast<float>(k),
         fmt::format("{}, {}", bounds_text(lower_bound_of(classes, k), classes[k].upper_c), classes[k].name),
         ink_of(index, k)});
  return out;
}

const std::vector<StressPart>& stress_parts(ComfortIndex index) {
  static const std::vector<StressPart> utci = make_parts(ComfortIndex::utci),
                                       pet = make_parts(ComfortIndex::pet);
  return index == ComfortIndex::utci ? utci : pet;
}

std::optional<ComfortIndex> index_of(std::string_view grid) {
  const std::string_view output = output_of(grid);
  if (output == "utci") return ComfortIndex::utci;
  return output == "pet" ? std::optional(ComfortIndex::pet) : std::nullopt;
}

Look step_look(std::string_view grid) {
  using enum io::ColorMap;
  if (grid == "sun_hours") return amount("Hours of sunshine", "h", sky, 0.0);
  if (grid.find("_hours_") != grid.npos) {
    step_look(grid.substr(0, grid.find("_hours_")));
    return amount("Hours", "h", heat, 0.0);
  }
  const std::string_view output = output_of(grid);
  if (output == "utci") return {"Thermal stress (UTCI)", "°C"};
  if (output == "pet") return {"Physiologically equivalent temperature (PET)", "°C"};
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
  for (const std::string_view side : {"east", "south", "west", "north"})
    for (const bool shortwave : {true, false})
      if (output == fmt::format("{}side_{}", shortwave ? 'k' : 'l', side)) {
        Look look = step_look(shortwave ? "kside" : "lside");
        look.title = fmt::format("{} on a vertical plane that faces {}",
                                 shortwave ? "Shortwave radiation" : "Longwave radiation", side);
        return look;
      }
  throw InputError(fmt::format("no output '{}'", grid), "picture",
                   "an output of urban run or a summary of one");
}

namespace {

/// The value of a grid that has one alone among its uncovered pixels.
std::optional<float> only_value(const std::vector<float>& values, const std::vector<uint8_t>* cover) {
  std::optional<float> only;
  for (size_t k = 0; k < values.size(); ++k) {
    if (std::isnan(values[k]) || (cover && (*cover)[k] != 0)) continue;
    if (only && *only != values[k]) return {};
    only = values[k];
  }
  return only;
}

/// Options of the picture and its values, classed where it has classes.
template <class Use>
auto with_map(const StepPicture& p, Use use) {
  const Look look = step_look(p.output);
  io::MapPictureOptions options;
  options.title = p.title.empty() ? look.title : std::string(p.title);
  options.unit = look.unit;
  options.map = look.map;
  options.minimum = p.minimum ? p.minimum : look.minimum;
  options.maximum = p.maximum ? p.maximum : look.maximum;
  options.classes = look.classes;
  if (p.base) p.base->put_into(options, p.covered);
  options.pixel_size = p.pixel_size_m;
  options.target_pixels = p.target_pixels;
  options.facts = p.facts;
  options.source = p.source;
  if (const auto index = index_of(p.output)) {
    Classed indices = classed(*p.values, *index, options.cover);
    options.classes = std::move(indices.classes);
    return use(indices.values, options);
  }
  if (p.output == "shadow") return use(shade_states(*p.values), options);
  // A bar would have colours that the map has not.
  if (const auto only = only_value(*p.values, options.cover); only && !options.maximum) {
    const bool high = options.minimum && static_cast<double>(*only) > *options.minimum;
    options.classes = {
        {*only, fmt::format("{:.4g} {} everywhere", *only, look.unit), io::color(look.map, high ? 1 : 0)}};
  }
  return use(*p.values, options);
}

}  // namespace

io::Image draw_step_picture(const StepPicture& p) {
  return with_map(p, [&](const auto& values, const auto& options) {
    return io::draw_map(values, p.rows, p.cols, options);
  });
}

std::vector<std::string> legend_of(const StepPicture& p) {
  return with_map(p, [&](const auto& values, const auto& options) {
    return io::shown_labels(values, p.rows, p.cols, options);
  });
}

}  // namespace lockstep::urban
