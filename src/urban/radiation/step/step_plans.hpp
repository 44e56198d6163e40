// A step as the model takes it of weather and sun: the same for all pixels, and found once for all tiles.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "urban/radiation/sky_luminance.hpp"
#include "urban/radiation/step/step_table.hpp"
#include "urban/rays/ray_table.hpp"
#include "urban/weather/forcing.hpp"

namespace lockstep::urban {

struct StepPlan {
  std::vector<float> table;  ///< step_table
  std::vector<float> sides;  ///< side_table, where vertical planes are requested
  Ray sun;                   ///< no steps at night
};

/// Makes plans of a city, without its pixels.
struct StepPlanner {
  City city;                 ///< without its grids
  RadiationOptions options;  ///< whose rays end at longest_ray_m()
  bool covers = false;       ///< there is a land cover
  StepSky sky;
  GroundReach reach;

  StepPlanner() = default;
  StepPlanner(const City& whole, const RadiationOptions& given, bool with_covers);
  /// The sky that tables have, or null for an isotropic one.
  const StepSky* patches() const { return has_patches(options.sky) ? &sky : nullptr; }
  StepPlan plan(const StepForcing& forcing, bool sides) const;
};

/// Plans of a series, made by all cores for a stretch of steps at a time. The latest stretches are kept for other tiles.
class StepPlans {
 public:
  /// `steps` outlive it.
  StepPlans(StepPlanner planner, std::span<const WeatherStep> steps, bool sides);
  /// One for each part of a step.
  std::shared_ptr<const std::vector<StepPlan>> of(size_t step);

 private:
  using Stretch = std::vector<std::vector<StepPlan>>;
  std::shared_ptr<const Stretch> make(size_t first) const;

  const StepPlanner planner_;
  const std::span<const WeatherStep> steps_;
  const bool sides_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<const Stretch>> stretches_;
  std::deque<size_t> kept_;  // the oldest first
};

}  // namespace lockstep::urban
