#include "forecast/curve/fit/families.hpp"

#include <cmath>
#include <numbers>

#include "lockstep/error.hpp"

namespace lockstep::forecast {
namespace {

// Of x relative to the last step that was seen: a rate of 1e-2 is a curve that has hardly begun.
constexpr double kLowRate = 1e-2, kHighRate = 1e4;
constexpr double kLowestRecent = 1e-6;  // what does not fall is flat
constexpr double kLowExponent = 0.02, kHighExponent = 6;
constexpr double kLowStretch = 0.1, kHighStretch = 5;

}  // namespace

std::string_view name(CurveFamily family) {
  switch (family) {
    case CurveFamily::power: return "power";
    case CurveFamily::shifted_power: return "shifted-power";
    case CurveFamily::exponential: return "exponential";
    case CurveFamily::weibull: return "weibull";
    case CurveFamily::log_power: return "log-power";
    case CurveFamily::logarithmic: return "logarithmic";
    case CurveFamily::recent_power: return "recent-power";
  }
  throw InternalError("unknown family", "forecast curve", "a family of curves");
}

ShapeRange shape_range(CurveFamily family) {
  const auto logs = [](double a, double b = 1) { return ShapeParameters{std::log(a), std::log(b)}; };
  switch (family) {
    case CurveFamily::power: return {1, true, logs(kLowExponent), logs(kHighExponent)};
    case CurveFamily::recent_power: return {1, true, logs(kLowestRecent), logs(kHighExponent)};
    case CurveFamily::shifted_power:
      return {2, true, logs(kLowExponent, kLowRate), logs(kHighExponent, kHighRate)};
    case CurveFamily::weibull:
    case CurveFamily::log_power: return {2, true, logs(kLowStretch, kLowRate), logs(kHighStretch, kHighRate)};
    case CurveFamily::exponential: return {1, false, logs(kLowRate), logs(kHighRate)};
    case CurveFamily::logarithmic: return {1, false, logs(kLowRate), logs(kHighRate * 100)};
  }
  throw InternalError("unknown family", "forecast curve", "a family of curves");
}

ShapeValue shape_at(CurveFamily family, double x, const ShapeParameters& logarithms) {
  const double first = std::exp(logarithms[0]), second = std::exp(logarithms[1]);
  switch (family) {
    case CurveFamily::power:
    case CurveFamily::recent_power: {
      const double v = std::pow(x, -first);
      return {v, {-first * std::log(x) * v, 0}};
    }
    case CurveFamily::shifted_power: {
      const double u = 1 + second * x, v = std::pow(u, -first);
      return {v, {-first * std::log(u) * v, -first * second * x / u * v}};
    }
    case CurveFamily::exponential: {
      const double v = std::exp(-first * x);
      return {v, {-first * x * v, 0}};
    }
    case CurveFamily::weibull: {
      const double u = std::pow(second * x, first), v = std::exp(-u);
      return {v, {-v * u * first * std::log(second * x), -v * u * first}};
    }
    case CurveFamily::log_power: {
      const double u = std::pow(second * x, first), v = 1 / (1 + u);
      return {v, {-v * v * u * first * std::log(second * x), -v * v * u * first}};
    }
    case CurveFamily::logarithmic: {
      const double u = std::numbers::e + first * x, v = 1 / std::log(u);
      return {v, {-v * v * first * x / u, 0}};
    }
  }
  throw InternalError("unknown family", "forecast curve", "a family of curves");
}

double Curve::operator()(double step) const {
  const ShapeRange range = shape_range(family);
  const ShapeParameters p = {std::log(range.exponent_first ? exponent : rate),
                             range.count == 2 ? std::log(rate) : 0.0};
  return floor + amplitude * shape_at(family, step + shift, p).value;
}

}  // namespace lockstep::forecast
