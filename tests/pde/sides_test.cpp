// Values of sides that are given with the data: parameters and profiles, by component, in time.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "lockstep/error.hpp"
#include "lockstep/pde.hpp"
#include "pde/problems.hpp"

namespace lockstep::pde {
namespace {

using testing::devices;

std::vector<double> random_numbers(int64_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> range(-1, 1);
  std::vector<double> v(static_cast<size_t>(n));
  for (double& x : v) x = range(random);
  return v;
}

std::vector<double> all_numbers(const Device& device, const BoundLoss& bound) {
  bound.run();
  std::vector<double> all{bound.loss()};
  for (const char* field : {"sigma", "u"})
    for (int level = -1; level <= 1; ++level)
      for (const double x : device.download<double>(bound.gradient(field, level))) all.push_back(x);
  return all;
}

TEST(Sides, AParameterGivesWhatTheNumberGives) {
  for (const Device& device : devices())
    for (const Path path : {Path::two_kernel, Path::fused, Path::two_sweep})
      for (const int order : {2, 4}) {
        if (order == 4 && path != Path::two_kernel) continue;
        const std::array<int64_t, 3> cells{12, 9, 11};
        const auto state = testing::random_state<double>(testing::mesh_of(cells, "clamp"), 3);
        LossOptions options;
        options.path = path;
        const Mesh number = testing::mesh_of(
                       cells, "x-=dirichlet_face:0.7,x+=clamp,y=no_slip,z-=clamp,z+=ghost:0.7", order),
                   name = testing::mesh_of(
                       cells, "x-=dirichlet_face:@b,x+=clamp,y=no_slip,z-=clamp,z+=ghost:@b", order);
        System system = transport(3);
        system.parameter("b");
        const Loss by_name(system, name);
        Inputs inputs = testing::upload(device, name, state);
        inputs.parameters["b"] = 0.1;
        const auto other = all_numbers(device, by_name.bind(device, inputs, options));
        inputs.parameters["b"] = 0.7;
        const auto got = all_numbers(device, by_name.bind(device, inputs, options));
        const auto want = all_numbers(
            device, Loss(transport(3), number).bind(device, testing::upload(device, number, state), options));
        ASSERT_EQ(got.size(), want.size());
        for (size_t i = 0; i < got.size(); ++i) {
          if (order == 2)
            ASSERT_EQ(got[i], want[i]) << device.info().name << " " << lockstep::pde::name(path) << " " << i;
          else
            ASSERT_NEAR(got[i], want[i], 1e-12 * (1 + std::abs(want[i])))
                << lockstep::pde::name(path) << " " << i;
        }
        EXPECT_NE(other[0], got[0]);
      }
}

// A field of two components with a boundary each is two fields with these boundaries.
TEST(Sides, ComponentsHaveBoundariesOfTheirOwn) {
  const Device device = Device::open("interp");
  const Mesh mesh = testing::mesh_of({7, 8, 1}, "clamp");
  const BoundaryConditions first = BoundaryConditions::parse("x=dirichlet_face:0.5,y=clamp,z=clamp"),
                           second = BoundaryConditions::parse(
                               "x=reflect_odd,y-=clamp,y+=dirichlet_face:@lid,z=clamp");
  System both(2), apart(2);
  for (System* s : {&both, &apart}) s->parameter("lid");
  const Field u = both.field("u", {first, second});
  const Field a = apart.field("a", 1, first), b = apart.field("b", 1, second);
  both.residual("r", both.dx(u, 0) * both.dy(u, 1) + both.laplacian(u, 1) - both.d2(u, 0, 0));
  apart.residual("r", apart.dx(a) * apart.dy(b) + apart.laplacian(b) - apart.d2(a, 0));
  const auto x = random_numbers(56, 1), y = random_numbers(56, 2);
  std::vector<double> xy = x;
  xy.insert(xy.end(), y.begin(), y.end());
  Inputs in, in_apart;
  in.parameters = in_apart.parameters = {{"lid", 1.25}};
  in.fields["u"][1] = device.upload(std::span<const double>(xy), {2, 8, 7});
  in_apart.fields["a"][1] = device.upload(std::span<const double>(x), {8, 7});
  in_apart.fields["b"][1] = device.upload(std::span<const double>(y), {8, 7});
  EXPECT_EQ(device.download<double>(Loss(both, mesh).residuals(device, in)),
            device.download<double>(Loss(apart, mesh).residuals(device, in_apart)));
}

/// The Laplacian of second order with ghosts written out: prescribed faces at x- (profile over y) and y+ (over x), mirrors
/// elsewhere.
std::vector<double> laplacian_by_hand(const Mesh& m, const std::vector<double>& f,
                                      const std::vector<double>& west, const std::vector<double>& north) {
  const int64_t nx = m.cells[0], ny = m.cells[1];
  const auto at = [&](int64_t y, int64_t x) {
    if (x < 0) return 2 * west[size_t(y)] - f[size_t(y * nx)];
    if (y == ny) return 2 * north[size_t(x)] - f[size_t((ny - 1) * nx + x)];
    return f[size_t(std::max<int64_t>(y, 0) * nx + std::min(x, nx - 1))];
  };
  const double wx = 1 / (m.spacing[0] * m.spacing[0]), wy = 1 / (m.spacing[1] * m.spacing[1]);
  std::vector<double> r;
  for (int64_t y = 0; y < ny; ++y)
    for (int64_t x = 0; x < nx; ++x)
      r.push_back(wx * (at(y, x + 1) - 2 * at(y, x) + at(y, x - 1)) +
                  wy * (at(y + 1, x) - 2 * at(y, x) + at(y - 1, x)));
  return r;
}

struct HeatedBox {
  Mesh mesh = testing::mesh_of({6, 5, 1},
                               "x-=dirichlet_face:@west,x+=clamp,y-=clamp,y+=dirichlet_face:@north,z=clamp");
  System system{2};
  std::vector<double> t = random_numbers(30, 7), west = random_numbers(5, 8), north = random_numbers(6, 9);
  HeatedBox() {
    system.profile("west");
    system.profile("north");
    system.residual("laplace", system.laplacian(system.field("t")));
  }
  Inputs inputs(const Device& device) const {
    Inputs in;
    in.fields["t"][1] = device.upload(std::span<const double>(t), {5, 6});
    in.profiles["west"] = device.upload(std::span<const double>(west), {5});
    in.profiles["north"] = device.upload(std::span<const double>(north), {1, 6});
    return in;
  }
  double loss() const {
    double sum = 0;
    for (const double r : laplacian_by_hand(mesh, t, west, north)) sum += r * r / 30;
    return sum;
  }
};

TEST(Sides, ProfilesGiveGhostsCellByCell) {
  const HeatedBox box;
  for (const Device& device : devices()) {
    const auto got =
        device.download<double>(Loss(box.system, box.mesh).residuals(device, box.inputs(device)));
    const auto want = laplacian_by_hand(box.mesh, box.t, box.west, box.north);
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < want.size(); ++i)
      EXPECT_NEAR(got[i], want[i], 1e-12 * (1 + std::abs(want[i]))) << i;
  }
}

// The loss is quadratic in each number, so that a central difference is exact but for rounding.
TEST(Sides, DerivativesByEachNumberOfAProfile) {
  HeatedBox box;
  const Device device = Device::open("interp");
  const auto sides = Loss(box.system, box.mesh).boundary_gradients(device, box.inputs(device));
  ASSERT_EQ(sides.size(), 2u);
  for (const auto& side : sides) {
    std::vector<double>& profile = side.parameter == "west" ? box.west : box.north;
    ASSERT_EQ(side.cells.size(), profile.size()) << side.parameter;
    double sum = 0;
    for (size_t i = 0; i < profile.size(); ++i) {
      const double own = profile[i];
      profile[i] = own + 0.5;
      const double above = box.loss();
      profile[i] = own - 0.5;
      const double below = box.loss();
      profile[i] = own;
      EXPECT_NEAR(side.cells[i], above - below, 1e-9 * (1 + above)) << side.parameter << " " << i;
      sum += above - below;
    }
    EXPECT_NEAR(side.value, sum, 1e-9 * (1 + std::abs(sum)));
  }
}

// Constant profiles are the number, on all paths and axes.
TEST(Sides, ConstantProfilesAreTheNumber) {
  for (const Device& device : devices())
    for (const Path path : {Path::two_kernel, Path::fused}) {
      const std::array<int64_t, 3> cells{10, 9, 8};
      const auto state = testing::random_state<double>(testing::mesh_of(cells, "clamp"), 5);
      const Mesh number = testing::mesh_of(
                     cells, "x-=dirichlet_face:0.3,x+=clamp,y=dirichlet_face:0.3,z-=clamp,z+=ghost:0.3"),
                 name = testing::mesh_of(
                     cells, "x-=dirichlet_face:@a,x+=clamp,y=dirichlet_face:@b,z-=clamp,z+=ghost:@c");
      System system = transport(3);
      for (const char* profile : {"a", "b", "c"}) system.profile(profile);
      LossOptions options;
      options.path = path;
      Inputs inputs = testing::upload(device, name, state);
      const std::vector<double> flat(100, 0.3);
      inputs.profiles["a"] = device.upload(std::span(flat).first(72), {8, 9});
      inputs.profiles["b"] = device.upload(std::span(flat).first(80), {8, 10});
      inputs.profiles["c"] = device.upload(std::span(flat).first(90), {9, 10});
      EXPECT_EQ(all_numbers(device, Loss(system, name).bind(device, inputs, options)),
                all_numbers(
                    device,
                    Loss(transport(3), number).bind(device, testing::upload(device, number, state), options)))
          << device.info().name << " " << lockstep::pde::name(path);
    }
}

struct Driven {
  Mesh mesh = testing::mesh_of({6, 5, 1}, "x=dirichlet_face:@wall,y-=clamp,y+=dirichlet_face:@top,z=clamp");
  System system{2};
  Driven() {
    system.parameter("wall");
    system.profile("top");
    const Field t = system.field("t");
    system.residual("heat", system.dt(t) - 0.1 * system.laplacian(t) + system.at(t) * system.dx(t));
  }
};

// The loss of a trajectory is that of its windows of three levels, each with the values of its middle.
TEST(Sides, ValuesInTime) {
  const Driven driven;
  const Loss loss(driven.system, driven.mesh);
  for (const Device& device : devices()) {
    const std::vector<double> wall{0.1, -0.4, 0.8, 0.3, 2};
    TrajectoryInputs all;
    all.parameters_in_time["wall"] = wall;
    for (uint32_t n = 0; n < 5; ++n) {
      const auto t = random_numbers(30, 40 + n), top = random_numbers(6, 60 + n);
      all.fields["t"].push_back(device.upload(std::span<const double>(t), {5, 6}));
      all.profiles_in_time["top"].push_back(device.upload(std::span<const double>(top), {6}));
    }
    const BoundLoss bound = loss.bind_trajectory(device, all);
    bound.run();
    double sum = 0;
    std::vector<std::vector<double>> gradients(5, std::vector<double>(30, 0.0));
    for (size_t n = 1; n < 4; ++n) {
      Inputs one;
      one.parameters["wall"] = wall[n];
      one.profiles["top"] = all.profiles_in_time["top"][n];
      for (size_t l = 0; l < 3; ++l) one.fields["t"][l] = all.fields["t"][n - 1 + l];
      const BoundLoss single = loss.bind(device, one);
      single.run();
      sum += single.loss();
      for (size_t l = 0; l < 3; ++l) {
        const auto g = device.download<double>(single.gradient("t", int(l) - 1));
        for (size_t i = 0; i < g.size(); ++i) gradients[n - 1 + l][i] += g[i];
      }
    }
    EXPECT_NEAR(bound.loss(), sum, 1e-12 * sum);
    for (int n = 0; n < 5; ++n) {
      const auto g = device.download<double>(bound.gradient("t", n));
      for (size_t i = 0; i < g.size(); ++i)
        EXPECT_NEAR(g[i], gradients[size_t(n)][i], 1e-11) << n << " " << i;
    }
  }
}

TEST(Sides, WrongNamesAndShapesAreRefused) {
  const Device device = Device::open("interp");
  const HeatedBox box;
  const Loss loss(box.system, box.mesh);
  const auto refused = [&](const std::function<void(Inputs&)>& change) {
    Inputs in = box.inputs(device);
    change(in);
    EXPECT_THROW(loss.bind(device, in), InputError);
  };
  refused([](Inputs& in) { in.profiles.erase("west"); });
  refused([](Inputs& in) { in.profiles["east"] = in.profiles["west"]; });
  refused([](Inputs& in) { in.profiles["west"] = in.profiles["north"]; });
  refused([](Inputs& in) { in.profiles["west"] = Buffer(); });
  refused([](Inputs& in) { in.parameters["west"] = 1; });
  refused([&](Inputs& in) { in.profiles["west"] = device.upload(std::vector<float>(5, 0.0f)); });

  System unknown(2);
  unknown.residual("r", unknown.dx(unknown.field("t")));
  EXPECT_THROW(Loss(unknown, box.mesh), InputError);
  System twice(2);
  twice.profile("side");
  twice.residual("r", twice.dx(twice.field("t")));
  EXPECT_THROW(twice.profile("side"), InputError);
  System both_axes(2);
  both_axes.profile("side");
  both_axes.residual("r", both_axes.dx(both_axes.field("t")));
  EXPECT_THROW(Loss(both_axes, testing::mesh_of({6, 6, 1}, "x=ghost:@side,y=ghost:@side,z=clamp")),
               InputError);
  EXPECT_THROW(BoundaryConditions::parse("ghost:@"), InputError);
  EXPECT_EQ(BoundaryConditions::parse("y+=dirichlet_face:@lid,y-=clamp").text(),
            "x=periodic,y-=clamp,y+=dirichlet_face:@lid,z=periodic");

  const Driven driven;
  const Loss in_time(driven.system, driven.mesh);
  const auto refused_in_time = [&](const std::function<void(TrajectoryInputs&)>& change) {
    TrajectoryInputs in;
    in.parameters_in_time["wall"] = {0, 0, 0};
    const std::vector<double> zeros(30, 0.0);
    for (int n = 0; n < 3; ++n) {
      in.fields["t"].push_back(device.upload(std::span(zeros), {5, 6}));
      in.profiles_in_time["top"].push_back(device.upload(std::span(zeros).first(6), {6}));
    }
    in_time.bind_trajectory(device, in);
    change(in);
    EXPECT_THROW(in_time.bind_trajectory(device, in), InputError);
  };
  refused_in_time([](TrajectoryInputs& in) { in.parameters_in_time["wall"].pop_back(); });
  refused_in_time([](TrajectoryInputs& in) { in.parameters_in_time["wall"][1] = NAN; });
  refused_in_time([](TrajectoryInputs& in) { in.parameters["wall"] = 0; });
  refused_in_time([](TrajectoryInputs& in) { in.profiles_in_time["top"].pop_back(); });
}

}  // namespace
}  // namespace lockstep::pde
