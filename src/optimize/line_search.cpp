#include "optimize/line_search.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lockstep::optimize {
namespace {

/// Least point of the cubic through both ends; the middle where there is none well inside of them.
double interpolate(const LinePoint& a, const LinePoint& b) {
  const double low = std::min(a.t, b.t), high = std::max(a.t, b.t), width = high - low;
  double t = 0.5 * (a.t + b.t);
  if (std::isfinite(a.value) && std::isfinite(b.value) && std::isfinite(a.slope) && std::isfinite(b.slope)) {
    const double d1 = a.slope + b.slope - 3 * (a.value - b.value) / (a.t - b.t);
    const double inside = d1 * d1 - a.slope * b.slope;
    if (inside >= 0) {
      const double d2 = std::copysign(std::sqrt(inside), b.t - a.t);
      const double least = b.t - (b.t - a.t) * ((b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2));
      if (std::isfinite(least)) t = least;
    }
  }
  return std::clamp(t, low + 0.1 * width, high - 0.1 * width);
}

class Search {
 public:
  Search(const std::function<LinePoint(double)>& phi, const LinePoint& start,
         const WolfeConditions& conditions)
      : phi_(phi), start_(start), c_(conditions) {}

  LineResult run(double first) {
    LinePoint before = start_;
    double t = std::min(first, c_.longest);
    while (result_.trials < c_.trials) {
      const LinePoint now = ask(t);
      if (good(now)) return done(now);
      if (too_high(now) || (result_.trials > 1 && now.value >= before.value)) return zoom(before, now);
      if (now.slope >= 0) return zoom(now, before);
      if (t >= c_.longest) return failed(now);
      // Extrapolated by the slopes where they rise, at least doubled.
      double next = 2 * t;
      if (now.slope > before.slope) {
        const double secant = t + (t - before.t) * now.slope / (before.slope - now.slope);
        next = std::clamp(secant, 2 * t, 10 * t);
      }
      before = now;
      t = std::min(next, c_.longest);
    }
    return failed(before);
  }

 private:
  LinePoint ask(double t) {
    ++result_.trials;
    LinePoint p = phi_(t);
    p.t = t;
    if (!std::isfinite(p.value)) p.value = p.slope = std::numeric_limits<double>::infinity();
    return last_ = p;
  }
  bool too_high(const LinePoint& p) const {
    return !(p.value <= start_.value + c_.decrease * p.t * start_.slope);
  }
  bool good(const LinePoint& p) const {
    if (!too_high(p)) return std::abs(p.slope) <= -c_.curvature * start_.slope;
    const bool within = std::abs(p.value - start_.value) <= c_.rounding * std::abs(start_.value);
    return within && p.slope <= (2 * c_.decrease - 1) * start_.slope &&
           p.slope >= c_.curvature * start_.slope;
  }
  /// `low` has the least value of those that fell enough; a minimum lies between the ends.
  LineResult zoom(LinePoint low, LinePoint high) {
    while (result_.trials < c_.trials) {
      const double t = interpolate(low, high);
      if (t == low.t || t == high.t) break;
      const LinePoint now = ask(t);
      if (good(now)) return done(now);
      if (too_high(now) || now.value >= low.value) {
        high = now;
      } else {
        if (now.slope * (high.t - low.t) >= 0) high = low;
        low = now;
      }
    }
    return failed(low);
  }
  LineResult done(const LinePoint& p) {
    result_.point = p;
    result_.ok = result_.lower = true;
    return result_;
  }
  LineResult failed(const LinePoint& best) {
    result_.point = best;
    result_.lower = best.t > 0 && best.value < start_.value;
    if (result_.lower && last_.t != best.t) ask(best.t);
    return result_;
  }

  const std::function<LinePoint(double)>& phi_;
  LinePoint start_, last_;
  WolfeConditions c_;
  LineResult result_;
};

}  // namespace

LineResult strong_wolfe(const std::function<LinePoint(double)>& phi, const LinePoint& start, double first,
                        const WolfeConditions& conditions) {
  return Search(phi, start, conditions).run(first);
}

}  // namespace lockstep::optimize
