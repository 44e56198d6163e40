// Learning curves: where the loss of a running training will be, with bands, and whether to go on.
//
//   const forecast::CurveForecast f = forecast::forecast_curve(steps, losses, {.horizon = 20'000});
//   f.prediction.back().mean, f.prediction.back().low, f.advice.text
//
// An ensemble of parametric families is fitted to the smoothed curve, and the forecaster tests itself on the run's own
// past. Method, and what it reaches on runs that it never saw: docs/forecast.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::forecast {

/// Shapes of learning curves: loss = floor + amplitude * shape(x), x = step + shift.
enum class CurveFamily : uint8_t {
  power,          ///< x^-exponent
  shifted_power,  ///< (1 + rate x)^-exponent
  exponential,    ///< exp(-rate x)
  weibull,        ///< exp(-(rate x)^exponent), also named after Janoschek
  log_power,      ///< 1 / (1 + (rate x)^exponent), also Morgan-Mercer-Flodin
  logarithmic,    ///< 1 / ln(e + rate x)
  recent_power,  ///< x^-exponent without a floor, through the last e-fold of the steps alone; positive losses
};
inline constexpr CurveFamily kCurveFamilies[] = {
    CurveFamily::power,     CurveFamily::shifted_power, CurveFamily::exponential, CurveFamily::weibull,
    CurveFamily::log_power, CurveFamily::logarithmic,   CurveFamily::recent_power};
std::string_view name(CurveFamily family);

/// A curve of one family. A parameter that the family does not have is NaN.
struct Curve {
  CurveFamily family = CurveFamily::power;
  double shift = 0;  ///< of the steps; positive where the first step is 0
  double floor = 0, amplitude = 0;
  double rate = std::numeric_limits<double>::quiet_NaN();
  double exponent = std::numeric_limits<double>::quiet_NaN();

  double operator()(double step) const;
};

struct CurveOptions {
  double horizon = 0;            ///< last step of the prediction; 0: twice the last step of the log
  int points = 50;               ///< steps of the prediction, evenly spaced up to the horizon
  double coverage = 0.8;         ///< share of later values that the bands are to hold, 0.01 … 0.99
  std::optional<double> target;  ///< a loss to be reached
  /// Training is worth its while as long as the trend falls by this much a step. Default: until what the remaining
  /// steps up to the horizon gain is less than a hundredth of the loss.
  std::optional<double> least_gain;
};

/// `low` … `high` holds a later logged value, `trend_low` … `trend_high` the curve without the noise of single values.
struct CurvePoint {
  double step = 0, mean = 0, low = 0, high = 0, trend_low = 0, trend_high = 0;
};

struct CurveMember {
  Curve curve;
  double weight = 0;          ///< in the ensemble; the weights add up to 1
  double relative_error = 0;  ///< root mean square of the smoothed curve's residuals over the loss
};

/// Predictors on the run's own past: fitted to the beginning, compared with what came then.
struct BacktestRow {
  std::string predictor;  ///< "ensemble", "power law", "last value", "recent mean"
  double mean_error = 0;  ///< mean |prediction - smoothed loss| / loss
  double coverage = 0;    ///< share of later values in the band; NaN for predictors without
};
struct Backtest {
  std::vector<double> origins;    ///< last steps that the fits had seen
  std::vector<BacktestRow> rows;  ///< empty where the log is too short to be split
};

enum class Action : uint8_t { go_on, stop };
struct Advice {
  Action action = Action::go_on;
  std::string text;          ///< with reasons, one or two sentences
  double expected_gain = 0;  ///< of the trend from now to the horizon
  std::optional<double>
      steps_to_target;  ///< further steps until the trend reaches it; nothing: not up to the horizon
  std::optional<double> stop_step;  ///< where the trend's gain a step falls under the threshold
};

/// Factors of the trend's deviations by the run's own back-tests.
struct Widening {
  double below = 1, above = 1;
};

struct CurveForecast {
  std::vector<CurvePoint> prediction;
  std::vector<CurveMember> members;  ///< by weight
  double now = 0, level = 0;         ///< last step of the log and the trend there
  double noise = 0;  ///< standard deviation of logged values about the trend, over the trend (positive
                     ///< losses) or absolute
  double noise_correlation = 0;  ///< of neighbouring rows
  Widening widening;
  Backtest backtest;
  Advice advice;
  /// The step of the least loss of a run whose loss has risen since beyond its noise: it diverges or overfits. Nothing
  /// is predicted then; `prediction`, `members` and the back-test are empty, and the advice is to stop.
  std::optional<double> rising_since;
};

/// Least-squares fit of one family to a curve: all rows of equal relative weight where `relative`, else absolute.
/// Throws InputError for fewer than 4 rows and for steps that do not rise.
Curve fit_curve(CurveFamily family, std::span<const double> steps, std::span<const double> losses,
                bool relative);

/// Forecasts. Steps rise, from 0; both are finite and as many. Throws InputError for fewer than 8 rows, a horizon that
/// is not behind the last step, and unusable options; `where` names the log in them.
CurveForecast forecast_curve(std::span<const double> steps, std::span<const double> losses,
                             const CurveOptions& options = {}, std::string_view where = "learning curve");

/// The forecast as the program's JSON has it.
std::string to_json(const CurveForecast& forecast);
/// Draws log, prediction and bands into a PNG file.
void draw_forecast(const std::filesystem::path& file, std::span<const double> steps,
                   std::span<const double> losses, const CurveForecast& forecast, const std::string& title);

}  // namespace lockstep::forecast
