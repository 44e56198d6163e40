// Strong Wolfe line search along one direction: a host decision on numbers.
#pragma once

#include <functional>

namespace lockstep::optimize {

/// A point of phi(t): the step length, the value and the derivative there.
struct LinePoint {
  double t = 0, value = 0, slope = 0;
};

struct WolfeConditions {
  double decrease = 1e-4;   // value <= phi(0) + decrease t phi'(0)
  double curvature = 0.9;   // |slope| <= curvature |phi'(0)|
  double rounding = 1e-13;  // relative error of a value: within it, the slope alone decides
  int trials = 30;
  double longest = 1e20;
};

struct LineResult {
  LinePoint point;
  bool ok = false;     // both conditions hold, or all that rounding lets one see of them
  bool lower = false;  // else: at least the value fell
  int trials = 0;
};

/// Brackets a step by growing it and closes in by cubic interpolation (Nocedal and Wright, algorithms 3.5 and
/// 3.6; near rounding the approximate conditions of Hager and Zhang). Values that are not finite count as too
/// high. `start.slope` must be negative. The last point that `phi` was requested is the result's, unless the
/// search failed.
LineResult strong_wolfe(const std::function<LinePoint(double)>& phi, const LinePoint& start, double first,
                        const WolfeConditions& conditions = {});

}  // namespace lockstep::optimize
