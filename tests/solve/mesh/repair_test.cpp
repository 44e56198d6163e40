// Faults of a mesh, and the part of it that repair leaves.
#include "solve/mesh/repair.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <random>

#include "io/test_data.hpp"
#include "lockstep/error.hpp"
#include "solve/mesh/connectivity.hpp"
#include "solve/mesh/shapes/generate.hpp"

namespace lockstep::solve::mesh {
namespace {

TEST(MeshRepair, LeavesGoodMeshesAlone) {
  for (const TriangleMesh& mesh : {icosphere(2), grid(4, 5), bar(2, 3)}) {
    const Repair r = repair(mesh);
    EXPECT_FALSE(r.changed());
    EXPECT_EQ(r.mesh.vertices, mesh.vertices);
    EXPECT_EQ(r.mesh.faces, mesh.faces);
  }
}

TEST(MeshRepair, WeldsASoupOfTriangles) {
  const TriangleMesh sphere = icosphere(1);
  TriangleMesh soup;
  for (const int32_t v : sphere.faces) {
    const Point p = point(sphere, v);
    soup.faces.push_back(int32_t(soup.vertex_count()));
    soup.vertices.insert(soup.vertices.end(), p.begin(), p.end());
  }
  const Repair r = repair(soup);
  EXPECT_EQ(r.welded, soup.vertex_count() - sphere.vertex_count());
  const Connectivity t = build_connectivity(r.mesh, "soup");
  EXPECT_EQ(t.vertices, sphere.vertex_count());
  EXPECT_EQ(t.euler_characteristic(), 2);
}

TEST(MeshRepair, TurnsTheSmallerPart) {
  TriangleMesh mesh = icosphere(2);
  for (const size_t t : {3, 50, 51, 200}) std::swap(mesh.faces[3 * t], mesh.faces[3 * t + 1]);
  EXPECT_THROW(build_connectivity(mesh, "mixed"), InputError);
  const Repair r = repair(mesh);
  EXPECT_EQ(r.turned, 4);
  const Connectivity t = build_connectivity(r.mesh, "turned");
  EXPECT_TRUE(t.boundary_loops.empty());
  double volume = 0;
  for (int64_t f = 0; f < r.mesh.face_count(); ++f) {
    const auto [a, b, c] = triangle(r.mesh, f);
    volume += dot(point(r.mesh, a), cross(point(r.mesh, b), point(r.mesh, c))) / 6;
  }
  EXPECT_GT(volume, 3.5) << "outward as before";
}

TEST(MeshRepair, DropsWhatIsNoTriangle) {
  // Two triangles, one of them twice (once turned), one without area, a vertex of no triangle.
  const TriangleMesh mesh{
      {9, 9, 9, 0, 0, 0, 1, 0, 0, 0, 1, 0, 1, 1, 0.2, 2, 0, 0}, {1, 2, 3, 2, 4, 3, 3, 2, 1, 1, 2, 5}, {}};
  const Repair r = repair(mesh);
  EXPECT_EQ(r.dropped, 2);
  EXPECT_EQ(r.unused, 2);
  EXPECT_EQ(r.mesh.face_count(), 2);
  EXPECT_EQ(build_connectivity(r.mesh, "two").vertices, 4);
}

TEST(MeshRepair, CutsWhereMoreThanTwoTrianglesOrTwoFansMeet) {
  const TriangleMesh book{{0, 0, 0, 1, 0, 0, 0, 1, 0, 0, -1, 0, 0, 0, 1}, {0, 1, 2, 1, 0, 3, 0, 1, 4}, {}};
  const Repair pages = repair(book);
  EXPECT_EQ(pages.copied, 4) << "both ends of the spine, for two of three pages";
  EXPECT_EQ(build_connectivity(pages.mesh, "book").components, 3);

  const TriangleMesh bow{{0, 0, 0, 1, 0, 0, 1, 1, 0, -1, 0, 0, -1, -1, 0}, {0, 1, 2, 0, 3, 4}, {}};
  EXPECT_THROW(build_connectivity(bow, "bow"), InputError);
  const Repair cut = repair(bow);
  EXPECT_EQ(cut.copied, 1);
  EXPECT_EQ(build_connectivity(cut.mesh, "bow").components, 2);
  EXPECT_EQ(point(cut.mesh, 5), (Point{0, 0, 0})) << "the copy stands at the end, where the vertex is";
}

TEST(MeshRepair, CutsAMoebiusStripOpen) {
  const int n = 12;
  TriangleMesh strip;
  for (int k = 0; k < n; ++k)
    for (const double side : {-0.3, 0.3}) {
      const double t = 2 * std::numbers::pi * k / n, r = 1 + side * std::cos(t / 2);
      strip.vertices.insert(strip.vertices.end(), {r * std::cos(t), r * std::sin(t), side * std::sin(t / 2)});
    }
  for (int k = 0; k < n; ++k) {
    const int a = 2 * k, b = a + 1, c = k + 1 < n ? a + 2 : 1, d = k + 1 < n ? a + 3 : 0;
    strip.faces.insert(strip.faces.end(), {a, c, b, b, c, d});
  }
  EXPECT_THROW(build_connectivity(strip, "strip"), InputError);
  const Repair r = repair(strip);
  EXPECT_EQ(r.copied, 2);
  const Connectivity t = build_connectivity(r.mesh, "strip");
  EXPECT_EQ(t.components, 1);
  EXPECT_EQ(t.euler_characteristic(), 1) << "a disk";
}

TEST(MeshRepair, LeavesWhatHasNoNumbersToTheCheck) {
  const TriangleMesh mesh{{0, 0, 0, 1, 0, NAN, 0, 1, 0}, {0, 1, 2}, {}};
  EXPECT_FALSE(repair(mesh).changed());
  EXPECT_THROW(build_connectivity(repair(mesh).mesh, "nan"), InputError);
}

TEST(MeshRepair, EverySoupBecomesManifoldOrEmpty) {
  std::mt19937 random(11);
  int empty = 0;
  for (int sample = 0; sample < 3000; ++sample) {
    TriangleMesh soup;
    const int vertices = 4 + int(random() % 6), triangles = 1 + int(random() % 24);
    for (int k = 0; k < 3 * vertices; ++k) soup.vertices.push_back(double(random() % 1000) / 100);
    for (int k = 0; k < 3 * triangles; ++k) soup.faces.push_back(int32_t(random() % unsigned(vertices)));
    const Repair r = repair(soup);
    EXPECT_EQ(r.mesh.face_count(), triangles - r.dropped);
    if (r.mesh.face_count() == 0) {
      ++empty;
      continue;
    }
    ASSERT_NO_THROW(build_connectivity(r.mesh, "soup")) << sample;
    EXPECT_FALSE(repair(r.mesh).changed() && repair(r.mesh).dropped > 0) << "copies are no new triangles";
  }
  EXPECT_LT(empty, 600);
}

TEST(MeshRepair, TheCowBecomesManifold) {
  const auto file = test::data_folder() / "solve" / "meshes" / "cow.obj";
  if (!std::filesystem::exists(file)) GTEST_SKIP() << file << " is not here";
  const TriangleMesh cow = io::read_mesh(file);
  EXPECT_THROW(build_connectivity(cow, "cow"), InputError);
  const Repair r = repair(cow);
  EXPECT_GT(r.copied, 0);
  EXPECT_LT(r.copied, 100);
  const Connectivity t = build_connectivity(r.mesh, "cow");
  EXPECT_EQ(t.vertices, cow.vertex_count() - r.welded - r.unused + r.copied);
}

}  // namespace
}  // namespace lockstep::solve::mesh
