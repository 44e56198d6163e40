// The measure that trees are to lower: hours of heat on the ground, or what people feel.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/urban/plant.hpp"
#include "urban/series/inputs/inputs.hpp"

namespace lockstep::urban {

struct PlantObjective {
  std::optional<float> bound;  ///< hours of UTCI above it, else the mean UTCI
  std::vector<float> weights;  ///< by pixel: m² of ground, or people
  double scale = 1;            ///< of sums of weight · value
  std::string text, unit;

  /// Σ weight · (before − after) over pixels of both that are not missing.
  double gain(std::span<const float> weights_of, std::span<const float> before,
              std::span<const float> after) const;
  double value(std::span<const float> values) const;
};

/// Throws InputError for another text, and for people of whom none is on the ground of the raster.
PlantObjective read_objective(const PlantOptions& options, const SeriesInputs& inputs);

/// The value of each pixel from UTCI, step by step.
class PlantScore {
 public:
  PlantScore(const PlantObjective& objective, double step_h, size_t pixels)
      : bound_(objective.bound), step_h_(step_h), sums_(pixels), counts_(pixels) {}
  void add(std::span<const float> utci);
  void clear();
  std::vector<float> values() const;

 private:
  std::optional<float> bound_;
  double step_h_;
  std::vector<double> sums_;
  std::vector<int32_t> counts_;
};

}  // namespace lockstep::urban
