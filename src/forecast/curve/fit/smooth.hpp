// From a log to the smoothed curve that is fitted: means over bins of equal width in log(step).
#pragma once

#include <span>
#include <vector>

namespace lockstep::forecast {

/// Rows of a log up to some step, in x = (step + shift) / (last step + shift).
struct SmoothedCurve {
  std::vector<double> x, y;     ///< of the bins
  std::vector<int> rows;        ///< in each bin
  bool positive = false;        ///< all losses are
  double shift = 0, scale = 1;  ///< x = (step + shift) / scale
  double last_value = 0;        ///< of the log
  double recent_mean = 0;       ///< of its last tenth
  double recent_x = 1;          ///< mean x of that tenth
  int recent_rows = 1;
};

/// Steps rise from 0. The shift is the first distance of two steps where the first step is 0, else 0.
SmoothedCurve smooth_curve(std::span<const double> steps, std::span<const double> losses);

/// Scatter of single values about a smooth trend, from the second half of the rows.
struct CurveNoise {
  double deviation = 0;    ///< relative to the trend where losses are positive, else absolute
  double correlation = 0;  ///< of neighbours, 0 … 0.95
};
/// `trend` has a value per row.
CurveNoise noise_about(std::span<const double> losses, std::span<const double> trend, bool relative);

/// Variance of a mean of n neighbouring rows over the variance of one: those of an autoregression of order one.
double mean_variance(int n, double correlation);

}  // namespace lockstep::forecast
