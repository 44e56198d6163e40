#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "forecast/curve/advice.hpp"
#include "forecast/curve/divergence.hpp"
#include "forecast/curve/fit/ensemble.hpp"
#include "forecast/curve/rolling.hpp"
#include "lockstep/error.hpp"

namespace lockstep::forecast {
namespace {

constexpr size_t kLeastForecastRows = 8;
/// Fits multiply powers of losses: beyond these their weights are no numbers.
constexpr double kLeastLoss = 1e-60, kMostLoss = 1e60;

void check_rows(std::span<const double> steps, std::span<const double> losses, size_t least,
                std::string_view where) {
  if (steps.size() != losses.size())
    throw InputError(fmt::format("{} steps and {} losses", steps.size(), losses.size()), where,
                     "as many of both");
  if (steps.size() < least)
    throw InputError(fmt::format("{} rows", steps.size()), where, fmt::format("at least {}", least));
  for (size_t i = 0; i < steps.size(); ++i) {
    if (!std::isfinite(losses[i]))
      throw InputError(fmt::format("the loss of row {} is {}", i + 1, losses[i]), where, "finite numbers");
    if (const double size = std::abs(losses[i]); size > kMostLoss || (size > 0 && size < kLeastLoss))
      throw InputError(fmt::format("the loss of row {} is {}", i + 1, losses[i]), where,
                       fmt::format("0, or a size from {:g} to {:g}", kLeastLoss, kMostLoss));
    if (!std::isfinite(steps[i]) || steps[i] < 0 || (i > 0 && !(steps[i] > steps[i - 1])))
      throw InputError(fmt::format("the step of row {} is {}", i + 1, steps[i]), where,
                       "increasing steps from 0 on");
  }
}

/// A loss of exactly 0 is one below what its log can hold: half of the least other one, so that the scale stays logarithmic.
std::vector<double> without_zeros(std::span<const double> losses) {
  std::vector<double> all(losses.begin(), losses.end());
  if (std::any_of(all.begin(), all.end(), [](double v) { return v < 0; })) return all;
  double least = 0;
  for (const double v : all)
    if (v > 0) least = least > 0 ? std::min(least, v) : v;
  for (double& v : all) v = v > 0 ? v : 0.5 * least;
  return all;
}

/// For a log that no family describes: its level, and the advice to stop.
CurveForecast without_prediction(double now, double level, std::string text) {
  CurveForecast f;
  f.now = now;
  f.level = level;
  f.advice = {.action = Action::stop, .text = std::move(text), .stop_step = now};
  return f;
}

Curve in_steps(const CurveFit& fit, double shift, double scale) {
  Curve c{.family = fit.family, .shift = shift, .floor = fit.floor, .amplitude = fit.amplitude};
  const ShapeRange range = shape_range(fit.family);
  if (range.exponent_first) {
    c.exponent = std::exp(fit.shape[0]);
    if (range.count == 2) c.rate = std::exp(fit.shape[1]) / scale;
  } else {
    c.rate = std::exp(fit.shape[0]) / scale;
  }
  if (fit.family == CurveFamily::power || fit.family == CurveFamily::recent_power)
    c.amplitude *= std::pow(scale, c.exponent);
  return c;
}

}  // namespace

Curve fit_curve(CurveFamily family, std::span<const double> steps, std::span<const double> losses,
                bool relative) {
  check_rows(steps, losses, 4, "fit_curve");
  const double shift = steps[0] > 0 ? 0 : steps[1] - steps[0], scale = steps.back() + shift;
  CurveData data;
  data.positive = relative && std::all_of(losses.begin(), losses.end(), [](double v) { return v > 0; });
  for (size_t i = 0; i < steps.size(); ++i) {
    data.x.push_back((steps[i] + shift) / scale);
    data.y.push_back(losses[i]);
    data.weight.push_back(data.positive ? 1 / (losses[i] * losses[i]) : 1);
  }
  return in_steps(fit_family(family, data), shift, scale);
}

CurveForecast forecast_curve(std::span<const double> steps, std::span<const double> given,
                             const CurveOptions& options, std::string_view where) {
  check_rows(steps, given, kLeastForecastRows, where);
  const double now = steps.back(), horizon = options.horizon > 0 ? options.horizon : 2 * now;
  if (!(horizon > now) || !std::isfinite(horizon))
    throw InputError(fmt::format("a horizon of {:.12g}", horizon), where,
                     fmt::format("a step after {:.12g}, the last of the log", now));
  if (options.points < 1 || options.points > 100'000)
    throw InputError(fmt::format("{} points", options.points), where, "1 to 100000");
  if (!(options.coverage >= 0.01 && options.coverage <= 0.99))
    throw InputError(fmt::format("a coverage of {}", options.coverage), where, "0.01 to 0.99");

  if (const auto rise = find_rise(steps, given)) {
    CurveForecast f = without_prediction(now, rise->level,
                                         fmt::format("Stop. The loss has risen from {:.4g} at step {:.10g} "
                                                     "to {:.4g} at step {:.10g}: the run diverges or "
                                                     "overfits, and nothing is predicted.",
                                                     rise->least, rise->step, rise->level, now));
    f.rising_since = rise->step;
    return f;
  }
  if (std::all_of(given.begin(), given.end(), [](double v) { return v == 0; }))
    return without_prediction(now, 0, "Stop. All losses are 0.");
  const std::vector<double> losses = without_zeros(given);

  const CurveEnsemble ensemble(steps, losses);
  const SmoothedCurve& c = ensemble.curve();
  const RollingResult rolling = roll_origins(steps, losses, (horizon + c.shift) / c.scale, options.coverage);
  CurveForecast f;
  f.now = now;
  f.level = ensemble.at(now).mean;
  f.noise = ensemble.noise().deviation;
  f.noise_correlation = ensemble.noise().correlation;
  f.widening = rolling.widening;
  f.backtest = rolling.backtest;
  const double z = normal_quantile(options.coverage);
  for (int k = 1; k <= options.points; ++k) {
    const double step = now + (horizon - now) * k / options.points;
    const EnsemblePoint p = ensemble.at(step);
    const double below = p.below * f.widening.below, above = p.above * f.widening.above;
    const auto off = [&](double deviations) {
      return c.positive ? p.mean * std::exp(z * deviations) : p.mean + z * deviations;
    };
    f.prediction.push_back({step, p.mean, off(-std::hypot(below, f.noise)), off(std::hypot(above, f.noise)),
                            off(-below), off(above)});
  }
  for (size_t m = 0; m < ensemble.fits().size(); ++m)
    f.members.push_back(
        {in_steps(ensemble.fits()[m], c.shift, c.scale), ensemble.weights()[m], ensemble.relative_error(m)});
  std::sort(f.members.begin(), f.members.end(),
            [](const CurveMember& a, const CurveMember& b) { return a.weight > b.weight; });
  f.advice = advise(f, [&](double step) { return ensemble.at(step).mean; }, options);
  return f;
}

}  // namespace lockstep::forecast
