// The plain reference against complex steps: every gradient, every boundary, every order.
#include <gtest/gtest.h>

#include <complex>

#include "pde/problems.hpp"

namespace lockstep::pde {
namespace {

using testing::boundaries;
using testing::mesh_of;
using testing::random_state;
using Complex = std::complex<double>;

void expect_exact(const Mesh& mesh, bool masked) {
  const auto state = random_state<double>(mesh, 5);
  std::mt19937 random(9);
  std::vector<double> mask;
  if (masked) {
    mask = testing::random_array<double>(random, size_t(mesh.count()));
    for (double& m : mask) m = m > 0 ? 1 : 0;
  }
  auto result = reference::evaluate(mesh, state, mask, 1.3, 0.6);
  auto complex_state = testing::convert<Complex>(state);
  const std::vector<Complex> complex_mask(mask.begin(), mask.end());
  auto inputs = testing::arrays(complex_state);
  auto gradients = testing::arrays(result.gradient);
  double scale = 0;
  for (const auto* g : gradients)
    for (double v : *g) scale = std::max(scale, std::abs(v));
  std::uniform_int_distribution<size_t> pick(0, size_t(mesh.count()) - 1);
  for (size_t k = 0; k < inputs.size(); ++k)
    for (int n = 0; n < 6; ++n) {
      const size_t at = n == 0 ? 0 : n == 1 ? size_t(mesh.count()) - 1 : pick(random);
      (*inputs[k])[at] += Complex(0, 1e-30);
      const auto moved = reference::evaluate(mesh, complex_state, complex_mask, 1.3, 0.6);
      (*inputs[k])[at] = (*inputs[k])[at].real();
      const double exact = (moved.loss_sigma + moved.loss_u).imag() / 1e-30;
      EXPECT_NEAR((*gradients[k])[at], exact, 1e-12 * scale)
          << mesh.boundary.text() << " order " << mesh.order << " array " << k << " cell " << at;
    }
}

TEST(Reference, GradientsEqualComplexSteps) {
  for (const std::string& b : boundaries()) expect_exact(mesh_of({5, 4, 6}, b), false);
}
TEST(Reference, HigherOrders) {
  for (int order : {4, 6, 8})
    for (const std::string b : {"periodic", "no_slip", "x=clamp,y=one_sided2,z=node_mirror"})
      expect_exact(mesh_of({6, 9, 7}, b, order), false);
}
TEST(Reference, MasksAndThinGrids) {
  expect_exact(mesh_of({5, 4, 6}, "free_slip"), true);
  expect_exact(mesh_of({7, 1, 1}, "clamp"), false);
  expect_exact(mesh_of({1, 5, 1}, "x=periodic,y=dirichlet_face:1,z=ghost:0.5"), true);
}

}  // namespace
}  // namespace lockstep::pde
