// Synthetic learning curves for experiments with known truth.
#include <cmath>
#include <random>

#include "lockstep/forecast/curve.hpp"
#include "lockstep/forecast/sweep.hpp"

namespace lockstep::forecast {
namespace {

// Distributions of the standard library differ between implementations; these do not.
double uniform_draw(std::mt19937_64& random, double low, double high) {
  return low + (high - low) * double(random() >> 11) * 0x1p-53;
}

double normal_draw(std::mt19937_64& random) {
  double sum = -6;
  for (int k = 0; k < 12; ++k) sum += uniform_draw(random, 0, 1);
  return sum;
}

}  // namespace

Sweep synthetic_sweep(int runs, uint64_t seed) {
  constexpr int kRows = 150;
  constexpr double kStep = 10, kBudget = kRows * kStep;
  std::mt19937_64 random(seed);
  Sweep sweep;
  for (int k = 1; k <= kRows; ++k) sweep.steps.push_back(k * kStep);
  for (int r = 0; r < runs; ++r) {
    Curve c;
    c.family = kCurveFamilies[r % 6];
    c.floor = uniform_draw(random, 0.1, 1.2);
    c.amplitude = uniform_draw(random, 0.5, 2.5);
    c.rate = std::pow(10.0, uniform_draw(random, 0.3, 2.2)) / kBudget;
    c.exponent = uniform_draw(random, 0.4, 1.3);
    if (c.family == CurveFamily::power) c.amplitude *= std::pow(kStep, c.exponent);
    const double deviation = std::pow(10.0, uniform_draw(random, -2.2, -1)),
                 rho = uniform_draw(random, 0, 0.6);
    double noise = normal_draw(random);
    std::vector<double> losses;
    for (const double step : sweep.steps) {
      losses.push_back(c(step) * std::exp(deviation * noise));
      noise = rho * noise + std::sqrt(1 - rho * rho) * normal_draw(random);
    }
    sweep.losses.push_back(std::move(losses));
  }
  return sweep;
}

}  // namespace lockstep::forecast
