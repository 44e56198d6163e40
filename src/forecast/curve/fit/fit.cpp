#include "forecast/curve/fit/fit.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace lockstep::forecast {
namespace {

constexpr int kGrid = 14;  // starts along each parameter of the shape
constexpr int kPolishedStarts = 2, kMostIterations = 60;

/// Floor and amplitude of least cost at a shape; the shape's values stay in `values`.
struct LinearPart {
  double floor = 0, amplitude = 0, cost = 0;
  bool floor_free = true;
};

LinearPart solve_linear(const CurveData& d, std::span<const double> values) {
  double w = 0, mean_v = 0, mean_y = 0;
  for (size_t i = 0; i < d.x.size(); ++i) {
    w += d.weight[i];
    mean_v += d.weight[i] * values[i];
    mean_y += d.weight[i] * d.y[i];
  }
  mean_v /= w;
  mean_y /= w;
  double vv = 0, vy = 0, raw_vv = 0, raw_vy = 0;
  for (size_t i = 0; i < d.x.size(); ++i) {
    const double v = values[i] - mean_v;
    vv += d.weight[i] * v * v;
    vy += d.weight[i] * v * (d.y[i] - mean_y);
    raw_vv += d.weight[i] * values[i] * values[i];
    raw_vy += d.weight[i] * values[i] * d.y[i];
  }
  LinearPart part;
  part.amplitude = vv > 1e-28 * raw_vv ? vy / vv : 0;
  part.floor = mean_y - part.amplitude * mean_v;
  if (d.positive && part.floor < 0) part = {0, raw_vv > 0 ? raw_vy / raw_vv : 0, 0, false};
  for (size_t i = 0; i < d.x.size(); ++i) {
    const double r = d.y[i] - part.floor - part.amplitude * values[i];
    part.cost += d.weight[i] * r * r;
  }
  if (!std::isfinite(part.cost)) part.cost = std::numeric_limits<double>::infinity();
  return part;
}

class ShapeSearch {
 public:
  ShapeSearch(CurveFamily family, const CurveData& data)
      : family_(family), data_(data), range_(shape_range(family)), values_(data.x.size()) {}

  LinearPart at(const ShapeParameters& p) {
    for (size_t i = 0; i < values_.size(); ++i) values_[i] = shape_at(family_, data_.x[i], p).value;
    return solve_linear(data_, values_);
  }

  CurveFit polish(ShapeParameters p, int iterations) {
    LinearPart now = at(p);
    double damping = 1e-4;
    for (int it = 0; it < iterations && damping < 1e12; ++it) {
      const Normal n = normal_equations(p, now);
      bool better = false, tiny = false;
      while (!better && damping < 1e12) {
        ShapeParameters trial = step(n, p, damping);
        const LinearPart next = at(trial);
        const double moved = std::abs(trial[0] - p[0]) + std::abs(trial[1] - p[1]);
        if (next.cost < now.cost) {
          tiny = moved < 1e-13;
          p = trial;
          now = next;
          damping = std::max(damping * 0.1, 1e-14);
          better = true;
        } else {
          if (moved < 1e-15) break;
          damping *= 10;
        }
      }
      if (!better || tiny) break;
    }
    return {family_, p, now.floor, now.amplitude, now.cost};
  }

  const ShapeRange& range() const { return range_; }

 private:
  struct Normal {
    double a00 = 0, a01 = 0, a11 = 0, b0 = 0, b1 = 0;
  };

  // The derivatives of the curve by the shape, without what floor and amplitude would answer to them.
  Normal normal_equations(const ShapeParameters& p, const LinearPart& now) const {
    const size_t n = data_.x.size();
    std::vector<double> v(n), d0(n), d1(n), r(n);
    for (size_t i = 0; i < n; ++i) {
      const ShapeValue s = shape_at(family_, data_.x[i], p);
      v[i] = s.value;
      d0[i] = now.amplitude * s.derivative[0];
      d1[i] = now.amplitude * s.derivative[1];
      r[i] = data_.y[i] - now.floor - now.amplitude * s.value;
    }
    if (now.floor_free)
      for (std::vector<double>* column : {&v, &d0, &d1}) {
        double sum = 0, weights = 0;
        for (size_t i = 0; i < n; ++i) {
          sum += data_.weight[i] * (*column)[i];
          weights += data_.weight[i];
        }
        for (double& value : *column) value -= sum / weights;
      }
    double vv = 0;
    for (size_t i = 0; i < n; ++i) vv += data_.weight[i] * v[i] * v[i];
    if (vv > 0)
      for (std::vector<double>* column : {&d0, &d1}) {
        double dot = 0;
        for (size_t i = 0; i < n; ++i) dot += data_.weight[i] * v[i] * (*column)[i];
        for (size_t i = 0; i < n; ++i) (*column)[i] -= dot / vv * v[i];
      }
    Normal normal;
    for (size_t i = 0; i < n; ++i) {
      const double w = data_.weight[i];
      normal.a00 += w * d0[i] * d0[i];
      normal.a01 += w * d0[i] * d1[i];
      normal.a11 += w * d1[i] * d1[i];
      normal.b0 += w * d0[i] * r[i];
      normal.b1 += w * d1[i] * r[i];
    }
    return normal;
  }

