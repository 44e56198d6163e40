// Learning curves: forecasts the loss of a running training, with bands, and advises whether to continue.
//
//   const forecast::CurveForecast f = forecast::forecast_curve(steps, losses, {.horizon = 20'000});
//   f.prediction.back().mean, f.prediction.back().low, f.advice.text
//
// An ensemble of parametric families is fitted to the smoothed curve and back-tested on the earlier part of the run.
// docs/forecast.md describes the method and its results on unseen runs.
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
  weibull,        ///< exp(-(rate x)^exponent), also called Janoschek
  log_power,      ///< 1 / (1 + (rate x)^exponent), also called Morgan-Mercer-Flodin
  logarithmic,    ///< 1 / ln(e + rate x)
  recent_power,  ///< x^-exponent without a floor, fitted to the last e-fold of the steps; positive losses only
};
inline constexpr CurveFamily kCurveFamilies[] = {
    CurveFamily::power,     CurveFamily::shifted_power, CurveFamily::exponential, CurveFamily::weibull,
    CurveFamily::log_power, CurveFamily::logarithmic,   CurveFamily::recent_power};
std::string_view name(CurveFamily family);

/// A curve of one family. rate and exponent are NaN if the family does not have them.
struct Curve {
  CurveFamily family = CurveFamily::power;
  double shift = 0;  ///< added to the steps; positive if the first step is 0
  double floor = 0, amplitude = 0;
  double rate = std::numeric_limits<double>::quiet_NaN();
  double exponent = std::numeric_limits<double>::quiet_NaN();

  double operator()(double step) const;
};

struct CurveOptions {
  double horizon = 0;            ///< last step of the prediction; 0: twice the last step of the log
  int points = 50;               ///< number of predicted points, evenly spaced up to the horizon
  double coverage = 0.8;         ///< target share of later values inside the bands, 0.01 … 0.99
  std::optional<double> target;  ///< target loss
  /// Training is worthwhile while the trend decreases by at least this much per step. Default: a decrease by one
  /// hundredth of the loss over the remaining steps up to the horizon.
  std::optional<double> least_gain;
};

/// A predicted point. `low` … `high` is the band of a logged value, `trend_low` … `trend_high` that of the trend.
struct CurvePoint {
  double step = 0, mean = 0, low = 0, high = 0, trend_low = 0, trend_high = 0;
};

struct CurveMember {
  Curve curve;
  double weight = 0;  ///< in the ensemble; the weights add up to 1
  double relative_error =
      0;  ///< root mean square of the residuals of the smoothed curve, relative to the loss
};

/// The score of a predictor that was fitted to the beginning of the run and compared with its later part.
struct BacktestRow {
  std::string predictor;  ///< "ensemble", "power law", "last value", "recent mean"
  double mean_error = 0;  ///< mean |prediction - smoothed loss| / loss
  double coverage = 0;    ///< share of later values in the band; NaN for predictors without one
};
struct Backtest {
  std::vector<double> origins;    ///< the last step that each fit used
  std::vector<BacktestRow> rows;  ///< empty if the log is too short to be split
};

enum class Action : uint8_t { go_on, stop };
struct Advice {
  Action action = Action::go_on;
  std::string text;          ///< one or two sentences with the reasons
  double expected_gain = 0;  ///< decrease of the trend from now to the horizon
  /// Further steps until the trend reaches the target; none: not before the horizon.
  std::optional<double> steps_to_target;
  std::optional<double> stop_step;  ///< step at which the trend's decrease per step falls below the threshold
};

/// Factors by which the bands of the trend are widened, according to the back-tests.
struct Widening {
  double below = 1, above = 1;
};

struct CurveForecast {
  std::vector<CurvePoint> prediction;
  std::vector<CurveMember> members;  ///< in descending order of weight
  double now = 0, level = 0;         ///< last step of the log, and the trend there
  /// Standard deviation of logged values about the trend: relative to the trend if all losses are positive, else absolute.
  double noise = 0;
  double noise_correlation = 0;  ///< between adjacent rows
  Widening widening;
  Backtest backtest;
  Advice advice;
  /// Set if the loss has risen beyond its noise since its minimum, so that the run diverges or overfits: the step of the
  /// minimum. `prediction`, `members` and the back-test are then empty, and the advice is to stop.
  std::optional<double> rising_since;
};

/// Least-squares fit of one family to a curve, with relative residuals if `relative` is true, else absolute ones. Throws
/// InputError for fewer than 4 rows and for steps that do not increase.
Curve fit_curve(CurveFamily family, std::span<const double> steps, std::span<const double> losses,
                bool relative);

/// Forecasts a curve. Steps must increase and not be negative; steps and losses must be finite and equally many. Throws
/// InputError otherwise, for fewer than 8 rows, a horizon that is not after the last step, and invalid options. `where`
/// names the log in messages.
CurveForecast forecast_curve(std::span<const double> steps, std::span<const double> losses,
                             const CurveOptions& options = {}, std::string_view where = "learning curve");

/// The forecast as in the program's JSON.
std::string to_json(const CurveForecast& forecast);
/// Draws log, prediction and bands to a PNG file.
void draw_forecast(const std::filesystem::path& file, std::span<const double> steps,
                   std::span<const double> losses, const CurveForecast& forecast, const std::string& title);

}  // namespace lockstep::forecast
