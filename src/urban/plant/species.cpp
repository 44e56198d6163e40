#include "urban/plant/species.hpp"

#include <fmt/format.h>

#include <cmath>

#include "core/numbers/parse_number.hpp"
#include "lockstep/error.hpp"

namespace lockstep::urban {

TreeSpecies parse_species(const std::string& text) {
  constexpr const char* kForm = "height,trunk,crown in metres, such as 10,3,6";
  std::vector<double> numbers;
  for (size_t at = 0; at <= text.size();) {
    const size_t comma = std::min(text.find(',', at), text.size());
    const auto number = parse_number<double>(std::string_view(text).substr(at, comma - at));
    if (!number || !std::isfinite(*number)) throw bad_text(fmt::format("'{}'", text), kForm);
    numbers.push_back(*number);
    at = comma + 1;
  }
  if (numbers.size() != 3) throw bad_text(fmt::format("'{}'", text), kForm);
  const TreeSpecies species{numbers[0], numbers[1], numbers[2]};
  if (!(species.height_m > 0 && species.height_m <= 130))
    throw bad_text(fmt::format("a tree of {} m", species.height_m), "a height above 0 and at most 130 m");
  if (!(species.trunk_m >= 0 && species.trunk_m < species.height_m))
    throw bad_text(
        fmt::format("a crown from {} m up whose top is at {} m", species.trunk_m, species.height_m),
        "a trunk below the height, 0 for a bush");
  if (!(species.crown_m > 0 && species.crown_m <= 100))
    throw bad_text(fmt::format("a crown of {} m", species.crown_m), "a diameter above 0 and at most 100 m");
  return species;
}

std::vector<CrownPixel> crown_of(const TreeSpecies& species, double pixel_size_m) {
  const double radius = species.crown_m / 2, depth = species.height_m - species.trunk_m;
  const auto most = static_cast<int64_t>(radius / pixel_size_m);
  std::vector<CrownPixel> crown;
  for (int64_t row = -most; row <= most; ++row)
    for (int64_t col = -most; col <= most; ++col) {
      const double from_trunk =
          std::hypot(static_cast<double>(row), static_cast<double>(col)) * pixel_size_m / radius;
      if (from_trunk >= 1) continue;
      const double top = species.trunk_m + depth * std::sqrt(1 - from_trunk * from_trunk);
      crown.push_back({row, col, static_cast<float>(top), static_cast<float>(species.trunk_m)});
    }
  return crown;
}

}  // namespace lockstep::urban
