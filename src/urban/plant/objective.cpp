#include "urban/plant/objective.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/numbers/parse_number.hpp"
#include "core/record/journal.hpp"
#include "io/text/text_scanner.hpp"
#include "lockstep/error.hpp"
#include "urban/areas/area_shapes.hpp"
#include "urban/areas/coverage.hpp"

namespace lockstep::urban {
namespace {

OptionError objective_error(std::string what, std::string expected, std::string place = "") {
  return schema_of<PlantOptions>().error(
      {OptionError::Kind::invalid, "objective", std::move(what), std::move(expected), "", std::move(place)});
}

bool is_raster_of_people(const std::filesystem::path& file) {
  const std::string ending = file.extension().string();
  return ending == ".tif" || ending == ".tiff" || ending == ".npy";
}

/// People of areas, spread evenly over the ground of each; beyond the raster live as many as that part of the area has.
void spread_people(const PlantOptions& options, const SeriesInputs& inputs, std::vector<float>& people) {
  for (const io::Feature& area :
       read_areas({options.objective, options.layer, options.areas_crs}, inputs.grid)) {
    const std::string* text = area.field("people");
    const auto count = text ? parse_number<double>(std::string_view(*text)) : std::nullopt;
    if (!count || !(*count >= 0) || !std::isfinite(*count))
      throw objective_error(
          text ? fmt::format("people '{}'", io::shown(*text)) : "an area without a field people",
          "the number of people in the area", area.where);
    const Coverage coverage = coverage_of({area.where, "", area.rings}, inputs.grid);
    double ground = 0;
    for (size_t k = 0; k < coverage.pixels.size(); ++k)
      if (inputs.ground[coverage.pixels[k]]) ground += coverage.shares[k];
    if (ground == 0) continue;
    const double inside = *count * coverage.inside / coverage.whole;
    for (size_t k = 0; k < coverage.pixels.size(); ++k)
      if (inputs.ground[coverage.pixels[k]])
        people[coverage.pixels[k]] += static_cast<float>(inside * coverage.shares[k] / ground);
  }
}

void read_people_raster(const PlantOptions& options, const SeriesInputs& inputs, std::vector<float>& people) {
  const auto reader = io::RasterReader::open(options.objective, {inputs.grid.pixel_size(), {}, false});
  io::require_same_grid(inputs.grid, options.city.dsm.string(), reader->grid(), options.objective);
  journal::input(options.objective);
  reader->read(0, 0, inputs.grid.rows, inputs.grid.cols, people.data());
  for (size_t p = 0; p < people.size(); ++p) {
    if (people[p] < 0)
      throw objective_error(
          fmt::format("{:g} people at row {}, column {}", people[p],
                      static_cast<int64_t>(p) / inputs.grid.cols, static_cast<int64_t>(p) % inputs.grid.cols),
          "none or more", options.objective);
    if (!std::isfinite(people[p]) || !inputs.ground[p]) people[p] = 0;
  }
}

}  // namespace

PlantObjective read_objective(const PlantOptions& options, const SeriesInputs& inputs) {
  constexpr const char* kForms = "hours>BOUND such as hours>38, mean-utci, or a file of people";
  PlantObjective objective;
  objective.text = options.objective;
  objective.weights.assign(inputs.ground.size(), 0);
  const auto pixel_m2 = static_cast<float>(inputs.city.pixel_size_m * inputs.city.pixel_size_m);
  for (size_t p = 0; p < inputs.ground.size(); ++p)
    if (inputs.ground[p]) objective.weights[p] = pixel_m2;
  if (options.objective.starts_with("hours>")) {
    const auto bound = parse_number<double>(std::string_view(options.objective).substr(6));
    if (!bound || !std::isfinite(*bound))
      throw objective_error(fmt::format("'{}'", options.objective), kForms);
    objective.bound = static_cast<float>(*bound);
    objective.unit = "m2 h";
    return objective;
  }
  objective.unit = "K";
  if (options.objective != "mean-utci") {
    std::error_code ignored;
    if (!std::filesystem::exists(options.objective, ignored))
      throw objective_error(fmt::format("'{}'", options.objective), kForms);
    std::ranges::fill(objective.weights, 0.0f);
    (is_raster_of_people(options.objective) ? read_people_raster : spread_people)(options, inputs,
                                                                                  objective.weights);
  }
  const double sum = std::accumulate(objective.weights.begin(), objective.weights.end(), 0.0);
  if (!(sum > 0))
    throw objective_error("no people on the ground of the raster", "areas or pixels with people on it",
                          options.objective);
  objective.scale = 1 / sum;
  return objective;
}

double PlantObjective::gain(std::span<const float> weights_of, std::span<const float> before,
                            std::span<const float> after) const {
  double sum = 0;
  for (size_t p = 0; p < before.size(); ++p)
    if (weights_of[p] > 0 && std::isfinite(before[p]) && std::isfinite(after[p]))
      sum += static_cast<double>(weights_of[p]) *
             (static_cast<double>(before[p]) - static_cast<double>(after[p]));
  return sum * scale;
}

double PlantObjective::value(std::span<const float> values) const {
  double sum = 0;
  for (size_t p = 0; p < values.size(); ++p)
    if (weights[p] > 0 && std::isfinite(values[p]))
      sum += static_cast<double>(weights[p]) * static_cast<double>(values[p]);
  return sum * scale;
}

void PlantScore::clear() {
  std::ranges::fill(sums_, 0.0);
  std::ranges::fill(counts_, 0);
}

void PlantScore::add(std::span<const float> utci) {
  for (size_t p = 0; p < utci.size(); ++p) {
    if (std::isnan(utci[p])) continue;
    ++counts_[p];
    sums_[p] += bound_ ? (utci[p] > *bound_ ? step_h_ : 0.0) : static_cast<double>(utci[p]);
  }
}

std::vector<float> PlantScore::values() const {
  std::vector<float> values(sums_.size());
  for (size_t p = 0; p < values.size(); ++p)
    values[p] = counts_[p] == 0 ? std::numeric_limits<float>::quiet_NaN()
                                : static_cast<float>(bound_ ? sums_[p] : sums_[p] / counts_[p]);
  return values;
}

}  // namespace lockstep::urban
