// Whether a training is worth continuing with.
#pragma once

#include <functional>

#include "lockstep/forecast/curve.hpp"

namespace lockstep::forecast {

/// The fall of the trend a step that is worth continuing for: as given, else by the loss and the horizon.
double least_gain(const CurveForecast& forecast, const CurveOptions& options);

/// `trend` is the loss by the step; everything but the advice is already in the forecast.
Advice advise(const CurveForecast& forecast, const std::function<double(double)>& trend,
              const CurveOptions& options);

}  // namespace lockstep::forecast
