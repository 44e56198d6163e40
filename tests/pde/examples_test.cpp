// Shipped equations: gradients, and solutions found by them.
#include "lockstep/pde/examples.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <random>

#include "lockstep/error.hpp"

namespace lockstep::pde {
namespace {

TEST(Examples, AllAreThere) {
  const auto names = example_names();
  for (const char* wanted : {"heat", "advection_diffusion", "burgers", "wave", "navier_stokes", "maxwell",
                             "gray_scott", "shallow_water", "cavity", "channel"})
    EXPECT_NE(std::find(names.begin(), names.end(), wanted), names.end()) << wanted;
  EXPECT_THROW(make_example("weather"), InputError);
  EXPECT_THROW(make_example("heat", 3), InputError);
}

// <c, J v> = <J^T c, v> for every equation, on its own boundary.
TEST(Examples, GradientsAreTransposes) {
  const Device device = Device::open("interp");
  for (const std::string& name : example_names()) {
    const Example e = make_example(name, 9);
    const Loss loss(e.system, e.mesh);
    Inputs in, along;
    in.parameters = e.parameters;
    std::mt19937 random(4);
    std::uniform_real_distribution<double> range(-1, 1);
    const auto noise = [&](int64_t n) {
      std::vector<double> v(static_cast<size_t>(n));
      for (double& x : v) x = range(random);
      return v;
    };
    for (const auto& [f, advance] : e.fields)
      for (size_t l = 0; l < 3; ++l) {
        const int c = e.system.components(f);
        const Shape shape = c == 1 ? Shape{9, 9} : Shape{c, 9, 9};
        in.fields[f][l] = device.upload(std::span<const double>(noise(81 * c)), shape);
        along.fields[f][l] = device.upload(std::span<const double>(noise(81 * c)), shape);
      }
    const Buffer jv = loss.jvp(device, in, along.fields);
    const auto c = noise(jv.elements());
    const auto forward = device.download<double>(jv);
    double left = 0, right = 0, size = 0;
    for (size_t i = 0; i < c.size(); ++i) left += c[i] * forward[i], size += std::abs(c[i] * forward[i]);
    for (const auto& [field, levels] :
         loss.vjp(device, in, device.upload(std::span<const double>(c), jv.shape())))
      for (size_t l = 0; l < 3; ++l) {
        if (!levels[l]) continue;
        const auto g = device.download<double>(levels[l]),
                   v = device.download<double>(along.fields.at(field)[l]);
        for (size_t i = 0; i < g.size(); ++i) right += g[i] * v[i];
      }
    EXPECT_NEAR(left, right, 1e-13 * size) << name;
  }
}

TEST(Examples, HeatTrainedIsHeatStepped) {
  const Device device = Device::open("interp");
  const Example e = make_example("heat", 12);
  TrainOptions options;
  options.levels = 5;
  options.windows = 2;
  options.tolerance = 1e-22;
  options.iterations = 200;
  const TrainResult r = train(device, e, options);
  // Explicit steps of the same scheme, insulated walls.
  std::vector<double> t;
  for (int y = 0; y < 12; ++y)
    for (int x = 0; x < 12; ++x) t.push_back(e.start("t", 0, (x + 0.5) / 12, (y + 0.5) / 12, 0.5));
  const double k = e.mesh.dt / (e.mesh.spacing[0] * e.mesh.spacing[0]);
  for (int step = 0; step < 2 * 3; ++step) {
    const auto before = t;
    const auto at = [&](int x, int y) {
      return before[size_t(std::clamp(y, 0, 11) * 12 + std::clamp(x, 0, 11))];
    };
    for (int y = 0; y < 12; ++y)
      for (int x = 0; x < 12; ++x)
        t[size_t(y * 12 + x)] +=
            k * (at(x + 1, y) + at(x - 1, y) + at(x, y + 1) + at(x, y - 1) - 4 * at(x, y));
  }
  for (size_t i = 0; i < t.size(); ++i) EXPECT_NEAR(r.fields.at("t")[i], t[i], 1e-9);
}

TEST(Examples, EveryWindowConverges) {
  const Device device = Device::open("interp");
  for (const std::string& name : example_names()) {
    const Example example = make_example(name, 10);
    if (example.steady()) continue;  // the next tests
    TrainOptions options;
    options.levels = 5;
    options.windows = 2;
    const TrainResult r = train(device, example, options);
    // On a grid this coarse differences over 2 h hardly tie neighbouring pressures: the next test has a finer one.
    const bool coarse = name == "navier_stokes";
    EXPECT_TRUE(r.converged == 2 || coarse) << name;
    for (size_t w = 0; w < 2; ++w)
      EXPECT_LE(r.losses_last[w], (coarse ? 1e-5 : 1e-6) * r.losses_first[w]) << name;
    for (const auto& [field, values] : r.fields)
      for (double v : values) ASSERT_TRUE(std::isfinite(v)) << name << " " << field;
  }
  TrainOptions few;
  few.windows = 1;
  few.iterations = 2;
  EXPECT_EQ(train(device, make_example("wave", 12), few).converged, 0);
}

// Vortices of Taylor and Green: u falls by exp(-2 nu k^2 t), its pressure by the square of that.
TEST(Examples, ThePressureFollowsItsFlow) {
  const Device device = Device::open("cpu,interp");
  const Example e = make_example("navier_stokes", 24);
  TrainOptions options;
  options.windows = 8;
  options.iterations = 1000;
  const TrainResult r = train(device, e, options);
  EXPECT_EQ(r.converged, 8);
  const double k = 2 * std::numbers::pi;
  const double u = std::exp(-2 * e.parameters.at("nu") * k * k * e.mesh.dt * 8 * 5);
  double most_u = 0, most_p = 0, start_u = 0, start_p = 0;
  for (int y = 0; y < 24; ++y)
    for (int x = 0; x < 24; ++x) {
      const size_t at = size_t(y * 24 + x);
      most_u = std::max(most_u, std::abs(r.fields.at("u")[at]));
      most_p = std::max(most_p, std::abs(r.fields.at("p")[at]));
      start_u = std::max(start_u, std::abs(e.start("u", 0, (x + 0.5) / 24, (y + 0.5) / 24, 0.5)));
      start_p = std::max(start_p, std::abs(e.start("p", 0, (x + 0.5) / 24, (y + 0.5) / 24, 0.5)));
    }
  EXPECT_NEAR(most_u / start_u, u, 0.01);
  // The discrete pressure of these cells is 3 % more than the continuous one it starts as: differences over 2 h.
  const double differences = (k * 2 / 24) / std::sin(k * 2 / 24);
  EXPECT_NEAR(most_p / start_p, u * u * differences, 0.02);
}

/// Between the cells' centres of a column or row of n numbers over the unit interval.
double between(const std::vector<double>& centres, double place) {
  const double x = place * double(centres.size()) - 0.5;
  const size_t below = size_t(x);
  return centres[below] + (x - double(below)) * (centres[below + 1] - centres[below]);
}

// Ghia, Ghia and Shin, Journal of Computational Physics 48 (1982), table I: u along the vertical line through the
// cavity's centre, of 129 x 129 nodes.
TEST(Examples, TheCavityHasThePublishedProfile) {
  const std::vector<double> y{0.0547, 0.1016, 0.1719, 0.2813, 0.4531, 0.5, 0.6172, 0.7344, 0.8516, 0.9531};
  const std::vector<double> at_100{-0.03717, -0.06434, -0.10150, -0.15662, -0.21090,
                                   -0.20581, -0.13641, 0.00332,  0.23151,  0.68717},
      at_400{-0.08186, -0.14612, -0.24299, -0.32726, -0.17119, -0.11477, 0.02135, 0.16256, 0.29093, 0.55892};
  const Device device = Device::open("cpu,interp");
  const int64_t n = 48;
  for (const auto& [nu, published, bound] :
       {std::tuple(0.01, at_100, 0.01), std::tuple(0.0025, at_400, 0.03)}) {
    Example e = make_example("cavity", n);
    e.parameters["nu"] = nu;
    const TrainResult r = train(device, e);
    EXPECT_EQ(r.converged, r.windows) << nu;
    std::vector<double> centre;
    for (int64_t j = 0; j < n; ++j)
      centre.push_back(
          0.5 * (r.fields.at("u")[size_t(j * n + n / 2)] + r.fields.at("u")[size_t(j * n + n / 2 - 1)]));
    for (size_t k = 0; k < y.size(); ++k)
      EXPECT_NEAR(between(centre, y[k]), published[k], bound) << nu << " " << y[k];
  }
}

// Far from the inflow u = 6 y (1 - y) and p falls by 12 nu over a height.
TEST(Examples, TheChannelEndsInAParabola) {
  const Device device = Device::open("cpu,interp");
  const int64_t n = 40;
  const Example e = make_example("channel", n);
  const TrainResult r = train(device, e);
  EXPECT_EQ(r.converged, r.windows);
  const auto &u = r.fields.at("u"), &p = r.fields.at("p");
  for (int64_t j = 0; j < n; ++j) {
    const double y = (double(j) + 0.5) / double(n);
    EXPECT_NEAR(u[size_t(j * n + n - 1)], 6 * y * (1 - y), 0.02) << y;
  }
  const size_t middle = size_t(n / 2 * n);
  const double per_height = (p[middle + size_t(n) * 7 / 10] - p[middle + size_t(n) * 9 / 10]) / (4 * 0.2);
  EXPECT_NEAR(per_height, 12 * e.parameters.at("nu"), 0.02);
  TrainOptions levels;
  levels.levels = 8;
  EXPECT_THROW(train(device, e, levels), InputError);
}

}  // namespace
}  // namespace lockstep::pde
