// Flows that several tests share.
#pragma once

#include <cmath>
#include <functional>
#include <vector>

#include "flow/reference.hpp"

namespace lockstep::flow::test {

/// f(x, y) on the grid's points.
inline std::vector<double> sampled(const BoxGrid& grid, const std::function<double(double, double)>& f) {
  std::vector<double> w;
  for (int64_t j = 0; j < grid.ny; ++j)
    for (int64_t i = 0; i < grid.nx; ++i) w.push_back(f(double(i) * grid.dx(), double(j) * grid.dy()));
  return w;
}

inline double relative_l2(std::span<const double> a, std::span<const double> b) {
  double difference = 0, size = 0;
  for (size_t k = 0; k < a.size(); ++k) {
    difference += (a[k] - b[k]) * (a[k] - b[k]);
    size += b[k] * b[k];
  }
  return std::sqrt(difference / size);
}

/// A smooth field of many modes with a nonlinear term.
inline std::vector<double> smooth(const BoxGrid& grid) {
  const double a = 2 * std::numbers::pi / grid.lx, b = 2 * std::numbers::pi / grid.ly;
  return sampled(grid, [=](double x, double y) {
    return std::sin(a * x) * std::cos(2 * b * y) + 0.7 * std::cos(2 * a * x + b * y) +
           0.3 * std::sin(3 * a * x - 2 * b * y + 1);
  });
}

inline reference::Flow started(const Model& model, const Stepping& stepping, std::span<const double> w) {
  reference::Flow flow(model, stepping);
  flow.set_vorticity(w);
  return flow;
}
inline void run(reference::Flow& flow, int64_t steps) {
  for (int64_t s = 0; s < steps; ++s) flow.step();
}

}  // namespace lockstep::flow::test
