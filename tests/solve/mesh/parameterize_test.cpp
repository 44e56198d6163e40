// Tutte's embedding and the measures of maps to the plane.
#include "solve/mesh/parameterize.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "io/test_data.hpp"
#include "lockstep/error.hpp"
#include "solve/mesh/geometry.hpp"
#include "solve/mesh/shapes/generate.hpp"

namespace lockstep::solve::mesh {
namespace {

TEST(Parameterize, TutteTurnsNothingOver) {
  for (const char* name : {"grid:6x9", "dome:2", "dome:4"}) {
    const TriangleMesh mesh = *generate(name);
    const Connectivity t = build_connectivity(mesh, name);
    const std::vector<double> uv = tutte_embedding(mesh, t);
    EXPECT_EQ(turned_over(mesh, uv), 0) << name;
    const double energy = symmetric_dirichlet(mesh, uv);
    EXPECT_GT(energy, 4) << name;
    EXPECT_TRUE(std::isfinite(energy)) << name;
    // Each inner vertex is the mean of its neighbours.
    for (int64_t v = 0; v < t.vertices; ++v) {
      if (t.on_boundary[size_t(v)]) continue;
      double u = 0;
      for (const int32_t w : t.star(v)) u += uv[size_t(2 * w)] / double(t.star(v).size());
      EXPECT_NEAR(u, uv[size_t(2 * v)], 1e-12);
    }
  }
}

TEST(Parameterize, RealMeshWithABoundary) {
  const auto file = test::data_folder() / "solve" / "meshes" / "bunnyhead.obj";
  if (!std::filesystem::exists(file)) GTEST_SKIP() << file << " is not here";
  const TriangleMesh mesh = io::read_mesh(file);
  const Connectivity t = build_connectivity(mesh, "bunnyhead.obj");
  EXPECT_EQ(turned_over(mesh, tutte_embedding(mesh, t)), 0);
}

TEST(Parameterize, StretchesAreSingularValues) {
  const TriangleMesh mesh{{0, 0, 0, 1, 0, 0, 0, 1, 0}, {0, 1, 2}, {}};
  const std::vector<double> s = stretches(mesh, {0, 0, 3, 0, 0, 0.5});
  EXPECT_NEAR(s[0], 3, 1e-14);
  EXPECT_NEAR(s[1], 0.5, 1e-14);
  EXPECT_NEAR(symmetric_dirichlet(mesh, {0, 0, 3, 0, 0, 0.5}), 9 + 0.25 + 1.0 / 9 + 4, 1e-12);
  EXPECT_EQ(turned_over(mesh, {0, 0, 0, 1, 1, 0}), 1);
  EXPECT_EQ(symmetric_dirichlet(mesh, {0, 0, 0, 1, 1, 0}), std::numeric_limits<double>::infinity());
}

TEST(Parameterize, RefusesWhatIsNoDisk) {
  const auto refused = [](const TriangleMesh& mesh) {
    try {
      tutte_embedding(mesh, build_connectivity(mesh, "mesh"));
    } catch (const InputError& error) { return std::string(error.what()); }
    return std::string("accepted");
  };
  EXPECT_EQ(refused(icosphere(1)),
            "a mesh with 0 boundary loops [tutte embedding]: expected one: a disk can be laid flat");
  EXPECT_EQ(refused(cylinder(6, 2)),
            "a mesh with 2 boundary loops [tutte embedding]: expected one: a disk can be laid flat");
  TriangleMesh two = grid(2, 2);
  const TriangleMesh other = grid(2, 2);
  for (const int32_t v : other.faces) two.faces.push_back(v + 4);
  for (const double x : other.vertices) two.vertices.push_back(x + 3);
  EXPECT_EQ(refused(two), "a mesh of 2 pieces [tutte embedding]: expected one piece");
}

}  // namespace
}  // namespace lockstep::solve::mesh
