// The shipped equations at exact solutions: residuals vanish with the cell size at the order of the discretisation.
// A wrong sign, factor or index of any term leaves a residual that stays.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numbers>

#include "lockstep/error.hpp"
#include "lockstep/pde/examples.hpp"

namespace lockstep::pde {
namespace {

constexpr double kPi = std::numbers::pi;

/// Value of a component of a field at a point and time.
using Solution = std::function<double(const std::string& field, int component, double x, double y, double t)>;

struct Exact {
  std::string example;
  int order;                                 // of the whole discretisation, by its dt and h
  std::map<std::string, double> parameters;  // instead of the example's
  Solution solution;
};

/// Root of the mean square of all residuals, three cells away from the edges.
double residual(const Exact& exact, int64_t cells, const Device& device) {
  const Example e = make_example(exact.example, cells);
  Inputs in;
  in.parameters = e.parameters;
  for (const auto& [name, value] : exact.parameters) in.parameters.at(name) = value;
  const int64_t nx = e.mesh.cells[0], ny = e.mesh.cells[1];
  for (const auto& [name, advance] : e.fields)
    for (int level = -1; level <= 1; ++level) {
      std::vector<double> values;
      const int components = e.system.components(name);
      for (int c = 0; c < components; ++c)
        for (int64_t y = 0; y < ny; ++y)
          for (int64_t x = 0; x < nx; ++x)
            values.push_back(exact.solution(name, c, (double(x) + 0.5) * e.mesh.spacing[0],
                                            (double(y) + 0.5) * e.mesh.spacing[1], level * e.mesh.dt));
      const Shape shape = components > 1 ? Shape{components, ny, nx} : Shape{ny, nx};
      in.fields[name][size_t(level + 1)] = device.upload(std::span<const double>(values), shape);
    }
  const auto r = device.download<double>(Loss(e.system, e.mesh).residuals(device, in));
  double sum = 0;
  int64_t count = 0;
  for (size_t i = 0; i < r.size(); ++i) {
    const int64_t x = int64_t(i) % nx, y = int64_t(i) / nx % ny;
    if (x < 3 || y < 3 || x >= nx - 3 || y >= ny - 3) continue;
    sum += r[i] * r[i];
    ++count;
  }
  return std::sqrt(sum / double(count));
}

/// A simple wave of shallow water along x: c = sqrt(h) is carried at 3c - 2 by itself (g = 1, still water of depth 1).
double simple_wave(double x, double t) {
  const auto start = [](double s) { return 1 + 0.05 * std::sin(2 * kPi * s); };
  double c = start(x);
  for (int k = 0; k < 60; ++k) c = start(x - (3 * c - 2) * t);
  return c;
}

/// Steady flow behind a grid of cylinders (Kovasznay 1948), which the equations of cavity and channel have inside.
Solution kovasznay(double nu) {
  const double re = 1 / nu, rate = re / 2 - std::sqrt(re * re / 4 + 4 * kPi * kPi);
  return [=](const std::string& f, int c, double x, double y, double) {
    const double fade = std::exp(rate * x);
    if (f == "p") return -fade * fade / 2;
    return c == 0 ? 1 - fade * std::cos(2 * kPi * y) : rate / (2 * kPi) * fade * std::sin(2 * kPi * y);
  };
}

std::vector<Exact> solutions() {
  const auto decay = [](double rate, double t) { return std::exp(-rate * t); };
  return {
      {"heat",
       2,
       {},
       [=](const std::string&, int, double x, double y, double t) {
         return std::cos(kPi * x) * std::cos(2 * kPi * y) * decay(5 * kPi * kPi, t);
       }},
      {"advection_diffusion",
       1,
       {{"nu", 0.01}},
       [=](const std::string& f, int c, double x, double y, double t) {
         // The dye follows the streamlines of the vortex and fades.
         if (f == "c") return std::sin(kPi * x) * std::sin(kPi * y) * decay(2 * kPi * kPi * 0.01, t);
         return c == 0 ? std::sin(kPi * x) * std::cos(kPi * y) : -std::cos(kPi * x) * std::sin(kPi * y);
       }},
      {"burgers",
       1,
       {{"nu", 0.02}},
       [](const std::string&, int c, double x, double y, double t) {
         const double wave = 0.25 / (1 + std::exp((4 * y - 4 * x - t) / (32 * 0.02)));
         return c == 0 ? 0.75 - wave : 0.75 + wave;
       }},
      {"wave",
       2,
       {},
       [](const std::string&, int, double x, double y, double t) {
         return std::sin(kPi * x) * std::sin(2 * kPi * y) * std::cos(std::sqrt(5.0) * kPi * t + 0.4);
       }},
      {"navier_stokes",
       1,
       {},
       [=](const std::string& f, int c, double x, double y, double t) {
         const double a = 2 * kPi * x, b = 2 * kPi * y, fade = decay(8 * kPi * kPi * 0.005, t);
         if (f == "p") return 0.25 * (std::cos(2 * a) + std::cos(2 * b)) * fade * fade;
         return fade * (c == 0 ? std::sin(a) * std::cos(b) : -std::cos(a) * std::sin(b));
       }},
      {"maxwell",
       2,
       {},
       [](const std::string& f, int c, double x, double y, double t) {
         const double kx = 2 * kPi, ky = 4 * kPi, omega = std::hypot(kx, ky);
         const double e = std::cos(kx * x + ky * y - omega * t);
         return f == "e" ? e : c == 0 ? ky / omega * e : -kx / omega * e;
       }},
      {"gray_scott",
       1,
       {},
       [=](const std::string& f, int, double x, double y, double t) {
         // Without the second substance the first relaxes to 1 while it spreads. Lengths are cells here.
         const double k = 0.02;
         return f == "b" ? 0.0 : 1 + 0.3 * std::cos(k * (x + y)) * decay(0.037 + 0.16 * 2 * k * k, t);
       }},
      {"shallow_water",
       2,
       {},
       [](const std::string& f, int c, double x, double, double t) {
         const double speed = simple_wave(x, t);
         return f == "h" ? speed * speed : c == 0 ? 2 * (speed - 1) : 0.0;
       }},
      {"cavity", 2, {}, kovasznay(0.01)},
      // Nearly even along x: the cells left out at the edges are a thinner strip of the finer grid.
      {"channel", 2, {{"nu", 0.002}}, kovasznay(0.002)},
  };
}

TEST(Exact, ResidualsVanishWithTheCellSize) {
  const Device device = Device::open("interp");
  for (const Exact& exact : solutions()) {
    if (exact.example == "gray_scott") continue;  // its cell size is fixed
    const double coarse = residual(exact, 24, device), fine = residual(exact, 48, device);
    const double order = std::log2(coarse / fine);
    EXPECT_GT(order, exact.order - 0.25) << exact.example << ": " << coarse << " then " << fine;
  }
}

TEST(Exact, GrayScottRelaxes) {
  // dt = 1 and h = 1: first order in time of a rate of 0.037 leaves 0.3 * 0.037^2 / 2 at most.
  for (const Exact& exact : solutions())
    if (exact.example == "gray_scott") { EXPECT_LT(residual(exact, 32, Device::open("interp")), 2.2e-4); }
}

TEST(Exact, EveryShippedEquationHasASolution) {
  std::vector<std::string> covered;
  for (const Exact& exact : solutions()) covered.push_back(exact.example);
  for (const std::string& name : example_names())
    EXPECT_NE(std::find(covered.begin(), covered.end(), name), covered.end()) << name;
}

/// A shear flow that a force keeps up against viscosity: u = sin y, f = nu sin y.
TEST(Exact, ForcedShear) {
  const Device device = Device::open("interp");
  const auto rms = [&](int64_t n, double viscosity) {
    TransportOptions terms;
    terms.sigma_transport = false, terms.forcing = true, terms.viscosity = viscosity;
    Mesh mesh;
    mesh.cells = {4, n, 4};
    mesh.spacing = {1, 2 * kPi / double(n), 1};
    std::vector<double> u(size_t(3 * mesh.count()), 0.0), force(u.size(), 0.0);
    for (int64_t i = 0; i < mesh.count(); ++i) {
      u[size_t(i)] = std::sin(2 * kPi * double(i / 4 % n) / double(n));
      force[size_t(i)] = 0.3 * u[size_t(i)];
    }
    const Shape shape{3, 4, n, 4};
    Inputs in;
    for (auto& level : in.fields["u"]) level = device.upload(std::span<const double>(u), shape);
    in.fields["force"][1] = device.upload(std::span<const double>(force), shape);
    double sum = 0;
    const auto r = device.download<double>(Loss(transport(3, terms), mesh).residuals(device, in));
    for (double v : r) sum += v * v;
    return std::sqrt(sum / double(r.size()));
  };
  EXPECT_GT(std::log2(rms(16, 0.3) / rms(32, 0.3)), 1.9);
  EXPECT_GT(rms(32, -0.3), 0.2);
}

}  // namespace
}  // namespace lockstep::pde
