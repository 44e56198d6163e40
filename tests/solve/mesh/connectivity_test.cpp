// Connectivity of generated and real meshes, and every refusal.
#include "solve/mesh/connectivity.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <random>
#include <set>

#include "io/test_data.hpp"
#include "lockstep/error.hpp"
#include "solve/mesh/geometry.hpp"
#include "solve/mesh/shapes/generate.hpp"

namespace lockstep::solve::mesh {
namespace {

// True of every oriented manifold.
void check_connectivity(const TriangleMesh& mesh, const Connectivity& t) {
  EXPECT_TRUE(std::is_sorted(t.edges.begin(), t.edges.end()));
  size_t boundary_edges = 0;
  for (const auto& loop : t.boundary_loops) boundary_edges += loop.size();
  EXPECT_EQ(t.hinges.size() + boundary_edges, t.edges.size());
  EXPECT_EQ(3 * t.triangles, int64_t(2 * t.hinges.size() + boundary_edges));
  EXPECT_EQ(t.ring.size(), 2 * t.edges.size());
  std::set<std::array<int32_t, 3>> faces;
  for (int64_t f = 0; f < mesh.face_count(); ++f) {
    const auto [a, b, c] = triangle(mesh, f);
    faces.insert({a, b, c});
    faces.insert({b, c, a});
    faces.insert({c, a, b});
  }
  for (const Hinge& h : t.hinges) {
    EXPECT_TRUE(faces.count({h.a, h.b, h.c}));
    EXPECT_TRUE(faces.count({h.b, h.a, h.d}));
  }
  int64_t corners = 0;
  for (int64_t v = 0; v < t.vertices; ++v) {
    const auto ring = t.star(v);
    const size_t spans = t.on_boundary[size_t(v)] ? ring.size() - 1 : ring.size();
    corners += int64_t(spans);
    for (size_t k = 0; k < spans; ++k)
      EXPECT_TRUE(faces.count({int32_t(v), ring[k], ring[(k + 1) % ring.size()]})) << v;
  }
  EXPECT_EQ(corners, 3 * t.triangles);
  for (const auto& loop : t.boundary_loops) {
    for (size_t k = 0; k < loop.size(); ++k) {
      EXPECT_TRUE(t.on_boundary[size_t(loop[k])]);
      EXPECT_GE(edge_index(t, loop[k], loop[(k + 1) % loop.size()]), 0);
    }
  }
  // Gauss-Bonnet.
  double defects = 0;
  for (const double d : angle_defects(mesh, t)) defects += d;
  EXPECT_NEAR(defects, 2 * std::numbers::pi * double(t.euler_characteristic()), 1e-9 * double(t.vertices));
}

TEST(MeshConnectivity, IcospheresAreSpheres) {
  for (int level = 0; level <= 4; ++level) {
    const TriangleMesh mesh = icosphere(level);
    EXPECT_EQ(mesh.vertex_count(), 10 * (int64_t(1) << (2 * level)) + 2);
    const Connectivity t = build_connectivity(mesh, "icosphere");
    check_connectivity(mesh, t);
    EXPECT_EQ(t.euler_characteristic(), 2);
    EXPECT_EQ(t.components, 1);
    EXPECT_TRUE(t.boundary_loops.empty());
    int five = 0;
    for (int64_t v = 0; v < t.vertices; ++v) {
      five += t.star(v).size() == 5;
      EXPECT_NEAR(length(point(mesh, v)), 1, 1e-15);
    }
    EXPECT_EQ(five, 12);
    for (int64_t f = 0; f < mesh.face_count(); ++f)
      EXPECT_GT(dot(normal_of(mesh, f), point(mesh, triangle(mesh, f)[0])), 0) << "normals point outwards";
  }
  EXPECT_NEAR(total_area(icosphere(5)), 4 * std::numbers::pi, 0.02);
  EXPECT_THROW(icosphere(9), InputError);
  EXPECT_THROW(icosphere(-1), InputError);
}

TEST(MeshConnectivity, OpenAndClosedGeneratedMeshes) {
  struct Expected {
    const char* name;
    int64_t vertices, euler;
    size_t loops;
  };
  for (const Expected& e : {Expected{"grid:5x7", 35, 1, 1}, Expected{"cylinder:9x4", 45, 0, 2},
                            Expected{"bar:3x5", 16 * 2 + 12 * 4, 2, 0}, Expected{"dome:3", 0, 1, 1}}) {
    const TriangleMesh mesh = *generate(e.name);
    const Connectivity t = build_connectivity(mesh, e.name);
    check_connectivity(mesh, t);
    EXPECT_EQ(t.euler_characteristic(), e.euler) << e.name;
    EXPECT_EQ(t.boundary_loops.size(), e.loops) << e.name;
    if (e.vertices > 0) { EXPECT_EQ(t.vertices, e.vertices) << e.name; }
  }
  EXPECT_NEAR(total_area(grid(11, 6)), 0.5, 1e-12);
  EXPECT_NEAR(total_area(bar(2, 6)), 2 + 4 * 3, 1e-12);
  EXPECT_FALSE(generate("spot.obj").has_value());
  EXPECT_FALSE(generate("C:spot.obj").has_value());
  for (const char* wrong :
       {"grid:5", "grid:5x", "grid:5x6x7", "icosphere:", "icosphere:two", "bar:0x3", "grid:1x5"})
    EXPECT_THROW(generate(wrong), InputError) << wrong;
}

TEST(MeshConnectivity, GridsHaveTheirLoopWithTheSurfaceOnItsLeft) {
  const TriangleMesh mesh = grid(3, 4);
  const Connectivity t = build_connectivity(mesh, "grid");
  ASSERT_EQ(t.boundary_loops.size(), 1u);
  const auto& loop = t.boundary_loops[0];
  EXPECT_EQ(loop.size(), 10u);
  double area = 0;
  for (size_t k = 0; k < loop.size(); ++k)
    area += 0.5 * cross(point(mesh, loop[k]), point(mesh, loop[(k + 1) % loop.size()]))[2];
  EXPECT_NEAR(area, 2.0 / 3, 1e-12) << "counter-clockwise";
}

TEST(MeshConnectivity, PermutedTrianglesGiveTheSameStars) {
  TriangleMesh mesh = dome(2);
  const Connectivity before = build_connectivity(mesh, "dome");
  std::mt19937 random(7);
  std::vector<std::array<int32_t, 3>> faces;
  for (int64_t f = 0; f < mesh.face_count(); ++f) {
    auto corners = triangle(mesh, f);
    std::rotate(corners.begin(), corners.begin() + random() % 3, corners.end());
    faces.push_back(corners);
  }
  std::shuffle(faces.begin(), faces.end(), random);
  for (size_t f = 0; f < faces.size(); ++f)
    std::copy(faces[f].begin(), faces[f].end(), mesh.faces.begin() + 3 * f);
  const Connectivity after = build_connectivity(mesh, "dome");
  EXPECT_EQ(after.edges, before.edges);
  EXPECT_EQ(after.ring, before.ring);
  EXPECT_EQ(after.on_boundary, before.on_boundary);
}

std::string refusal(const TriangleMesh& mesh) {
  try {
    build_connectivity(mesh, "test.obj");
  } catch (const InputError& error) { return error.what(); }
  return "accepted";
}

TEST(MeshConnectivity, RefusesWhatIsNotAManifold) {
  const std::vector<double> square = {0, 0, 0, 1, 0, 0, 1, 1, 0, 0, 1, 0, 0.5, 0.5, 1};
  const auto with = [&](std::vector<int32_t> faces, std::vector<double> vertices) {
    return refusal({std::move(vertices), std::move(faces), {}});
  };
  EXPECT_EQ(with({}, square), "5 vertices and 0 triangles [test.obj]: expected a mesh that is not empty");
  EXPECT_EQ(with({0, 1, 2}, {}), "0 vertices and 1 triangles [test.obj]: expected a mesh that is not empty");
  EXPECT_EQ(with({0, 1, 5}, square), "triangle 0 has vertex 5 [test.obj]: expected vertices 0 to 4");
  EXPECT_EQ(with({0, 1, -1}, square), "triangle 0 has vertex -1 [test.obj]: expected vertices 0 to 4");
  EXPECT_EQ(with({0, 1, 2, 1, 2, 1}, square),
            "triangle 1 (1, 2, 1) has a vertex twice [test.obj]: expected three different vertices");
  EXPECT_EQ(with({0, 1, 2, 0, 2, 3}, {0, 0, 0, 1, 0, 0, 1, 1, 0, 0.5, 0.5, 0}),
            "triangle 1 (0, 2, 3) has no area [test.obj]: expected triangles that are not degenerate");
  EXPECT_EQ(with({0, 1, 2, 0, 2, 3}, square),
            "vertex 4 belongs to no triangle [test.obj]: expected vertices that triangles use");
  EXPECT_EQ(with({0, 1, 2, 1, 0, 3, 0, 1, 4}, square),
            "edge 0-1 has 3 triangles (0, 2, 1) [test.obj]: expected at most two triangles at an edge");
  EXPECT_EQ(with({0, 1, 2, 0, 1, 3, 1, 2, 4}, square),
            "triangles 0 and 1 run the same way along edge 0-1 [test.obj]: expected one orientation of all "
            "triangles");
  EXPECT_EQ(
      with({0, 1, 4, 2, 3, 4}, square),
      "two fans of triangles meet at vertex 4 [test.obj]: expected one fan of triangles around each vertex");
  std::vector<double> broken = square;
  broken[7] = std::nan("");
  EXPECT_EQ(with({0, 1, 2, 0, 2, 3, 0, 1, 4}, broken),
            "vertex 2 has nan [test.obj]: expected finite positions");
}

// Two closed fans that share their middle: both tetrahedra are closed there.
TEST(MeshConnectivity, RefusesClosedFansThatTouch) {
  TriangleMesh mesh{{0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, -1, 0, 0, 0, -1, 0, 0, 0, -1}, {}, {}};
  const auto tetrahedron = [&](int32_t a, int32_t b, int32_t c, int32_t d) {
    mesh.faces.insert(mesh.faces.end(), {a, c, b, a, b, d, a, d, c, b, c, d});
  };
  tetrahedron(0, 1, 2, 3);
  tetrahedron(0, 4, 5, 6);
  EXPECT_EQ(
      refusal(mesh),
      "two fans of triangles meet at vertex 0 [test.obj]: expected one fan of triangles around each vertex");
}

// Random small meshes are refused, or have a consistent connectivity.
TEST(MeshConnectivity, RandomMeshesAreRefusedOrConsistent) {
  std::mt19937 random(17);
  std::uniform_real_distribution<double> share(-1, 1);
  int accepted = 0;
  for (int trial = 0; trial < 100000; ++trial) {
    const int32_t vertices = 3 + int32_t(random() % 4), faces = 1 + int32_t(random() % 5);
    TriangleMesh mesh;
    for (int32_t k = 0; k < 3 * vertices; ++k) mesh.vertices.push_back(share(random));
    for (int32_t k = 0; k < 3 * faces; ++k)
      mesh.faces.push_back(int32_t(random() % uint32_t(vertices + (trial % 50 == 0))));
    try {
      const Connectivity t = build_connectivity(mesh, "random");
      check_connectivity(mesh, t);
      ++accepted;
    } catch (const InputError&) {}
  }
  EXPECT_GT(accepted, 500);
}

TEST(MeshConnectivity, ClassifiesCurvature) {
  const TriangleMesh tube = cylinder(12, 5);
  const std::vector<Curvature> of_tube = classify_curvature(tube, build_connectivity(tube, "tube"));
  EXPECT_EQ(std::count(of_tube.begin(), of_tube.end(), Curvature::boundary), 24);
  EXPECT_EQ(std::count(of_tube.begin(), of_tube.end(), Curvature::hinge), 48);
  const TriangleMesh ball = icosphere(2);
  const std::vector<Curvature> of_ball = classify_curvature(ball, build_connectivity(ball, "ball"));
  EXPECT_EQ(std::count(of_ball.begin(), of_ball.end(), Curvature::seam), ball.vertex_count());
}

TEST(MeshConnectivity, RealMeshes) {
  const auto folder = test::data_folder() / "solve" / "meshes";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << folder << " is not here";
  for (const char* name : {"spot.obj", "bunnyhead.obj", "cloth.obj"}) {
    const TriangleMesh mesh = io::read_mesh(folder / name);
    const Connectivity t = build_connectivity(mesh, name);
    check_connectivity(mesh, t);
  }
  // Six triangles close around its vertex 253, and four others touch it.
  EXPECT_EQ(refusal(io::read_mesh(folder / "cow.obj")),
            "two fans of triangles meet at vertex 253 [test.obj]: expected one fan of triangles around each "
            "vertex");
}

}  // namespace
}  // namespace lockstep::solve::mesh
