#include "urban/radiation/step/step_plans.hpp"

#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>

#include "urban/sky/sky_plan.hpp"

namespace lockstep::urban {
namespace {

/// Steps of a stretch, and stretches that are kept: some 50 MB of plans of ten minutes.
constexpr size_t kStretchSteps = 32, kKeptStretches = 16;

City without_grids(const City& city) {
  City bare;
  bare.rows = city.rows;
  bare.cols = city.cols;
  bare.pixel_size_m = city.pixel_size_m;
  bare.lowest = city.lowest;
  bare.highest = city.highest;
  return bare;
}

}  // namespace

StepPlanner::StepPlanner(const City& whole, const RadiationOptions& given, bool with_covers)
    : city(without_grids(whole)),
      options(given),
      covers(with_covers),
      sky(step_sky(given)),
      reach(ground_reach(given, whole.pixel_size_m)) {
  options.view.rays.max_reach_m = longest_ray_m(whole, given);
}

StepPlan StepPlanner::plan(const StepForcing& forcing, bool sides) const {
  StepPlan plan;
  const StepValues values = step_values(forcing, options, patches());
  plan.table = step_table(values, forcing, options, covers, patches(), reach);
  if (sides) plan.sides = side_table(values);
  if (forcing.day())
    plan.sun = plan_ray(city, {forcing.sun_azimuth_deg, forcing.sun_altitude_deg}, options.view.rays);
  return plan;
}

StepPlans::StepPlans(StepPlanner planner, std::span<const WeatherStep> steps, bool sides)
    : planner_(std::move(planner)),
      steps_(steps),
      sides_(sides),
      stretches_((steps.size() + kStretchSteps - 1) / kStretchSteps) {}

std::shared_ptr<const StepPlans::Stretch> StepPlans::make(size_t first) const {
  const auto stretch = std::make_shared<Stretch>(std::min(kStretchSteps, steps_.size() - first));
  // Isolated: a thread that waits here holds the mutex and must not take up work that requests it.
  tbb::this_task_arena::isolate([&] {
    tbb::parallel_for(size_t{0}, stretch->size(), [&](size_t k) {
      for (const StepForcing& part : steps_[first + k].parts())
        (*stretch)[k].push_back(planner_.plan(part, sides_));
    });
  });
  return stretch;
}

std::shared_ptr<const std::vector<StepPlan>> StepPlans::of(size_t step) {
  const size_t number = step / kStretchSteps;
  const std::lock_guard lock(mutex_);
  std::shared_ptr<const Stretch>& stretch = stretches_.at(number);
  if (!stretch) {
    stretch = make(number * kStretchSteps);
    kept_.push_back(number);
  }
  const std::shared_ptr<const std::vector<StepPlan>> plans(stretch, &(*stretch)[step % kStretchSteps]);
  if (kept_.size() > kKeptStretches) {
    stretches_[kept_.front()].reset();
    kept_.pop_front();
  }
  return plans;
}

}  // namespace lockstep::urban
