// Weights of the fourth-order exponential Runge-Kutta method (Cox and Matthews 2002), by the mean over a
// circle in the complex plane (Kassam and Trefethen 2005), which is exact to rounding for small z too.
#pragma once

#include <cmath>
#include <complex>
#include <numbers>

namespace lockstep::flow {

struct EtdWeights {
  std::complex<double> whole, half;          // exp(z), exp(z / 2)
  std::complex<double> stage;                // (exp(z / 2) - 1) / z
  std::complex<double> first, middle, last;  // of n0, of na + nb (twice), of nc
};

inline EtdWeights etd_weights(std::complex<double> z) {
  constexpr int kPoints = 64;
  EtdWeights w{std::exp(z), std::exp(z / 2.0), 0, 0, 0, 0};
  for (int j = 0; j < kPoints; ++j) {
    const auto r = z + std::polar(1.0, 2 * std::numbers::pi * (j + 0.5) / kPoints);
    const auto e = std::exp(r), r3 = r * r * r;
    w.stage += (std::exp(r / 2.0) - 1.0) / r;
    w.first += (-4.0 - r + e * (4.0 - 3.0 * r + r * r)) / r3;
    w.middle += (2.0 + r + e * (-2.0 + r)) / r3;
    w.last += (-4.0 - 3.0 * r - r * r + e * (4.0 - r)) / r3;
  }
  for (auto* part : {&w.stage, &w.first, &w.middle, &w.last}) *part /= double(kPoints);
  return w;
}

}  // namespace lockstep::flow
