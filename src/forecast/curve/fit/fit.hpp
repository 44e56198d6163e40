// Least squares of one family: the floor and the amplitude are solved for at each shape (variable projection, Golub and
// Pereyra 1973, with Kaufman's derivative), the shape by a grid of starts and Levenberg-Marquardt.
#pragma once

#include <span>
#include <vector>

#include "forecast/curve/fit/families.hpp"

namespace lockstep::forecast {

/// A smoothed curve. x is in (0, 1]: the last step that was seen is 1.
struct CurveData {
  std::vector<double> x, y;
  std::vector<double> weight;  ///< of squared residuals
  bool positive = false;       ///< all losses are: the floor is held at 0 or above
};

struct CurveFit {
  CurveFamily family = CurveFamily::power;
  ShapeParameters shape{};
  double floor = 0, amplitude = 0;
  double cost = 0;  ///< sum of weight * residual^2

  double operator()(double x) const { return floor + amplitude * shape_at(family, x, shape).value; }
};

/// From scratch.
CurveFit fit_family(CurveFamily family, const CurveData& data);
/// From a fit of similar data; `iterations` at most.
CurveFit refine_fit(const CurveFit& start, const CurveData& data, int iterations);

}  // namespace lockstep::forecast
