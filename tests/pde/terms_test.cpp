// Every term of the built-in loss against plain loops that share nothing with the engine: own ghost cells by rule,
// own differences, complex steps for the gradients.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>

#include "pde/problems.hpp"

namespace lockstep::pde {
namespace {

using testing::mesh_of;
using Complex = std::complex<double>;

double real(double v) { return v; }
double real(const Complex& v) { return v.real(); }

/// Fields of three levels and the plain residuals of order 2.
template <class T>
struct Plain {
  Mesh mesh;
  TransportOptions terms;
  reference::State<T> s;
  std::vector<T> p;
  std::array<std::vector<T>, 3> force;

  /// A field at a cell, also one beyond the edges. `component`: of a vector field, or -1 for scalars.
  T at(const std::vector<T>& f, std::array<int64_t, 3> i, int component) const {
    T sign(1);
    for (int axis = 0; axis < 3; ++axis) {
      int64_t& c = i[size_t(axis)];
      const int64_t n = mesh.cells[size_t(axis)];
      if (c >= 0 && c < n) continue;
      const Rule rule = mesh.boundary.sides[size_t(axis)][c < 0 ? 0 : 1].rule;
      const int64_t mirrored = c < 0 ? -1 - c : 2 * n - 1 - c;
      switch (rule) {
        case Rule::periodic: c = (c + n) % n; continue;
        case Rule::clamp:
        case Rule::reflect_even: break;
        case Rule::reflect_odd: sign = -sign; break;
        case Rule::free_slip:  // no flow through the wall, all else runs along it
          if (component == axis) sign = -sign;
          break;
        case Rule::no_slip:  // the flow is at rest at the wall
          if (component >= 0) sign = -sign;
          break;
        default: ADD_FAILURE() << "a rule without a plain form";
      }
      c = mirrored;
    }
    return sign * f[size_t((i[2] * mesh.cells[1] + i[1]) * mesh.cells[0] + i[0])];
  }
  T step(const std::vector<T>& f, std::array<int64_t, 3> i, int component, int axis, int by) const {
    i[size_t(axis)] += by;
    return at(f, i, component);
  }
  T slope(const std::vector<T>& f, std::array<int64_t, 3> i, int component, int axis) const {
    return (step(f, i, component, axis, 1) - step(f, i, component, axis, -1)) /
           T(2 * mesh.spacing[size_t(axis)]);
  }
  T curvature(const std::vector<T>& f, std::array<int64_t, 3> i, int component, int axis) const {
    const double h = mesh.spacing[size_t(axis)];
    return (step(f, i, component, axis, 1) - T(2) * at(f, i, component) + step(f, i, component, axis, -1)) /
           T(h * h);
  }
  /// (u . grad) f
  T advection(const std::vector<T>& f, std::array<int64_t, 3> i, int component) const {
    T sum{};
    for (int a = 0; a < 3; ++a) {
      const T v = at(s.u[1][size_t(a)], i, a);
      if (!terms.upwind) {
        sum += v * slope(f, i, component, a);
        continue;
      }
      // Information comes from where the flow comes from.
      const int from = real(v) > 0 ? -1 : 1;
      sum +=
          v * T(from) * (step(f, i, component, a, from) - at(f, i, component)) / T(mesh.spacing[size_t(a)]);
    }
    return sum;
  }
  T divergence(std::array<int64_t, 3> i) const {
    T sum{};
    for (int a = 0; a < 3; ++a) sum += slope(s.u[1][size_t(a)], i, a, a);
    return sum;
  }

