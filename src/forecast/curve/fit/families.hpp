// The shapes of learning curves with their derivatives.
#pragma once

#include <array>

#include "lockstep/forecast/curve.hpp"

namespace lockstep::forecast {

/// Logarithms of the parameters that are not linear: exponent, then rate, as far as the family has them.
using ShapeParameters = std::array<double, 2>;

struct ShapeRange {
  int count = 1;               ///< of parameters
  bool exponent_first = true;  ///< else the first is the rate
  ShapeParameters low{}, high{};
};
ShapeRange shape_range(CurveFamily family);

/// shape(x) for x > 0, and its derivatives by the logarithms of the parameters.
struct ShapeValue {
  double value = 0;
  ShapeParameters derivative{};
};
ShapeValue shape_at(CurveFamily family, double x, const ShapeParameters& logarithms);

}  // namespace lockstep::forecast
