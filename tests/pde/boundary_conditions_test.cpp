#include <gtest/gtest.h>

#include "lockstep/error.hpp"
#include "lockstep/pde.hpp"
#include "pde/problems.hpp"

namespace lockstep::pde {
namespace {

TEST(BoundaryConditions, ParsesAxesAndSides) {
  const BoundaryConditions b =
      BoundaryConditions::parse("x=clamp,y-=dirichlet_face:1.5,y+=ghost:-2,z=one_sided2");
  EXPECT_EQ(b.sides[0][0].rule, Rule::clamp);
  EXPECT_EQ(b.sides[0][1].rule, Rule::clamp);
  EXPECT_EQ(b.sides[1][0], (Side{Rule::dirichlet_face, 1.5}));
  EXPECT_EQ(b.sides[1][1], (Side{Rule::ghost, -2}));
  EXPECT_EQ(b.sides[2][1].rule, Rule::one_sided2);
  EXPECT_EQ(BoundaryConditions::parse("no_slip").sides[2][0].rule, Rule::no_slip);
  EXPECT_EQ(BoundaryConditions::parse("x=clamp").sides[1][0].rule, Rule::periodic);
  EXPECT_EQ(BoundaryConditions::parse("clamp,z=periodic").sides[2][1].rule, Rule::periodic);
  EXPECT_EQ(BoundaryConditions::parse("ghost_zero").sides[0][0], (Side{Rule::ghost, 0}));
}

TEST(BoundaryConditions, TextReadsBack) {
  for (const char* text : {"periodic", "clamp", "x=clamp,y-=dirichlet_face:1.5,y+=ghost:-2,z=one_sided2",
                           "ghost_zero", "x=free_slip,y=node_mirror,z=periodic"}) {
    const BoundaryConditions b = BoundaryConditions::parse(text);
    EXPECT_EQ(BoundaryConditions::parse(b.text()).sides, b.sides) << b.text();
  }
}

TEST(BoundaryConditions, RefusesWhatItDoesNotKnow) {
  for (const char* text :
       {"", "wall", "x=wall", "w=clamp", "x*=clamp", "x=clamp:3", "dirichlet_face", "ghost:abc", "ghost:nan",
        "ghost:1e999", "x-=clamp", "x-=periodic,x+=clamp", "x=clamp,", "xx=clamp", "periodic:1",
        "periodic,clamp", "x=clamp,x=no_slip", "y-=clamp,y+=clamp,y-=clamp"})
    EXPECT_THROW(BoundaryConditions::parse(text), InputError) << text;
}

// The loss is quadratic in b, so a central difference over any step is exact but for rounding.
TEST(BoundaryConditions, DerivativesByPrescribedValues) {
  const Device device = Device::open("interp");
  for (const char* form : {"x-=dirichlet_face:{},x+=clamp", "y+=dirichlet_face:{},y-=no_slip,z=ghost:0.3",
                           "z-=ghost:{},z+=dirichlet_face:2", "x=dirichlet_face:{}"})
    for (int order : {2, 4, 8}) {
      const double b = 0.7, step = 0.25;
      const auto text = [&](double value) {
        std::string s = form;
        s.replace(s.find("{}"), 2, std::to_string(value));
        return s;
      };
      const std::array<int64_t, 3> cells{9, 10, 11};
      TransportOptions options;
      options.viscosity = 0.2;
      const auto state = testing::random_state<double>(testing::mesh_of(cells, "clamp"), 4);
      const auto loss_of = [&](double value) {
        const Mesh mesh = testing::mesh_of(cells, text(value), order);
        const BoundLoss bound =
            Loss(transport(3, options), mesh).bind(device, testing::upload(device, mesh, state));
        bound.run();
        return bound.loss();
      };
      const double slope = (loss_of(b + step) - loss_of(b - step)) / (2 * step);
      const Mesh mesh = testing::mesh_of(cells, text(b), order);
      const Loss loss(transport(3, options), mesh);
      double sum = 0, size = 0;
      for (const auto& g : loss.boundary_gradients(device, testing::upload(device, mesh, state))) {
        const Side& side = mesh.boundary.sides[size_t(g.axis)][size_t(g.end)];
        if (side.value != b) continue;  // of the sides that move
        sum += g.value;
        size += std::abs(g.value);
      }
      EXPECT_GT(size, 0) << form;
      EXPECT_NEAR(sum, slope, 1e-10 * (size + loss_of(b))) << form << " order " << order;
    }
}

}  // namespace
}  // namespace lockstep::pde
