// The families together: fits, weights, and the deviations of what they say of later steps.
#pragma once

#include <span>
#include <vector>

#include "forecast/curve/fit/fit.hpp"
#include "forecast/curve/fit/smooth.hpp"

namespace lockstep::forecast {

/// The ensemble's prediction of one later step.
struct EnsemblePoint {
  double mean = 0;  ///< of the trend
  /// Of a trend that falls short of the mean and of one that exceeds it: relative where losses are positive, else
  /// absolute.
  double below = 0, above = 0;
  double side(bool lower) const { return lower ? below : above; }
};

class CurveEnsemble {
 public:
  /// Rows of a log; the ensemble keeps no reference.
  CurveEnsemble(std::span<const double> steps, std::span<const double> losses);

  EnsemblePoint at(double step) const;
  double power_law(double step) const;
  const SmoothedCurve& curve() const { return curve_; }
  const CurveNoise& noise() const { return noise_; }
  const std::vector<CurveFit>& fits() const { return fits_; }
  const std::vector<double>& weights() const { return weights_; }
  /// Root mean square of a fit's residuals over the loss.
  double relative_error(size_t member) const;

 private:
  double member_at(const CurveFit& fit, double anchor, double x) const;
  double anchor_of(const CurveFit& fit, double recent_mean) const;
  void weigh(const CurveData& data);
  void resample(const CurveData& data);

  SmoothedCurve curve_;
  CurveNoise noise_;
  std::vector<CurveFit> fits_;  // one per family
  std::vector<double> weights_, anchors_;
  /// Fits to resampled residuals, of a member each.
  struct Replica {
    size_t member;
    CurveFit fit;
    double anchor;
  };
  std::vector<Replica> replicas_;
};

}  // namespace lockstep::forecast