  ShapeParameters step(const Normal& n, ShapeParameters p, double damping) const {
    const double tiny = 1e-300;
    const double a00 = n.a00 * (1 + damping) + tiny, a11 = n.a11 * (1 + damping) + tiny;
    if (range_.count == 1) {
      p[0] += std::clamp(n.b0 / a00, -1.0, 1.0);
    } else {
      const double det = a00 * a11 - n.a01 * n.a01;
      if (det > 0) {
        p[0] += std::clamp((n.b0 * a11 - n.b1 * n.a01) / det, -1.0, 1.0);
        p[1] += std::clamp((n.b1 * a00 - n.b0 * n.a01) / det, -1.0, 1.0);
      }
    }
    for (int k = 0; k < range_.count; ++k)
      p[size_t(k)] = std::clamp(p[size_t(k)], range_.low[size_t(k)], range_.high[size_t(k)]);
    return p;
  }

  const CurveFamily family_;
  const CurveData& data_;
  const ShapeRange range_;
  std::vector<double> values_;
};

// A line through the logarithms.
CurveFit fit_recent_power(const CurveData& data) {
  const ShapeRange range = shape_range(CurveFamily::recent_power);
  CurveFit fit{CurveFamily::recent_power, range.low, 0, 0, 0};
  double w = 0, wx = 0, wy = 0, wxx = 0, wxy = 0;
  const double begin = std::min(data.x.back() / std::numbers::e, data.x[data.x.size() / 2]);
  for (size_t i = 0; i < data.x.size(); ++i) {
    if (data.x[i] < begin || data.y[i] <= 0) continue;
    const double x = std::log(data.x[i]), y = std::log(data.y[i]),
                 weight = data.weight[i] * data.y[i] * data.y[i];
    w += weight;
    wx += weight * x;
    wy += weight * y;
    wxx += weight * x * x;
    wxy += weight * x * y;
  }
  const double det = w * wxx - wx * wx;
  const double slope = det > 0 ? (w * wxy - wx * wy) / det : 0;
  const double exponent = std::clamp(-slope, std::exp(range.low[0]), std::exp(range.high[0]));
  fit.shape[0] = std::log(exponent);
  fit.amplitude = w > 0 ? std::exp((wy + exponent * wx) / w) : 0;
  double weights = 0;
  for (size_t i = 0; i < data.x.size(); ++i) {
    if (data.x[i] < begin) continue;
    fit.cost += data.weight[i] * std::pow(data.y[i] - fit(data.x[i]), 2);
    weights += 1;
  }
  fit.cost *= double(data.x.size()) / weights;  // as if it were asked of all
  return fit;
}

}  // namespace

CurveFit fit_family(CurveFamily family, const CurveData& data) {
  if (family == CurveFamily::recent_power) return fit_recent_power(data);
  ShapeSearch search(family, data);
  const ShapeRange& range = search.range();
  std::vector<std::pair<double, ShapeParameters>> starts;
  const auto along = [&](int axis, int k) {
    const auto a = size_t(axis);
    return range.low[a] + (range.high[a] - range.low[a]) * (k + 0.5) / kGrid;
  };
  for (int j = 0; j < (range.count == 2 ? kGrid : 1); ++j)
    for (int k = 0; k < kGrid; ++k) {
      const ShapeParameters p = {along(0, k), range.count == 2 ? along(1, j) : 0.0};
      starts.emplace_back(search.at(p).cost, p);
    }
  std::sort(starts.begin(), starts.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  CurveFit best;
  for (int k = 0; k < kPolishedStarts; ++k) {
    const CurveFit fit = search.polish(starts[size_t(k)].second, kMostIterations);
    if (k == 0 || fit.cost < best.cost) best = fit;
  }
  return best;
}

CurveFit refine_fit(const CurveFit& start, const CurveData& data, int iterations) {
  if (start.family == CurveFamily::recent_power) return fit_recent_power(data);
  return ShapeSearch(start.family, data).polish(start.shape, iterations);
}

}  // namespace lockstep::forecast