  /// In the order in which transport() names them.
  std::vector<std::vector<T>> residuals() const {
    std::vector<std::vector<T>> list;
    const auto add = [&](auto at_cell) {
      std::vector<T> r;
      for (int64_t z = 0; z < mesh.cells[2]; ++z)
        for (int64_t y = 0; y < mesh.cells[1]; ++y)
          for (int64_t x = 0; x < mesh.cells[0]; ++x) r.push_back(at_cell(std::array<int64_t, 3>{x, y, z}));
      list.push_back(std::move(r));
    };
    const T twice_dt(2 * mesh.dt);
    if (terms.sigma_transport)
      add([&](std::array<int64_t, 3> i) {
        T r = (at(s.sigma[2], i, -1) - at(s.sigma[0], i, -1)) / twice_dt + advection(s.sigma[1], i, -1);
        return terms.sigma_divergence ? r + at(s.sigma[1], i, -1) * divergence(i) : r;
      });
    for (int c = 0; terms.momentum && c < 3; ++c)
      add([&](std::array<int64_t, 3> i) {
        const size_t k = size_t(c);
        T r = (at(s.u[2][k], i, c) - at(s.u[0][k], i, c)) / twice_dt + advection(s.u[1][k], i, c);
        for (int a = 0; a < 3; ++a) r -= T(terms.viscosity) * curvature(s.u[1][k], i, c, a);
        if (terms.pressure) r += slope(p, i, -1, c);
        if (terms.forcing) r -= at(force[k], i, c);
        return r;
      });
    if (terms.weight_divergence != 0) add([&](std::array<int64_t, 3> i) { return divergence(i); });
    for (int c = 0; terms.weight_speed != 0 && c < 3; ++c)
      add([&](std::array<int64_t, 3> i) { return at(s.u[1][size_t(c)], i, c); });
    return list;
  }
  T loss() const {
    std::vector<double> weights;
    if (terms.sigma_transport) weights.push_back(terms.weight_sigma);
    if (terms.momentum) weights.insert(weights.end(), 3, terms.weight_u);
    if (terms.weight_divergence != 0) weights.push_back(terms.weight_divergence);
    if (terms.weight_speed != 0) weights.insert(weights.end(), 3, terms.weight_speed);
    T sum{};
    const auto list = residuals();
    for (size_t k = 0; k < list.size(); ++k)
      for (const T& r : list[k]) sum += T(weights[k] / double(mesh.count())) * r * r;
    return sum;
  }
};

Plain<double> random_plain(const std::string& boundary, const TransportOptions& terms) {
  Plain<double> f{mesh_of({6, 5, 4}, boundary), terms, {}, {}, {}};
  f.s = testing::random_state<double>(f.mesh, 23);
  std::mt19937 random(31);
  f.p = testing::random_array<double>(random, size_t(f.mesh.count()));
  for (auto& component : f.force) component = testing::random_array<double>(random, size_t(f.mesh.count()));
  return f;
}

Inputs inputs_of(const Device& device, const Plain<double>& f) {
  Inputs in = testing::upload(device, f.mesh, f.s);
  const Shape shape{f.mesh.cells[2], f.mesh.cells[1], f.mesh.cells[0]},
      vectors{3, f.mesh.cells[2], f.mesh.cells[1], f.mesh.cells[0]};
  if (!f.terms.sigma_transport) in.fields.erase("sigma");
  if (f.terms.pressure) in.fields["p"][1] = device.upload(std::span<const double>(f.p), shape);
  if (f.terms.forcing) {
    const auto force = testing::joined(f.force);
    in.fields["force"][1] = device.upload(std::span<const double>(force), vectors);
  }
  return in;
}

std::vector<TransportOptions> variants() {
  std::vector<TransportOptions> list(8);
  list[1].viscosity = 0.37;
  list[2].upwind = true;
  list[3].pressure = true;
  list[4].forcing = true;
  list[5].weight_divergence = 0.8;
  list[6].weight_speed = 0.6;
  TransportOptions& all = list[7];
  all.viscosity = 0.21, all.upwind = all.pressure = all.forcing = true;
  all.weight_divergence = 0.5, all.weight_speed = 0.25, all.weight_sigma = 1.3, all.weight_u = 0.6;
  TransportOptions bare;
  bare.sigma_divergence = false;
  list.push_back(bare);
  bare.sigma_transport = false, bare.viscosity = 1.5;
  list.push_back(bare);
  return list;
}

const char* const kBoundaries[] = {"periodic", "clamp",     "reflect_odd",
                                   "no_slip",  "free_slip", "x=free_slip,y-=no_slip,y+=clamp,z=reflect_odd"};

TEST(Terms, ResidualsEqualPlainLoops) {
  for (const Device& device : testing::devices())
    for (const char* boundary : kBoundaries)
      for (const TransportOptions& terms : variants()) {
        const Plain<double> f = random_plain(boundary, terms);
        const auto got = device.download<double>(
            Loss(transport(3, terms), f.mesh).residuals(device, inputs_of(device, f)));
        const auto want = f.residuals();
        const size_t n = size_t(f.mesh.count());
        ASSERT_EQ(got.size(), want.size() * n);
        for (size_t k = 0; k < want.size(); ++k)
          for (size_t i = 0; i < n; ++i)
            ASSERT_NEAR(got[k * n + i], want[k][i], 1e-11) << boundary << " residual " << k << " cell " << i;
      }
}

TEST(Terms, GradientsEqualComplexStepsOfPlainLoops) {
  const Device device = testing::devices().back();
  for (const char* boundary : kBoundaries)
    for (const TransportOptions& terms : variants()) {
      const Plain<double> f = random_plain(boundary, terms);
      const BoundLoss bound = Loss(transport(3, terms), f.mesh).bind(device, inputs_of(device, f));
      bound.run();
      EXPECT_NEAR(bound.loss(), f.loss(), 1e-12 * f.loss()) << boundary;
      Plain<Complex> moved{f.mesh, terms, testing::convert<Complex>(f.s), {f.p.begin(), f.p.end()}, {}};
      for (size_t c = 0; c < 3; ++c) moved.force[c].assign(f.force[c].begin(), f.force[c].end());
      const auto check = [&](const char* field, int level, std::vector<Complex>& values, size_t component) {
        const Buffer gradient = bound.gradient(field, level);
        if (!gradient) return;
        const auto got = device.download<double>(gradient);
        for (size_t cell : {size_t(0), size_t(37), values.size() - 1}) {
          values[cell] += Complex(0, 1e-30);
          EXPECT_NEAR(got[component * values.size() + cell], moved.loss().imag() / 1e-30, 1e-11)
              << boundary << " d " << field << " level " << level << " component " << component;
          values[cell] = values[cell].real();
        }
      };
      for (int level = -1; level <= 1; ++level) {
        check("sigma", level, moved.s.sigma[size_t(level + 1)], 0);
        for (size_t c = 0; c < 3; ++c) check("u", level, moved.s.u[size_t(level + 1)][c], c);
      }
      check("p", 0, moved.p, 0);
      for (size_t c = 0; c < 3; ++c) check("force", 0, moved.force[c], c);
    }
}

TEST(Terms, UpwindTakesTheSideThatTheFlowComesFrom) {
  // sigma = max(x, 0) around a kink: flow to the right sees the flat side, flow to the left the ramp.
  for (const double velocity : {1.0, -1.0}) {
    Plain<double> f{mesh_of({9, 1, 1}, "x=clamp"), {}, {}, {}, {}};
    f.mesh.spacing[0] = 0.5;
    f.terms.upwind = true, f.terms.sigma_divergence = f.terms.momentum = false;
    for (size_t l = 0; l < 3; ++l)
      for (int i = 0; i < 9; ++i) {
        f.s.sigma[l].push_back(std::max(i - 4, 0) * 0.5);
        for (size_t c = 0; c < 3; ++c) f.s.u[l][c].push_back(c == 0 ? velocity : 0.0);
      }
    const Device device = Device::open("interp");
    const auto r =
        device.download<double>(Loss(transport(3, f.terms), f.mesh).residuals(device, inputs_of(device, f)));
    EXPECT_EQ(r[4], velocity > 0 ? 0.0 : -1.0);
    EXPECT_EQ(r[6], velocity);
    EXPECT_EQ(r[2], 0.0);
  }
}

}  // namespace
}  // namespace lockstep::pde
