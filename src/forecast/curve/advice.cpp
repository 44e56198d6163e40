#include "forecast/curve/advice.hpp"

#include <fmt/format.h>

#include <cmath>

namespace lockstep::forecast {
namespace {

constexpr double kWorthwhile = 0.01;  // of the loss, over the steps up to the horizon
constexpr int kSearch = 400;

/// First step in (now, horizon] at which `reached` holds; nothing where it does not up to there.
template <class Reached>
std::optional<double> first_step(double now, double horizon, Reached reached) {
  double before = now;
  for (int k = 1; k <= kSearch; ++k) {
    // Evenly in the logarithm of the distance, from a millionth of it: early changes are the quickest.
    const double step = now + (horizon - now) * std::pow(10.0, -6.0 * (1 - double(k) / kSearch));
    if (reached(step)) {
      double low = before, high = step;
      for (int i = 0; i < 50; ++i) {
        const double middle = 0.5 * (low + high);
        (reached(middle) ? high : low) = middle;
      }
      return high;
    }
    before = step;
  }
  return {};
}

std::string chance_of(const CurveForecast& f, double target) {
  const CurvePoint& end = f.prediction.back();
  if (end.trend_high <= target) return "the whole band lies below it by then";
  if (end.trend_low > target) return "the whole band stays above it";
  return fmt::format("the band there is {:.4g} to {:.4g}", end.trend_low, end.trend_high);
}

}  // namespace

double least_gain(const CurveForecast& f, const CurveOptions& options) {
  if (options.least_gain) return *options.least_gain;
  return kWorthwhile * std::abs(f.level) / (f.prediction.back().step - f.now);
}

Advice advise(const CurveForecast& f, const std::function<double(double)>& trend,
              const CurveOptions& options) {
  Advice a;
  const double horizon = f.prediction.back().step, end = f.prediction.back().mean;
  a.expected_gain = f.level - end;
  const double threshold = least_gain(f, options);
  const double span = 1e-3 * (horizon - f.now);
  a.stop_step = first_step(
      f.now, horizon, [&](double step) { return (trend(step) - trend(step + span)) / span < threshold; });
  const double gain_now = (f.level - trend(f.now + span)) / span;
  std::string reason = fmt::format(
      "The trend is {:.4g} at step {:.10g} and is expected to be {:.4g} ({:.4g} to {:.4g}) at step {:.10g}: ",
      f.level, f.now, end, f.prediction.back().trend_low, f.prediction.back().trend_high, horizon);
  if (options.target) {
    const double target = *options.target;
    if (f.level <= target)
      a.steps_to_target = 0;
    else if (const auto step = first_step(f.now, horizon, [&](double s) { return trend(s) <= target; }))
      a.steps_to_target = *step - f.now;
    if (a.steps_to_target && *a.steps_to_target == 0) {
      a.action = Action::stop;
      a.text = fmt::format("Stop. {}the target {:.4g} is reached.", reason, target);
    } else if (a.steps_to_target) {
      a.text = fmt::format("Continue. {}the target {:.4g} needs about {:.4g} further steps; {}.", reason,
                           target, std::ceil(*a.steps_to_target), chance_of(f, target));
    } else {
      a.action = f.prediction.back().trend_low > target ? Action::stop : Action::go_on;
      a.text =
          fmt::format("{}. {}the trend does not reach the target {:.4g} up to there; {}.",
                      a.action == Action::stop ? "Stop" : "Continue", reason, target, chance_of(f, target));
    }
    return a;
  }
  const std::string rate =
      fmt::format("it falls by {:.3g} a step now, and the threshold is {:.3g}", gain_now, threshold);
  if (gain_now < threshold) {
    a.action = Action::stop;
    a.stop_step = f.now;
    a.text = fmt::format("Stop. {}{}.", reason, rate);
  } else if (a.stop_step) {
    a.text = fmt::format(
        "Continue for about {:.4g} steps. {}{}; it falls more slowly than that from step {:.10g}.",
        std::ceil(*a.stop_step - f.now), reason, rate, std::round(*a.stop_step));
  } else {
    a.text = fmt::format("Continue. {}{}; it stays above that up to the horizon.", reason, rate);
  }
  return a;
}

}  // namespace lockstep::forecast
