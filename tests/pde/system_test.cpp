// Systems written by a user: operators, derivatives of nonlinear residuals, misuse.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <random>

#include "lockstep/error.hpp"
#include "lockstep/pde.hpp"

namespace lockstep::pde {
namespace {

std::vector<double> noise(size_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> range(-1, 1);
  std::vector<double> v(n);
  for (double& x : v) x = range(random);
  return v;
}

/// Loss and its gradients on the interpreter, for central differences and dot products.
struct Problem {
  Device device = Device::open("interp");
  System system;
  Mesh mesh;
  std::map<std::string, std::array<std::vector<double>, 3>> data;
  std::map<std::string, int> components;
  std::map<std::string, double> parameters;

  explicit Problem(const System& s, const Mesh& m) : system(s), mesh(m) {}
  void field(const std::string& name, int count, uint32_t seed) {
    components[name] = count;
    for (uint32_t l = 0; l < 3; ++l) data[name][l] = noise(size_t(mesh.count() * count), seed * 3 + l);
  }
  Inputs inputs(const std::map<std::string, std::array<std::vector<double>, 3>>& values) const {
    Inputs in;
    in.parameters = parameters;
    for (const auto& [name, levels] : values)
      for (size_t l = 0; l < 3; ++l) {
        const int c = components.at(name);
        const Shape shape = c == 1 ? Shape{mesh.cells[2], mesh.cells[1], mesh.cells[0]}
                                   : Shape{c, mesh.cells[2], mesh.cells[1], mesh.cells[0]};
        in.fields[name][l] = device.upload(std::span<const double>(levels[l]), shape);
      }
    return in;
  }
  double loss(const std::map<std::string, std::array<std::vector<double>, 3>>& values) const {
    LossOptions options;
    options.gradients = Gradients::none;
    const BoundLoss b = Loss(system, mesh).bind(device, inputs(values), options);
    b.run();
    return b.loss();
  }
  /// The directional derivative by the gradients against a central difference of fourth order.
  void expect_gradient(double tolerance = 1e-8) const {
    const Loss l(system, mesh);
    const BoundLoss b = l.bind(device, inputs(data));
    b.run();
    auto direction = data;
    uint32_t seed = 99;
    for (auto& [name, levels] : direction)
      for (auto& level : levels) level = noise(level.size(), seed++);
    double slope = 0;
    for (const auto& [name, levels] : direction)
      for (int level = -1; level <= 1; ++level)
        if (const Buffer g = b.gradient(name, level)) {
          const auto values = device.download<double>(g);
          for (size_t i = 0; i < values.size(); ++i) slope += values[i] * levels[size_t(level + 1)][i];
        }
    const auto moved = [&](double step) {
      auto values = data;
      for (auto& [name, levels] : values)
        for (size_t l2 = 0; l2 < 3; ++l2)
          for (size_t i = 0; i < levels[l2].size(); ++i) levels[l2][i] += step * direction.at(name)[l2][i];
      return loss(values);
    };
    constexpr double h = 2e-3;  // sixth order
    const double numeric =
        (45 * (moved(h) - moved(-h)) - 9 * (moved(2 * h) - moved(-2 * h)) + (moved(3 * h) - moved(-3 * h))) /
        (60 * h);
    EXPECT_NEAR(slope, numeric, tolerance * std::max(1.0, std::abs(numeric)));
  }
};

Mesh small(std::array<int64_t, 3> cells, const char* boundary, int order = 2) {
  Mesh m;
  m.cells = cells;
  m.spacing = {0.5, 0.4, 0.6};
  m.dt = 0.3;
  m.boundary = BoundaryConditions::parse(boundary);
  m.order = order;
  return m;
}

TEST(System, IsFreedWithItsLastUser) {
  std::weak_ptr<const Plan> plan;
  {
    System system(1);
    const Field u = system.field("u");
    system.residual("flat", system.d2(u, 0));
    plan = system.plan();
    EXPECT_FALSE(plan.expired());
  }
  EXPECT_TRUE(plan.expired());
}

TEST(System, BurgersInOneDimension) {
  System s(1);
  const Field u = s.field("u");
  const Value nu = s.parameter("nu");
  s.residual("burgers", s.dt_forward(u) + s.at(u) * s.dx(u) - nu * s.laplacian(u));
  Problem p(s, small({13, 1, 1}, "x=dirichlet_face:0.5"));
  p.field("u", 1, 1);
  p.parameters["nu"] = 0.2;
  p.expect_gradient();
  p.mesh.boundary = BoundaryConditions::parse("periodic");
  p.mesh.order = 4;
  p.expect_gradient();
}

TEST(System, WaveAndUpwindInTwoDimensions) {
  System s(2);
  const Field w = s.field("w"), c = s.vector("c");
  s.residual("wave", s.dtt(w) - s.laplacian(w));
  s.residual("advection", s.dt(w) + s.advect(c, w, 0, true), 0.7);
  Problem p(s, small({7, 9, 1}, "x=clamp,y=free_slip"));
  p.field("w", 1, 2);
  p.field("c", 2, 3);
  // No velocity may change its sign within the difference: max and min have kinks at 0.
  for (auto& level : p.data["c"])
    for (double& v : level) v += v > 0 ? 0.5 : -0.5;
  p.expect_gradient();
}

// The way back depends on differences: |grad u|^2, and products of differences along different axes.
TEST(System, ResidualsNonlinearInDifferences) {
  for (const char* boundary : {"periodic", "x=clamp,y=one_sided2,z=no_slip"}) {
    System s(3);
    const Field u = s.field("u");
    const Value g2 = square(s.dx(u)) + square(s.dy(u)) + square(s.dz(u));
    s.residual("eikonal", sqrt(g2 + 0.3) - 1);
    s.residual("mixed", s.dx(u) * s.dz(u) + sin(s.d2(u, 1)) * s.at(u));
    Problem p(s, small({6, 7, 5}, boundary));
    p.field("u", 1, 5);
    p.expect_gradient();
  }
}

TEST(System, FieldsWithTheirOwnBoundary) {
  System s(2);
  const Field a = s.field("a", 1, BoundaryConditions::parse("x=reflect_odd,y=clamp")), b = s.field("b");
  s.residual("r", s.dx(a) * s.at(b) + s.dy(b) + s.dx(b) * s.at(a));
  Problem p(s, small({6, 8, 1}, "x=one_sided1,y=ghost:2"));
  p.field("a", 1, 6);
  p.field("b", 1, 7);
  p.expect_gradient();
}

TEST(System, LevelsWithDifferencesAtAllTimes) {
  System s(1);
  const Field u = s.field("u");
  // Crank-Nicolson: differences at level +1 and level 0.
  s.residual("cn", s.dt_forward(u) - 0.5 * (s.d2(u, 0, 0, 1) + s.d2(u, 0, 0, 0)) + s.d(u, 0, 0, -1));
  Problem p(s, small({9, 1, 1}, "x=node_mirror"));
  p.field("u", 1, 8);
  p.expect_gradient();
}

TEST(System, RefusesMisuse) {
  EXPECT_THROW(System(0), InputError);
  EXPECT_THROW(System(4), InputError);
  System s(2), other(2);
  const Field u = s.field("u");
  EXPECT_THROW(s.field("u"), InputError);
  EXPECT_THROW(s.field("w", 0), InputError);
  EXPECT_THROW(s.d(u, 2), InputError);
  EXPECT_THROW(s.at(u, 1), InputError);
  EXPECT_THROW(s.at(u, 0, 2), InputError);
  EXPECT_THROW(s.at(Field{7, 1}), InputError);
  EXPECT_THROW(s.div(u), InputError);
  EXPECT_THROW(s.advect(u, u), InputError);
  EXPECT_THROW(s.residual("r", other.at(other.field("v"))), InputError);
  EXPECT_THROW(s.residual("r", s.at(u), -1), InputError);
  EXPECT_THROW(s.residual("r", s.at(u), NAN), InputError);
  EXPECT_THROW(s.plan(), InputError);  // nothing to minimise
  s.residual("r", s.at(u));
  EXPECT_NO_THROW(s.plan());
  EXPECT_THROW(s.field("late"), InputError);
  EXPECT_THROW(s.residual("late", s.at(u)), InputError);
}

}  // namespace
}  // namespace lockstep::pde
